//! `castanet bench tenants`: virtual routers that share a worker, as section 6 of *Data plane
//! virtualisation* measures them.

use super::measure::{Run, is_selected, median, ticks_per_ns, watched};
use super::router::{build, count, path, run_counted};
pub use super::tenant_attacks::AttackRecord;
use super::tenant_attacks::attacks;
use super::tenant_devices::devices;
pub use super::tenant_targets::TargetRecord;
use super::tenant_targets::{container, targets};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use castanet_runtime::worker::driver::DriverEvent;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The names of the cases.
pub const CASES: [&str; 8] =
    ["targets", "container", "overhead", "bursts", "routers", "devices", "limit", "hostile"];

/// Frames in use.
const FRAMES: usize = 2048;
/// Packets of a virtual router's run, for figure 9.
const BURSTS: [usize; 5] = [1, 8, 16, 32, 64];
/// Numbers of virtual routers, for figure 9.
const FEW: [usize; 4] = [1, 2, 5, 10];
/// The paper's words about figure 10.
pub(crate) const FIGURE_10: &str = "a slight downward trend, no significant drop from one to ten";
/// The most virtual routers, as in figure 10.
pub(crate) const MOST: usize = 10;
/// The limit of figures 11 and 12.
const LIMIT: f64 = 0.15;
/// Cycles of a packet, for figures 11 and 12.
const LOADS: [u64; 6] = [5_000, 10_000, 15_000, 25_000, 50_000, 100_000];
/// Interval at which shares are looked at.
const WINDOW: Duration = Duration::from_millis(100);
/// Steps of a `WorkPackage` by which its speed is measured.
const CALIBRATION: u64 = 10_000;

/// A record of either kind.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Record {
    /// A rate.
    Rate(RateRecord),
    /// A share.
    Share(ShareRecord),
    /// A rate and a delay on a target.
    Target(TargetRecord),
    /// A tenant beside a hostile one.
    Attack(AttackRecord),
}

/// The rate of virtual routers: figures 9 and 10, and the overhead.
#[derive(Serialize)]
pub struct RateRecord {
    /// The measurement.
    pub case: &'static str,
    /// The figure of the paper, if it is one.
    pub figure: Option<u32>,
    /// How packets come to the routers.
    pub path: &'static str,
    /// Virtual routers.
    pub routers: usize,
    /// Packets that one takes at most before the next has its turn.
    pub burst: usize,
    /// Nanoseconds of processor time a packet.
    pub ns_per_packet: f64,
    /// Million packets a second, all routers together.
    pub mpps: f64,
    /// The rate as a multiple of that beside which it was measured.
    pub ratio: f64,
    /// Statement of the paper.
    pub paper: &'static str,
}

/// The share of an account with a limit: figures 11 and 12.
#[derive(Serialize)]
pub struct ShareRecord {
    /// The measurement.
    pub case: &'static str,
    /// Figures of the paper.
    pub figure: &'static str,
    /// Cycles of a packet of the limited account.
    pub cycles_per_packet: u64,
    /// Cycles of one of its runs.
    pub cycles_per_run: u64,
    /// The part of the processor that it may have.
    pub limit: f64,
    /// The part that it had, by its account.
    pub share: f64,
    /// The part that it had, by its packets and their cost when it is alone.
    pub share_by_packets: f64,
    /// The lowest part in a window of 100 ms.
    pub least: f64,
    /// The highest part in such a window.
    pub most: f64,
    /// The part that its neighbour had.
    pub neighbour: f64,
    /// Statement of the paper.
    pub paper: &'static str,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// How packets come to virtual routers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sharing {
    /// One router, and nothing between it and the device.
    None,
    /// A switch and virtual devices.
    Devices,
    /// The same, with an account for each router.
    Accounts,
    /// The same, where each frame goes out and in with a VLAN tag.
    Vlan,
    /// The same in VXLAN over UDP and IPv4 instead.
    Vxlan,
    /// A switch, queues of which bursts of any length are taken, and an account for each router.
    Queues,
}

impl Sharing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sharing::None => "no sharing",
            Sharing::Devices => "virtual devices",
            Sharing::Accounts => "virtual devices, accounts",
            Sharing::Vlan => "virtual devices, accounts, VLAN",
            Sharing::Vxlan => "virtual devices, accounts, VXLAN",
            Sharing::Queues => "queues, accounts",
        }
    }

    /// The elements of the way out and of the way in, which `castanet tenants` makes.
    fn transport(self) -> &'static str {
        match self {
            Sharing::None | Sharing::Devices | Sharing::Accounts | Sharing::Queues => "",
            Sharing::Vlan => {
                "-> VLANEncap(VLAN_ID 11)
                 -> frames :: Classifier(12/8100 14/000b%0fff, -); frames[1] -> Discard;
                 frames[0] -> VLANDecap(false)"
            }
            Sharing::Vxlan => {
                "-> TunnelEncap(10.9.0.1, vxlan 10.9.0.2 10)
                 -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2)
                 -> plain :: TunnelDecap(2:0:0:0:0:2, 10.9.0.2, vxlan 10.9.0.1 10);
                 plain[1] -> Discard; plain[0]"
            }
        }
    }
}

