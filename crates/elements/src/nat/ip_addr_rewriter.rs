//! `IPAddrRewriter`: rewrites source addresses.

use super::rewriter::{Rewriter, RewriterState, SingleTable};
use super::rewriter_args::AddressRewriterArgs;
use super::rewriter_exits::AddressRewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::RewriterKind;

/// Rewrites source addresses of IP packets, and destination addresses of replies back.
///
/// This is basic network address translation (basic NAT): each inner address gets an outer one
/// of its own, for any protocol and any fragment. Arguments are those of an `IPRewriter`, but
/// patterns have no ports, and leave destinations alone: `pattern SADDR - FOUTPUT ROUTPUT`,
/// where SADDR is an address, a range `1.0.0.1-1.0.0.9` or a prefix `1.0.0.0/24`. An
/// address is chosen of these that no other mapping uses: at random, with `#` at the end in
/// sequence.
///
/// ```click
/// in -> rw :: IPAddrRewriter(pattern 9.0.0.8/30# - 0 1, drop, TIMEOUT 1h) -> out
/// back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:6 udp
/// > in   1.0.0.1 > 2.0.0.2 proto 99
/// > in   1.0.0.7:5 > 2.0.0.2:6 tcp
/// > in   1.0.0.8 > 2.0.0.2 icmp
/// < out  9.0.0.9:5 > 2.0.0.2:6 udp
/// < out  9.0.0.9 > 2.0.0.2 proto 99
/// < out  9.0.0.10:5 > 2.0.0.2:6 tcp
/// > back 5.0.0.5:7 > 9.0.0.9:8 tcp
/// > back 5.0.0.5 > 9.0.0.9 udp frag 1480
/// > back 5.0.0.5:7 > 9.0.0.7:8 tcp
/// < home 5.0.0.5:7 > 1.0.0.1:8 tcp ; dst 1.0.0.1
/// < home 5.0.0.5 > 1.0.0.1 udp frag 1480
/// = rw.drops.exhausted 1
/// = rw.drops.unmapped 1
/// = rw.patterns 9.0.0.9-9.0.0.10 - [2]\n<drop>
/// + 1801s
/// > in   1.0.0.7:5 > 2.0.0.2:6 tcp
/// < out  9.0.0.10:5 > 2.0.0.2:6 tcp
/// + 1800s
/// = rw.table 1.0.0.7 => 9.0.0.10 [*0 1] i0 exp1800\n9.0.0.10 => 1.0.0.7 [0 *1] i0 exp1800
/// ```
#[derive(Clone, Element)]
#[element(room = "nat", args = AddressRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip")]
pub struct IPAddrRewriter(Rewriter);

impl Build for IPAddrRewriter {
    type Args = AddressRewriterArgs;

    fn build(it: AddressRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(IPAddrRewriter(Rewriter::new::<Self>(
            &it.common,
            RewriterKind::SourceAddress,
            it.timeouts(),
            setup,
        )?))
    }
}

impl PerBatch for IPAddrRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<SingleTable>;
    type Fate = AddressRewriterExit;
    rewriter_methods!();
}
