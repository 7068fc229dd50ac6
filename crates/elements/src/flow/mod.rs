//! Elements that keep state of each flow.

mod burst;
mod fragments;
pub mod icmp_ping_rewriter;
pub mod ip_addr_pair_rewriter;
pub mod ip_addr_rewriter;
pub mod ip_rewriter;
pub mod named;
pub mod rewriting;
pub mod settings;
pub mod tcp_rewriter;
pub mod udp_rewriter;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<icmp_ping_rewriter::ICMPPingRewriter>().with_flows().in_common(),
    per_batch::<ip_addr_pair_rewriter::IPAddrPairRewriter>().with_flows().in_common(),
    per_batch::<ip_addr_rewriter::IPAddrRewriter>().with_flows().in_common(),
    per_batch::<ip_rewriter::IPRewriter>().with_flows().in_common(),
    per_batch::<tcp_rewriter::TCPRewriter>().with_flows().in_common(),
    per_batch::<udp_rewriter::UDPRewriter>().with_flows().in_common(),
];
