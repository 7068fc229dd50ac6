//! `castanet bench io`: packet rates of devices through one core, beside programs that only
//! forward.

mod castanet;
mod clients;
pub(super) mod cores;
mod dpdk;
pub(super) mod meter;
mod packets;
mod testpmd;
pub(super) mod veth;

use self::cores::Cores;
use self::meter::Sample;
use super::built::{BUILT, Programs, Target};
use super::measure::{are_calm, is_selected};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Devices between which packets are forwarded.
pub const DEVICES: [&str; 7] =
    ["net_null", "net_pcap", "net_memif", "vhost", "kernel", "af_packet", "af_xdp"];

/// Paths of the packets: those of `castanet bench paths`, and the router path while clients look.
pub const CASES: [&str; 17] = [
    FORWARD,
    COUNTER,
    ROUTER,
    CLIENTS,
    "router-4-ways",
    "router-arp",
    "classifier-10",
    "ipfilter-10",
    "ipfilter-100",
    "ipfilter-100-ports",
    "hash-switch",
    "check-udp",
    "check-tcp",
    "ether-mirror",
    "arp-responder",
    "queue",
    "tee",
];

/// Packets go on as they came.
const FORWARD: &str = "forward";
/// Packets go on as they came, past a `Counter`: so they become descriptors, and mbufs again.
const COUNTER: &str = "counter";
/// Packets go along the router path, or Linux routes them.
const ROUTER: &str = "router";

/// Packets go along the router path while a hundred clients read all handlers; the reference is the
/// same router without them.
const CLIENTS: &str = "clients";

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// Path of the packets.
    pub case: &'static str,
    /// Device between whose ports packets are forwarded.
    pub device: &'static str,
    /// The program: this one (`plain`), or one that was built from the configuration (`built`).
    pub program: &'static str,
    /// Million packets a second of the core's time.
    pub mpps: f64,
    /// Name of the reference.
    pub reference: String,
    /// Its million packets a second.
    pub reference_mpps: f64,
    /// Rate as a share of the reference's rate.
    pub ratio: f64,
    /// Kind of pages of DPDK's memory.
    pub memory: Option<String>,
    /// Runs of each side that were asked for.
    pub rounds: usize,
    /// Number of runs whose cores had no other load.
    pub undisturbed: usize,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// The devices to measure; all of them if it is empty.
    pub devices: Vec<String>,
    /// Whether DPDK may have huge pages.
    pub huge: bool,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
    /// The name of this program in records: `plain`, unless it was built itself.
    pub program: &'static str,
}

impl Plan {
    fn wants(&self, device: &str, case: &str) -> bool {
        is_selected(&self.devices, device) && is_selected(&self.cases, case)
    }

    /// The rows that are wanted of these.
    fn rows(
        &self,
        rows: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Vec<(&'static str, &'static str)> {
        rows.into_iter().filter(|(device, case)| self.wants(device, case)).collect()
    }
}

/// A row of the table: indices of the forwarder and of its reference.
#[derive(Clone, Copy)]
struct Comparison {
    device: &'static str,
    case: &'static str,
    /// Whether `ours` is a built program.
    built: bool,
    /// Numbers of the sides.
    ours: usize,
    theirs: usize,
}

/// A program that forwards packets, started anew for each run.
struct Forwarder<'a> {
    name: String,
    run: Box<dyn FnMut(Duration) -> Result<Sample, String> + 'a>,
}

/// Receiver of progress messages and results.
pub trait Reporter {
    /// Reports the run that begins; an empty text ends the report.
    fn progress(&mut self, doing: &str);
    /// Reports a finished row.
    fn row(&mut self, record: &Record);
    /// Rows will not be there, and why.
    fn missing(&mut self, rows: &str, why: &str);
}

/// Rows by their devices and cases.
fn named(rows: &[(&str, &str)]) -> String {
    let names: Vec<String> = rows.iter().map(|(device, case)| format!("{device} {case}")).collect();
    names.join(", ")
}

/// The configurations of the rows that are wanted and can be measured, for programs to measure beside
/// this one.
pub fn targets(plan: &Plan) -> Vec<Target> {
    let cores = Cores::choose();
    dpdk::targets(plan, &cores).into_iter().chain(veth::targets(plan, &cores)).collect()
}

