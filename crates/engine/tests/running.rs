//! Graphs of small elements, run in simulated time and on real threads: what
#![allow(clippy::unwrap_used)] // a test
//! goes in comes out or is counted, nothing sleeps through its wake-up, and a
//! bug in an element costs a burst.

use castanet_engine::class::{Class, Library, per_batch, per_packet, source, store};
use castanet_engine::prelude::*;
use castanet_engine::router::{Options, Router};
use castanet_engine::worker::Console;
use castanet_lang::{Diagnostics, SourceMap, expand, parse};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

struct Silent;

impl Console for Silent {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}

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

#[derive(Default, Local)]
#[write(reset)]
struct Made {
    /// Packets.
    #[read]
    count: u64,
}

impl Source for Make {
    type Local = Made;
    type Fate = ();
    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        for _ in 0..n {
            if made.count == self.limit {
                if self.stop {
                    cx.stop();
                }
                return Asked::Done;
            }
            let Some(packet) = cx.copy_in(b"some bytes") else { return Asked::Again };
            made.count += 1;
            cx.emit((), packet);
        }
        match self.pause {
            0 => Asked::Again,
            n => Asked::At(cx.now() + Duration::from_nanos(n)),
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
    type Local = Made;
    type Fate = ();
    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        if made.count == self.limit {
            return Asked::Done;
        }
        let left = usize::try_from(self.limit - made.count).unwrap_or(n);
        let n = n.min(cx.room()).min(left);
        if n == 0 {
            return Asked::Empty;
        }
        for _ in 0..n {
            let Some(packet) = cx.copy_in(b"some bytes") else { return Asked::Again };
            made.count += 1;
            cx.emit((), packet);
        }
        Asked::Again
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
struct Kept {
    packets: VecDeque<Packet>,
}

#[derive(Fate)]
#[allow(dead_code)] // what is pulled is not emitted
enum Way {
    /// Packets that are pulled.
    Next,
    /// Packets that find no room.
    #[drop]
    Full,
}

impl Store for Keep {
    type Local = Kept;
    type Fate = Way;
    fn put(&self, kept: &mut Kept, mut batch: Batch, cx: &mut Cx) {
        let excess = batch.split_off(self.room(kept));
        kept.packets.extend(batch.drain());
        cx.emit_batch(Way::Full, excess);
    }
    fn take(&self, kept: &mut Kept, n: usize, into: &mut Batch, _: &mut Cx) {
        let n = n.min(kept.packets.len());
        into.extend(kept.packets.drain(..n));
    }
    fn held(&self, kept: &Kept) -> usize {
        kept.packets.len()
    }
    fn room(&self, kept: &Kept) -> usize {
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
    fn ask(&self, _: &mut (), n: usize, cx: &mut Cx) -> Asked {
        if !self.active {
            return Asked::Done;
        }
        let batch = cx.pull(0, n);
        if batch.is_empty() {
            return Asked::Empty;
        }
        cx.emit_batch((), batch);
        Asked::Again
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
    fn ask(&self, due: &mut Due, _: usize, cx: &mut Cx) -> Asked {
        if due.at > cx.now() {
            cx.retry_at(due.at);
            return Asked::Empty;
        }
        let batch = cx.pull(0, 1);
        if !batch.is_empty() {
            due.at = cx.now() + Duration::from_nanos(self.pause);
        }
        cx.emit_batch((), batch);
        Asked::Empty
    }
}

/// Merges pulled inputs, the first first.
#[derive(Element)]
#[element(ports = "1-/1", processing = "l/l")]
struct First;

impl Source for First {
    type Local = ();
    type Fate = ();
    fn ask(&self, _: &mut (), n: usize, cx: &mut Cx) -> Asked {
        for input in 0..cx.inputs() {
            let batch = cx.pull(input, n);
            if !batch.is_empty() {
                cx.emit_batch((), batch);
                break;
            }
        }
        Asked::Empty
    }
}

/// Counts and passes on.
#[derive(Element)]
struct Count;

#[derive(Default, Local)]
struct Seen {
    /// Packets.
    #[read]
    count: u64,
}

impl PerPacket for Count {
    type On = on::Any;
    type Local = Seen;
    type Fate = ();
    fn packet(&self, seen: &mut Seen, _: &mut Packet) {
        seen.count += 1;
    }
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
    type Local = Seen;
    type Fate = ();
    fn packet(&self, seen: &mut Seen, _: &mut Packet) {
        seen.count += 1;
        assert!(!seen.count.is_multiple_of(self.every), "tripped, as the test wants");
    }
}

/// Pulls, gives half on, and panics with the rest in hand.
#[derive(Element)]
#[element(ports = "1/1", processing = "l/h")]
struct Fumble;

impl Source for Fumble {
    type Local = Seen;
    type Fate = ();
    fn ask(&self, seen: &mut Seen, _: usize, cx: &mut Cx) -> Asked {
        let mut batch = cx.pull(0, 4);
        if batch.is_empty() {
            return Asked::Empty;
        }
        seen.count += 1;
        let rest = batch.split_off(2);
        cx.emit_batch((), batch);
        assert!(!seen.count.is_multiple_of(2), "fumbled, as the test wants");
        cx.emit_batch((), rest);
        Asked::Again
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

/// Merges pushed inputs.
#[derive(Element)]
struct Join;

impl PerPacket for Join {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    fn packet(&self, _: &mut (), _: &mut Packet) {}
}

/// Ends packets.
#[derive(Element)]
#[element(processing = "a/a", ports = "1/0")]
struct End;

impl PerBatch for End {
    type On = on::Any;
    type Local = Seen;
    type Fate = Never;
    fn batch(&self, seen: &mut Seen, _: usize, batch: Batch, cx: &mut Cx) {
        seen.count += batch.len() as u64;
        cx.consume(batch);
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
    fn begin(&self, _: &mut Rang, cx: &mut Cx) -> Result<(), ArgError> {
        cx.wake_at(cx.now() + Duration::from_millis(30));
        cx.wake_at(cx.now() + Duration::from_millis(20));
        Ok(())
    }
    fn batch(&self, _: &mut Rang, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
    fn wake(&self, rang: &mut Rang, cx: &mut Cx) {
        rang.rings += &format!("{} ", cx.now().0 % 1_000_000_000 / 1_000_000);
        rang.again = !rang.again;
        let pause = if rang.again { 0 } else { 10 };
        cx.wake_at(cx.now() + Duration::from_millis(pause));
    }
}

static CLASSES: &[Class] = &[
    source::<Make>(),
    source::<Fill>(),
    store::<Keep>(),
    source::<Move>(),
    source::<Slow>(),
    source::<First>(),
    source::<Fumble>(),
    per_packet::<Count>(),
    per_packet::<Trip>(),
    per_packet::<Join>(),
    per_batch::<Copy>(),
    per_batch::<End>(),
    per_batch::<Alarm>(),
];

fn build(text: &str, workers: usize, simulated: bool) -> Router {
    let library = Library::new(&[CLASSES]);
    let known = |class: &str| library.get(class).is_some();
    let mut sources = SourceMap::new();
    let file = sources.add("test", text);
    let (tree, mut found): (_, Diagnostics) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &known, &[]);
    found.append(more);
    let mut options = Options::new(Arc::new(Silent));
    (options.workers, options.simulated, options.frames) = (workers, simulated, 8192);
    let router = match found.has_errors() {
        true => None,
        false => Router::build(&flat, &library, &options, &mut found),
    };
    router.unwrap_or_else(|| panic!("{}", found.render_rich(&sources, false)))
}

fn number(router: &mut Router, handler: &str) -> u64 {
    router.read(handler).unwrap().parse().unwrap()
}

/// What went into each element and was made there has left it or is kept.
fn balance(router: &mut Router) {
    for it in 0..router.graph().elements.len() {
        let (ledger, held) = (router.ledger(it), router.held(it) as u64);
        let left = ledger.output + ledger.consumed + ledger.lost() + held;
        let name = &router.graph().elements[it].name;
        assert_eq!(ledger.input + ledger.made, left, "{name}: {ledger:?}, {held} kept");
    }
}

/// Runs on threads until `done` says so, which must be soon.
fn run_until(router: &mut Router, mut done: impl FnMut(&mut Router) -> bool) {
    let line = router.line();
    let started = Instant::now();
    let mut look = |router: &mut Router| {
        if done(router) || started.elapsed() > Duration::from_secs(20) {
            line.send(castanet_engine::router::Notice::Interrupted).unwrap();
        }
    };
    router.run(Some((Duration::from_millis(5), &mut look)));
    assert!(started.elapsed() < Duration::from_secs(20), "somebody sleeps for ever");
}

fn clean(router: Router) {
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.lost_workers), (0, 0));
}

#[test]
fn no_wake_up_is_lost_between_workers() {
    // Bursts with pauses around the length of a nap: the movers fall asleep
    // and are woken all the time, from other workers and their own.
    let text = "m :: Make(20000, 3000) -> k :: Keep -> Move -> k2 :: Keep -> Move -> k3 :: Keep -> e :: End;
        n :: Make(20000, 70000) -> k";
    for workers in [1, 2, 3] {
        let mut router = build(text, workers, false);
        run_until(&mut router, |r| {
            let lost: u64 =
                ["k", "k2", "k3"].iter().map(|k| number(r, &format!("{k}.drops.full"))).sum();
            number(r, "e.count") + lost == 40000
        });
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn sources_wait_for_room_and_are_woken() {
    let text =
        "f :: Fill(30000) -> Count -> k :: Keep(7) -> Move -> l :: Keep(100) -> Move -> e :: End";
    for workers in [1, 2, 3] {
        let mut router = build(text, workers, false);
        run_until(&mut router, |r| number(r, "e.count") + number(r, "l.drops.full") == 30000);
        assert_eq!(number(&mut router, "k.drops.full"), 0);
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn handlers_are_exact_while_workers_run() {
    let text = "Make(300000) -> c :: Count -> e :: End; Make(200000) -> c; Make(100000) -> c";
    let mut router = build(text, 3, false);
    let (mut last, mut reads) = (0, 0);
    run_until(&mut router, |r| {
        let now = number(r, "c.count");
        assert!(now >= last && now <= 600_000);
        (last, reads) = (now, reads + 1);
        now == 600_000
    });
    assert_eq!(number(&mut router, "e.count"), 600_000);
    assert!(reads > 0);
    balance(&mut router);
    clean(router);
}

#[test]
fn tasks_take_turns_in_proportion() {
    let text = "a :: Make(1000000) -> End; b :: Make(1000000) -> End; c :: Make(1000000) -> End";
    let mut router = build(text, 1, true);
    router.settle(3000);
    let counts = ["a", "b", "c"].map(|s| number(&mut router, &format!("{s}.count")));
    assert_eq!(counts.iter().sum::<u64>(), 3000 * 32);
    assert!(counts.iter().all(|&n| n.abs_diff(1000 * 32) <= 32), "{counts:?}");
    clean(router);
}

#[test]
fn who_comes_back_from_sleep_does_not_catch_up_on_turns() {
    let text = "a :: Make(1000000) -> End; b :: Make(0) -> End";
    let mut router = build(text, 1, true);
    router.settle(1000);
    router.write("b.limit", "1000000").unwrap();
    router.settle(200);
    let b = number(&mut router, "b.count");
    assert!(b.abs_diff(100 * 32) <= 64, "{b}");
    clean(router);
}

#[test]
fn timers_ring_in_order_and_never_block_a_turn() {
    let mut router = build("a :: Alarm", 1, true);
    router.advance(Duration::from_millis(45));
    assert_eq!(router.read("a.rings").unwrap().trim(), "20 20 30 30 40 40");
    clean(router);
}

#[test]
fn packets_in_a_circle_are_dropped_as_such() {
    let mut router = build("Make(64) -> j :: Join -> Count -> j", 1, true);
    router.settle(1000);
    let looped: u64 = router
        .read("drops")
        .unwrap()
        .lines()
        .filter_map(|l| l.split_once(" loop "))
        .map(|(_, n)| n.parse::<u64>().unwrap())
        .sum();
    assert_eq!(looped, 64);
    balance(&mut router);
    clean(router);
}

#[test]
fn packets_that_multiply_in_a_circle_come_to_an_end() {
    let mut router = build("Make(1) -> j :: Join -> t :: Copy(2) -> j; t[1] -> j", 1, true);
    router.settle(10);
    balance(&mut router);
    assert!(router.read("drops").unwrap().contains(" loop "));
    clean(router);
}

#[test]
fn pulls_in_a_circle_find_nothing() {
    let text = "a :: Join -> b :: Count -> a; a -> m :: Move -> End;
        k :: Keep -> f :: First -> Move -> e :: End; f -> Count -> [1] f; Make(5) -> k";
    let mut router = build(text, 1, true);
    router.settle(1000);
    assert_eq!(number(&mut router, "e.count"), 5);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_panic_costs_one_burst() {
    for workers in [1, 3] {
        let mut router = build("m :: Make(3200) -> t :: Trip(1000) -> e :: End", workers, true);
        router.settle(1000);
        assert_eq!(number(&mut router, "e.count"), 3200 - 3 * 32);
        assert_eq!(number(&mut router, "t.drops.panic"), 3 * 32);
        balance(&mut router);
        let report = router.dismantle();
        assert_eq!((report.leaked_frames, report.panics), (0, 3));
    }
}

#[test]
fn a_panic_in_pull_context_costs_one_burst() {
    let text = "Make(3200) -> Keep(10000) -> t :: Trip(1000) -> Move -> e :: End";
    let mut router = build(text, 1, true);
    router.settle(10000);
    assert_eq!(number(&mut router, "e.count"), 3200 - 3 * 32);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_source_that_panics_loses_what_it_held_and_goes_on() {
    let mut router = build("Make(40) -> k :: Keep -> f :: Fumble -> e :: End", 1, true);
    router.advance(Duration::from_millis(100));
    assert_eq!(number(&mut router, "e.count"), 5 * 4 + 5 * 2);
    assert_eq!(number(&mut router, "f.drops.panic"), 5 * 2);
    balance(&mut router);
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.panics), (0, 5));
}

#[test]
fn what_a_handler_throws_away_is_counted() {
    let mut router = build("Make(40) -> k :: Keep(30) -> m :: Move(false) -> e :: End", 3, true);
    router.settle(1000);
    router.write("k.reset", "").unwrap();
    assert_eq!(number(&mut router, "k.drops.reset"), 30);
    assert_eq!(number(&mut router, "k.drops.full"), 10);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_write_upstream_wakes_whoever_pulls() {
    // The puller rests until the source it pulls from is changed.
    let mut router = build("m :: Make(0) -> Slow(0) -> Move -> e :: End", 3, true);
    router.settle(1000);
    router.write("m.limit", "3").unwrap();
    router.settle(1000);
    assert_eq!(number(&mut router, "e.count"), 3);
    clean(router);
}

#[test]
fn simulated_time_jumps_from_wish_to_wish() {
    let mut router = build("Make(5) -> Keep -> Slow(1000000000) -> Move -> e :: End", 1, true);
    let started = Instant::now();
    router.advance(Duration::from_millis(2500));
    assert_eq!(number(&mut router, "e.count"), 3);
    router.advance(Duration::from_secs(3600));
    assert_eq!(number(&mut router, "e.count"), 5);
    assert!(started.elapsed() < Duration::from_secs(5));
    clean(router);
}

#[test]
fn two_workers_that_pull_through_one_limit_share_it() {
    let text = "Make(1000) -> k :: Keep -> s :: Slow(1000000000); s -> Move -> a :: End; s -> Move -> b :: End";
    let mut router = build(text, 3, true);
    router.advance(Duration::from_millis(4500));
    assert_eq!(number(&mut router, "a.count") + number(&mut router, "b.count"), 5);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_stop_request_ends_a_run() {
    for simulated in [true, false] {
        let mut router = build("Make(1000, STOP true) -> e :: End", 2, simulated);
        let outcome = router.run(None);
        assert_eq!((outcome.status, outcome.interrupted), (0, false));
        assert_eq!(number(&mut router, "e.count"), 1000);
        clean(router);
    }
}

#[test]
fn short_sleeps_are_kept_and_leave_the_machine_idle() {
    // 32 packets every 320 µs: a hundred thousand a second.
    let mut router = build("m :: Make(20000, 320000) -> e :: End", 1, false);
    let started = Instant::now();
    run_until(&mut router, |r| number(r, "e.count") == 20000);
    let time = started.elapsed();
    assert!(time >= Duration::from_millis(195), "{time:?}");
    clean(router);
}
