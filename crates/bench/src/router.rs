//! `castanet bench router`: the router path, replayed from memory.

use super::bench_ring::BenchRing;
use super::bench_source::BenchSource;
use super::built::{BUILT, Programs, Target};
use super::built_router::{BuiltRouter, Round};
use super::fused::FusedLoop;
use super::measure::{Run, is_selected, median, middle, ticks_per_ns, watched};
use super::traffic::{ROUTES, routes};
use castanet_element::class::{Class, Library, duplex, source};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use castanet_runtime::worker::driver::DriverEvent;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Name of the path that was measured.
    pub case: &'static str,
    /// The program: this one (`plain`), or one that was built from the path (`built`).
    pub program: &'static str,
    /// Frames in use by each worker.
    pub frames: usize,
    /// Workers, each with a path of its own.
    pub workers: usize,
    /// Nanoseconds of processor time a packet.
    pub ns_per_packet: f64,
    /// The same in ticks of the time-stamp counter.
    pub cycles_per_packet: f64,
    /// Million packets a second, all workers.
    pub mpps: f64,
    /// The fused loop beside it.
    pub limit_ns_per_packet: f64,
    /// Cost as a multiple of the limit.
    pub ratio: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// Frames in use, for each case.
    pub frames: Vec<usize>,
    /// Number of flows.
    pub flows: usize,
    /// Number of routes.
    pub routes: u32,
    /// Numbers of workers, for each case.
    pub workers: Vec<usize>,
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Whether the engine may run elements in a row as one pass.
    pub fuse: bool,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
    /// The name of this program in records: `plain`, unless it was built itself.
    pub program: &'static str,
}

/// The cases: name, and ways that the routing table spreads packets.
const CASES: [(&str, u32); 3] = [("forward", 0), ("router", 1), ("router-4-ways", 4)];

static RING: Class = duplex::<BenchRing>();
static SUPPLY: Class = source::<BenchSource>();

/// A case with a number of workers and of frames.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    pub(crate) case: &'static str,
    ways: u32,
    pub(crate) workers: usize,
    pub(crate) frames: usize,
}

/// All that are wanted.
fn variants(plan: &Plan) -> impl Iterator<Item = Variant> + '_ {
    let cases = CASES.into_iter().filter(|(case, _)| is_selected(&plan.cases, case));
    cases.flat_map(move |(case, ways)| {
        plan.workers.iter().flat_map(move |&workers| {
            plan.frames.iter().map(move |&frames| Variant { case, ways, workers, frames })
        })
    })
}

/// The configurations of the cases that are wanted, for programs to measure beside this one.
pub fn targets(plan: &Plan) -> Vec<Target> {
    let cases = CASES.into_iter().filter(|(case, _)| is_selected(&plan.cases, case));
    cases.map(|(case, ways)| Target { name: case.into(), text: built_from(ways, plan) }).collect()
}

/// The configuration from which the program of a case is built, whatever the number of workers and
/// of frames: the elements of all workers have the same arguments.
fn built_from(ways: u32, plan: &Plan) -> String {
    configuration(ways, FEWEST_FRAMES, 1, (plan.flows, plan.routes))
}

/// The fewest frames that may be in use: a burst.
pub const FEWEST_FRAMES: usize = 64;

/// A library with the classes that the configurations of this benchmark have beside others.
pub fn library_of(library: &Library) -> Library {
    let mut library = library.clone();
    library.add(&RING);
    library.add(&SUPPLY);
    library
}

/// Measures every case, in turn with its program among `programs`. `on_record` gets each record as it
/// is made; `on_missing` the name of a case whose program fails, and the reason.
pub fn run(
    plan: &Plan,
    library: &Library,
    programs: Option<&Programs>,
    on_record: &mut dyn FnMut(Record),
    on_missing: &mut dyn FnMut(&str, &str),
) -> Result<(), String> {
    let ticks = ticks_per_ns();
    for variant in variants(plan) {
        let (plain, built) = compare(variant, plan, library, programs)?;
        on_record(record(variant, plan.program, &plain, ticks));
        match built {
            Some(Ok(rounds)) => on_record(record(variant, BUILT, &rounds, ticks)),
            Some(Err(why)) => on_missing(variant.case, &why),
            None => {}
        }
    }
    Ok(())
}