/// Measures every row that is wanted and can be, with those of the built programs.
pub fn run(plan: &Plan, programs: Option<&Programs>, reporter: &mut dyn Reporter) -> Vec<Record> {
    let cores = Cores::choose();
    let mut records = dpdk::run(plan, &cores, programs, reporter);
    records.extend(veth::run(plan, &cores, programs, reporter));
    records
}

/// Programs that are run in turns, and the rows that compare them.
#[derive(Default)]
struct Bed<'a> {
    sides: Vec<Forwarder<'a>>,
    rows: Vec<Comparison>,
}

impl<'a> Bed<'a> {
    /// Adds a program; its number.
    fn side(
        &mut self,
        name: impl Into<String>,
        run: impl FnMut(Duration) -> Result<Sample, String> + 'a,
    ) -> usize {
        self.sides.push(Forwarder { name: name.into(), run: Box::new(run) });
        self.sides.len() - 1
    }

    /// Adds a path by this program and, behind it, by the one that was built from it, if there is one; and
    /// a row for each, beside the side `theirs`. `run` gets the built program, or none for this one.
    fn path(
        &mut self,
        (device, case): (&'static str, &'static str),
        name: &str,
        built: Option<&'a Path>,
        theirs: usize,
        run: impl Fn(Option<&'a Path>, Duration) -> Result<Sample, String> + Copy + 'a,
    ) {
        let ours = self.side(format!("castanet {name}"), move |time| run(None, time));
        self.rows.push(Comparison { device, case, built: false, ours, theirs });
        if built.is_some() {
            let ours = self.side(format!("built {name}"), move |time| run(built, time));
            self.rows.push(Comparison { device, case, built: true, ours, theirs });
        }
    }
}

/// The most runs, as a multiple of those asked for: runs that others disturb are repeated.
const MOST: usize = 2;

/// Runs all sides that the rows need in turn, round by round.
fn compare(
    plan: &Plan,
    Bed { mut sides, rows }: Bed<'_>,
    memory: Option<&str>,
    reporter: &mut dyn Reporter,
) -> Vec<Record> {
    let mut found: Vec<Result<Vec<Sample>, String>> =
        sides.iter().map(|_| Ok(Vec::new())).collect();
    let device = rows.first().map_or("", |row| row.device);
    for round in 1..=MOST * plan.rounds {
        for (n, (side, samples)) in sides.iter_mut().zip(&mut found).enumerate() {
            let needed = rows.iter().any(|row| row.ours == n || row.theirs == n);
            let Ok(list) = samples else { continue };
            let calm = list.iter().filter(|sample| !sample.disturbed).count();
            if needed && calm < plan.rounds {
                let (name, rounds) = (&side.name, plan.rounds);
                reporter.progress(&format!(
                    "{device}: {name}, run {round}, {calm} of {rounds} counted"
                ));
                let was_calm = are_calm();
                match (side.run)(plan.time) {
                    Ok(sample) => {
                        let disturbed = sample.disturbed || !was_calm || !are_calm();
                        list.push(Sample { disturbed, ..sample });
                    }
                    Err(why) => *samples = Err(format!("{}: {}", side.name, why.trim_end())),
                }
            }
        }
    }
    let mut records = Vec::new();
    for Comparison { device, case, built, ours, theirs } in rows {
        match (&found[ours], &found[theirs]) {
            (Ok(mine), Ok(other)) => {
                let (mpps, undisturbed) = meter::middle(mine);
                let (reference_mpps, calm) = meter::middle(other);
                let record = Record {
                    case,
                    device,
                    program: if built { BUILT } else { plan.program },
                    mpps,
                    reference: sides[theirs].name.clone(),
                    reference_mpps,
                    ratio: mpps / reference_mpps,
                    memory: memory.map(str::to_owned),
                    rounds: plan.rounds,
                    undisturbed: undisturbed.min(calm),
                };
                reporter.row(&record);
                records.push(record);
            }
            (Err(why), _) | (_, Err(why)) => {
                let mark = if built { " (built)" } else { "" };
                reporter.missing(&format!("{device} {case}{mark}"), why);
            }
        }
    }
    records
}
