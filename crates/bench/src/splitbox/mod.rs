//! `castanet bench splitbox`: the parties of SplitBox, and the function in the plain beside them.
//!
//! All parties run in one router, so each packet takes its whole way, with datagrams that are sealed and
//! opened. The ticks of each element give the cost of each party, which would have a core of its own.

mod delay_sink;
mod paced_source;
mod policy;

use crate::measure::{is_selected, middle, ticks_per_ns};
use crate::router::{Sample, count, rate, run_counted, sample};
use castanet_element::class::{Class, Library, per_batch, source};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use castanet_splitbox::digest::HashKind;
use delay_sink::DelaySink;
use paced_source::PacedSource;
use policy::{PROJECTIONS, PartyFolder, filter_rules, middlebox_rules, packet};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// The cases: names, ℍ, and whether each match is hashed by itself.
const CASES: [(&str, HashKind, bool); 3] = [
    ("by-projection", HashKind::Blake3, false),
    ("by-projection", HashKind::Sha1, false),
    ("as-written", HashKind::Sha1, true),
];

/// Names of the cases.
pub const NAMES: [&str; 3] = ["by-projection", "as-written", "delay"];

/// Numbers of rules by default.
pub const RULES: [usize; 7] = [1, 10, 30, 60, 100, 1000, 10_000];

/// The paper states one point of its figure 31: gigabits a second at a number of traversed rules.
const PAPER: (usize, f64) = (60, 2.0);

/// Maximum of the memory for rows, in bytes; cases that need more are left out.
const MAX_ROW_BYTES: u64 = 1 << 30;
/// Memory of a rule and a blind: its digest and its part of the index, in two epochs of two processors.
const ROW_BYTES: u64 = 48;
/// Traversed rules that are hashed one by one at most, so that a run ends.
const MAX_AS_WRITTEN: usize = 1000;

/// Extent of the measurement.
pub struct Plan {
    /// Names of cases; all of them if it is empty.
    pub cases: Vec<String>,
    /// Numbers of rules, all of which a packet tries.
    pub rules: Vec<usize>,
    /// Numbers of blinds l.
    pub blinds: Vec<u64>,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Bytes of IP packets.
    pub packet: usize,
    /// Shares of the greatest load, in percent, at which delays are measured.
    pub loads: Vec<u64>,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// Result for one case.
#[derive(Serialize)]
pub struct Record {
    /// Name of the case.
    pub case: &'static str,
    /// Rules, all of which a packet tries.
    pub rules: usize,
    /// Different projections of their matches.
    pub projections: usize,
    /// ℍ.
    pub hash: &'static str,
    /// Blinds of an epoch.
    pub l: u64,
    /// Bytes of an IP packet.
    pub packet: usize,
    /// Workers, each with packets of its own.
    pub workers: usize,
    /// Nanoseconds of the entry for a packet, with its datagrams for two processors.
    pub entry_ns: f64,
    /// Nanoseconds of one processor for a packet.
    pub processor_ns: f64,
    /// Nanoseconds of the client for a packet.
    pub client_ns: f64,
    /// Gigabits a second of the slowest party, if each has as many cores as there are workers.
    pub gbps: f64,
    /// Gigabits a second of a processor.
    pub processor_gbps: f64,
    /// Gigabits a second of an `IPFilter` with the same rules.
    pub plain_gbps: Option<f64>,
    /// Gigabits a second of a `Middlebox` with the same rules.
    pub middlebox_gbps: Option<f64>,
    /// Gigabits a second in the paper, where its text says.
    pub paper_gbps: Option<f64>,
    /// Share of the greatest load of this machine, in percent, at which delays were measured.
    pub load: Option<u64>,
    /// Delay that half of the packets do not exceed, in microseconds.
    pub p50_us: Option<f64>,
    /// Delay that 99 % of the packets do not exceed.
    pub p99_us: Option<f64>,
}

static SOURCE: Class = source::<PacedSource>();
static SINK: Class = per_batch::<DelaySink>();

/// A setup to be measured.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    hash: HashKind,
    is_each_match: bool,
    rules: usize,
    blinds: u64,
    workers: usize,
}

