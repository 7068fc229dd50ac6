//! Sources that lend elements the bytes of packets which have no descriptors.

use crate::bed::{balance, build, clean, number};
use crate::elements::CountState;
use castanet_element::class::{Class, per_batch, per_packet, source};
use castanet_element::fate::{self, NOT_TAKEN};
use castanet_element::prelude::*;

/// Makes packets of three bytes, the first and the last of which are their number, or lends these.
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
        let mut packets: Vec<Vec<u8>> =
            numbers.map(|number| vec![number as u8, 0, (number >> 8) as u8]).collect();
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
            Some(PacketTotals { packets: count as u64, bytes: 3 * count as u64 })
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

/// Sends packets to the output that is the rest of their first byte, divided by so many parts; or runs of them, by the
/// number of their run.
#[derive(Element)]
#[element(ports = "1-2/-")]
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
    /// The length of a run; 0 for none.
    #[arg(keyword, default = 0)]
    run: u16,
}

impl LentSwitch {
    fn output(&self, bytes: &[u8]) -> Port {
        let run = u16::from_le_bytes([bytes[0], bytes[2]]).checked_div(self.run);
        Port::nth(run.map_or(bytes[0], |run| run as u8) % self.parts)
    }
}

impl PerPacket for LentSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;
    fn byte_length(&self) -> Option<usize> {
        (self.length > 0).then_some(self.length)
    }
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        assert!(fates.iter().all(|fate| *fate == 0));
        for (bytes, fate) in bytes.iter().zip(&mut *fates) {
            let is_known = u16::from(bytes[0]) != self.unknown;
            *fate = if is_known { self.output(bytes).index() } else { NOT_TAKEN };
        }
        fate::bits(fates).1
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        self.output(packet.bytes())
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
    fn write_bytes(&self, _: &mut (), bytes: &mut BurstBytes) {
        bytes.iter_mut().for_each(|bytes| bytes[1] += self.mark);
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.bytes_mut()[1] += self.mark;
    }
}

/// Lets bursts pass of which packets have no paint.
#[derive(Element)]
struct LentPasser;

impl PerPacket for LentPasser {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const CAN_PASS_BURST: bool = true;
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        if burst.paint() == Some(0) { BurstEffect::Passes } else { BurstEffect::Unknown }
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.bytes_mut()[1] = packet.bytes()[1].wrapping_add(100);
    }
}

/// Paints packets that have no descriptors.
#[derive(Element)]
struct LentPaint;

impl PerPacket for LentPaint {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Moves;
    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, _: &mut [u8]) -> u8 {
        bytes.set_paint(1);
        0
    }
    fn packet(&self, _: &mut (), _: &mut Packet) {}
}

/// Has packets go on whose first byte is even, and adds to the second of these.
#[derive(Element)]
struct LentFilter;

impl PerPacket for LentFilter {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const BYTE_ACCESS: ByteAccess = ByteAccess::ReadsAndWrites;
    fn byte_length(&self) -> Option<usize> {
        Some(2)
    }
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        let outputs = bytes.iter().map(|bytes| Port::nth(bytes[0] % 2).index());
        fates.iter_mut().zip(outputs).for_each(|(fate, output)| *fate = output);
        fate::bits(fates).1
    }
    fn write_bytes(&self, _: &mut (), bytes: &mut BurstBytes) {
        bytes.iter_mut().for_each(|bytes| bytes[1] += 1);
    }
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        let port = packet.bytes()[0] % 2;
        packet.bytes_mut()[1] += u8::from(port == 0);
        Port::nth(port)
    }
}

/// Adds the number of a batch's packets to the second byte of each.
#[derive(Element)]
#[element(ports = "2/1")]
struct LentBatch;

/// Counts of packets and loans.
#[derive(Default, Local)]
struct LentBatchState {
    /// The time of the last loan, in nanoseconds.
    time: u64,
    /// How many packets of input 1 came.
    #[read]
    seconds: u64,
}

