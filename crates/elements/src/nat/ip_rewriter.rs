//! `IPRewriter`: rewrites addresses and ports of TCP and UDP.

use super::rewriter::{Rewriter, RewriterState, TcpUdpTables};
use super::rewriter_args::{GUARANTEE, RewriterArgs, TcpTimeoutArgs, nanos};
use super::rewriter_exits::RewriterExit;
use super::rewriter_methods::rewriter_methods;
use castanet_element::prelude::*;
use castanet_kit::nat::{RewriterKind, Timeouts};

/// Rewrites addresses and ports of TCP and UDP packets, and those of replies back.
///
/// The first packet of a flow makes a mapping, by which later packets of the flow
/// are rewritten, on any input, and so are replies. There is an argument for each
/// input, the action for packets without a mapping:
///
/// * `drop`;
/// * `pass OUTPUT`: the packet leaves unchanged, without a mapping;
/// * `keep FOUTPUT ROUTPUT`: unchanged, with a mapping; replies leave by ROUTPUT;
/// * `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`: rewritten; `-` leaves a
///   field unchanged. SADDR and SPORT may be ranges, SADDR also a prefix; a value is chosen
///   that no other mapping's replies use: the packet's own port if it is free, else a random
///   one; with `1024-65535#` in sequence, with `1024-65535?` always a random one;
/// * `pattern NAME FOUTPUT ROUTPUT`: by a pattern of an `IPRewriterPatterns`;
/// * the name of a mapper, such as a `RoundRobinIPMapper`, which chooses.
///
/// Other protocols are not rewritten, nor are later fragments without `FRAGMENTS true`; they
/// follow `pass`, or are dropped. A mapping expires when no packet has come for its timeout. When
/// MAPPING_CAPACITY is reached, the mapping that would expire first is evicted, unless its
/// guarantee protects it.
///
/// ```click
/// in -> rw :: IPRewriter(pattern 9.9.9.9 1024-1025# - - 0 1, drop) -> out;  back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 7
/// < out  9.9.9.9:1024 > 2.0.0.2:80 tcp syn seq 7 ; dst 2.0.0.2
/// = rw.tcp_table (1.0.0.1, 5, 2.0.0.2, 80) => (9.9.9.9, 1024, 2.0.0.2, 80) [*0 1] i0 exp300\n(2.0.0.2, 80, 9.9.9.9, 1024) => (2.0.0.2, 80, 1.0.0.1, 5) [0 *1] i0 exp300
/// > back 2.0.0.2:80 > 9.9.9.9:1024 tcp syn ack 8
/// < home 2.0.0.2:80 > 1.0.0.1:5 tcp syn ack 8 ; dst 1.0.0.1
/// > in   1.0.0.1:5 > 2.0.0.2:53 udp nocheck
/// < out  9.9.9.9:1025 > 2.0.0.2:53 udp nocheck
/// > back 2.0.0.2:53 > 9.9.9.9:1024 udp
/// > in   1.0.0.1 > 2.0.0.2 icmp
/// > in   1.0.0.1:6 > 2.0.0.2:80 tcp
/// < out  9.9.9.9:1025 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:7 > 2.0.0.2:80 tcp
/// = rw.drops.unmapped 1
/// = rw.drops.not_rewritten 1
/// = rw.drops.exhausted 1
/// = rw.mapping_failures 1
/// = rw.mapping_count 3
/// = rw.mapping_events 3\tadded\n0\texpired\n0\tevicted\n0\tremoved\n1\trefused
/// = rw.patterns 9.9.9.9 1024-1025 - - [3]\n<drop>
/// = rw.pattern1 <drop>
/// = rw.tcp_lookup(1.0.0.1 6 2.0.0.2 80) 9.9.9.9 1025 2.0.0.2 80
/// = rw.table_size 3
/// = rw.capacity 1048576
/// ! rw.pattern1 keep 1 0
/// > back 3.0.0.3:1 > 9.9.9.9:4 udp
/// < home 3.0.0.3:1 > 9.9.9.9:4 udp
/// > in   9.9.9.9:4 > 3.0.0.3:1 udp "hello"
/// < out  9.9.9.9:4 > 3.0.0.3:1 udp "hello"
/// ! rw.pattern0 drop
/// = rw.size 1
/// + 301s
/// = rw.nmappings 0
/// ```
/// ```click
/// a -> rw :: IPRewriter(pass 1, keep 0 2, CAPACITY 1, UDP_GUARANTEE 10, DST_ANNO false,
///                       REPLY_ANNO PAINT, UDP_TIMEOUT 20, UDP_STREAMING_TIMEOUT 100) -> kept
/// b -> [1] rw;  rw[1] -> passed;  rw[2] -> replies
/// > a 1.0.0.1:5 > 2.0.0.2:6 udp
/// > a 1.0.0.1 > 2.0.0.2 icmp
/// > b 1.0.0.1:5 > 2.0.0.2:6 udp ; paint 7 dst 3.0.0.3
/// > b 1.0.0.1:6 > 2.0.0.2:6 udp
/// > a 2.0.0.2:6 > 1.0.0.1:5 udp
/// < passed 1.0.0.1:5 > 2.0.0.2:6 udp
/// < passed 1.0.0.1 > 2.0.0.2 icmp
/// < kept 1.0.0.1:5 > 2.0.0.2:6 udp ; paint 7 dst 3.0.0.3
/// < replies 2.0.0.2:6 > 1.0.0.1:5 udp ; paint 7
/// = rw.drops.exhausted 1
/// > a 2.0.0.2:6 > 1.0.0.1:5 udp
/// < replies 2.0.0.2:6 > 1.0.0.1:5 udp
/// + 99s
/// = rw.size 1
/// > b 1.0.0.1:6 > 2.0.0.2:6 udp
/// < kept 1.0.0.1:6 > 2.0.0.2:6 udp
/// = rw.udp_table (1.0.0.1, 6, 2.0.0.2, 6) => (1.0.0.1, 6, 2.0.0.2, 6) [*0 2] i1 exp20\n(2.0.0.2, 6, 1.0.0.1, 6) => (2.0.0.2, 6, 1.0.0.1, 6) [0 *2] i1 exp20
/// ! rw.clear
/// = rw.size 0
/// ! rw.capacity 5
/// = rw.capacity 5
/// ```
///
/// With `FRAGMENTS true` later fragments are rewritten as the first one of their packet, and wait
/// up to 2 seconds for it, 64 of a packet and 1024 in all; a fragment that splits headers, overlaps
/// or contradicts others of its packet is dropped, with all others of that packet.
///
/// ```click
/// in -> rw :: IPRewriter(pattern 9.9.9.9 - - - 0 0, FRAGMENTS true) -> out
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
#[element(room = "nat", args = IPRewriterArgs, ports = "1-/1-", processing = "h/h", gives = "ip", alias = "IPRewriterIMP")]
pub struct IPRewriter(Rewriter);

