//! Elements that do one thing each: make, keep, move, count, stumble.

use crate::probes::{CodeProbe, CodeProbeSeven, HeaderFilter, HeaderProbe, PaintProbe, Repaint};
use castanet_element::class::{Class, info, per_batch, per_packet, source, store};
use castanet_element::fuse;
use castanet_element::node::fused::Fusion;
use castanet_element::prelude::*;
use std::collections::VecDeque;

/// Makes packets, and asks for an end of the router after the last.
#[derive(Clone, Element)]
struct Make {
    /// How many packets.
    #[arg(live)]
    limit: u64,
    /// How long to wait between bursts, in nanoseconds.
    #[arg(default = 0)]
    pause: u64,
    /// Whether to stop the router.
    #[arg(keyword, default = false)]
    stop: bool,
}

/// A count of packets.
#[derive(Default, Local)]
pub(crate) struct CountState {
    /// Packets.
    #[read]
    pub(crate) count: u64,
}

/// Makes up to `n` packets, until `made` is `limit`.
pub(crate) fn make_packets(made: &mut u64, limit: u64, n: usize, cx: &mut Cx) -> NextRun {
    for _ in 0..n {
        if *made == limit {
            return NextRun::Done;
        }
        let Some(packet) = cx.copy_in(b"some bytes") else { break };
        *made += 1;
        cx.emit((), packet);
    }
    NextRun::Again
}

impl Source for Make {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, made: &mut CountState, n: usize, cx: &mut Cx) -> NextRun {
        match (make_packets(&mut made.count, self.limit, n, cx), self.pause) {
            (NextRun::Done, _) => {
                if self.stop {
                    cx.stop();
                }
                NextRun::Done
            }
            (_, 0) => NextRun::Again,
            (_, n) => NextRun::At(cx.now() + Duration::from_nanos(n)),
        }
    }
}

/// Makes packets while the stores below have room.
#[derive(Element)]
struct Fill {
    /// How many packets.
    #[arg]
    limit: u64,
}

impl Source for Fill {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, made: &mut CountState, n: usize, cx: &mut Cx) -> NextRun {
        if made.count == self.limit {
            return NextRun::Done;
        }
        let left = usize::try_from(self.limit - made.count).unwrap_or(n);
        let n = n.min(cx.room()).min(left);
        if n == 0 {
            return NextRun::Empty;
        }
        make_packets(&mut made.count, self.limit, n, cx)
    }
}

/// Keeps packets.
#[derive(Element)]
struct Keep {
    /// How many.
    #[arg(default = 1000)]
    capacity: usize,
}

#[derive(Default, Local)]
#[write(reset)]
struct StoreState {
    packets: VecDeque<Packet>,
}

#[derive(Fate)]
#[allow(dead_code)] // what is pulled is not emitted
enum StoreExit {
    /// Packets that are pulled.
    Next,
    /// Packets that find no room.
    #[drop]
    Full,
}

impl Store for Keep {
    type Local = StoreState;
    type Fate = StoreExit;
    const NOTIFIES: bool = true;

    fn enqueue(&self, kept: &mut StoreState, mut batch: Batch, cx: &mut Cx) {
        let excess = batch.split_off(self.room(kept));
        kept.packets.extend(batch.drain());
        cx.emit_batch(StoreExit::Full, excess);
    }
    fn dequeue(&self, kept: &mut StoreState, n: usize, into: &mut Batch, _: &mut Cx) {
        let n = n.min(kept.packets.len());
        into.extend(kept.packets.drain(..n));
    }
    fn held(&self, kept: &StoreState) -> usize {
        kept.packets.len()
    }
    fn room(&self, kept: &StoreState) -> usize {
        self.capacity - kept.packets.len()
    }
}

/// Pulls and pushes.
#[derive(Clone, Element)]
#[element(ports = "1/1", processing = "l/h")]
struct Move {
    /// Whether to.
    #[arg(live, default = true)]
    active: bool,
}

impl Source for Move {
    type Local = ();
    type Fate = ();
    fn produce(&self, _: &mut (), n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let batch = cx.pull(0, n);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        cx.emit_batch((), batch);
        NextRun::Again
    }
}

/// Lets a packet be pulled every so often.
#[derive(Clone, Element)]
#[element(ports = "1/1", processing = "l/l")]
struct Slow {
    /// Nanoseconds between packets.
    #[arg(live)]
    pause: u64,
}

#[derive(Default, Local)]
struct Due {
    at: Time,
}

impl Source for Slow {
    type Local = Due;
    type Fate = ();
    fn produce(&self, due: &mut Due, _: usize, cx: &mut Cx) -> NextRun {
        if due.at > cx.now() {
            cx.retry_at(due.at);
            return NextRun::Empty;
        }
        let batch = cx.pull(0, 1);
        if !batch.is_empty() {
            due.at = cx.now() + Duration::from_nanos(self.pause);
        }
        cx.emit_batch((), batch);
        NextRun::Empty
    }
}

