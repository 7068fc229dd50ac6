//! Elements of fused chains that tell by which code packets came to them, and whether they were looked at.

use crate::elements::CountState;
use castanet_element::class::{Class, per_packet};
use castanet_element::native;
use castanet_element::prelude::*;

/// Counts packets by the code that saw them.
#[derive(Clone, Element)]
pub(crate) struct CodeProbe {
    /// The number for which there is other code, or not.
    #[arg(live)]
    number: u8,
}

#[derive(Default, Local)]
pub(crate) struct CodeProbeState {
    /// Packets that the element's own code saw.
    #[read]
    own: u64,
    /// The others.
    #[read]
    native: u64,
}

impl PerPacket for CodeProbe {
    type On = on::Any;
    type Local = CodeProbeState;
    type Fate = ();
    fn packet(&self, seen: &mut CodeProbeState, _: &mut Packet) {
        seen.own += 1;
    }
}

native!(CodeProbeSeven: packet CodeProbe, |it| it.number == 7, |element, local, packet| local.native += 1);

/// Sets the paint annotation.
#[derive(Element)]
pub(crate) struct Repaint {
    /// The colour.
    #[arg]
    color: u8,
}

impl PerPacket for Repaint {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.set_paint(self.color);
    }
}

/// Counts the packets that it looks at, and those of a colour. It need not look at a burst without such packets.
#[derive(Clone, Element)]
pub(crate) struct PaintProbe {
    /// The colour.
    #[arg(live)]
    color: u8,
}

#[derive(Default, Local)]
pub(crate) struct ProbeState {
    /// Packets that it has looked at.
    #[read]
    seen: u64,
    /// Packets for which it is there.
    #[read]
    count: u64,
}

impl PerPacket for PaintProbe {
    type On = on::Any;
    type Local = ProbeState;
    type Fate = ();
    const CAN_PASS_BURST: bool = true;
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.paint() {
            Some(paint) if paint != self.color => BurstEffect::Passes,
            _ => BurstEffect::Keeps,
        }
    }
    fn packet(&self, state: &mut ProbeState, packet: &mut Packet) {
        state.seen += 1;
        state.count += u64::from(packet.paint() == self.color);
    }
}

/// Makes IPv4 headers of packets; some have options.
#[derive(Element)]
pub(crate) struct HeaderMaker {
    /// How many packets there are to one with options; 0 for none.
    #[arg]
    every: u64,
}

impl PerPacket for HeaderMaker {
    type On = on::Any;
    type Local = CountState;
    type Fate = ();
    fn packet(&self, made: &mut CountState, packet: &mut Packet) {
        made.count += 1;
        let words = if self.every > 0 && made.count.is_multiple_of(self.every) { 6 } else { 5 };
        packet.truncate(0);
        let bytes = packet.put_back(40);
        bytes.fill(0);
        bytes[0] = 0x40 | words;
        assert!(packet.mark_ipv4(0, u16::from(words) * 4, 40));
    }
}

/// Sends packets whose header has options elsewhere.
#[derive(Element)]
pub(crate) struct HeaderFilter;

impl PerPacket for HeaderFilter {
    type On = on::PinnedIpv4;
    type Local = ();
    type Fate = HeaderFilterExit;
    fn packet(&self, _: &mut (), ip: PinnedIpv4) -> HeaderFilterExit {
        if ip.has_options() { HeaderFilterExit::Options } else { HeaderFilterExit::Plain }
    }
}

#[derive(Fate)]
pub(crate) enum HeaderFilterExit {
    /// Packets without options.
    Plain,
    /// Packets with options.
    Options,
}

/// Counts the packets that it looks at, and those whose header has options. It need not look at a burst without any.
#[derive(Element)]
pub(crate) struct HeaderProbe;

impl PerPacket for HeaderProbe {
    type On = on::PinnedIpv4;
    type Local = ProbeState;
    type Fate = ();
    const CAN_PASS_BURST: bool = true;
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.is_ipv4_without_options() {
            true => BurstEffect::Passes,
            false => BurstEffect::Keeps,
        }
    }
    fn packet(&self, state: &mut ProbeState, ip: PinnedIpv4) {
        state.seen += 1;
        state.count += u64::from(ip.has_options());
    }
}

pub(crate) static CLASSES: &[Class] = &[
    per_packet::<CodeProbe>(),
    per_packet::<Repaint>(),
    per_packet::<PaintProbe>(),
    per_packet::<HeaderMaker>(),
    per_packet::<HeaderFilter>(),
    per_packet::<HeaderProbe>(),
];