/// Virtual routers of four ports each that share a device in memory.
fn configuration(sharing: Sharing, routers: usize, burst: usize) -> String {
    let long = device_burst(routers);
    format!("r :: BenchRing({FRAMES}{long});\n") + &between(sharing, routers, burst, "r", "r")
}

/// The argument of a device that so many virtual routers share: `castanet tenants` has it receive as much at
/// once as it can if there are several.
pub(crate) fn device_burst(routers: usize) -> &'static str {
    if routers > 1 { ", BURST 256" } else { "" }
}

/// Virtual routers between two elements of a device.
pub(crate) fn between(
    sharing: Sharing,
    routers: usize,
    burst: usize,
    device: &str,
    end: &str,
) -> String {
    if sharing == Sharing::None {
        return path(0, 4, device, end);
    }
    let inner = path(0, 4, "from", "to");
    let (from, to) = match sharing {
        Sharing::Queues => (format!("Queue({FRAMES}) -> from :: Unqueue(BURST {burst})"), "Null"),
        _ => {
            (format!("from :: FromVirtualDevice(eth0, CAPACITY {FRAMES})"), "ToVirtualDevice(eth0)")
        }
    };
    let transport = sharing.transport();
    let mut text = format!(
        "elementclass VirtualRouter {{ input -> {from}; to :: {to} -> output; {inner} }}
         {device} {transport} -> switch :: RoundRobinSwitch;\n"
    );
    for n in 0..routers {
        text += &format!("switch[{n}] -> v{n} :: VirtualRouter -> {end};\n");
        if sharing != Sharing::Devices {
            // A fifth is for the device.
            text += &format!("CPUAccount(v{n}, GUARANTEE {:.3}%);\n", 80.0 / routers as f64);
        }
    }
    text
}

/// A side of a comparison.
struct Side {
    sharing: Sharing,
    routers: usize,
    burst: usize,
    router: Router,
    runs: Vec<Run>,
}

impl Side {
    fn new(
        (sharing, routers, burst): (Sharing, usize, usize),
        library: &Library,
    ) -> Result<Side, String> {
        let text = configuration(sharing, routers, burst);
        let router = build(&text, FRAMES, 1, true, library)?;
        Ok(Side { sharing, routers, burst, router, runs: Vec::new() })
    }

    fn round(&mut self, time: Duration) {
        let counted = |router: &mut Router| count(router, "r.returned");
        let router = &mut self.router;
        self.runs.push(watched(1, || run_counted(router, time, counted)));
    }

    /// Nanoseconds a packet. The first run warms up.
    fn ns(&self) -> f64 {
        median(&self.runs[1..])
    }
}

/// Measures sides in turns. The first is what all are compared with.
fn compare(
    sides: &[(Sharing, usize, usize)],
    plan: &Plan,
    library: &Library,
) -> Result<Vec<Side>, String> {
    let built: Result<Vec<Side>, String> =
        sides.iter().map(|&side| Side::new(side, library)).collect();
    let mut built = built?;
    for _ in 0..=plan.rounds {
        built.iter_mut().for_each(|side| side.round(plan.time));
    }
    for side in &mut built {
        let drops = side.router.read("drops").unwrap_or_default();
        if !drops.is_empty() {
            return Err(format!("{}: packets were dropped: {drops}", side.sharing.name()));
        }
    }
    Ok(built)
}

fn rate_records(
    (case, figure, paper): (&'static str, Option<u32>, &'static str),
    sides: &[(Sharing, usize, usize)],
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    let sides = compare(sides, plan, library)?;
    let base = sides.first().map_or(f64::NAN, Side::ns);
    for side in &sides {
        let ns = side.ns();
        on_record(Record::Rate(RateRecord {
            case,
            figure,
            path: side.sharing.name(),
            routers: side.routers,
            burst: side.burst,
            ns_per_packet: ns,
            mpps: 1e3 / ns,
            ratio: base / ns,
            paper,
        }));
    }
    Ok(())
}

