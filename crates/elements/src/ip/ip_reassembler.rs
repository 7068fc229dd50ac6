//! `IPReassembler`: reassembles fragmented IPv4 packets.

use super::ip_reassembler_state::IPReassemblerState;
use super::transport::replace_with_ipv4;
use castanet_element::prelude::*;
use castanet_kit::reassembly::InsertResult;

/// Reassembles fragmented IPv4 packets.
///
/// A reassembled packet leaves with the annotations of the fragment that came last. If fragments
/// overlap with different contents, the element drops all fragments of the packet. It ignores
/// fragments that only repeat others. A packet that is incomplete 30 seconds after its last
/// fragment leaves by output 1, with its fragments at their offsets, for
/// `ICMPError(ADDR, timeexceeded, reassembly)`; so do the oldest incomplete packets when fragments
/// need more memory than HIMEM. If output 1 is not connected, these packets are dropped.
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
#[element(room = "ip", args = IPReassemblerArgs, processing = "a/ah")]
pub struct IPReassembler {
    limit: usize,
    max_fragment_anno: Option<AnnoAt<2>>,
    two_outputs: bool,
}

#[derive(Args)]
pub struct IPReassemblerArgs {
    /// Maximum memory for fragments, in bytes.
    #[arg(keyword, default = 256 << 10)]
    himem: u32,
    /// Annotation to set to the length of the longest fragment of a packet, in bytes.
    #[arg(keyword)]
    max_mtu_anno: Option<AnnoAt<2>>,
}

impl Build for IPReassembler {
    type Args = IPReassemblerArgs;
    fn build(args: IPReassemblerArgs, setup: &Setup) -> Result<Self, ArgError> {
        let IPReassemblerArgs { himem, max_mtu_anno: max_fragment_anno } = args;
        let (limit, two_outputs) = (himem as usize, setup.outputs > 1);
        Ok(IPReassembler { limit, max_fragment_anno, two_outputs })
    }
}

#[derive(Fate)]
pub enum IPReassemblerExit {
    /// Reassembled packets, and packets that are not fragments.
    Whole,
    /// Incomplete packets that the element has given up.
    #[optional]
    Late,
    /// Incomplete packets that the element has given up, if output 1 is not connected. Look for
    /// loss before this router, or raise HIMEM.
    #[drop]
    Incomplete,
    /// Fragments that overlap others with different contents.
    #[drop]
    Overlap,
    /// Fragments with an invalid length or offset.
    #[drop]
    Malformed,
}

impl PerBatch for IPReassembler {
    type On = on::Ipv4;
    type Local = IPReassemblerState;
    type Fate = IPReassemblerExit;
    const CAN_PASS: bool = true;
    // The fragments of a packet may arrive on several workers.
    const SHARED: bool = true;

    fn init(&self, state: &mut IPReassemblerState, cx: &mut Cx) -> Result<(), ArgError> {
        self.after_take_state(state, cx);
        Ok(())
    }

    fn can_take_state(&self, _: &IPReassembler) -> bool {
        true
    }

    fn after_take_state(&self, state: &mut IPReassemblerState, _: &mut Cx) {
        state.0.set_limit(self.limit);
    }

    #[inline]
    fn can_pass(&self, _: &mut IPReassemblerState, ip: Ipv4) -> bool {
        !ip.is_fragment()
    }

    fn batch(&self, state: &mut IPReassemblerState, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            if packet.ipv4_header().is_some_and(|ip| ip.is_fragment()) {
                self.add_fragment(state, packet, cx);
            } else {
                cx.emit(IPReassemblerExit::Whole, packet);
            }
        }
        self.run_timer(state, cx);
    }

    fn run_timer(&self, state: &mut IPReassemblerState, cx: &mut Cx) {
        while state.0.expire(cx.now().nanos()) {
            self.send_incomplete(state, cx);
        }
        if let Some(at) = state.0.next_expiry() {
            cx.set_timer(Time::from_nanos(at));
        }
    }
}

impl IPReassembler {
    fn add_fragment(&self, state: &mut IPReassemblerState, mut packet: Packet, cx: &mut Cx) {
        let Some(ip) = packet.ipv4() else { return cx.emit(IPReassemblerExit::Malformed, packet) };
        match state.0.insert(ip.datagram(), cx.now().nanos()) {
            InsertResult::Complete => {
                replace_with_ipv4(&mut packet, state.0.packet());
                if let Some(AnnoAt(at)) = self.max_fragment_anno {
                    packet.set_anno_u16(at, u16::try_from(state.0.longest()).unwrap_or(u16::MAX));
                }
                cx.emit(IPReassemblerExit::Whole, packet);
            }
            InsertResult::Stored | InsertResult::Duplicate => cx.consume(packet.into()),
            InsertResult::Overlap => cx.emit(IPReassemblerExit::Overlap, packet),
            InsertResult::Malformed => cx.emit(IPReassemblerExit::Malformed, packet),
        }
        let mut slimming = false;
        while state.0.evict_surplus(&mut slimming) {
            self.send_incomplete(state, cx);
        }
    }

    /// Sends the current incomplete packet of the reassembler.
    fn send_incomplete(&self, state: &mut IPReassemblerState, cx: &mut Cx) {
        let Some(mut packet) = cx.alloc() else { return };
        replace_with_ipv4(&mut packet, state.0.packet());
        use IPReassemblerExit::{Incomplete, Late};
        cx.emit(if self.two_outputs { Late } else { Incomplete }, packet);
    }
}