/// The rounds of a built program, or why it has failed.
type BuiltRounds = Result<Vec<Round>, String>;

/// Measures this program, and in turn with it the one that was built, if there is one.
fn compare(
    variant: Variant,
    plan: &Plan,
    library: &Library,
    programs: Option<&Programs>,
) -> Result<(Vec<Round>, Option<BuiltRounds>), String> {
    let mut own = Bench::new(variant, plan, library)?;
    let command = programs.and_then(|it| it.command(&built_from(variant.ways, plan)));
    let mut other = command.map(|it| BuiltRouter::start(it, variant, plan));
    let (mut plain, mut built) = (Vec::new(), Ok(Vec::new()));
    for _ in 0..=plan.rounds {
        plain.push(own.round()?);
        if let (Some(Ok(side)), Ok(rounds)) = (&mut other, &mut built) {
            match side.round() {
                Ok(round) => rounds.push(round),
                Err(why) => built = Err(why),
            }
        }
    }
    Ok((plain, other.map(|started| started.and(built))))
}

fn record(variant: Variant, program: &'static str, rounds: &[Round], ticks: f64) -> Record {
    let Variant { case, workers, frames, .. } = variant;
    // The first round warms up.
    let rounds = || rounds.iter().skip(1);
    let middle = |side: fn(&Round) -> Run| median(&rounds().map(side).collect::<Vec<_>>());
    let (ours, limit) = (middle(|round| round.router), middle(|round| round.limit));
    Record {
        case,
        program,
        frames,
        workers,
        ns_per_packet: ours,
        cycles_per_packet: ours * ticks,
        mpps: workers as f64 * 1e3 / ours,
        limit_ns_per_packet: limit,
        ratio: ours / limit,
    }
}

/// A router and the hand-written loop, which run in turns in this process.
pub struct Bench {
    variant: Variant,
    router: Router,
    fused: Vec<FusedLoop>,
    time: Duration,
}

impl Bench {
    /// That of the first case that the plan has.
    pub fn first(plan: &Plan, library: &Library) -> Result<Bench, String> {
        let variant = variants(plan).next().ok_or("there is no such case")?;
        Bench::new(variant, plan, library)
    }

    fn new(variant: Variant, plan: &Plan, library: &Library) -> Result<Bench, String> {
        let Variant { ways, workers, frames, .. } = variant;
        let router = build(
            &configuration(ways, frames, workers, (plan.flows, plan.routes)),
            frames.saturating_mul(workers),
            workers,
            plan.fuse,
            library,
        )?;
        let fused = (0..workers).map(|_| FusedLoop::new(frames, plan.flows, plan.routes)).collect();
        Ok(Bench { variant, router, fused, time: plan.time })
    }

    /// Runs both sides once.
    pub fn round(&mut self) -> Result<Round, String> {
        let Variant { ways, workers, .. } = self.variant;
        let router = watched(workers, || run_router(&mut self.router, workers, self.time));
        let limit = watched(workers, || run_fused(&mut self.fused, ways, self.time));
        if self.fused.iter().any(|f| f.refused() > 0) {
            return Err("the fused loop refused packets".into());
        }
        let drops = self.router.read("drops").map_err(|e| e.to_string())?;
        if !drops.is_empty() {
            return Err(format!("packets were dropped on the way:\n{drops}"));
        }
        Ok(Round { router, limit })
    }
}

/// Runs the router for a while; packets sent by all workers.
fn run_router(router: &mut Router, workers: usize, time: Duration) -> u64 {
    run_counted(router, time, |router| {
        (0..workers).map(|w| count(router, &format!("ring{w}.count"))).sum()
    })
}

/// Runs a benchmark's router for a while; by how much a count went up.
pub(crate) fn run_counted(
    router: &mut Router,
    time: Duration,
    count: impl Fn(&mut Router) -> u64,
) -> u64 {
    let before = count(router);
    let line = router.line();
    router.run(Some((time, &mut |_| _ = line.send(DriverEvent::Interrupted))));
    count(router) - before
}

