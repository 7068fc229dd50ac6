//! Tasks move between workers again and again while they are at work, and
//! nothing is lost: no packet, no count, no order, no wake-up.

use crate::bed::{balance, build, build_fused, build_replaceable, clean, number, run_until};
use castanet_element::class::{Class, info, per_batch, source};
use castanet_element::prelude::*;
use castanet_runtime::router::Router;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Lets tasks move.
#[derive(Element)]
struct Free;

impl Info for Free {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        facts.balanced = true;
        Ok(())
    }
}

/// Makes a packet of each byte that comes by a socket, and waits for it.
#[derive(Element)]
struct Wire {
    /// How many bytes come, with pauses.
    #[arg]
    bytes: usize,
}

#[derive(Default, Local)]
struct PlugState {
    socket: Option<UnixStream>,
}

impl Source for Wire {
    type Local = PlugState;
    type Fate = ();
    fn init(&self, plugged: &mut PlugState, _: &mut Cx) -> Result<(), ArgError> {
        let (mut far, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        plugged.socket = Some(near);
        let bytes = self.bytes;
        std::thread::spawn(move || {
            for n in 0..bytes {
                far.write_all(&[n as u8]).unwrap();
                if n % 7 == 0 {
                    std::thread::sleep(Duration::from_micros(100 * (n % 11) as u64));
                }
            }
            // An open end: only bytes wake the reader.
            std::thread::sleep(Duration::from_secs(60));
        });
        Ok(())
    }
    fn produce(&self, plugged: &mut PlugState, n: usize, cx: &mut Cx) -> NextRun {
        let socket = plugged.socket.as_mut().expect("what began here");
        let mut bytes = vec![0; n];
        match socket.read(&mut bytes) {
            Ok(got) => {
                let packets = bytes[..got].iter().filter_map(|byte| cx.copy_in(&[*byte]));
                packets.collect::<Vec<_>>().into_iter().for_each(|packet| cx.emit((), packet));
                NextRun::Again
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => NextRun::Readable(socket.as_raw_fd()),
            Err(_) => NextRun::Done,
        }
    }
}

/// Keeps packets for a moment; one timer lets all of them go.
#[derive(Element)]
struct Hold {
    /// Microseconds.
    #[arg]
    time: u64,
    /// At which batch to panic.
    #[arg(default = u64::MAX)]
    trip: u64,
}

#[derive(Default, Local)]
struct HoldState {
    kept: VecDeque<Batch>,
    batches: u64,
}

impl PerBatch for Hold {
    type On = on::Any;
    type Local = HoldState;
    type Fate = ();
    fn batch(&self, held: &mut HoldState, _: usize, batch: Batch, cx: &mut Cx) {
        held.batches += 1;
        assert!(!held.batches.is_multiple_of(self.trip), "a panic with packets in hand");
        if held.kept.is_empty() {
            cx.set_timer(cx.now() + Duration::from_micros(self.time));
        }
        held.kept.push_back(batch);
    }
    fn run_timer(&self, held: &mut HoldState, cx: &mut Cx) {
        held.kept.drain(..).for_each(|batch| cx.emit_batch((), batch));
    }
    fn held(&self, held: &HoldState) -> usize {
        held.kept.iter().map(Batch::len).sum()
    }
}

pub(crate) static CLASSES: &[Class] = &[info::<Free>(), source::<Wire>(), per_batch::<Hold>()];

fn at(router: &mut Router, element: &str) -> u64 {
    number(router, &format!("{element}.home_thread"))
}

/// Moves the tasks of these elements on to the next worker at every look, and
/// on after `done` until each has moved `times` times.
fn shuffle(router: &mut Router, elements: &[&str], times: u64, done: impl Fn(&mut Router) -> bool) {
    let workers = number(router, "threads");
    let mut moved = 0;
    run_until(router, |router| {
        for element in elements {
            for _ in 0..10 {
                let next = (at(router, element) + 1) % workers;
                router.write(&format!("{element}.home_thread"), &next.to_string()).unwrap();
                assert_eq!(at(router, element), next);
            }
        }
        moved += 10;
        done(router) && moved >= times
    });
}

#[test]
fn a_source_keeps_count_and_order_wherever_it_runs() {
    let text = "Free; m :: Make(400000, 3000) -> Order(false) -> h :: Hold(50) -> c :: Count
                    -> o :: Order(true) -> e :: End;
                n :: Make(1000000000) -> x :: Count -> f :: End";
    for workers in [2, 3] {
        let mut router = build(text, workers, false);
        shuffle(&mut router, &["m", "n"], 400, |r| number(r, "e.count") == 400_000);
        assert_eq!(
            (number(&mut router, "m.count"), number(&mut router, "c.count")),
            (400_000, 400_000)
        );
        assert_eq!(number(&mut router, "o.wrong"), 0);
        assert_eq!(number(&mut router, "x.count"), number(&mut router, "n.count"));
        assert_eq!(router.held(router.graph().find("h").unwrap()), 0);
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn no_wake_up_is_lost_while_tasks_move() {
    let text = "Free; m :: Make(20000, 300000) -> k :: Keep -> u :: Move -> k2 :: Keep -> v :: Move
                    -> k3 :: Keep -> e :: End;
                f :: Fill(30000) -> l :: Keep(7) -> w :: Move -> g :: End";
    let mut router = build(text, 2, false);
    shuffle(&mut router, &["m", "u", "v", "e", "f", "w"], 300, |r| {
        let lost: u64 =
            ["k", "k2", "k3"].iter().map(|k| number(r, &format!("{k}.drops.full"))).sum();
        number(r, "e.count") + lost == 20_000 && number(r, "g.count") == 30_000
    });
    assert_eq!(number(&mut router, "l.drops.full"), 0);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_descriptor_is_watched_where_its_task_is() {
    let mut router = build("Free; w :: Wire(20000) -> c :: Count -> e :: End", 2, false);
    shuffle(&mut router, &["w"], 200, |r| number(r, "e.count") == 20_000);
    balance(&mut router);
    clean(router);
}

#[test]
fn elements_that_several_reach_are_on_every_worker() {
    // Both sources push into `j`, and what is left in `k` is pulled by one.
    let text = "Free; Home(b, 0);
                a :: Make(100000) -> j :: Count -> c :: Count -> k :: Keep(100000) -> u :: Move
                    -> d :: Count -> e :: End;
                b :: Make(100000) -> j";
    let mut router = build(text, 2, false);
    for (element, workers) in [("a", "0 1"), ("b", "0"), ("j", "0 1"), ("c", "0 1"), ("d", "0 1")] {
        assert_eq!(router.read(&format!("{element}.workers")).unwrap(), workers, "{element}");
    }
    shuffle(&mut router, &["a", "u"], 200, |r| {
        number(r, "e.count") + number(r, "k.drops.full") == 200_000
    });
    assert_eq!(number(&mut router, "c.count"), 200_000);
    let error = router.write("b.home_thread", "1").unwrap_err().message().to_owned();
    assert!(error.contains("stays on worker 0: StaticThreadSched says so"), "{error}");
    balance(&mut router);
    clean(router);
}

#[test]
fn a_pass_moves_as_a_whole() {
    let text = "Free; m :: Make(2000, 1000) -> Order(false) -> p :: Part(3) -> w :: Weigh(7)
                    -> c :: Count -> o :: Order(true) -> e :: End; p[1] -> s :: Count -> f :: End";
    let counts = |moves: bool| {
        let mut router = build_fused(text, 2);
        for n in 0..300 {
            router.settle(3);
            if moves {
                router.write("m.home_thread", ["1", "0"][n % 2]).unwrap();
            }
            router.advance(Duration::from_micros(1));
        }
        router.advance(Duration::from_secs(1));
        balance(&mut router);
        let read = |handler: &&str| number(&mut router, handler);
        let all = ["m.count", "w.count", "c.count", "s.count", "o.wrong", "e.count", "f.count"];
        let counts: Vec<u64> = all.iter().map(read).collect();
        clean(router);
        counts
    };
    let stayed = counts(false);
    assert_eq!((stayed[0], stayed[4]), (2000, 0));
    assert_eq!(counts(true), stayed);
}

#[test]
fn writes_find_elements_wherever_they_are() {
    let text = "Free; m :: Make(10) -> c :: Count -> e :: End; n :: Make(0) -> End";
    let mut router = build(text, 2, true);
    router.settle(100);
    for (worker, limit) in [("1", 20), ("0", 30), ("1", 40)] {
        router.write("m.home_thread", worker).unwrap();
        assert_eq!(router.read("m.scheduled").unwrap(), "false");
        router.write("m.limit", &limit.to_string()).unwrap();
        router.settle(100);
        assert_eq!(number(&mut router, "e.count"), limit);
    }
    router.write("m.tickets", "100").unwrap();
    router.write("m.home_thread", "0").unwrap();
    assert_eq!(number(&mut router, "m.tickets"), 100);
    router.write("m.tickets", "-5").unwrap();
    assert_eq!(number(&mut router, "m.tickets"), 1);
    for (handler, value, error) in [
        ("m.home_thread", "2", "there is no worker 2"),
        ("m.home_thread", "-1", "there is no worker"),
        ("m.home_thread", "x", "`x` is not a whole number"),
        ("m.tickets", "many", "`many` is not a whole number"),
        ("c.home_thread", "1", "no write handler 'home_thread'"),
    ] {
        let said = router.write(handler, value).unwrap_err().message().to_owned();
        assert!(said.contains(error), "{said}");
    }
    clean(router);
    let mut router = build("m :: Make(10) -> End", 2, true);
    let said = router.write("m.home_thread", "1").unwrap_err().message().to_owned();
    assert!(said.contains("only where there is a BalancedThreadSched"), "{said}");
    clean(router);
}

#[test]
fn another_configuration_goes_on_with_what_has_moved() {
    // Elsewhere `c` is reached by two, or nothing moves at all.
    let path = "m :: Make(200000, 3000) -> a :: Order(false) -> h :: Hold(50) -> c :: Count
                    -> o :: Order(true) -> e :: End";
    let texts = [
        format!("Free; {path}"),
        format!("Free; {path}; n :: Make(0) -> c"),
        format!("{path}; Home(m, 1)"),
    ];
    let mut router = build_replaceable(&texts[0], 2);
    let mut looks = 0;
    run_until(&mut router, |router| {
        looks += 1;
        if looks % 3 == 0 {
            router.write("hotconfig", &texts[looks / 3 % 3]).unwrap();
        } else {
            for _ in 0..5 {
                // Where it may.
                let other = 1 - at(router, "m");
                _ = router.write("m.home_thread", &other.to_string());
            }
        }
        number(router, "e.count") == 200_000 && looks > 30
    });
    assert_eq!(
        (number(&mut router, "m.count"), number(&mut router, "c.count")),
        (200_000, 200_000)
    );
    balance(&mut router);
    clean(router);
}

#[test]
fn a_panic_after_a_move_costs_what_it_costs_before() {
    let text = "Free; m :: Make(1000, 1000) -> t :: Hold(5, 7) -> e :: End";
    let mut router = build(text, 2, true);
    for n in 0..40 {
        router.advance(Duration::from_micros(2));
        router.write("m.home_thread", ["1", "0"][n % 2]).unwrap();
    }
    router.advance(Duration::from_secs(1));
    let lost = number(&mut router, "t.drops.panic");
    assert!(lost > 0);
    assert_eq!(number(&mut router, "e.count"), 1000 - lost);
    balance(&mut router);
    clean(router);
}
