//! `castanet bench slots`: packets over slot channels to another process and back.

use super::measure::is_selected;
use super::router::{Sample, build_with, count, rate, run_counted, sample};
use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use serde::Serialize;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The names of the cases.
pub const CASES: [&str; 2] = ["polled", "sleeping"];
/// Packets that a worker takes at once.
pub const BATCHES: [usize; 6] = [1, 8, 32, 64, 128, 256];
/// Packets on their way, fewer than a ring has slots.
const IN_FLIGHT: usize = 768;
/// Slots of a ring.
const SLOTS: usize = 1024;
/// The least rate that a sandboxed process is to have, in million packets a second.
const TARGET: f64 = 5.0;
/// Time that another process has to start.
const START: Duration = Duration::from_secs(20);

/// The other end of channels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// An ordinary process, by a socket file.
    Process,
    /// A process that is confined as a tenant's own.
    Sandboxed,
}

impl PeerKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            PeerKind::Process => "a process",
            PeerKind::Sandboxed => "a sandboxed process",
        }
    }
}

/// A process at the other end of a channel.
pub(crate) struct Peer {
    kind: PeerKind,
    /// The name of the channel here.
    channel: String,
    /// The process and its socket file, if it is an ordinary one.
    process: Option<(Child, PathBuf)>,
}

/// Number of channels made until now, for their names.
static CHANNELS: AtomicU64 = AtomicU64::new(0);

impl Peer {
    /// A process whose graph is made of the arguments of its channel; also returns the text of the
    /// elements that it needs here.
    pub(crate) fn new(
        kind: PeerKind,
        graph: impl Fn(&str) -> String,
    ) -> Result<(Peer, String), String> {
        let number = CHANNELS.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench{number}");
        if kind == PeerKind::Sandboxed {
            let graph = castanet_lang::args::quote(&graph("c, CLIENT true, PASSED true"));
            let text = format!(
                "{name} :: TenantProcess({name}, CHANNELS c, PATIENCE 60s, GRAPH {graph});\n"
            );
            let peer = Peer { kind, channel: format!("{name}/c"), process: None };
            return Ok((peer, text));
        }
        let file = format!("castanet-{}-{name}.slots", std::process::id());
        let file = std::env::temp_dir().join(file);
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        let graph = graph(&format!("{}, CLIENT true", file.display()));
        command.args(["run", "--quiet", "--no-control", "-e", &graph]).stdin(Stdio::null());
        command.stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("castanet run: {error}"))?;
        let channel = file.display().to_string();
        Ok((Peer { kind, channel, process: Some((process, file)) }, String::new()))
    }

    /// The arguments of this end of the channel.
    pub(crate) fn channel(&self) -> String {
        let passed = if self.kind == PeerKind::Sandboxed { ", PASSED true" } else { "" };
        format!("{}, SLOTS {SLOTS}{passed}", self.channel)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some((process, file)) = &mut self.process {
            // It may have ended by itself, and the channel removes its file.
            _ = process.kill();
            _ = process.wait();
            _ = std::fs::remove_file(file);
        }
    }
}