/// The receiver of what is measured.
pub trait Reporter {
    /// The case that is being measured.
    fn progress(&mut self, doing: &str);
    /// A record, as soon as it is made.
    fn row(&mut self, record: Record);
    /// A case that is left out, and the reason.
    fn missing(&mut self, case: &str, why: &str);
}

impl Case {
    fn hash_name(&self) -> &'static str {
        match self.hash {
            HashKind::Blake3 => "BLAKE3",
            HashKind::Sha1 => "SHA-1",
        }
    }

    /// The reason why a case is left out, if it is.
    fn obstacle(&self) -> Option<String> {
        let bytes = self.blinds.saturating_mul(self.rules as u64).saturating_mul(ROW_BYTES);
        if self.is_each_match && self.rules > MAX_AS_WRITTEN {
            return Some(format!("more than {MAX_AS_WRITTEN} hashes a packet take too long"));
        }
        (bytes > MAX_ROW_BYTES).then(|| {
            let limit = MAX_ROW_BYTES >> 20;
            format!("the rows of all epochs take {} MB, more than {limit} MB", bytes >> 20)
        })
    }
}

/// Measures every case.
///
/// # Errors
/// A router cannot be built, or packets are lost.
pub fn run(plan: &Plan, library: &Library, reporter: &mut dyn Reporter) -> Result<(), String> {
    let mut library = library.clone();
    library.add(&SOURCE);
    library.add(&SINK);
    let bench = Bench { plan, library, packet: packet(plan.packet)?, ticks: ticks_per_ns() };
    for &workers in &plan.workers {
        for &rules in &plan.rules {
            let plain = bench.plain(rules, workers, reporter)?;
            for &blinds in &plan.blinds {
                for (name, hash, is_each_match) in CASES {
                    let case = Case { name, hash, is_each_match, rules, blinds, workers };
                    if !is_selected(&plan.cases, name) {
                        continue;
                    }
                    let what = format!(
                        "{name}, {}, {rules} rules, {blinds} blinds, {workers} workers",
                        case.hash_name()
                    );
                    match case.obstacle() {
                        Some(why) => reporter.missing(&what, &why),
                        None => {
                            reporter.progress(&what);
                            let record = bench.bandwidth(&case, plain)?;
                            reporter.row(record);
                        }
                    }
                }
            }
        }
    }
    if is_selected(&plan.cases, "delay") {
        bench.delays(reporter)?;
    }
    Ok(())
}

/// The sides of a measurement.
struct Bench<'p> {
    plan: &'p Plan,
    library: Library,
    packet: Vec<u8>,
    ticks: f64,
}

/// Nanoseconds of each party for a packet.
#[derive(Clone, Copy)]
struct PartyCosts {
    entry: f64,
    processor: f64,
    client: f64,
    /// Nanoseconds of a worker for a packet, all parties together.
    all: f64,
}

