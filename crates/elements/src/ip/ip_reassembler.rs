//! `IPReassembler`: fragments as whole packets.

use super::transport::show;
use castanet_engine::prelude::*;
use castanet_kit::reassembly::{InsertResult, Reassembler};

/// Puts the fragments of IPv4 packets together again.
///
/// Whole packets leave with the annotations of the fragment that came last.
/// Fragments that disagree about a byte are all dropped, for nobody can tell
/// who is right; those that only repeat others are taken as repetitions. What
/// is incomplete 30 seconds after its last fragment, or the oldest of what is
/// kept when that is more than HIMEM, leaves by output 1, its parts in their
/// places, for `ICMPError(ADDR, timeexceeded, reassembly)`; or it is dropped
/// where that output is not connected.
///
/// ```click
/// in -> r :: IPReassembler -> out;  r[1] -> late
/// > in   1.0.0.1 > 2.0.0.2 udp
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 8 data 0909
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 0+ data 0102030405060708 ; paint 3
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 8 frag 0+ data 0102030405060708
/// < out  1.0.0.1 > 2.0.0.2 udp
/// < out  1.0.0.1 > 2.0.0.2 proto 99 id 7 data 01020304050607080909 ; paint 3 network 0
/// = r.length 1
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 9 frag 8+ data 0102030405060708
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 9 frag 8+ data 0102030405060709
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 9 frag 8+ data 01
/// = r.drops.overlap 1
/// = r.drops.malformed 1
/// = r.drops.incomplete 0
/// + 31s
/// < late 1.0.0.1 > 2.0.0.2 proto 99 id 8 frag 0+ data 0102030405060708
/// = r.length 0
/// ```
/// ```click
/// in -> r :: IPReassembler(HIMEM 100) -> out
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 1 frag 0+ data 0102030405060708
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 2 frag 0+ data 0102030405060708
/// > in   1.0.0.1 > 2.0.0.2 proto 99 id 3 frag 0+ data 0102030405060708
/// = r.drops.incomplete 2
/// = r.length 1
/// ```
/// ```click
/// in -> IPReassembler(MAX_MTU_ANNO 26) -> StoreAnno(0, 26/2) -> Truncate(2) -> out
/// > in  1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 8 data 0909
/// > in  1.0.0.1 > 2.0.0.2 proto 99 id 7 frag 0+ data 0102030405060708
/// < out hex 1c 00
/// ```
#[derive(Element)]
#[element(room = "ip", args = Limits, processing = "a/ah")]
pub struct IPReassembler {
    limit: usize,
    longest: Option<AnnoAt<2>>,
    two_outputs: bool,
}

#[derive(Args)]
pub struct Limits {
    /// The most memory to keep fragments in, in bytes.
    #[arg(keyword, default = 256 << 10)]
    himem: u32,
    /// The annotation that is to say how long the longest fragment of a packet was.
    #[arg(keyword)]
    max_mtu_anno: Option<AnnoAt<2>>,
}

impl Build for IPReassembler {
    type Args = Limits;
    fn build(args: Limits, setup: &Setup) -> Result<Self, ArgError> {
        let Limits { himem, max_mtu_anno: longest } = args;
        Ok(IPReassembler { limit: himem as usize, longest, two_outputs: setup.outputs > 1 })
    }
}

/// Where packets go.
#[derive(Fate)]
pub enum Exit {
    /// Whole packets.
    Whole,
    /// What there is of packets that did not come together.
    #[optional]
    Late,
    /// The same, where nobody takes it.
    #[drop]
    Incomplete,
    /// Fragments that disagree with others.
    #[drop]
    Overlap,
    /// Fragments of impossible length.
    #[drop]
    Malformed,
}

/// What waits.
#[derive(Default, Local)]
#[local(methods)]
pub struct Waiting(Reassembler);

#[handlers]
impl Waiting {
    /// Packets that are incomplete.
    #[read]
    fn length(&self) -> usize {
        self.0.len()
    }
}

impl PerBatch for IPReassembler {
    type On = on::Ipv4;
    type Local = Waiting;
    type Fate = Exit;
    // The fragments of a packet may come by several workers.
    const SHARED: bool = true;

    fn begin(&self, waiting: &mut Waiting, cx: &mut Cx) -> Result<(), ArgError> {
        self.resume(waiting, cx);
        Ok(())
    }

    fn continues(&self, _: &IPReassembler) -> bool {
        true
    }

    fn resume(&self, waiting: &mut Waiting, _: &mut Cx) {
        waiting.0.set_limit(self.limit);
    }

    #[inline]
    fn passes(&self, _: &mut Waiting, ip: Ipv4) -> bool {
        !ip.is_fragment()
    }

    fn batch(&self, waiting: &mut Waiting, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            if packet.ipv4_header().is_some_and(|ip| ip.is_fragment()) {
                self.fragment(waiting, packet, cx);
            } else {
                cx.emit(Exit::Whole, packet);
            }
        }
        self.wake(waiting, cx);
    }

    fn wake(&self, waiting: &mut Waiting, cx: &mut Cx) {
        while waiting.0.expire(cx.now().nanos()) {
            self.give_up(waiting, cx);
        }
        if let Some(at) = waiting.0.next_expiry() {
            cx.wake_at(Time::from_nanos(at));
        }
    }
}

impl IPReassembler {
    fn fragment(&self, waiting: &mut Waiting, mut packet: Packet, cx: &mut Cx) {
        let Some(ip) = packet.ipv4() else { return cx.emit(Exit::Malformed, packet) };
        match waiting.0.insert(ip.datagram(), cx.now().nanos()) {
            InsertResult::Complete => {
                show(&mut packet, waiting.0.packet());
                if let Some(AnnoAt(at)) = self.longest {
                    packet.set_anno_u16(at, u16::try_from(waiting.0.longest()).unwrap_or(u16::MAX));
                }
                cx.emit(Exit::Whole, packet);
            }
            InsertResult::Stored | InsertResult::Duplicate => cx.consume(packet.into()),
            InsertResult::Overlap => cx.emit(Exit::Overlap, packet),
            InsertResult::Malformed => cx.emit(Exit::Malformed, packet),
        }
        let mut slimming = false;
        while waiting.0.evict_surplus(&mut slimming) {
            self.give_up(waiting, cx);
        }
    }

    /// What there is of a packet leaves.
    fn give_up(&self, waiting: &mut Waiting, cx: &mut Cx) {
        let Some(mut packet) = cx.alloc() else { return };
        show(&mut packet, waiting.0.packet());
        cx.emit(if self.two_outputs { Exit::Late } else { Exit::Incomplete }, packet);
    }
}
