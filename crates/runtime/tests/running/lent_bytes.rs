//! Sources that lend elements the bytes of packets which have no descriptors.

use crate::bed::{balance, build, clean, number};
use crate::elements::CountState;
use castanet_element::class::{Class, per_batch, per_packet, source};
use castanet_element::fate::NOT_TAKEN;
use castanet_element::prelude::*;

/// Makes packets of three bytes, the first of which is their number, or lends these.
#[derive(Element)]
struct LentSource {
    /// How many packets.
    #[arg]
    limit: u64,
}

impl Source for LentSource {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, lent: &mut CountState, n: usize, cx: &mut Cx) -> NextRun {
        let n = n.min((self.limit - lent.count) as usize);
        let numbers = lent.count..lent.count + n as u64;
        let mut packets: Vec<Vec<u8>> = numbers.map(|number| vec![number as u8, 0, 0]).collect();
        if packets.is_empty() {
            return NextRun::Done;
        }
        lent.count += n as u64;
        cx.bypass(|_: &LentSink, kept, handler, cx| {
            let count = handler.map_or(n, |handler| {
                BurstBytes::lend(&mut packets, |it| if handler(it) { it.packets() } else { 0 })
            });
            kept.lent += count as u64;
            kept.marks += packets.drain(..count).map(|packet| u64::from(packet[1])).sum::<u64>();
            cx.count_consumed(count);
            PacketTotals { packets: count as u64, bytes: 3 * count as u64 }
        });
        // Nothing was written to packets that take another way.
        assert!(packets.iter().all(|packet| packet[1] == 0));
        let made: Batch = packets.iter().filter_map(|packet| cx.copy_in(packet)).collect();
        if !made.is_empty() {
            cx.emit_batch((), made);
        }
        NextRun::Again
    }
}

/// Takes packets, and what has no descriptors.
#[derive(Element)]
#[element(ports = "1/0")]
struct LentSink;

#[derive(Default, Local)]
struct LentSinkState {
    /// Packets that came as packets.
    #[read]
    packets: u64,
    /// Others.
    #[read]
    lent: u64,
    /// The sum of the second bytes of all.
    #[read]
    marks: u64,
}

impl PerBatch for LentSink {
    type On = on::Any;
    type Local = LentSinkState;
    type Fate = Never;
    fn batch(&self, kept: &mut LentSinkState, _: usize, batch: Batch, cx: &mut Cx) {
        kept.packets += batch.len() as u64;
        kept.marks += batch.iter().map(|packet| u64::from(packet.bytes()[1])).sum::<u64>();
        cx.consume(batch);
    }
}

/// Sends packets to the output that is the part of their first byte behind the point, of so many parts.
#[derive(Element)]
#[element(ports = "1/-")]
struct LentSwitch {
    /// The number of parts.
    #[arg]
    parts: u8,
    /// Bytes that it needs to handle bytes; 0 if it cannot.
    #[arg(default = 1)]
    length: usize,
    /// The first byte of packets of which it handles no bytes.
    #[arg(default = 256)]
    unknown: u16,
}

impl PerPacket for LentSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;
    fn byte_length(&self) -> Option<usize> {
        (self.length > 0).then_some(self.length)
    }
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) {
        for (bytes, fate) in bytes.iter().zip(fates) {
            let is_known = u16::from(bytes[0]) != self.unknown;
            *fate = if is_known { Port::nth(bytes[0] % self.parts).index() } else { NOT_TAKEN };
        }
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        Port::nth(packet.bytes()[0] % self.parts)
    }
}

/// Adds to the second byte.
#[derive(Element)]
struct LentMark {
    /// The number to add.
    #[arg]
    mark: u8,
}

impl PerPacket for LentMark {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;
    fn byte_length(&self) -> Option<usize> {
        Some(2)
    }
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, _: &mut [u8]) {
        bytes.iter_mut().for_each(|bytes| bytes[1] += self.mark);
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.bytes_mut()[1] += self.mark;
    }
}

pub(crate) static CLASSES: &[Class] = &[
    source::<LentSource>().with_bypass(&["LentSink"]).with_lent_bytes(),
    per_batch::<LentSink>(),
    per_packet::<LentSwitch>(),
    per_packet::<LentMark>(),
];