/// Packets a second by the clock, and nanoseconds of processor time a packet.
pub(crate) struct Sample {
    rate: f64,
    pub(crate) run: Run,
}

/// Runs for a while, counting what `counted` counts.
pub(crate) fn sample(
    router: &mut Router,
    workers: usize,
    time: Duration,
    counted: impl Fn(&mut Router) -> u64,
) -> Sample {
    let (mut packets, mut seconds) = (0, 0.0);
    let run = watched(workers, || {
        let started = Instant::now();
        packets = run_counted(router, time, &counted);
        seconds = started.elapsed().as_secs_f64();
        packets
    });
    Sample { rate: packets as f64 / seconds, run }
}

/// The middle rate; million packets a second.
pub(crate) fn rate(samples: &[Sample]) -> f64 {
    middle(samples.iter().map(|sample| (sample.rate, sample.run.undisturbed))).0 / 1e6
}

/// A counter of a benchmark's router.
pub(crate) fn count(router: &mut Router, handler: &str) -> u64 {
    // It is there: the configuration is ours.
    router.read(handler).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Runs the fused loops for as long; packets of all.
fn run_fused(fused: &mut [FusedLoop], ways: u32, time: Duration) -> u64 {
    let one = |it: &mut FusedLoop| if ways == 0 { it.forward(time) } else { it.route(time) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = fused.iter_mut().map(|it| scope.spawn(move || one(it))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or(0)).sum()
    })
}

/// The path of each worker, with its own ring.
fn configuration(
    ways: u32,
    frames: usize,
    workers: usize,
    (flows, routes): (usize, u32),
) -> String {
    // Tasks are dealt out in turn: one ring to each worker.
    let mut text = String::new();
    for w in 0..workers {
        text += &format!("ring{w} :: BenchRing({frames}, FLOWS {flows});\n");
        text += &if ways == 0 {
            format!("ring{w} -> ring{w};\n")
        } else {
            path_with(routes, w, ways, &format!("ring{w}"), &format!("ring{w}"))
        };
    }
    text
}

/// The eleven elements, in as many ways as the packets are to leave, between
/// two others; `w` keeps the names of several paths apart.
pub(crate) fn path(w: usize, ways: u32, from: &str, to: &str) -> String {
    path_with(ROUTES, w, ways, from, to)
}

/// The same with so many routes.
fn path_with(count: u32, w: usize, ways: u32, from: &str, to: &str) -> String {
    let routes: Vec<String> = routes(ways, count)
        .iter()
        .map(|(address, length, way)| format!("{}/{length} {way}", Ipv4Addr::from(*address)))
        .collect();
    let mut text = format!(
        "{from} -> types{w} :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader
            -> routes{w} :: StaticIPLookup({});
         types{w}[1] -> Discard;\n",
        routes.join(", ")
    );
    for way in 0..ways {
        text += &format!(
            "routes{w}[{way}] -> DropBroadcasts -> same{w}_{way} :: PaintTee(2)
                -> options{w}_{way} :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1)
                -> ttl{w}_{way} :: DecIPTTL -> fragments{w}_{way} :: IPFragmenter(1500)
                -> EtherEncap(0x0800, 02:00:00:00:01:02, 02:00:00:00:01:01) -> {to};
             same{w}_{way}[1] -> Discard; options{w}_{way}[1] -> Discard;
             ttl{w}_{way}[1] -> Discard; fragments{w}_{way}[1] -> Discard;\n"
        );
    }
    text
}

/// Builds a benchmark's configuration.
pub(crate) fn build(
    text: &str,
    frames: usize,
    workers: usize,
    fuse: bool,
    library: &Library,
) -> Result<Router, String> {
    let mut options = Options::new(Arc::new(SilentConsole));
    options.workers = workers;
    options.pin = true;
    options.fuse = fuse;
    // Room for the workers' caches beside the frames in use, and for what is kept for devices.
    let least = frames.saturating_add(4096 * workers);
    options.frames = Some(least.saturating_add(least / 3));
    build_with(text, library, &options)
}

/// The same with these options.
pub(crate) fn build_with(
    text: &str,
    library: &Library,
    options: &Options,
) -> Result<Router, String> {
    Router::from_text(text, &library_of(library), options)
}
