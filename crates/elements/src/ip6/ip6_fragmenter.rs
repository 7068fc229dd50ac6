//! `IP6Fragmenter`: rejects or fragments IPv6 packets that are longer than the MTU.

use castanet_element::prelude::*;
use castanet_element::wire::Ipv6Header;
use castanet_kit::fragment6::{self, Fragmentation};

/// Rejects IPv6 packets that are longer than the MTU, or fragments them.
///
/// Routers do not fragment IPv6 packets (RFC 8200, section 5): by default,
/// packets longer than the MTU leave by output 1, for an `ICMP6Error` of type
/// 2, as if they had the DF flag of IPv4. With HONOR_DF false, for hosts that
/// send their own packets, the element replaces them by fragments, with the
/// packet's annotations but without its link header. Then only packets that are
/// fragments already, or whose headers alone fill the MTU, leave by output 1.
///
/// ```click
/// in -> f :: IP6Fragmenter(1280) -> out;  f[1] -> large
/// > in    1::1 > 2::2 udp len 1280
/// > in    1::1 > 2::2 udp len 1281
/// < out   1::1 > 2::2 udp len 1280
/// < large 1::1 > 2::2 udp len 1281
/// = f.drops 1
/// ```
/// ```click
/// in -> f :: IP6Fragmenter(64, HONOR_DF false) -> SetIP6DSCP(1) -> IP6Print(CONTENTS true) -> out
/// f[1] -> large
/// > in    1::1 > 2::2 proto 99 len 60
/// > in    1::1 > 2::2 proto 99 id 7 frag 0 len 80
/// < out   1::1 > 2::2 proto 99 class 4 len 60
/// < large 1::1 > 2::2 proto 99 id 7 frag 0 len 80
/// ~ 1::1 -> 2::2 plen 20, next 99, hlim 64
/// ~   60400000 00146340 00010000 00000000 00000000 00000001
/// ~   00020000 00000000 00000000 00000002 00000000 00000000
/// ~   00000000 00000000 00000000
/// = f.fragments 0
/// = f.drops 1
/// ```
#[derive(Element)]
#[element(room = "ip6", processing = "h/h")]
pub struct IP6Fragmenter {
    /// Maximum length of a packet with its IPv6 header, in bytes.
    #[arg]
    mtu: u32,
    /// Whether to reject packets longer than MTU; if false, the element fragments them.
    #[arg(keyword, default = true)]
    honor_df: bool,
}

#[derive(Fate)]
pub enum IP6FragmenterExit {
    /// Packets and fragments of at most MTU bytes.
    Fits,
    /// Packets that may not or cannot be fragmented, for an `ICMP6Error`.
    #[optional]
    Large,
}

/// Counters of one worker.
#[derive(Default, Local)]
pub struct IP6FragmenterState {
    /// Number of fragments sent.
    #[read]
    #[portable]
    fragments: u64,
    /// Number of packets that were too long but not fragmented.
    #[read]
    #[portable]
    drops: u64,
}

impl PerBatch for IP6Fragmenter {
    type On = on::Ipv6;
    type Local = IP6FragmenterState;
    type Fate = IP6FragmenterExit;
    const CAN_PASS: bool = true;

    #[inline]
    fn can_pass(&self, _: &mut IP6FragmenterState, ip: Ipv6) -> bool {
        self.fits(ip.packet())
    }

    fn batch(&self, state: &mut IP6FragmenterState, _: usize, batch: Batch, cx: &mut Cx) {
        if batch.iter().all(|packet| self.fits(packet)) {
            return cx.emit_batch(IP6FragmenterExit::Fits, batch);
        }
        for packet in batch {
            if self.fits(&packet) {
                cx.emit(IP6FragmenterExit::Fits, packet);
            } else {
                self.fragment(state, packet, cx);
            }
        }
    }
}

impl IP6Fragmenter {
    #[inline(always)]
    fn fits(&self, packet: &Packet) -> bool {
        packet.network_bytes().len() <= self.mtu as usize
    }

    #[cold]
    fn fragment(&self, state: &mut IP6FragmenterState, mut packet: Packet, cx: &mut Cx) {
        let ip = packet.ipv6().filter(|_| !self.honor_df);
        let fragmentation = ip
            .as_ref()
            .and_then(|ip| fragment6::divide(ip.datagram(), &ip.upper_layer(), self.mtu as usize));
        let (Some(ip), Some(fragmentation)) = (&ip, fragmentation) else {
            state.drops += 1;
            return cx.emit(IP6FragmenterExit::Large, packet);
        };
        state.fragments += emit_fragments(&fragmentation, ip.packet(), cx);
        cx.count_consumed(1);
    }
}

/// Emits the fragments of a packet. Returns the number of fragments for which the pool had a
/// buffer.
fn emit_fragments(fragmentation: &Fragmentation, original: &Packet, cx: &mut Cx) -> u64 {
    // Identifications must not be predictable (RFC 7739).
    let id = cx.random() as u32;
    let mut sent = 0;
    for piece in fragmentation.fragments() {
        let Some(mut fragment) = cx.alloc() else { continue };
        fragmentation.write(piece, id, fragment.put_back(fragmentation.total(piece)));
        fragment.set_network_header(0, Ipv6Header::LEN);
        fragment.copy_annotations(original);
        sent += 1;
        cx.emit(IP6FragmenterExit::Fits, fragment);
    }
    sent
}
