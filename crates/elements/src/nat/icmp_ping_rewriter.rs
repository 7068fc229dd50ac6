//! `ICMPPingRewriter`: rewrites addresses and identifiers of pings.

use super::rewriter::{Rewriter, RewriterState, SingleTable};
use super::rewriter_args::{RewriterArgs, uniform_timeouts};
use super::rewriter_exits::RewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::RewriterKind;

/// Rewrites addresses and identifiers of ICMP echo requests, and those of replies back.
///
/// It works like an `IPRewriter`, whose page describes the arguments, for pings: the source ports
/// of patterns are identifiers. Replies without a mapping follow `pass`, or are dropped.
///
/// ```click
/// in -> rw :: ICMPPingRewriter(pattern 9.9.9.9 700-701# - - 0 1, drop) -> out
/// back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 1 "hello"
/// > in   1.0.0.7 > 2.0.0.2 icmp type echo ident 5 seq 1
/// > in   1.0.0.8 > 2.0.0.2 icmp type echo ident 5 seq 1
/// < out  9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 1 "hello" ; dst 2.0.0.2
/// < out  9.9.9.9 > 2.0.0.2 icmp type echo ident 701 seq 1
/// > back 2.0.0.2 > 9.9.9.9 icmp type echo-reply ident 700 seq 1 "hello"
/// > back 2.0.0.2 > 9.9.9.9 icmp type echo-reply ident 5 seq 1
/// > back 2.0.0.2 > 9.9.9.9 icmp type timestamp ident 5
/// < home 2.0.0.2 > 1.0.0.1 icmp type echo-reply ident 5 seq 1 "hello" ; dst 1.0.0.1
/// = rw.drops.exhausted 1
/// = rw.drops.unmapped 1
/// = rw.drops.not_rewritten 1
/// + 290s
/// > in   1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 2
/// < out  9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 2
/// + 11s
/// = rw.table (1.0.0.1, 2.0.0.2, 5) => (9.9.9.9, 2.0.0.2, 700) [*0 1] i0 exp289\n(2.0.0.2, 9.9.9.9, 700) => (2.0.0.2, 1.0.0.1, 5) [0 *1] i0 exp289
/// ```
/// ```click
/// in -> rw :: ICMPPingRewriter(pattern 9.9.9.9 700 - - 0 0, FRAGMENTS true) -> out
/// > in  1.0.0.1 > 2.0.0.2 icmp id 7 frag 16 "late"
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 1 id 7 frag 0+ "16 bytes"
/// < out 9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 1 id 7 frag 0+ "16 bytes" ; dst 2.0.0.2
/// < out 9.9.9.9 > 2.0.0.2 icmp id 7 frag 16 "late" ; dst 2.0.0.2
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 1 id 8 frag 0+ "16 bytes"
/// > in  1.0.0.1 > 2.0.0.2 icmp id 8 frag 8 "overlaps"
/// < out 9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 1 id 8 frag 0+ "16 bytes"
/// = rw.drops.overlapping_fragment 1
/// = rw.drops.tiny_fragment 0
/// > in  1.0.0.1 > 2.0.0.2 icmp id 10 frag 80 "lone"
/// + 5s
/// = rw.drops.lone_fragment 1
/// = rw.drops.excess_fragment 0
/// ```
#[derive(Clone, Element)]
#[element(room = "nat", args = ICMPPingRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip")]
pub struct ICMPPingRewriter(Rewriter);

#[derive(Args)]
pub struct ICMPPingRewriterArgs {
    /// For how long a mapping is kept without packets.
    #[arg(keyword, default = Duration::from_secs(300))]
    timeout: Duration,
    #[arg(flatten)]
    common: RewriterArgs,
}

impl Build for ICMPPingRewriter {
    type Args = ICMPPingRewriterArgs;

    fn build(it: ICMPPingRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let timeouts = uniform_timeouts(it.timeout, it.common.guarantee);
        Ok(ICMPPingRewriter(Rewriter::new::<Self>(
            &it.common,
            RewriterKind::IcmpEcho,
            [timeouts, timeouts],
            setup,
        )?))
    }
}

impl PerBatch for ICMPPingRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<SingleTable>;
    type Fate = RewriterExit;
    rewriter_methods!();
}