/// Of 320 packets: how many the last element got as packets, how many without descriptors, and the sum of
/// their marks.
fn came(text: &str) -> [u64; 3] {
    let mut router = build(&format!("l :: LentSource(320) -> {text}"), 1, true);
    router.settle(100);
    balance(&mut router);
    let came = ["k.packets", "k.lent", "k.marks"].map(|handler| number(&mut router, handler));
    clean(router);
    came
}

#[test]
fn elements_handle_bytes_where_all_packets_go_on() {
    assert_eq!(came("LentMark(2) -> LentMark(3) -> k :: LentSink"), [0, 320, 1600]);
    assert_eq!(came("p :: LentSwitch(1) -> LentMark(2) -> k :: LentSink"), [0, 320, 640]);
    let all = "p :: LentSwitch(3) -> m :: LentMark(1) -> k :: LentSink; p[1] -> m; p[2] -> m";
    assert_eq!(came(all), [0, 320, 320]);
    let two = "p :: LentSwitch(2) -> q :: LentSwitch(2); p[1] -> q; q[1] -> k :: LentSink; q -> k";
    assert_eq!(came(two), [0, 320, 0]);
}

#[test]
fn elements_that_handle_bytes_count_their_packets() {
    let counts = |text: &str| {
        let mut router = build(text, 1, true);
        router.settle(100);
        balance(&mut router);
        let names = ["k.lent", "t.packets", "t.bytes"];
        let read = names.map(|handler| number(&mut router, handler));
        clean(router);
        read
    };
    let begin = "k :: LentSink; t :: Tally(false); p :: LentSwitch(2); l :: LentSource(64)";
    assert_eq!(counts(&format!("{begin} -> p -> t -> k; p[1] -> t")), [64, 64, 192]);
    assert_eq!(counts(&format!("{begin} -> p -> t -> k; p[1] -> End")), [32, 32, 96]);
    // Behind the counter, half of the packets leave.
    assert_eq!(counts(&format!("{begin} -> t -> p -> k; p[1] -> End")), [0, 64, 192]);
}

#[test]
fn packets_that_take_another_way_leave_the_burst() {
    let rest = "p[1] -> n :: LentMark(1) -> End";
    let half = format!("p :: LentSwitch(2) -> LentMark(2) -> k :: LentSink; {rest}");
    assert_eq!(came(&half), [0, 160, 320]);
    // Outputs that lead on beside one that does not: it has the numbers 1 and 201 of 256, and 1 once more.
    let gap = "p :: LentSwitch(200) -> k :: LentSink; p[1] -> End;";
    let others: String = (2..200).map(|n| format!("p[{n}] -> k; ")).collect();
    assert_eq!(came(&format!("{gap} {others}")), [0, 317, 0]);
    // Those that the first lets pass, and that the second does not.
    let two =
        "p :: LentSwitch(2) -> q :: LentSwitch(4) -> LentMark(1) -> k :: LentSink; p[1] -> End;
        q[1] -> End; q[2] -> End; q[3] -> End";
    assert_eq!(came(two), [0, 80, 80]);
}

#[test]
fn a_burst_with_a_packet_that_is_not_taken_is_made_packets() {
    // It takes no packet of which the first byte is 100: one of the ten bursts has one, since numbers begin anew at 256.
    assert_eq!(came("LentSwitch(1, 1, 100) -> LentMark(2) -> k :: LentSink"), [32, 288, 640]);
}

#[test]
fn elements_that_need_descriptors_get_packets() {
    // It needs more bytes than there are, or cannot handle bytes with its arguments.
    assert_eq!(came("LentSwitch(1, 4) -> k :: LentSink"), [320, 0, 0]);
    assert_eq!(came("LentSwitch(1, 0) -> k :: LentSink"), [320, 0, 0]);
    // A decision behind an element that has written might come too late.
    assert_eq!(came("LentMark(1) -> LentSwitch(1) -> k :: LentSink"), [320, 0, 320]);
    assert_eq!(came("LentMark(1) -> Count -> k :: LentSink"), [320, 0, 320]);
}