impl PerBatch for LentBatch {
    type On = on::Any;
    type Local = LentBatchState;
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;
    fn byte_length(&self, state: &mut LentBatchState, now: Time) -> Option<usize> {
        state.time = now.since(Time::default());
        Some(2)
    }
    fn handle_bytes(&self, state: &mut LentBatchState, bytes: &mut BurstBytes, _: &mut [u8]) -> u8 {
        assert!(state.time > 0 && bytes.packets() > 0);
        0
    }
    fn write_bytes(&self, _: &mut LentBatchState, bytes: &mut BurstBytes) {
        bytes.iter_mut().for_each(|bytes| bytes[1] += 1);
    }
    fn batch(&self, state: &mut LentBatchState, port: usize, mut batch: Batch, cx: &mut Cx) {
        state.seconds += if port == 1 { batch.len() as u64 } else { 0 };
        batch.iter_mut().for_each(|packet| packet.bytes_mut()[1] += 1);
        cx.emit_batch((), batch);
    }
}

pub(crate) static CLASSES: &[Class] = &[
    per_packet::<LentPasser>(),
    per_packet::<LentPaint>(),
    per_packet::<LentFilter>(),
    source::<LentSource>().with_bypass(&["LentSink"]).with_lent_bytes(),
    per_batch::<LentSink>(),
    per_packet::<LentSwitch>(),
    per_packet::<LentMark>(),
    per_batch::<LentBatch>(),
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

/// Of so many packets: how many the elements `k` and `m` got as packets, how many without descriptors, and the sum of their
/// marks.
fn both_came(count: u64, text: &str) -> [u64; 6] {
    let mut router = build(&format!("l :: LentSource({count}) -> {text}"), 1, true);
    router.settle(1000);
    balance(&mut router);
    let read = ["k.packets", "k.lent", "k.marks", "m.packets", "m.lent", "m.marks"]
        .map(|handler| number(&mut router, handler));
    clean(router);
    read
}

#[test]
fn the_way_is_that_of_most_packets() {
    let ends = "LentMark(1) -> k :: LentSink; p[1] -> LentMark(2) -> m :: LentSink";
    // Runs of 128: of each but the first, the first burst finds the way of those before.
    let runs = both_came(640, &format!("p :: LentSwitch(2, RUN 128) -> {ends}"));
    assert_eq!(runs, [64, 320, 384, 64, 192, 512]);
    // Half of each burst takes either way: the way stays.
    let halves = both_came(320, &format!("p :: LentSwitch(2) -> {ends}"));
    assert_eq!(halves, [0, 160, 160, 160, 0, 320]);
    // Most packets take ways that none without descriptors can take.
    for [none, other] in [[1, 3], [3, 1]] {
        let most = format!(
            "p :: LentSwitch(4) -> k :: LentSink; p[{none}] -> End; p[2] -> End; p[{other}] -> m :: LentSink"
        );
        assert_eq!(both_came(320, &most), [0, 80, 0, 80, 0, 0]);
    }
    // Both ways end at one element, behind others that differ.
    let joined =
        "p :: LentSwitch(2, RUN 128) -> LentMark(1) -> k :: LentSink; p[1] -> LentMark(2) -> k;
        m :: LentSink; LentSource(0) -> m";
    assert_eq!(both_came(640, joined), [128, 512, 896, 0, 0, 0]);
}

#[test]
fn ways_differ_where_their_packets_part() {
    // The way behind `r` is that of packets which have come there past `u` or `v`, as before.
    let shared = "c :: LentSwitch(2, RUN 512) -> u :: LentSwitch(1) -> r :: LentSwitch(2, RUN 256) -> k :: LentSink;
        c[1] -> v :: LentSwitch(1) -> r; r[1] -> m :: LentSink";
    assert_eq!(both_came(1024, shared), [32, 480, 0, 64, 448, 0]);
    // Packets part at two elements: five of eight go to `m`, by several outputs.
    let parted = "c :: LentSwitch(8) -> r :: LentSwitch(2) -> k :: LentSink; r[1] -> End; c[1] -> r; c[2] -> r;
        c[3] -> m :: LentSink; c[4] -> m; c[5] -> m; c[6] -> m; c[7] -> m";
    assert_eq!(both_came(640, parted), [152, 8, 0, 20, 380, 0]);
}

#[test]
fn a_way_that_is_closed_gives_way_to_another() {
    // The second element of the way that is found first handles no bytes with these arguments: so 64 bursts are packets.
    let closed =
        "p :: LentSwitch(1); p[1] -> LentSwitch(1, 0) -> k :: LentSink; p -> m :: LentSink";
    assert_eq!(both_came(3200, closed), [0, 0, 0, 2048, 1152, 0]);
}

#[test]
fn elements_that_own_batches_handle_bytes_of_their_first_input() {
    assert_eq!(came("b :: LentBatch -> k :: LentSink; LentSource(0) -> [1] b"), [0, 320, 320]);
    // The first way of all would be by the second input.
    let text = "p :: LentSwitch(2) -> [1] b :: LentBatch -> k :: LentSink; p[1] -> b";
    let mut router = build(&format!("l :: LentSource(320) -> {text}"), 1, true);
    router.settle(100);
    balance(&mut router);
    let read = ["k.packets", "k.lent", "k.marks", "b.seconds"];
    let read = read.map(|handler| number(&mut router, handler));
    clean(router);
    assert_eq!(read, [160, 160, 320, 160]);
}

#[test]
fn the_search_for_a_way_ends() {
    // Each of twenty switches doubles the ways, and leads to what the one before has led to.
    let declared: String = (1..20).map(|n| format!("p{n} :: LentSwitch(2); ")).collect();
    let ways = |n| format!("p{n} -> LentPasser -> p{0}; p{n}[1] -> LentPasser -> p{0}; ", n + 1);
    let switches: String = (0..20).map(ways).collect();
    let last = "p20 :: LentSwitch(3) -> k :: LentSink; p20[1] -> k; p20[2] -> End;";
    let [packets, lent, _] = came(&format!("p0 :: LentSwitch(2); {declared} {last} {switches}"));
    assert_eq!(packets + lent, (0..320).filter(|n| n % 256 % 3 < 2).count() as u64);
    // No packet is in the circle.
    let circle =
        "p :: LentSwitch(2) -> q :: LentSwitch(2); p[1] -> k :: LentSink; q[1] -> k; q -> p";
    let mut router = build(&format!("l :: LentSource(0) -> {circle}"), 1, true);
    router.settle(10);
    clean(router);
}

#[test]
fn bursts_pass_elements_that_let_them_pass() {
    assert_eq!(came("LentPasser -> LentPasser -> LentMark(2) -> k :: LentSink"), [0, 320, 640]);
    // Nothing is known of packets that others may write to, but behind one that leaves it true.
    assert_eq!(came("LentMark(2) -> LentPasser -> k :: LentSink"), [320, 0, 320 * 102]);
    assert_eq!(came("f :: LentFilter -> LentPasser -> k :: LentSink; f[1] -> End"), [0, 160, 160]);
    assert_eq!(
        came("LentPaint -> LentMark(2) -> LentPasser -> k :: LentSink"),
        [320, 0, 320 * 102]
    );
    assert_eq!(came("LentPasser -> LentPaint -> LentPasser -> k :: LentSink"), [320, 0, 32000 * 2]);
}

#[test]
fn an_element_that_decides_and_writes_writes_to_what_goes_on() {
    let rest = "f[1] -> End";
    assert_eq!(
        came(&format!("f :: LentFilter -> LentMark(2) -> k :: LentSink; {rest}")),
        [0, 160, 480]
    );
    // Others may decide before it, and none behind it.
    let path = "p :: LentSwitch(4) -> f :: LentFilter -> k :: LentSink; p[1] -> End; p[2] -> f; p[3] -> End";
    assert_eq!(came(&format!("{path}; {rest}")), [0, 160, 160]);
    let path = "f :: LentFilter -> p :: LentSwitch(1) -> k :: LentSink";
    assert_eq!(came(&format!("{path}; {rest}")), [160, 0, 160]);
    assert_eq!(came("LentMark(1) -> f :: LentFilter -> k :: LentSink; f[1] -> End"), [160, 0, 320]);
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
