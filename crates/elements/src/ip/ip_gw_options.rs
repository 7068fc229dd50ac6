//! `IPGWOptions`: processes IPv4 options as a router.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_kit::options::{self, GatewayAddresses};

/// Processes the record route and timestamp options of IPv4 packets.
///
/// The element records MYADDR, the address of the interface that the packets
/// leave by (RFC 1812, 4.2.2.2). It fills in prespecified timestamps for MYADDR
/// and OTHERADDRS. Source routes stay unchanged. Packets with a malformed
/// option leave by output 1; their parameter problem annotation holds the
/// offset of the wrong byte, for `ICMPError`.
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
#[element(room = "ip", args = IPGWOptionsArgs)]
pub struct IPGWOptions {
    gateway_addresses: GatewayAddresses,
}

#[derive(Args)]
pub struct IPGWOptionsArgs {
    /// Address to record.
    #[arg]
    myaddr: Ipv4Addr,
    /// Other addresses of this router.
    #[arg(default = Vec::new())]
    otheraddrs: Vec<Ipv4Addr>,
}

#[derive(Fate)]
pub enum IPGWOptionsExit {
    /// Packets without options, or with their options processed.
    Onward,
    /// Packets with a malformed option, for an `ICMPError`.
    #[optional]
    Malformed,
}

/// State of one worker: the time of the burst, and a counter.
#[derive(Default, Local)]
pub struct IPGWOptionsState {
    now: Time,
    /// Number of packets with a malformed option.
    #[read]
    #[portable]
    drops: u64,
}

impl Build for IPGWOptions {
    type Args = IPGWOptionsArgs;
    fn build(args: IPGWOptionsArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(IPGWOptions { gateway_addresses: gateway_addresses(args.myaddr, &args.otheraddrs) })
    }
}

/// The addresses of a router; `preferred` is the one to record.
pub(crate) fn gateway_addresses(preferred: Ipv4Addr, others: &[Ipv4Addr]) -> GatewayAddresses {
    let others = others.iter().map(|a| a.to_bits()).collect();
    GatewayAddresses { preferred: preferred.to_bits(), others }
}

/// Processes the options of `ip`, if it has any. Returns whether they are well-formed.
#[inline(always)]
pub(crate) fn process_options(
    ip: PinnedIpv4,
    gateway_addresses: &GatewayAddresses,
    now: &Time,
) -> bool {
    !ip.has_options() || process_present(ip, gateway_addresses, now)
}

// The view by value and the time by reference: else the fast path would store the one and load the other.
#[cold]
#[inline(never)]
fn process_present(mut ip: PinnedIpv4, gateway_addresses: &GatewayAddresses, now: &Time) -> bool {
    let time = options::milliseconds_of_day(now.since(Time::default()));
    match options::process(ip.header_mut(), gateway_addresses, time) {
        Ok(_) => true,
        Err(problem) => {
            ip.set_anno_u8(anno::ICMP_PARAMPROB, problem.pointer);
            false
        }
    }
}

impl PerPacket for IPGWOptions {
    type On = on::PinnedIpv4;
    type Local = IPGWOptionsState;
    type Fate = IPGWOptionsExit;
    const CAN_PASS_BURST: bool = true;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.is_ipv4_without_options() {
            true => BurstEffect::Passes,
            false => BurstEffect::Unknown,
        }
    }

    #[inline]
    fn begin_burst(&self, state: &mut IPGWOptionsState, now: Time) {
        state.now = now;
    }

    #[inline]
    fn packet(&self, state: &mut IPGWOptionsState, ip: PinnedIpv4) -> IPGWOptionsExit {
        if process_options(ip, &self.gateway_addresses, &state.now) {
            return IPGWOptionsExit::Onward;
        }
        state.drops += 1;
        IPGWOptionsExit::Malformed
    }
}
