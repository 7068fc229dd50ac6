//! Figures 7 and 8 of *Data plane virtualisation*, section 6: one router in this process, in another one,
//! and in a sandboxed one; rates, and the delay of one packet.

use super::router::path;
use super::slots::{Peer, PeerKind, Side, circulation};
use super::tenants::{Plan, Record};
use castanet_element::class::Library;
use serde::Serialize;

/// Numbers of routers, for figure 7.
const ROUTERS: [usize; 2] = [1, 4];
/// Packets on their way, for rates.
const IN_FLIGHT: usize = 768;
/// Packets that a worker takes at once.
const BATCH: usize = 64;

const FIGURE_7: &str = "the kernel forwards substantially more than a process";
const FIGURE_8: &str = "some overhead of a container over a process, but minimal";

/// The rate and the delay of routers on one target.
#[derive(Serialize)]
pub struct TargetRecord {
    /// The measurement.
    pub case: &'static str,
    /// The figure of the paper.
    pub figure: u32,
    /// Where the routers run.
    pub target: &'static str,
    /// Virtual routers.
    pub routers: usize,
    /// Whether workers poll slot channels.
    pub polls: bool,
    /// Million packets a second, all routers together.
    pub mpps: f64,
    /// The rate as a multiple of that of the first target.
    pub ratio: f64,
    /// Microseconds between the departure and the return of a packet that is alone.
    pub delay_us: f64,
    /// Statement of the paper.
    pub paper: &'static str,
}

/// Targets: none is in this process.
const TARGETS: [Option<PeerKind>; 3] = [None, Some(PeerKind::Process), Some(PeerKind::Sandboxed)];

/// Measures figure 7: routers in this process, in a process each, and in a sandboxed process each.
///
/// # Errors
/// A router cannot be built, or no packet comes back.
pub(crate) fn targets(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for routers in ROUTERS {
        let case = Case { name: "targets", figure: 7, routers, polls: false, paper: FIGURE_7 };
        case.measure(&TARGETS, plan, library, on_record)?;
    }
    Ok(())
}

/// Measures figure 8: a process, and a sandboxed one.
///
/// # Errors
/// As [`targets`].
pub(crate) fn container(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    for polls in [true, false] {
        let case = Case { name: "container", figure: 8, routers: 1, polls, paper: FIGURE_8 };
        case.measure(&TARGETS[1..], plan, library, on_record)?;
    }
    Ok(())
}

/// Packets that go round from `c` to `u` once that is active. They get back the time to live that
/// routers have lowered.
fn renewed_circulation(packets: usize) -> String {
    circulation(packets, 64, BATCH).replace(
        "c :: Counter -> q;",
        "c :: Counter -> Strip(14) -> MarkIPHeader -> StoreData(8, \\<40>) -> SetIPChecksum
             -> Unstrip(14) -> q;",
    )
}

/// A comparison of targets.
struct Case {
    name: &'static str,
    figure: u32,
    routers: usize,
    polls: bool,
    paper: &'static str,
}

impl Case {
    fn measure(
        &self,
        targets: &[Option<PeerKind>],
        plan: &Plan,
        library: &Library,
        on_record: &mut dyn FnMut(Record),
    ) -> Result<(), String> {
        let mut base = f64::NAN;
        for &target in targets {
            let rate = |in_flight| -> Result<f64, String> {
                let mut side = self.side(target, in_flight, library)?;
                (0..plan.rounds).for_each(|_| side.round(plan.time));
                Ok(side.mpps())
            };
            let (mpps, alone) = (rate(IN_FLIGHT)?, rate(1)?);
            if base.is_nan() {
                base = mpps;
            }
            on_record(Record::Target(TargetRecord {
                case: self.name,
                figure: self.figure,
                target: target.map_or("in process", PeerKind::name),
                routers: self.routers,
                polls: self.polls,
                mpps,
                ratio: mpps / base,
                delay_us: 1.0 / alone,
                paper: self.paper,
            }));
        }
        Ok(())
    }

    /// Routers on a target, with so many packets on their way.
    fn side(
        &self,
        target: Option<PeerKind>,
        in_flight: usize,
        library: &Library,
    ) -> Result<Side, String> {
        let takes = format!("POLL {}, BURST {BATCH}", self.polls);
        let mut text = renewed_circulation(in_flight) + "u -> switch :: RoundRobinSwitch;\n";
        let mut peers = Vec::new();
        for n in 0..self.routers {
            let Some(kind) = target else {
                text += &format!(
                    "switch[{n}] -> v{n} :: {{ {} }} -> c;\n",
                    path(0, 4, "input", "output")
                );
                continue;
            };
            let (peer, elements) = Peer::new(kind, |channel| {
                let router = path(0, 4, "from", "to");
                format!("from :: FromSlots({channel}, {takes}); to :: ToSlots({channel}); {router}")
            })?;
            let channel = peer.channel();
            text += &format!(
                "{elements} switch[{n}] -> ToSlots({channel}); from{n} :: FromSlots({channel}, {takes}) -> c;\n"
            );
            peers.push(peer);
        }
        Side::new(&text, peers, BATCH, library)
    }
}
