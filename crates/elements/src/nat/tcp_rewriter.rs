//! `TCPRewriter`: rewrites addresses, ports and sequence numbers of TCP.

use super::rewriter::{Rewriter, RewriterState, TcpTable};
use super::rewriter_args::{RewriterArgs, TcpTimeoutArgs};
use super::rewriter_exits::RewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::RewriterKind;

/// Rewrites addresses, ports and sequence numbers of TCP packets, and those of replies back.
///
/// It works like an `IPRewriter`, whose page describes the arguments, for TCP alone. Where an
/// element such as an `FTPPortMapper` has changed the length of the data, it adjusts sequence
/// and acknowledgment numbers, those of selective acknowledgments too.
///
/// ```click
/// in -> rw :: TCPRewriter(pattern 9.9.9.9 1024-65535 - - 0 1, drop, TCP_DONE_TIMEOUT 10) -> out
/// back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5000 > 2.0.0.2:80 tcp syn tcpopt mss1460
/// < out  9.9.9.9:5000 > 2.0.0.2:80 tcp syn tcpopt mss1460
/// > back 2.0.0.2:80 > 9.9.9.9:5000 tcp syn ack 1
/// > back 2.0.0.2:80 > 9.9.9.9:5000 tcp ack 1 "data"
/// > in   1.0.0.1:5000 > 2.0.0.2:80 udp
/// > back 2.0.0.2:80 > 9.9.9.9:5001 tcp
/// < home 2.0.0.2:80 > 1.0.0.1:5000 tcp syn ack 1
/// < home 2.0.0.2:80 > 1.0.0.1:5000 tcp ack 1 "data"
/// = rw.drops.not_rewritten 1
/// = rw.drops.unmapped 1
/// = rw.lookup(2.0.0.2 80 9.9.9.9 5000) 2.0.0.2 80 1.0.0.1 5000
/// > in   1.0.0.1:5000 > 2.0.0.2:80 tcp ack 5 "more"
/// < out  9.9.9.9:5000 > 2.0.0.2:80 tcp ack 5 "more"
/// + 10h
/// = rw.table_size 1
/// > in   1.0.0.1:5000 > 2.0.0.2:80 tcp fin ack 5
/// < out  9.9.9.9:5000 > 2.0.0.2:80 tcp fin ack 5
/// > back 2.0.0.2:80 > 9.9.9.9:5000 tcp fin ack 7
/// < home 2.0.0.2:80 > 1.0.0.1:5000 tcp fin ack 7
/// = rw.table (1.0.0.1, 5000, 2.0.0.2, 80) => (9.9.9.9, 5000, 2.0.0.2, 80) [*0 1] i0 exp10\n(2.0.0.2, 80, 9.9.9.9, 5000) => (2.0.0.2, 80, 1.0.0.1, 5000) [0 *1] i0 exp10
/// + 11s
/// = rw.table_size 0
/// ! rw.capacity 0
/// > in   1.0.0.1:5000 > 2.0.0.2:80 tcp syn
/// = rw.drops.exhausted 1
/// ```
/// ```click
/// in -> rw :: TCPRewriter(pattern 9.9.9.9 - - - 0 0, FRAGMENTS true) -> out
/// > in  1.0.0.1 > 2.0.0.2 tcp id 7 frag 24 "late"
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp id 7 frag 0+ "data"
/// < out 9.9.9.9:5 > 2.0.0.2:6 tcp id 7 frag 0+ "data" ; dst 2.0.0.2
/// < out 9.9.9.9 > 2.0.0.2 tcp id 7 frag 24 "late" ; dst 2.0.0.2
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp id 8 frag 0+ "longer data."
/// > in  1.0.0.1 > 2.0.0.2 tcp id 8 frag 24 "overlaps"
/// < out 9.9.9.9:5 > 2.0.0.2:6 tcp id 8 frag 0+ "longer data."
/// = rw.drops.overlapping_fragment 1
/// > in  1.0.0.1 > 2.0.0.2 tcp id 9 frag 16 "cut"
/// = rw.drops.tiny_fragment 1
/// > in  1.0.0.1 > 2.0.0.2 tcp id 10 frag 80 "lone"
/// + 5s
/// = rw.drops.lone_fragment 1
/// = rw.drops.excess_fragment 0
/// ```
#[derive(Clone, Element)]
#[element(room = "nat", args = TCPRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip", alias = "TCPRewriterIMP")]
pub struct TCPRewriter(Rewriter);

#[derive(Args)]
pub struct TCPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpTimeoutArgs,
    #[arg(flatten)]
    common: RewriterArgs,
}

impl Build for TCPRewriter {
    type Args = TCPRewriterArgs;

    fn build(it: TCPRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let timeouts = it.tcp.timeouts(it.common.guarantee);
        Ok(TCPRewriter(Rewriter::new::<Self>(
            &it.common,
            RewriterKind::Tcp,
            [timeouts, timeouts],
            setup,
        )?))
    }
}

impl PerBatch for TCPRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<TcpTable>;
    type Fate = RewriterExit;
    rewriter_methods!();
}