/// Measures the cases that are wanted.
///
/// # Errors
/// A configuration cannot be built, or loses packets.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    use Sharing::{Accounts, Devices, None, Queues, Vlan, Vxlan};
    let wanted = |case: &str| is_selected(&plan.cases, case);
    if wanted("targets") {
        targets(plan, library, on_record)?;
    }
    if wanted("container") {
        container(plan, library, on_record)?;
    }
    if wanted("overhead") {
        let one = [None, Devices, Accounts, Vlan, Vxlan].map(|sharing| (sharing, 1, 64));
        let sides = [&one[..], &[(Accounts, 4, 64)]].concat();
        let what = ("overhead", Option::None, "");
        rate_records(what, &sides, plan, library, on_record)?;
    }
    if wanted("bursts") {
        for routers in FEW {
            let sides = BURSTS.map(|burst| (Queues, routers, burst));
            let paper = "there is an optimal number of packets, which is higher for more routers";
            rate_records(("bursts", Some(9), paper), &sides, plan, library, on_record)?;
        }
    }
    if wanted("routers") {
        let sides: Vec<_> = (1..=MOST).map(|routers| (Accounts, routers, 64)).collect();
        rate_records(("routers", Some(10), FIGURE_10), &sides, plan, library, on_record)?;
    }
    // It takes a network of its own.
    if plan.cases.iter().any(|case| case == "devices") {
        devices(plan, on_record)?;
    }
    if wanted("limit") {
        let ticks = ticks_per_ns();
        let step = calibrate(plan, library)? * ticks;
        for load in LOADS {
            on_record(Record::Share(share((load, step, ticks), plan, library)?));
        }
    }
    if wanted("hostile") {
        attacks(plan, library, on_record)?;
    }
    Ok(())
}

/// A source of packets that take so many steps.
fn worker(steps: u64) -> String {
    format!(
        "{{ s :: InfiniteSource(LENGTH 60) -> WorkPackage(0, 0, 0, false, {steps})
            -> c :: Counter -> Discard }}"
    )
}

/// Nanoseconds of a step of a `WorkPackage`.
pub(crate) fn calibrate(plan: &Plan, library: &Library) -> Result<f64, String> {
    let mut router = build(&format!("a :: {};", worker(CALIBRATION)), FRAMES, 1, true, library)?;
    let runs: Vec<Run> = (0..plan.rounds.max(3))
        .map(|_| watched(1, || run_counted(&mut router, plan.time, |it| count(it, "a/c.count"))))
        .collect();
    Ok(median(&runs) / CALIBRATION as f64)
}

/// The share of an account with a limit beside one without.
fn share(
    (load, step, ticks): (u64, f64, f64),
    plan: &Plan,
    library: &Library,
) -> Result<ShareRecord, String> {
    let steps = (load as f64 / step) as u64;
    let percent = LIMIT * 100.0;
    let text = format!(
        "a :: {}; b :: {};
         x :: CPUAccount(a, GUARANTEE {percent}%, LIMIT {percent}%); y :: CPUAccount(b, GUARANTEE 80%);",
        worker(steps),
        worker(10)
    );
    let mut router = build(&text, FRAMES, 1, true, library)?;
    let mut looks: Vec<Look> = Vec::new();
    // The first window warms up.
    let windows = 2 + (plan.time.as_nanos() / WINDOW.as_nanos()) as usize * plan.rounds;
    let line = router.line();
    let started = Instant::now();
    router.run(Some((WINDOW, &mut |router: &mut Router| {
        looks.push(Look::new(router, started));
        if looks.len() > windows {
            // The router ends by itself if its driver is gone.
            _ = line.send(DriverEvent::Interrupted);
        }
    })));
    let [_, first, .., last] = &looks[..] else {
        return Err("the router has ended too soon".into());
    };
    let parts: Vec<f64> =
        looks[1..].windows(2).map(|pair| pair[1].part(&pair[0], |it| it.own)).collect();
    let wall = last.at - first.at;
    let packets = (last.packets - first.packets) as f64;
    let runs = (last.runs - first.runs).max(1.0);
    Ok(ShareRecord {
        case: "limit",
        figure: if load <= 25_000 { "11, 12" } else { "11" },
        cycles_per_packet: load,
        cycles_per_run: ((last.own - first.own) * 1e9 * ticks / runs) as u64,
        limit: LIMIT,
        share: last.part(first, |it| it.own),
        share_by_packets: packets * load as f64 / (ticks * 1e9) / wall,
        least: parts.iter().copied().fold(f64::INFINITY, f64::min),
        most: parts.iter().copied().fold(0.0, f64::max),
        neighbour: last.part(first, |it| it.other),
        paper: if load <= 10_000 { "15 %" } else { "above 15 %, and more with each cycle" },
    })
}

/// The time that both accounts have used at a moment, in seconds.
struct Look {
    at: f64,
    own: f64,
    other: f64,
    packets: u64,
    runs: f64,
}

impl Look {
    fn new(router: &mut Router, started: Instant) -> Look {
        let mut number = |handler: &str| -> f64 {
            router.read(handler).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
        };
        Look {
            own: number("x.cpu_time"),
            other: number("y.cpu_time"),
            packets: number("a/c.count") as u64,
            runs: number("x.runs"),
            at: started.elapsed().as_secs_f64(),
        }
    }

    /// The part of the time since `before`.
    fn part(&self, before: &Look, of: impl Fn(&Look) -> f64) -> f64 {
        (of(self) - of(before)) / (self.at - before.at)
    }
}
