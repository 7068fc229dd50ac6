//! `UDPRewriter`: rewrites addresses and ports of UDP, TCP and DCCP alike.

use super::rewriter::{Rewriter, RewriterState, SingleTable};
use super::rewriter_args::{GUARANTEE, RewriterArgs, nanos};
use super::rewriter_exits::RewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::{RewriterKind, Timeouts};

/// Rewrites addresses and ports of UDP, TCP and DCCP packets, and those of replies back.
///
/// It works like an `IPRewriter`, whose page describes the arguments, but does not track the
/// state of TCP connections: they have the timeouts of UDP flows.
///
/// ```click
/// in -> rw :: UDPRewriter(pattern - - 3.0.0.3 99 0 1, drop, TIMEOUT 10, STREAMING_TIMEOUT 60) -> out
/// back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:6 udp "ask"
/// < out  1.0.0.1:5 > 3.0.0.3:99 udp "ask" ; dst 3.0.0.3
/// > back 3.0.0.3:99 > 1.0.0.1:5 udp "say"
/// > in   1.0.0.1:5 > 2.0.0.2:6 tcp
/// > in   1.0.0.1 > 2.0.0.2 udp frag 1480
/// > back 3.0.0.3:98 > 1.0.0.1:5 udp
/// < home 2.0.0.2:6 > 1.0.0.1:5 udp "say"
/// < out  1.0.0.1:5 > 3.0.0.3:99 tcp
/// = rw.drops.not_rewritten 1
/// = rw.drops.unmapped 1
/// = rw.table_size 2
/// + 11s
/// = rw.table_size 0
/// ! rw.capacity 0
/// > in   1.0.0.1:5 > 2.0.0.2:6 udp
/// = rw.drops.exhausted 1
/// ```
/// A mapping is not evicted for its GUARANTEE after its last packet. Of all mappings without
/// that protection, the one that would expire first is evicted:
/// ```click
/// in -> rw :: UDPRewriter(pattern 9.9.9.9 1000-1009# - - 0 0, drop, MAPPING_CAPACITY 2, GUARANTEE 2)
///   -> out;  Idle -> [1] rw
/// > in  1.0.0.1:1 > 2.0.0.2:6 udp
/// + 0.04s
/// > in  1.0.0.1:2 > 2.0.0.2:6 udp
/// + 1.95s
/// > in  1.0.0.1:3 > 2.0.0.2:6 udp
/// = rw.drops.exhausted 1
/// = rw.mapping_failures 1
/// = rw.mapping_count 2
/// + 0.02s
/// > in  1.0.0.1:4 > 2.0.0.2:6 udp
/// < out 9.9.9.9:1000 > 2.0.0.2:6 udp
/// < out 9.9.9.9:1001 > 2.0.0.2:6 udp
/// < out 9.9.9.9:1003 > 2.0.0.2:6 udp
/// ```
///
/// ```click
/// in -> rw :: UDPRewriter(pattern 9.9.9.9 - - - 0 0, FRAGMENTS true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 0+ "a packet"
/// < out 9.9.9.9:5 > 2.0.0.2:6 udp id 7 frag 0+ "a packet" ; dst 2.0.0.2
/// < out 9.9.9.9 > 2.0.0.2 udp id 7 frag 16 "late" ; dst 2.0.0.2
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp id 8 frag 0+ "a packet"
/// > in  1.0.0.1 > 2.0.0.2 udp id 8 frag 8 "overlaps"
/// < out 9.9.9.9:5 > 2.0.0.2:6 udp id 8 frag 0+ "a packet"
/// = rw.drops.overlapping_fragment 1
/// = rw.drops.tiny_fragment 0
/// > in  1.0.0.1 > 2.0.0.2 udp id 10 frag 80 "lone"
/// + 5s
/// = rw.drops.lone_fragment 1
/// = rw.drops.excess_fragment 0
/// ```
#[derive(Clone, Element)]
#[element(room = "nat", args = UDPRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip", alias = "UDPRewriterIMP")]
pub struct UDPRewriter(Rewriter);

#[derive(Args)]
pub struct UDPRewriterArgs {
    /// For how long a flow is kept without packets.
    #[arg(keyword, default = Duration::from_secs(300))]
    timeout: Duration,
    /// Another name of TIMEOUT.
    #[arg(keyword)]
    udp_timeout: Option<Duration>,
    /// The same after three packets and a reply; TIMEOUT unless given.
    #[arg(keyword)]
    streaming_timeout: Option<Duration>,
    /// Another name of STREAMING_TIMEOUT.
    #[arg(keyword)]
    udp_streaming_timeout: Option<Duration>,
    /// Another name of GUARANTEE.
    #[arg(keyword)]
    udp_guarantee: Option<Duration>,
    #[arg(flatten)]
    common: RewriterArgs,
}

impl Build for UDPRewriter {
    type Args = UDPRewriterArgs;

    fn build(it: UDPRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let idle = nanos(it.udp_timeout.unwrap_or(it.timeout));
        let streaming = it.streaming_timeout.or(it.udp_streaming_timeout);
        let guarantee = it.common.guarantee.or(it.udp_guarantee).unwrap_or(GUARANTEE);
        let data = streaming.map_or(idle, nanos);
        let timeouts = Timeouts { idle, data, done: idle, guarantee: nanos(guarantee) };
        Ok(UDPRewriter(Rewriter::new::<Self>(
            &it.common,
            RewriterKind::Udp,
            [timeouts, timeouts],
            setup,
        )?))
    }
}

impl PerBatch for UDPRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<SingleTable>;
    type Fate = RewriterExit;
    rewriter_methods!();
}
