//! `IP6Fragmenter`: IPv6 packets in pieces that fit.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv6Header;
use castanet_kit::fragment6::{self, Fragmentation};

/// Sends IPv6 packets that are longer than the MTU aside, or divides them.
///
/// Routers do not divide IPv6 packets (RFC 8200, section 5): as if they all
/// had IPv4's DF flag, longer ones leave by output 1, for an `ICMP6Error` of
/// type 2. With HONOR_DF false, for who sends packets himself, they become
/// fragments, without link header and with the packet's annotations; then only
/// those leave by output 1 that are fragments already or whose headers alone
/// fill the MTU.
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
    /// The longest packet that fits.
    #[arg]
    mtu: u32,
    /// Whether to leave packets whole.
    #[arg(keyword, default = true)]
    honor_df: bool,
}

#[derive(Fate)]
pub enum Size {
    /// Packets and fragments that fit.
    Fits,
    /// Packets that may not or cannot be divided, for an `ICMP6Error`.
    #[optional]
    Large,
}

/// What one worker has done.
#[derive(Default, Local)]
pub struct Tally {
    /// Fragments made.
    #[read]
    fragments: u64,
    /// Packets left whole.
    #[read]
    drops: u64,
}

impl PerBatch for IP6Fragmenter {
    type On = on::Ipv6;
    type Local = Tally;
    type Fate = Size;

    #[inline]
    fn passes(&self, _: &mut Tally, ip: Ipv6) -> bool {
        self.fits(ip.packet())
    }

    fn batch(&self, tally: &mut Tally, _: usize, batch: Batch, cx: &mut Cx) {
        if batch.iter().all(|packet| self.fits(packet)) {
            return cx.emit_batch(Size::Fits, batch);
        }
        for packet in batch {
            if self.fits(&packet) {
                cx.emit(Size::Fits, packet);
            } else {
                self.divide(tally, packet, cx);
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
    fn divide(&self, tally: &mut Tally, mut packet: Packet, cx: &mut Cx) {
        let ip = packet.ipv6().filter(|_| !self.honor_df);
        let division = ip
            .as_ref()
            .and_then(|ip| fragment6::divide(ip.datagram(), &ip.upper_layer(), self.mtu as usize));
        let (Some(ip), Some(division)) = (&ip, division) else {
            tally.drops += 1;
            return cx.emit(Size::Large, packet);
        };
        tally.fragments += emit(&division, ip.packet(), cx);
        cx.consumed(1);
    }
}

/// Emits all fragments of a packet; how many there were frames for.
fn emit(division: &Fragmentation, whole: &Packet, cx: &mut Cx) -> u64 {
    // Numbers that nobody can guess (RFC 7739).
    let id = cx.random() as u32;
    let mut made = 0;
    for piece in division.fragments() {
        let Some(mut part) = cx.alloc() else { continue };
        division.write(piece, id, part.put_back(division.total(piece)));
        part.set_network_header(0, Ipv6Header::LEN);
        part.copy_annotations(whole);
        made += 1;
        cx.emit(Size::Fits, part);
    }
    made
}
