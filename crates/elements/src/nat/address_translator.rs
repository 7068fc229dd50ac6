//! `AddressTranslator`: translates IPv6 addresses and ports.

use super::address_translator_args::AddressTranslatorArgs;
use super::address_translator_state::AddressTranslatorState;
use crate::ip::transport::mark_at_start;
use castanet_element::prelude::*;
use castanet_kit::nat6::{self, Config, Direction, Refusal};
use std::sync::Arc;

/// Translates addresses and ports of IPv6 packets, outward and inward.
///
/// Packets on input 0 go outward by output 0, with a translated source; packets
/// on input 1 go inward by output 1, with a translated destination. Arguments,
/// in this order: the number of static mappings; if it is not 0, whether these
/// map ports too, and the mappings, `INNER OUTER` or `INNER PORT OUTER PORT`;
/// whether other addresses get dynamic mappings; if so, whether each flow gets
/// a port of one address; the direction whose packets open dynamic mappings,
/// 0 outward, 1 inward; and the pool: addresses, or
/// `ADDRESS FIRST_PORT LAST_PORT`.
///
/// TCP, UDP and ICMPv6 echoes and errors are translated, errors with the packets
/// that they quote; all other packets are dropped. The header is the marked one, or else at the start. An echo's identifier is its
/// port, except for static mappings. When the pool is exhausted, addresses and
/// ports that had no packet for TIMEOUT are reused.
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
/// in -> at :: AddressTranslator(0, 1, 1, 0, ::1.0.0.1 6000 6010) -> out;  back -> [1] at;  at[1] -> home;  plain -> at
/// > in   [::ffff:0.0.0.2]:5 > [::18.26.4.125]:80 tcp
/// < out  [::1.0.0.1]:6000 > [::18.26.4.125]:80 tcp
/// > plain hex 60 00 00 00 00 08 11 40 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 00 05 00 50 00 08 00 00
/// < out  [::1.0.0.1]:6001 > [::0.0.0.8]:80 udp nocheck
/// > back [::18.26.4.125]:80 > [::1.0.0.1]:6000 tcp
/// < home [::18.26.4.125]:80 > [::ffff:0.0.0.2]:5 tcp
/// ```
#[derive(Element)]
#[element(room = "nat", args = AddressTranslatorArgs, ports = "1-2/1-2", processing = "h/h", gives = "ip6", headers = Unknown)]
pub struct AddressTranslator {
    plan: Arc<Config>,
}

impl Build for AddressTranslator {
    type Args = AddressTranslatorArgs;
    fn build(args: AddressTranslatorArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(AddressTranslator { plan: Arc::new(args.plan(setup.names)?) })
    }
}

/// Exits of `AddressTranslator`.
#[derive(Fate)]
pub enum AddressTranslatorExit {
    /// Outward packets.
    Outward,
    /// Inward packets.
    #[optional]
    Inward,
    /// Packets without a mapping, which do not open one. Packets from outside need a mapping that a
    /// packet from inside has opened.
    #[drop]
    Unmapped,
    /// Packets for which no address or port of the pool was free. Add addresses to the pool, or
    /// shorten the timeouts of mappings.
    #[drop]
    Exhausted,
    /// Packets that are neither TCP, UDP, ICMPv6 echoes nor errors.
    #[drop]
    Unrecognized,
}

impl PerBatch for AddressTranslator {
    type On = on::Any;
    type Local = AddressTranslatorState;
    type Fate = AddressTranslatorExit;
    // All workers allocate from one pool.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &AddressTranslator) -> bool {
        self.plan.has_same_pool(&before.plan)
    }

    fn init(&self, state: &mut AddressTranslatorState, _: &mut Cx) -> Result<(), ArgError> {
        state.plan = Some(self.plan.clone());
        Ok(())
    }

    fn after_take_state(&self, state: &mut AddressTranslatorState, _: &mut Cx) {
        state.plan = Some(self.plan.clone());
    }

    fn batch(&self, state: &mut AddressTranslatorState, port: usize, batch: Batch, cx: &mut Cx) {
        let (direction, exit) = match port {
            0 => (Direction::Outward, AddressTranslatorExit::Outward),
            _ => (Direction::Inward, AddressTranslatorExit::Inward),
        };
        let now = cx.now().since(Time::default());
        for mut packet in batch {
            let fate = match self.translate(state, direction, &mut packet, now) {
                Ok(()) => exit,
                Err(fate) => fate,
            };
            cx.emit(fate, packet);
        }
        state.reports.report(cx);
    }
}

impl AddressTranslator {
    fn translate(
        &self,
        state: &mut AddressTranslatorState,
        direction: Direction,
        packet: &mut Packet,
        now: u64,
    ) -> Result<(), AddressTranslatorExit> {
        let unrecognized = AddressTranslatorExit::Unrecognized;
        mark_at_start(packet);
        let mut ip = packet.ipv6().ok_or(unrecognized)?;
        let parties = nat6::parse_endpoints(ip.datagram(), direction).ok_or_else(|| {
            state.reports.protocol();
            unrecognized
        })?;
        match state.bindings.translate(&self.plan, direction, &parties, now) {
            Ok(new) => nat6::rewrite(ip.datagram_mut(), direction, new),
            Err(Refusal::Unmapped) => return Err(AddressTranslatorExit::Unmapped),
            Err(Refusal::Exhausted) => {
                state.reports.exhausted();
                return Err(AddressTranslatorExit::Exhausted);
            }
        }
        Ok(())
    }
}
