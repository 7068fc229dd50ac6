//! `IPFragmenter`: packets in pieces that fit.

use castanet_engine::prelude::*;
use castanet_kit::fragment;

/// Divides IPv4 packets that are longer than the MTU into fragments.
///
/// The first fragment is the packet itself, cut; the others are new packets
/// with its annotations, without its link header. Packets that may not be
/// divided (DF, unless HONOR_DF is false), or cannot, leave by output 1.
///
/// ```click
/// in -> f :: IPFragmenter(60) -> out;  f[1] -> large
/// > in    1.0.0.1 > 2.0.0.2 udp len 60
/// > in    1.0.0.1 > 2.0.0.2 proto 99 id 7 len 80 ; paint 3
/// > in    1.0.0.1 > 2.0.0.2 proto 99 df len 80
/// < out   1.0.0.1 > 2.0.0.2 udp len 60
/// < out   1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 0+ len 60 ; paint 3
/// < out   1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 40 len 40 ; paint 3
/// < large 1.0.0.1 > 2.0.0.2 proto 99 df len 80
/// ~ IPFragmenter(60) DF 1.0.0.1 2.0.0.2 len=80
/// = f.fragments 2
/// = f.drops 1
/// ```
#[derive(Element)]
#[element(room = "ip", processing = "h/h")]
pub struct IPFragmenter {
    /// The longest packet that fits, at least 8.
    #[arg]
    mtu: Mtu,
    /// Whether to leave packets whole that say so.
    #[arg(default = true)]
    honor_df: bool,
    /// Whether to report every packet that was left whole, not just five.
    #[arg(default = false)]
    verbose: bool,
    /// Room before fragments; any packet makes room by itself, this only stands for Click's.
    #[arg(keyword)]
    #[allow(dead_code)]
    headroom: Option<u32>,
}

/// A length that has room for something.
pub struct Mtu(usize);

impl FromArg for Mtu {
    const SYNTAX: &'static str = "a number from 8";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let mtu = u32::from_arg(text, names)? as usize;
        (mtu >= 8).then_some(Mtu(mtu)).ok_or_else(|| ArgError::new("MTU must be at least 8"))
    }
}

#[derive(Fate)]
pub enum Size {
    /// Packets and fragments that fit.
    Fits,
    /// Packets that may not or cannot be divided, for an `ICMPError`.
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

impl PerBatch for IPFragmenter {
    type On = on::PinnedIpv4;
    type Local = Tally;
    type Fate = Size;

    #[inline]
    fn passes(&self, _: &mut Tally, ip: PinnedIpv4) -> bool {
        ip.len() <= self.mtu.0
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

impl IPFragmenter {
    #[inline(always)]
    fn fits(&self, packet: &Packet) -> bool {
        packet.network_bytes().len() <= self.mtu.0
    }

    #[cold]
    fn divide(&self, tally: &mut Tally, mut packet: Packet, cx: &mut Cx) {
        /// The longest header that IPv4 has.
        const LONGEST: usize = 60;
        let Some(mut ip) = packet.ipv4() else { return cx.emit(Size::Large, packet) };
        let forbidden = ip.dont_fragment();
        if forbidden && !self.honor_df {
            // Whoever sets DF need not keep the identification unique (RFC 6864).
            ip.set_id(cx.random() as u16);
        }
        let mut header = [0; LONGEST];
        let header_len = ip.header().len();
        header[..header_len].copy_from_slice(ip.header());
        let parts = fragment::divide(&header[..header_len], ip.payload().len(), self.mtu.0);
        let Some(mut parts) = parts.filter(|_| !(forbidden && self.honor_df)) else {
            return self.leave_whole(tally, packet, cx);
        };
        let mut out = [0; LONGEST];
        let first = parts.next();
        let mut rest = Batch::new();
        for part in parts {
            let Some(mut next) = cx.alloc() else { continue };
            let len = part.write_header(&header[..header_len], &mut out);
            let room = next.put_back(part.total());
            let payload = ip.payload().get(part.start..part.start + part.length);
            room[..len].copy_from_slice(&out[..len]);
            room[len..].copy_from_slice(payload.unwrap_or_default());
            next.set_network_header(0, len);
            next.copy_annotations(ip.packet());
            rest.push(next);
        }
        tally.fragments += 1 + rest.len() as u64;
        if let Some(first) = first {
            let len = first.write_header(&header[..header_len], &mut out);
            ip.header_mut().copy_from_slice(&out[..len]);
            let end =
                ip.packet().network_offset().unwrap_or(0).saturating_add_unsigned(first.total());
            packet.truncate(usize::try_from(end).unwrap_or(0));
            cx.emit(Size::Fits, packet);
        }
        cx.emit_batch(Size::Fits, rest);
    }

    fn leave_whole(&self, tally: &mut Tally, packet: Packet, cx: &mut Cx) {
        const REPORTS: u64 = 5;
        if let Some(ip) = packet.ipv4_header().filter(|_| self.verbose || tally.drops < REPORTS) {
            let (mtu, src, dst, len) = (self.mtu.0, ip.src(), ip.dst(), packet.len());
            cx.chatter(&format!("IPFragmenter({mtu}) DF {src} {dst} len={len}"));
        }
        tally.drops += 1;
        cx.emit(Size::Large, packet);
    }
}