impl Bench<'_> {
    fn build(&self, text: &str, workers: usize) -> Result<Router, String> {
        let mut options = Options::new(Arc::new(SilentConsole));
        options.workers = workers;
        options.pin = true;
        options.frames = Some(16_384 * workers);
        Router::from_text(text, &self.library, &options)
    }

    fn source(&self, worker: usize, rate: u64) -> String {
        let data: String = self.packet.iter().fold(String::new(), |mut hex, byte| {
            _ = write!(hex, "{byte:02x}");
            hex
        });
        format!("source{worker} :: PacedSource(\\<{data}>, RATE {rate});\n")
    }

    /// Gigabits a second of IP packets, one of which takes a worker `ns`.
    fn gbps(&self, ns: f64, workers: usize) -> f64 {
        8.0 * self.packet.len() as f64 * workers as f64 / ns
    }

    /// The configuration with all parties.
    fn parties(&self, case: &Case, folder: &PartyFolder, rate: u64) -> String {
        let each = case.is_each_match;
        let mut text = format!(
            "entry :: SplitBoxEntry({}, MTU 9000);\n\
             b1 :: SplitBoxProcessor({}, EACH_MATCH {each});\n\
             b2 :: SplitBoxProcessor({}, EACH_MATCH {each});\n\
             client :: SplitBoxClient({}, ROWS 4096, ROTATION 3600s);\n\
             entry[0] -> client; entry[1] -> b1 -> client; entry[2] -> b2 -> client;\n\
             client[1] -> [1]entry; client[2] -> b1; client[3] -> b2;\nclient -> sink :: DelaySink;\n",
            folder.arguments("entry"),
            folder.arguments("processor-1"),
            folder.arguments("processor-2"),
            folder.arguments("client"),
        );
        for worker in 0..case.workers {
            text += &self.source(worker, rate);
            text += &format!("source{worker} -> entry;\n");
        }
        text
    }

    /// A router with all parties, which has an epoch.
    fn start(&self, case: &Case, folder: &PartyFolder, rate: u64) -> Result<Router, String> {
        let mut router = self.build(&self.parties(case, folder, rate), case.workers)?;
        for _ in 0..600 {
            let packets =
                run_counted(&mut router, Duration::from_millis(50), |it| count(it, "sink.count"));
            // The next epoch has been prepared too.
            let state = router.read("client.state").map_err(|e| e.to_string())?;
            if packets > 0 && state.matches("2 of 2").count() == 2 {
                return Ok(router);
            }
        }
        Err(format!("no epoch\n{}", router.read("client.state").map_err(|e| e.to_string())?))
    }

    /// Nanoseconds of elements for a packet, by name, and of a worker by the clock: in the median of the
    /// rounds that nothing disturbed, or of all if there are none.
    fn costs(&self, router: &mut Router, workers: usize, names: &[&str]) -> (Vec<f64>, f64) {
        let ticks = |router: &mut Router| -> Vec<u64> {
            let costs = router.costs();
            let elements = &router.graph().elements;
            let index = |name: &str| elements.iter().position(|it| it.name == name);
            let of = |name: &&str| index(name).and_then(|at| costs.get(at));
            names.iter().map(|name| of(name).map_or(0, |it| it.transfers.ticks)).collect()
        };
        let mut rounds: Vec<Vec<(f64, bool)>> = vec![Vec::new(); names.len()];
        let mut samples: Vec<Sample> = Vec::new();
        let packets = |router: &mut Router| count(router, "sink.count");
        for _ in 0..self.plan.rounds {
            let before = (ticks(router), packets(router));
            let sample = sample(router, workers, self.plan.time, packets);
            let count = (packets(router) - before.1) as f64;
            for (round, (after, before)) in
                rounds.iter_mut().zip(ticks(router).iter().zip(before.0))
            {
                let ns = (after - before) as f64 / self.ticks / count;
                round.push((ns, sample.run.undisturbed));
            }
            samples.push(sample);
        }
        let costs = rounds.into_iter().map(|round| middle(round.into_iter()).0);
        (costs.collect(), 1e3 * workers as f64 / rate(&samples))
    }

    fn party_costs(&self, case: &Case, folder: &PartyFolder) -> Result<PartyCosts, String> {
        let mut router = self.start(case, folder, 0)?;
        let lost = |router: &mut Router| {
            router.read("client.packets").map(|it| it.lines().nth(1).map(str::to_owned))
        };
        let before = lost(&mut router).map_err(|e| e.to_string())?;
        let names = ["entry", "b1", "b2", "client"];
        let (costs, all) = self.costs(&mut router, case.workers, &names);
        if lost(&mut router).map_err(|e| e.to_string())? != before {
            return Err("packets were given up".into());
        }
        Ok(PartyCosts {
            entry: costs[0],
            processor: f64::midpoint(costs[1], costs[2]),
            client: costs[3],
            all,
        })
    }

    fn bandwidth(&self, case: &Case, plain: [f64; 2]) -> Result<Record, String> {
        let folder = PartyFolder::new(case.rules, case.hash, case.blinds, case.workers)?;
        let costs = self.party_costs(case, &folder)?;
        Ok(self.record(case, &costs, plain))
    }

    fn record(&self, case: &Case, costs: &PartyCosts, plain: [f64; 2]) -> Record {
        let slowest = costs.entry.max(costs.processor).max(costs.client);
        let gbps = |ns: f64| self.gbps(ns, case.workers);
        Record {
            case: case.name,
            rules: case.rules,
            projections: case.rules.min(PROJECTIONS),
            hash: case.hash_name(),
            l: case.blinds,
            packet: self.packet.len(),
            workers: case.workers,
            entry_ns: costs.entry,
            processor_ns: costs.processor,
            client_ns: costs.client,
            gbps: gbps(slowest),
            processor_gbps: gbps(costs.processor),
            plain_gbps: plain[0].is_finite().then(|| gbps(plain[0])),
            middlebox_gbps: plain[1].is_finite().then(|| gbps(plain[1])),
            paper_gbps: (case.rules == PAPER.0 && case.workers == 1).then_some(PAPER.1),
            load: None,
            p50_us: None,
            p99_us: None,
        }
    }

    /// Nanoseconds of an `IPFilter` and a `Middlebox` with the rules.
    fn plain(
        &self,
        rules: usize,
        workers: usize,
        reporter: &mut dyn Reporter,
    ) -> Result<[f64; 2], String> {
        let elements = [
            format!("IPFilter({})", filter_rules(rules).join(", ")),
            format!("Middlebox({}, all drop)", middlebox_rules(rules).join(", ")),
        ];
        let mut results = [f64::NAN; 2];
        for (element, result) in elements.iter().zip(&mut results) {
            reporter.progress(&format!("the plain function, {rules} rules"));
            let mut text = format!("plain :: {element};\nplain -> sink :: DelaySink;\n");
            for worker in 0..workers {
                text += &self.source(worker, 0);
                text += &format!("source{worker} -> MarkIPHeader -> plain;\n");
            }
            let mut router = self.build(&text, workers)?;
            let (costs, _) = self.costs(&mut router, workers, &["plain"]);
            *result = costs[0];
        }
        Ok(results)
    }

    /// Delays from entry to client at shares of the load that one worker carries for all parties.
    fn delays(&self, reporter: &mut dyn Reporter) -> Result<(), String> {
        let (rules, blinds) = (60, 1024);
        let (name, hash, is_each_match) = ("delay", HashKind::Blake3, false);
        let case = Case { name, hash, is_each_match, rules, blinds, workers: 1 };
        let folder = PartyFolder::new(rules, hash, blinds, 1)?;
        let costs = self.party_costs(&case, &folder)?;
        for &load in &self.plan.loads {
            reporter.progress(&format!("delays at a load of {load} %"));
            let rate = (1e9 / costs.all * load as f64 / 100.0) as u64;
            let mut router = self.start(&case, &folder, rate.max(1))?;
            // Packets that were due while the parties prepared epochs, or while no worker ran, do not count.
            for handler in ["source0.reset", "sink.reset"] {
                router.write(handler, "").map_err(|e| e.to_string())?;
            }
            run_counted(&mut router, self.plan.time * self.plan.rounds as u32, |it| {
                count(it, "sink.count")
            });
            let mut delay = |name: &str| Some(count(&mut router, name) as f64 / self.ticks / 1e3);
            let (p50_us, p99_us) = (delay("sink.p50"), delay("sink.p99"));
            let record = self.record(&case, &costs, [f64::NAN; 2]);
            reporter.row(Record { load: Some(load), p50_us, p99_us, ..record });
        }
        Ok(())
    }
}
