//! `AddressTranslator`: IPv6 addresses and ports in place of others.

use super::address_translator_args::{Mappings, Refused};
use castanet_engine::prelude::*;
use castanet_kit::nat6::{self, Bindings, Config, Direction, Refusal};

/// Translates addresses and ports of IPv6 packets, outward and inward.
///
/// Of packets on input 0, which go outward by output 0, the source is
/// translated; of those on input 1, which go inward by output 1, the
/// destination. Arguments, in this order: the number of static mappings; if it
/// is not 0, whether these go by ports too, and the mappings, `INNER OUTER` or
/// `INNER PORT OUTER PORT`; whether addresses are given out to others; if so,
/// whether a port of one address is given out for each flow; the way whose
/// packets get one, 0 outward, 1 inward; and what is given out: addresses, or
/// `ADDRESS FIRST_PORT LAST_PORT`.
///
/// TCP, UDP and ICMPv6 echoes and errors are translated, errors with what they
/// quote; all other packets are dropped. An echo's identifier is its port,
/// except for static mappings. What is given out goes to somebody else after
/// TIMEOUT without a packet, when there is nothing else left.
///
/// ```click
/// in -> at :: AddressTranslator(1, 0, 1::1 2::1, 1, 0, 0, 2::2) -> out;  back -> [1] at;  at[1] -> home
/// > in   [1::1]:5 > [9::9]:6 udp
/// > in   [1::7]:5 > [9::9]:6 tcp
/// > in   [1::8]:5 > [9::9]:6 tcp
/// > in   1::1 > 9::9 proto 99
/// < out  [2::1]:5 > [9::9]:6 udp
/// < out  [2::2]:5 > [9::9]:6 tcp
/// ~ AddressTranslator ran out of addresses
/// ~  discard the packet, protocol unrecognized
/// > back [9::9]:6 > [2::2]:5 tcp
/// > back 8::8 > 2::1 icmp6 type 3 [[2::1]:5 > [9::9]:6 udp]
/// > back [9::9]:6 > [2::3]:5 tcp
/// < home [9::9]:6 > [1::7]:5 tcp
/// < home 8::8 > 1::1 icmp6 type 3 [[1::1]:5 > [9::9]:6 udp]
/// = at.drops.exhausted 1
/// = at.drops.unrecognized 1
/// = at.drops.unmapped 1
/// = at.count 1
/// ```
/// ```click
/// in -> at :: AddressTranslator(0, 1, 1, 0, ::1.0.0.1 6000 6010) -> out;  back -> [1] at;  at[1] -> home
/// > in   [::ffff:0.0.0.2]:5 > [::18.26.4.125]:80 tcp
/// < out  [::1.0.0.1]:6000 > [::18.26.4.125]:80 tcp
/// > back [::18.26.4.125]:80 > [::1.0.0.1]:6000 tcp
/// < home [::18.26.4.125]:80 > [::ffff:0.0.0.2]:5 tcp
/// ```
#[derive(Element)]
#[element(room = "nat", args = Mappings, ports = "1-2/1-2", processing = "h/h", gives = "ip6")]
pub struct AddressTranslator {
    plan: Config,
}

impl Build for AddressTranslator {
    type Args = Mappings;
    fn build(args: Mappings, setup: &Setup) -> Result<Self, ArgError> {
        Ok(AddressTranslator { plan: args.plan(setup.names)? })
    }
}

/// Where packets go.
#[derive(Fate)]
pub enum Translated {
    /// Outward packets.
    Outward,
    /// Inward packets.
    #[optional]
    Inward,
    /// Packets for which no mapping says who stands for whom.
    #[drop]
    Unmapped,
    /// Packets for which all addresses or ports were given out.
    #[drop]
    Exhausted,
    /// Packets that are neither TCP, UDP, ICMPv6 echoes nor errors.
    #[drop]
    Unrecognized,
}

/// What was given out, and what has been reported.
#[derive(Default, Local)]
#[local(methods)]
pub struct Given {
    bindings: Bindings,
    told: Refused,
}

#[handlers]
impl Given {
    /// Addresses or ports that are given out.
    #[read]
    fn count(&self) -> usize {
        self.bindings.len()
    }
}

impl PerBatch for AddressTranslator {
    type On = on::Ipv6;
    type Local = Given;
    type Fate = Translated;
    // What one worker gives out, all know.
    const SHARED: bool = true;

    fn continues(&self, before: &AddressTranslator) -> bool {
        self.plan.has_same_pool(&before.plan)
    }

    fn batch(&self, given: &mut Given, port: usize, batch: Batch, cx: &mut Cx) {
        let (way, exit) = match port {
            0 => (Direction::Outward, Translated::Outward),
            _ => (Direction::Inward, Translated::Inward),
        };
        let now = cx.now().since(Time::default());
        for mut packet in batch {
            let fate = match self.translate(given, way, &mut packet, now) {
                Ok(()) => exit,
                Err(fate) => fate,
            };
            cx.emit(fate, packet);
        }
        given.told.report(cx);
    }
}

impl AddressTranslator {
    fn translate(
        &self,
        given: &mut Given,
        way: Direction,
        packet: &mut Packet,
        now: u64,
    ) -> Result<(), Translated> {
        let unrecognized = Translated::Unrecognized;
        let mut ip = packet.ipv6().ok_or(unrecognized)?;
        let parties = nat6::parse_endpoints(ip.datagram(), way).ok_or_else(|| {
            given.told.protocol();
            unrecognized
        })?;
        match given.bindings.translate(&self.plan, way, &parties, now) {
            Ok(new) => nat6::rewrite(ip.datagram_mut(), way, new),
            Err(Refusal::Unmapped) => return Err(Translated::Unmapped),
            Err(Refusal::Exhausted) => {
                given.told.exhausted();
                return Err(Translated::Exhausted);
            }
        }
        Ok(())
    }
}
