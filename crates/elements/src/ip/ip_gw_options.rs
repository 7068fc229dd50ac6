//! `IPGWOptions`: what routers write into IP options.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_kit::options::{self, GatewayAddresses};

/// Records this router in the route and timestamp options of packets.
///
/// MYADDR is the address of the interface that packets leave by (RFC 1812,
/// 4.2.2.2); with OTHERADDRS it answers to prespecified timestamps. Source
/// routes are left alone. Packets with a malformed option leave by output 1,
/// with the byte that is wrong in their annotation for `ICMPError`.
///
/// ```click
/// in -> g :: IPGWOptions(1.2.3.4, 5.6.7.8) -> out;  g[1] -> bad
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 udp ipopt rr{^}+2
/// > in  1.0.0.1 > 2.0.0.2 udp ipopt 0x07070500000000
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ipopt rr{1.2.3.4^}+1
/// < bad 1.0.0.1 > 2.0.0.2 udp ipopt 0x07070500000000
/// = g.drops 1
/// ```
#[derive(Element)]
#[element(room = "ip", args = Own)]
pub struct IPGWOptions {
    own: GatewayAddresses,
}

#[derive(Args)]
pub struct Own {
    /// The address to record.
    #[arg]
    myaddr: Ipv4Addr,
    /// Other addresses of this router.
    #[arg(default = Vec::new())]
    otheraddrs: Vec<Ipv4Addr>,
}

#[derive(Fate)]
pub enum Outcome {
    /// Packets with their options seen to.
    Onward,
    /// Packets with a malformed option, for an `ICMPError`.
    #[optional]
    Malformed,
}

/// The burst's time, and what one worker has refused.
#[derive(Default, Local)]
pub struct Clerk {
    now: Time,
    /// Packets with a malformed option.
    #[read]
    drops: u64,
}

impl Build for IPGWOptions {
    type Args = Own;
    fn build(args: Own, _: &Setup) -> Result<Self, ArgError> {
        Ok(IPGWOptions { own: addresses(args.myaddr, &args.otheraddrs) })
    }
}

pub(crate) fn addresses(preferred: Ipv4Addr, others: &[Ipv4Addr]) -> GatewayAddresses {
    let others = others.iter().map(|a| a.to_bits()).collect();
    GatewayAddresses { preferred: preferred.to_bits(), others }
}

/// Records `own` addresses in the options of `ip`, if it has any; whether they are well-formed.
#[inline(always)]
pub(crate) fn record(mut ip: PinnedIpv4, own: &GatewayAddresses, now: Time) -> bool {
    !ip.has_options() || process(&mut ip, own, now)
}

#[cold]
fn process(ip: &mut PinnedIpv4, own: &GatewayAddresses, now: Time) -> bool {
    let time = options::milliseconds_of_day(now.since(Time::default()));
    match options::process(ip.header_mut(), own, time) {
        Ok(_) => true,
        Err(problem) => {
            ip.set_anno_u8(anno::ICMP_PARAMPROB, problem.pointer);
            false
        }
    }
}

impl PerPacket for IPGWOptions {
    type On = on::PinnedIpv4;
    type Local = Clerk;
    type Fate = Outcome;

    #[inline]
    fn burst(&self, clerk: &mut Clerk, now: Time) {
        clerk.now = now;
    }

    #[inline]
    fn packet(&self, clerk: &mut Clerk, ip: PinnedIpv4) -> Outcome {
        if record(ip, &self.own, clerk.now) {
            return Outcome::Onward;
        }
        clerk.drops += 1;
        Outcome::Malformed
    }
}
