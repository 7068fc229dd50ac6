//! `IPFragmenter`: fragments IPv4 packets that are longer than the MTU.

use super::ip_fragmenter_state::IPFragmenterState;
use castanet_element::prelude::*;
use castanet_kit::fragment;

/// Fragments IPv4 packets that are longer than the MTU.
///
/// The first fragment is the truncated packet itself; the others are new
/// packets with its annotations, but without its link header. Packets with DF
/// set, unless HONOR_DF is false, and packets that cannot be fragmented leave
/// by output 1.
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
    /// Maximum length of a packet with its IPv4 header, in bytes, at least 8.
    #[arg]
    mtu: Mtu,
    /// Whether to obey DF; if false, packets with DF are fragmented, with a random identification.
    #[arg(default = true)]
    honor_df: bool,
    /// Whether to report every packet that was not fragmented, not only the first five.
    #[arg(default = false)]
    verbose: bool,
    /// Headroom of fragments, in bytes; accepted for Click's sake and ignored.
    #[arg(keyword)]
    #[allow(dead_code)]
    headroom: Option<u32>,
}

/// A maximum packet length, at least 8.
pub struct Mtu(usize);

impl FromArg for Mtu {
    const SYNTAX: &'static str = "a number from 8";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let mtu = u32::from_arg(text, names)? as usize;
        (mtu >= 8).then_some(Mtu(mtu)).ok_or(ArgError::new("MTU must be at least 8").unplaced())
    }
}

#[derive(Fate)]
pub enum IPFragmenterExit {
    /// Packets and fragments of at most MTU bytes.
    Fits,
    /// Packets that may not or cannot be fragmented, for an `ICMPError`. Raise MTU if the link can.
    #[optional]
    Large,
}

impl PerBatch for IPFragmenter {
    type On = on::PinnedIpv4;
    type Local = IPFragmenterState;
    type Fate = IPFragmenterExit;
    const CAN_PASS: bool = true;
    const CAN_PASS_BURST: bool = true;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        let fits = burst.max_network_len().is_some_and(|len| len <= self.mtu.0);
        match burst.is_ipv4() && fits {
            true => BurstEffect::Passes,
            false => BurstEffect::Keeps,
        }
    }

    #[inline]
    fn can_pass(&self, _: &mut IPFragmenterState, ip: PinnedIpv4) -> bool {
        ip.len() <= self.mtu.0
    }

    fn native(&self) -> Option<String> {
        Some(format!("packet.len() <= {}", self.mtu.0))
    }

    fn batch(&self, state: &mut IPFragmenterState, _: usize, batch: Batch, cx: &mut Cx) {
        if batch.iter().all(|packet| self.fits(packet)) {
            return cx.emit_batch(IPFragmenterExit::Fits, batch);
        }
        for packet in batch {
            if self.fits(&packet) {
                cx.emit(IPFragmenterExit::Fits, packet);
            } else {
                self.fragment(state, packet, cx);
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
    fn fragment(&self, state: &mut IPFragmenterState, mut packet: Packet, cx: &mut Cx) {
        /// Maximum length of an IPv4 header, in bytes.
        const MAX_HEADER_LEN: usize = 60;
        let Some(mut ip) = packet.ipv4() else { return cx.emit(IPFragmenterExit::Large, packet) };
        let dont_fragment = ip.dont_fragment();
        if dont_fragment && !self.honor_df {
            // A sender that sets DF need not keep the identification unique (RFC 6864).
            ip.set_id(cx.random() as u16);
        }
        let mut header = [0; MAX_HEADER_LEN];
        let header_len = ip.header().len();
        header[..header_len].copy_from_slice(ip.header());
        let fragments = fragment::divide(&header[..header_len], ip.payload().len(), self.mtu.0);
        let Some(mut fragments) = fragments.filter(|_| !(dont_fragment && self.honor_df)) else {
            return self.reject(state, packet, cx);
        };
        let mut out = [0; MAX_HEADER_LEN];
        let first = fragments.next();
        let mut rest = Batch::new();
        for fragment in fragments {
            let Some(mut next) = cx.alloc() else { continue };
            let len = fragment.write_header(&header[..header_len], &mut out);
            let room = next.put_back(fragment.total());
            let payload = ip.payload().get(fragment.start..fragment.start + fragment.length);
            room[..len].copy_from_slice(&out[..len]);
            room[len..].copy_from_slice(payload.unwrap_or_default());
            next.set_network_header(0, len);
            next.copy_annotations(ip.packet());
            rest.push(next);
        }
        state.fragments += 1 + rest.len() as u64;
        if let Some(first) = first {
            let len = first.write_header(&header[..header_len], &mut out);
            ip.header_mut().copy_from_slice(&out[..len]);
            let end =
                ip.packet().network_offset().unwrap_or(0).saturating_add_unsigned(first.total());
            packet.truncate(usize::try_from(end).unwrap_or(0));
            cx.emit(IPFragmenterExit::Fits, packet);
        }
        cx.emit_batch(IPFragmenterExit::Fits, rest);
    }

    fn reject(&self, state: &mut IPFragmenterState, packet: Packet, cx: &mut Cx) {
        const MAX_REPORTS: u64 = 5;
        if let Some(ip) = packet.ipv4_header().filter(|_| self.verbose || state.drops < MAX_REPORTS)
        {
            let (mtu, src, dst, len) = (self.mtu.0, ip.src(), ip.dst(), packet.len());
            cx.chatter(&format!("IPFragmenter({mtu}) DF {src} {dst} len={len}"));
        }
        state.drops += 1;
        cx.emit(IPFragmenterExit::Large, packet);
    }
}