/// Merges pulled inputs, the first first.
#[derive(Element)]
#[element(ports = "1-/1", processing = "l/l")]
struct First;

impl Source for First {
    type Local = ();
    type Fate = ();
    fn produce(&self, _: &mut (), n: usize, cx: &mut Cx) -> NextRun {
        for input in 0..cx.inputs() {
            let batch = cx.pull(input, n);
            if !batch.is_empty() {
                cx.emit_batch((), batch);
                break;
            }
        }
        NextRun::Empty
    }
}

/// Counts and passes on.
#[derive(Element)]
struct Count;

impl PerPacket for Count {
    type On = on::Any;
    type Local = CountState;
    type Fate = ();
    fn packet(&self, seen: &mut CountState, _: &mut Packet) {
        seen.count += 1;
    }
}

/// Passes packets on, of which its class says that they are few.
#[derive(Element)]
struct Few;

impl PerPacket for Few {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    fn packet(&self, _: &mut (), _: &mut Packet) {}
}

/// Panics at every so many packets.
#[derive(Element)]
struct Trip {
    /// At which.
    #[arg]
    every: u64,
}

impl PerPacket for Trip {
    type On = on::Any;
    type Local = CountState;
    type Fate = ();
    fn packet(&self, seen: &mut CountState, _: &mut Packet) {
        seen.count += 1;
        assert!(!seen.count.is_multiple_of(self.every), "tripped, as the test wants");
    }
}

/// Pulls, gives half on, and panics with the rest in hand.
#[derive(Element)]
#[element(ports = "1/1", processing = "l/h")]
struct Fumble;

impl Source for Fumble {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, seen: &mut CountState, _: usize, cx: &mut Cx) -> NextRun {
        let mut batch = cx.pull(0, 4);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        seen.count += 1;
        let rest = batch.split_off(2);
        cx.emit_batch((), batch);
        assert!(!seen.count.is_multiple_of(2), "fumbled, as the test wants");
        cx.emit_batch((), rest);
        NextRun::Again
    }
}

/// Gives a packet and copies of it to all outputs.
#[derive(Element)]
#[element(ports = "1/1-")]
struct Copy {
    /// How many outputs.
    #[arg]
    outputs: u8,
}

impl PerBatch for Copy {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            for n in 1..self.outputs {
                let copy = cx.share(&mut packet);
                cx.emit(Port::nth(n), copy);
            }
            cx.emit(Port::nth(0), packet);
        }
    }
}

/// Ends packets.
#[derive(Element)]
#[element(processing = "a/a", ports = "1/0")]
struct End;

impl PerBatch for End {
    type On = on::Any;
    type Local = CountState;
    type Fate = Never;
    fn batch(&self, seen: &mut CountState, _: usize, batch: Batch, cx: &mut Cx) {
        seen.count += batch.len() as u64;
        cx.consume(batch);
    }
}

/// Sends every so many packets to output 1, and drops as many.
#[derive(Element)]
struct Part {
    /// At which.
    #[arg]
    every: u64,
}

#[derive(Fate)]
enum PartExit {
    /// The others.
    On,
    /// Every so many.
    Aside,
    /// The one after that.
    #[drop]
    Unlucky,
}

impl PerPacket for Part {
    type On = on::Any;
    type Local = CountState;
    type Fate = PartExit;
    fn packet(&self, seen: &mut CountState, _: &mut Packet) -> PartExit {
        seen.count += 1;
        match seen.count % self.every {
            0 => PartExit::Aside,
            1 => PartExit::Unlucky,
            _ => PartExit::On,
        }
    }
}

/// Counts, and wants every so many packets in a batch.
#[derive(Element)]
#[element(processing = "h/h")]
struct Weigh {
    /// At which.
    #[arg]
    every: u64,
}

#[derive(Default, Local)]
struct WeighState {
    /// Packets.
    #[read]
    count: u64,
    /// Those that came in batches.
    #[read]
    batched: u64,
}

impl PerBatch for Weigh {
    type On = on::Any;
    type Local = WeighState;
    type Fate = ();
    const CAN_PASS: bool = true;
    fn can_pass(&self, weighed: &mut WeighState, _: &mut Packet) -> bool {
        let passes = !(weighed.count + 1).is_multiple_of(self.every);
        weighed.count += u64::from(passes);
        passes
    }
    fn batch(&self, weighed: &mut WeighState, _: usize, batch: Batch, cx: &mut Cx) {
        weighed.count += batch.len() as u64;
        weighed.batched += batch.len() as u64;
        cx.emit_batch((), batch);
    }
}

/// Sends packets to its outputs in turn.
#[derive(Element)]
#[element(ports = "1/2")]
struct Deal;

impl PerPacket for Deal {
    type On = on::Any;
    type Local = CountState;
    type Fate = Port;
    fn packet(&self, seen: &mut CountState, _: &mut Packet) -> Port {
        seen.count += 1;
        Port::nth((seen.count % 2) as u8)
    }
}

