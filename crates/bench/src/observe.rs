//! `castanet bench observe`: the cost of observation, on the router path that is replayed from memory.
//!
//! Each case runs in turns with the same router that nobody observes.

use super::measure::{Run, is_selected, median};
use super::router::{build, path};
use castanet_element::class::Library;
use castanet_element::exec::IpPatternFilter;
use castanet_element::time::Time;
use castanet_runtime::router::{REQUESTS_PER_SECOND, Router, Service, TraceRequest};
use castanet_runtime::worker::driver::DriverEvent;
use serde::Serialize;
use std::time::Duration;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the observation.
    pub case: &'static str,
    /// Nanoseconds of processor time a packet, of the worker.
    pub ns_per_packet: f64,
    /// The same while nobody observes.
    pub off_ns_per_packet: f64,
    /// The one as a multiple of the other.
    pub ratio: f64,
    /// Observations a second.
    pub looks_per_second: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Frames in use.
    pub frames: usize,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// An observation of a router.
type Look = fn(&mut Router, &mut Poller);

/// A kind of observation.
struct Case {
    name: &'static str,
    /// The time between two observations.
    every: Duration,
    look: Look,
    /// Ends the observation.
    end: Look,
}

/// As often as the views of the program do by default.
const SECOND: Duration = Duration::from_secs(1);

/// The cases.
const CASES: [Case; 6] = [
    // Counters of all elements.
    Case {
        name: "counts",
        every: SECOND,
        look: |router, _| _ = router.observe(None),
        end: nothing,
    },
    // The same and samples of cost, as for `castanet top`.
    Case {
        name: "top",
        every: SECOND,
        look: |router, _| _ = router.observe(Some(SECOND * 10)),
        end: nothing,
    },
    // Counters and all handlers that are metrics, as for a scrape.
    Case {
        name: "metrics",
        every: SECOND,
        look: |router, _| _ = (router.observe(None), router.metrics(), router.panics()),
        end: nothing,
    },
    // Reasons and examples, as for `castanet drops`.
    Case {
        name: "drops",
        every: SECOND,
        look: |router, _| _ = router.drop_report(true),
        end: nothing,
    },
    // Reads of all handlers, as many as an instance answers.
    Case {
        name: "handlers",
        every: Duration::from_nanos(1_000_000_000 / REQUESTS_PER_SECOND),
        look: |router, poller| poller.read(router),
        end: nothing,
    },
    // A trace that matches no packet, read as `castanet trace` does.
    Case {
        name: "trace",
        every: Duration::from_millis(50),
        look: |router, poller| poller.trace(router),
        end: |router, poller| _ = poller.trace.take().map(|trace| router.end_trace(trace)),
    },
];

fn nothing(_router: &mut Router, _poller: &mut Poller) {}

/// Their names.
pub fn names() -> [&'static str; CASES.len()] {
    CASES.each_ref().map(|case| case.name)
}

/// State of a client that looks again and again.
#[derive(Default)]
struct Poller {
    /// Handlers that it reads.
    handlers: Vec<String>,
    next: usize,
    /// Its trace.
    trace: Option<u64>,
}

impl Poller {
    /// Reads the next handler.
    fn read(&mut self, router: &mut Router) {
        if self.handlers.is_empty() {
            let names = router.graph().elements.iter().map(|it| it.name.clone());
            for (element, name) in names.enumerate().collect::<Vec<_>>() {
                let all = router.handlers_of(element).into_iter();
                // To read cycles would begin to count them.
                let reads = all.filter(|(doc, writes)| !writes && doc.name != "cycles");
                self.handlers.extend(reads.map(|(doc, _)| format!("{name}.{}", doc.name)));
            }
        }
        // Some want parameters.
        _ = router.read(&self.handlers[self.next % self.handlers.len()]);
        self.next += 1;
    }

    /// Starts the trace, or reads it.
    fn trace(&mut self, router: &mut Router) {
        if let Some(trace) = self.trace {
            _ = router.read_trace(trace);
            return;
        }
        // The packets of the path are UDP.
        let Ok(filter) = IpPatternFilter::new("tcp && dst host 10.77.77.77") else { return };
        let filter = Box::new(filter);
        let request = TraceRequest { filter, source: None, packets: 1, snap_len: 512 };
        self.trace = router.start_trace(request).ok();
    }
}

/// Observes at an interval.
struct Observer {
    every: Duration,
    look: Look,
    poller: Poller,
    looks: u64,
}

impl Service for Observer {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        (self.look)(router, &mut self.poller);
        self.looks += 1;
        Some(router.clock().now() + self.every)
    }
}

/// Measures the worker over a run, and ends it.
struct Stopwatch {
    time: Duration,
    /// Time, processor time of the worker, and packets at the beginning.
    began: Option<(Time, Duration, u64)>,
    run: Option<Run>,
}

impl Stopwatch {
    fn new(time: Duration) -> Stopwatch {
        Stopwatch { time, began: None, run: None }
    }
}

impl Service for Stopwatch {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        let due = self.began.map(|(began, ..)| began + self.time);
        if due.is_some_and(|due| router.clock().now() < due) {
            return due;
        }
        let seen = router.observe(None).ok()?;
        let spent = seen.workers.first().copied().unwrap_or_default();
        let packets = seen.elements.first().map_or(0, |ring| ring.counters.made);
        let Some((began, before, count)) = self.began else {
            self.began = Some((seen.time, spent, packets));
            return Some(seen.time + self.time);
        };
        let (spent, wall) = ((spent - before).as_secs_f64(), (seen.time - began).as_secs_f64());
        let ns = spent * 1e9 / (packets - count) as f64;
        self.run = Some(Run { ns, undisturbed: spent >= 0.97 * wall });
        _ = router.line().send(DriverEvent::Interrupted);
        None
    }
}

/// Measures every case; `on_record` gets each record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    let ring = format!("ring0 :: BenchRing({}, FLOWS 1024);\n", plan.frames);
    let text = ring + &path(0, 1, "ring0", "ring0");
    for case in CASES.iter().filter(|case| is_selected(&plan.cases, case.name)) {
        let mut router = build(&text, plan.frames, 1, true, library)?;
        let (mut off, mut on) = (Vec::new(), Vec::new());
        let mut looks = 0;
        // The first round warms up.
        for round in 0..=plan.rounds {
            let (every, look) = (case.every, case.look);
            let mut observer = Observer { every, look, poller: Poller::default(), looks: 0 };
            let without = one_run(&mut router, plan.time, None)?;
            let with = one_run(&mut router, plan.time, Some(&mut observer))?;
            (case.end)(&mut router, &mut observer.poller);
            if round > 0 {
                off.push(without);
                on.push(with);
                looks += observer.looks;
            }
        }
        let (ns_per_packet, off_ns_per_packet) = (median(&on), median(&off));
        on_record(Record {
            case: case.name,
            ns_per_packet,
            off_ns_per_packet,
            ratio: ns_per_packet / off_ns_per_packet,
            looks_per_second: looks as f64 / (plan.rounds as f64 * plan.time.as_secs_f64()),
        });
    }
    Ok(())
}

/// Runs the router for a while.
fn one_run(
    router: &mut Router,
    time: Duration,
    observer: Option<&mut Observer>,
) -> Result<Run, String> {
    let mut stopwatch = Stopwatch::new(time);
    _ = match observer {
        Some(observer) => router.run_with(&mut [&mut stopwatch, observer]),
        None => router.run_with(&mut [&mut stopwatch]),
    };
    stopwatch.run.ok_or_else(|| "the worker did not answer".to_owned())
}