/// Packets through a process and back.
#[derive(Serialize)]
pub struct Record {
    /// The case: whether workers poll.
    pub case: &'static str,
    /// The kind of the other process.
    pub peer: &'static str,
    /// Packets that a worker takes at once.
    pub batch: usize,
    /// Length of a packet in bytes.
    pub bytes: usize,
    /// Million packets a second, each there and back.
    pub mpps: f64,
    /// The target for a sandboxed process.
    pub target_mpps: f64,
    /// Packets that were dropped here, by element and reason.
    pub drops: String,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; both if it is empty.
    pub cases: Vec<String>,
    /// Packets that workers take at once.
    pub batches: Vec<usize>,
    /// Lengths of packets in bytes, from 64 to 1500.
    pub bytes: Vec<usize>,
    /// Runs of each.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// A router here with the processes that it needs.
pub(crate) struct Side {
    pub(crate) router: Router,
    pub(crate) samples: Vec<Sample>,
    peers: Vec<Peer>,
}

impl Side {
    /// Builds a router with the elements of [`circulation`], has packets flow when all peers are connected
    /// with the elements `from0`, `from1` and so on, and waits until they come back.
    pub(crate) fn new(
        text: &str,
        peers: Vec<Peer>,
        batch: usize,
        library: &Library,
    ) -> Result<Side, String> {
        let mut options = Options::new(Arc::new(SilentConsole));
        (options.pin, options.burst, options.frames) = (true, batch, Some(16384));
        let router = build_with(text, library, &options)?;
        let mut side = Side { router, samples: Vec::new(), peers };
        let started = Instant::now();
        // Packets to a peer that is not there would be lost.
        let is_connected = |side: &mut Side| {
            (0..side.peers.len())
                .all(|n| count(&mut side.router, &format!("from{n}.connections")) > 0)
        };
        while !is_connected(&mut side) && started.elapsed() < START {
            run_counted(&mut side.router, Duration::from_millis(20), |_| 0);
        }
        side.router.write("u.active", "true").map_err(|error| error.to_string())?;
        while side.measure(Duration::from_millis(50)).is_none() {
            if started.elapsed() > START {
                let drops = side.router.read("drops").unwrap_or_default();
                return Err(format!("no packet has come back: {drops}"));
            }
        }
        Ok(side)
    }

    /// Runs once; `None` if no packet came back.
    fn measure(&mut self, time: Duration) -> Option<Sample> {
        let counted = |router: &mut Router| count(router, "c.count");
        let before = counted(&mut self.router);
        let sample = sample(&mut self.router, 1, time, counted);
        (counted(&mut self.router) > before).then_some(sample)
    }

    /// Runs once more.
    pub(crate) fn round(&mut self, time: Duration) {
        let sample = self.measure(time);
        self.samples.extend(sample);
    }

    /// Million packets a second.
    pub(crate) fn mpps(&self) -> f64 {
        rate(&self.samples)
    }
}

/// Measures the cases that are wanted.
///
/// # Errors
/// A process cannot be started, or no packet comes back from it.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for case in CASES.into_iter().filter(|case| is_selected(&plan.cases, case)) {
        for kind in [PeerKind::Process, PeerKind::Sandboxed] {
            for &bytes in &plan.bytes {
                for &batch in &plan.batches {
                    let mut side = mirror(kind, case == "polled", (batch, bytes), library)?;
                    (0..plan.rounds).for_each(|_| side.round(plan.time));
                    on_record(Record {
                        case,
                        peer: kind.name(),
                        batch,
                        bytes,
                        mpps: side.mpps(),
                        target_mpps: TARGET,
                        drops: side.router.read("drops").unwrap_or_default(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Elements among which packets go round: they leave by `u`, which is not active at first, and come back
/// to `c`.
pub(crate) fn circulation(packets: usize, bytes: usize, batch: usize) -> String {
    format!(
        "Idle -> BenchRing({packets}, LIMIT {packets}, LENGTH {bytes}) -> q :: Queue({packets})
            -> u :: Unqueue(BURST {batch}, ACTIVE false);
         c :: Counter -> q;\n"
    )
}

/// A router whose packets another process sends back.
fn mirror(
    kind: PeerKind,
    polls: bool,
    (batch, bytes): (usize, usize),
    library: &Library,
) -> Result<Side, String> {
    let takes = format!("POLL {polls}, BURST {batch}");
    let (peer, text) =
        Peer::new(kind, |channel| format!("FromSlots({channel}, {takes}) -> ToSlots({channel});"))?;
    let channel = peer.channel();
    let text = format!(
        "{text} {} u -> ToSlots({channel}); from0 :: FromSlots({channel}, {takes}) -> c;",
        circulation(IN_FLIGHT, bytes, batch)
    );
    Side::new(&text, vec![peer], batch, library)
}