/// Numbers packets in their first byte, or checks that the numbers go up.
#[derive(Element)]
struct Order {
    /// Whether to check.
    #[arg]
    check: bool,
}

#[derive(Default, Local)]
struct OrderState {
    last: u32,
    /// Packets whose number was not higher than that of the one before.
    #[read]
    wrong: u64,
}

impl PerPacket for Order {
    type On = on::Any;
    type Local = OrderState;
    type Fate = ();
    fn packet(&self, ordered: &mut OrderState, packet: &mut Packet) {
        if self.check {
            let number = packet.anno_u32(4);
            ordered.wrong += u64::from(number <= ordered.last);
            ordered.last = number;
        } else {
            ordered.last += 1;
            packet.set_anno_u32(4, ordered.last);
        }
    }
}

/// Rows that run as one pass.
pub(crate) static FUSIONS: &[Fusion] = &[
    fuse!(packet Order, packet Part, batch Weigh, maybe Trip, packet Count; Deal),
    fuse!(packet Part, maybe Trip, packet Count),
    fuse!(packet Deal, packet Count),
    fuse!(packet CodeProbe = CodeProbeSeven, packet Order),
    fuse!(; Deal => packet CodeProbe, packet Order),
    fuse!(packet Order, packet Part; Spread => batch Weigh, packet Part, packet Count),
    fuse!(packet Order, packet Part; Spread => batch Weigh, packet Trip, packet Count),
    fuse!(maybe Repaint, packet PaintProbe, packet PaintProbe, packet PaintProbe, packet Order),
    fuse!(; Spread => maybe Repaint, packet PaintProbe, packet PaintProbe, packet PaintProbe),
    fuse!(
        packet HeaderFilter; Spread =>
        packet HeaderProbe, packet HeaderProbe, packet HeaderProbe
    ),
    fuse!(packet HeaderProbe, packet HeaderProbe, packet HeaderProbe, packet Order),
];

/// Sends packets to its outputs in turn, each so many times as that output's number and one more.
#[derive(Element)]
#[element(ports = "1/-", args = SpreadArgs)]
struct Spread {
    outputs: u64,
}

#[derive(Args)]
struct SpreadArgs {}

impl Build for Spread {
    type Args = SpreadArgs;
    fn build(_: SpreadArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Spread { outputs: setup.outputs as u64 })
    }
}

impl PerPacket for Spread {
    type On = on::Any;
    type Local = CountState;
    type Fate = Port;
    fn packet(&self, seen: &mut CountState, _: &mut Packet) -> Port {
        let turn = seen.count % (self.outputs * (self.outputs + 1) / 2);
        seen.count += 1;
        let ends = |output: &u64| (output + 1) * (output + 2) / 2;
        Port::nth((0..self.outputs).find(|output| turn < ends(output)).unwrap_or(0) as u8)
    }
}

/// Wakes itself at fixed times, and once for the moment it is in.
#[derive(Element)]
#[element(processing = "h/h", ports = "0/0")]
struct Alarm;

#[derive(Default, Local)]
struct Rang {
    /// Times, in milliseconds of simulated time.
    #[read]
    rings: String,
    again: bool,
}

impl PerBatch for Alarm {
    type On = on::Any;
    type Local = Rang;
    type Fate = Never;
    fn init(&self, _: &mut Rang, cx: &mut Cx) -> Result<(), ArgError> {
        cx.set_timer(cx.now() + Duration::from_millis(30));
        cx.set_timer(cx.now() + Duration::from_millis(20));
        Ok(())
    }
    fn batch(&self, _: &mut Rang, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
    fn run_timer(&self, rang: &mut Rang, cx: &mut Cx) {
        rang.rings += &format!("{} ", cx.now().0 % 1_000_000_000 / 1_000_000);
        rang.again = !rang.again;
        let pause = if rang.again { 0 } else { 10 };
        cx.set_timer(cx.now() + Duration::from_millis(pause));
    }
}

/// Says where an element runs.
#[derive(Element)]
struct Home {
    /// The element.
    #[arg]
    element: String,
    /// Its worker.
    #[arg]
    worker: usize,
}

impl Info for Home {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        facts.homes.push((self.element.clone(), self.worker));
        Ok(())
    }
}

pub(crate) static CLASSES: &[Class] = &[
    source::<Make>(),
    source::<Fill>(),
    store::<Keep>(),
    source::<Move>(),
    source::<Slow>(),
    source::<First>(),
    source::<Fumble>(),
    per_packet::<Count>(),
    per_packet::<Few>().with_few_packets(),
    per_packet::<Trip>(),
    per_packet::<Part>(),
    per_packet::<Deal>(),
    per_packet::<Spread>(),
    per_packet::<Order>(),
    per_batch::<Weigh>(),
    per_batch::<Copy>(),
    per_batch::<End>(),
    per_batch::<Alarm>(),
    info::<Home>(),
];
