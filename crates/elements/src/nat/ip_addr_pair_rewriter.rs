//! `IPAddrPairRewriter`: rewrites pairs of source and destination addresses.

use super::rewriter::{Rewriter, RewriterState, SingleTable};
use super::rewriter_args::AddressRewriterArgs;
use super::rewriter_exits::AddressRewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::RewriterKind;

/// Rewrites source and destination addresses of IP packets, by pairs, and those of replies back.
///
/// Arguments are those of an `IPRewriter`, but patterns have no ports: `pattern SADDR DADDR
/// FOUTPUT ROUTPUT`, where SADDR is an address, a range `1.0.0.1-1.0.0.9` or a prefix
/// `1.0.0.0/24`. An address is chosen of these that no other mapping with DADDR uses: at random,
/// with `#` at the end in sequence.
///
/// ```click
/// in -> rw :: IPAddrPairRewriter(pattern 9.0.0.1 8.0.0.8 0 1, drop, TIMEOUT 10) -> out
/// back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:6 udp
/// > in   1.0.0.1 > 2.0.0.2 icmp
/// < out  9.0.0.1:5 > 8.0.0.8:6 udp ; dst 8.0.0.8
/// < out  9.0.0.1 > 8.0.0.8 icmp
/// > back 8.0.0.8:6 > 9.0.0.1:5 udp
/// > back 8.0.0.9:6 > 9.0.0.1:5 udp
/// < home 2.0.0.2:6 > 1.0.0.1:5 udp ; dst 1.0.0.1
/// = rw.drops.unmapped 1
/// = rw.table (1.0.0.1, 2.0.0.2) => (9.0.0.1, 8.0.0.8) [*0 1] i0 exp10\n(8.0.0.8, 9.0.0.1) => (2.0.0.2, 1.0.0.1) [0 *1] i0 exp10
/// > in   1.0.0.7:5 > 2.0.0.2:6 udp
/// < out  9.0.0.1:5 > 8.0.0.8:6 udp
/// = rw.table_size 1
/// ! rw.capacity 0
/// > in   1.0.0.8:5 > 2.0.0.2:6 udp
/// = rw.drops.exhausted 1
/// ```
#[derive(Clone, Element)]
#[element(room = "nat", args = AddressRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip")]
pub struct IPAddrPairRewriter(Rewriter);

impl Build for IPAddrPairRewriter {
    type Args = AddressRewriterArgs;

    fn build(it: AddressRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let rewriter =
            Rewriter::new::<Self>(&it.common, RewriterKind::AddressPair, it.timeouts(), setup)?;
        Ok(IPAddrPairRewriter(rewriter))
    }
}

impl PerBatch for IPAddrPairRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<SingleTable>;
    type Fate = AddressRewriterExit;
    rewriter_methods!();
}