#[derive(Args)]
pub struct IPRewriterArgs {
    #[arg(flatten)]
    tcp: TcpTimeoutArgs,
    /// For how long a flow of UDP is kept without packets.
    #[arg(keyword, default = Duration::from_secs(300))]
    udp_timeout: Duration,
    /// The same after three packets and a reply; UDP_TIMEOUT unless given.
    #[arg(keyword)]
    udp_streaming_timeout: Option<Duration>,
    /// For how long after its last packet its mapping is not evicted for others.
    #[arg(keyword, default = GUARANTEE, shown = "5")]
    udp_guarantee: Duration,
    #[arg(flatten)]
    common: RewriterArgs,
}

impl Build for IPRewriter {
    type Args = IPRewriterArgs;

    fn build(it: IPRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let tcp = it.tcp.timeouts(it.common.guarantee);
        let udp = nanos(it.udp_timeout);
        let udp = Timeouts {
            idle: udp,
            data: it.udp_streaming_timeout.map_or(udp, nanos),
            done: udp,
            guarantee: nanos(it.udp_guarantee),
        };
        Ok(IPRewriter(Rewriter::new::<Self>(&it.common, RewriterKind::TcpUdp, [tcp, udp], setup)?))
    }
}

impl PerBatch for IPRewriter {
    type On = on::Ipv4;
    type Local = RewriterState<TcpUdpTables>;
    type Fate = RewriterExit;
    rewriter_methods!();
}
