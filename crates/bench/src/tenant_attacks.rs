//! A well-behaved tenant beside hostile ones, in one process: what is left of its rate, and its delay.

use super::measure::ticks_per_ns;
use super::router::build;
use super::tenants::{Plan, Record, calibrate};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use castanet_runtime::worker::driver::DriverEvent;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Frames of the router: some are left when a hostile tenant has as many as it may keep.
const FRAMES: usize = 65_536;
/// Packets that come to the well-behaved tenant in a second, and cycles of each: about a quarter of the
/// processor.
const RATE: u64 = 50_000;
const CYCLES: f64 = 15_000.0;
/// The longest run of the other tenant that the well-behaved one was promised.
const DELAY: Duration = Duration::from_micros(100);
/// Elements of the largest graph.
const ELEMENTS: usize = 100_000;

/// A hostile tenant.
struct Attack {
    name: &'static str,
    /// The contents of its compound.
    graph: fn() -> String,
}

const ATTACKS: &[Attack] = &[
    Attack { name: "none", graph: || "Idle -> Discard;".into() },
    Attack { name: "flood of packets", graph: || "InfiniteSource(LENGTH 60) -> Discard;".into() },
    Attack {
        name: "long work",
        graph: || "InfiniteSource -> WorkPackage(0, 0, 0, false, 20000) -> Discard;".into(),
    },
    Attack {
        name: "endless circle",
        graph: || "InfiniteSource -> a :: Counter -> b :: Counter -> a;".into(),
    },
    Attack {
        name: "circle that doubles packets",
        graph: || "InfiniteSource -> t :: Tee(2); t[0] -> t; t[1] -> t;".into(),
    },
    Attack {
        name: "memory bomb",
        graph: || "InfiniteSource(LENGTH 1400) -> Queue(1000000000) -> Idle;".into(),
    },
    Attack { name: "flood of flows", graph: flood_of_flows },
    Attack { name: "flood of timers", graph: flood_of_timers },
    Attack { name: "100 000 elements", graph: many_elements },
];

/// A well-behaved tenant beside a hostile one.
#[derive(Serialize)]
pub struct AttackRecord {
    /// The measurement.
    pub case: &'static str,
    /// The hostile tenant.
    pub attack: &'static str,
    /// Packets a second of the well-behaved tenant.
    pub rate: f64,
    /// The rate as a multiple of that without an attack.
    pub ratio: f64,
    /// Packets of the well-behaved tenant that were lost.
    pub lost: u64,
    /// Microseconds that 99 % of its packets wait at most, from their arrival to the end of their work.
    pub p99_us: f64,
    /// The same without an attack.
    pub p99_alone_us: f64,
    /// Microseconds of the longest run of the other tenant that were promised.
    pub promised_us: f64,
    /// The longest run of the hostile tenant, in microseconds.
    pub longest_run_us: f64,
}

/// Packets of as many flows as there are addresses.
fn flood_of_flows() -> String {
    "RandomSource(28) -> StoreData(0, \\<4500001c 00000000 4011 0000>) -> MarkIPHeader -> SetIPChecksum
        -> CheckIPHeader -> rw :: IPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0) -> Discard;"
        .into()
}

/// Sources that want to run every microsecond.
fn flood_of_timers() -> String {
    (0..1000).map(|_| "TimedSource(0.000001) -> Discard;\n").collect()
}

fn many_elements() -> String {
    let chain = "-> Counter ".repeat(ELEMENTS);
    format!("InfiniteSource {chain} -> Discard;")
}

/// The configuration of both tenants; the work of a packet takes so many steps.
fn configuration(attack: &Attack, steps: u64) -> String {
    let delay = DELAY.as_micros();
    format!(
        "elementclass Good {{
            input -> q :: Queue(4096) -> Unqueue(BURST 64) -> WorkPackage(0, 0, 0, false, {steps})
                -> d :: TimestampDiff(r, OFFSET 40, N 1000000, NANO true, MAXDELAY 0)
                -> c :: Counter -> Discard;
        }}
        elementclass Bad {{ {} }}
        RatedSource(LENGTH 60, RATE {RATE}) -> NumberPacket(40)
            -> r :: RecordTimestamp(N 16777216, OFFSET 40) -> good :: Good;
        bad :: Bad;
        CPUAccount(good, GUARANTEE 50%, DELAY {delay}us);
        account :: CPUAccount(bad, GUARANTEE 30%);
        MemoryAccount(bad, HEAP 64M, PACKETS 10000);",
        (attack.graph)()
    )
}

/// The rate and delay of the well-behaved tenant.
struct Outcome {
    rate: f64,
    lost: u64,
    p99_us: f64,
    longest_run_us: f64,
}

/// Measures the well-behaved tenant beside each attack.
///
/// # Errors
/// A configuration cannot be built, or its router has ended too soon.
pub(crate) fn attacks(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    let steps = (CYCLES / ticks_per_ns() / calibrate(plan, library)?) as u64;
    let mut alone: Option<Outcome> = None;
    for attack in ATTACKS {
        let outcome = measure(attack, steps, plan, library)?;
        let base = alone.as_ref().unwrap_or(&outcome);
        on_record(Record::Attack(AttackRecord {
            case: "hostile",
            attack: attack.name,
            rate: outcome.rate,
            ratio: outcome.rate / base.rate,
            lost: outcome.lost,
            p99_us: outcome.p99_us,
            p99_alone_us: base.p99_us,
            promised_us: DELAY.as_secs_f64() * 1e6,
            longest_run_us: outcome.longest_run_us,
        }));
        alone.get_or_insert(outcome);
    }
    Ok(())
}

fn measure(attack: &Attack, steps: u64, plan: &Plan, library: &Library) -> Result<Outcome, String> {
    let text = configuration(attack, steps);
    let mut router = build(&text, FRAMES, 1, true, library)
        .map_err(|error| format!("{}: {error}", attack.name))?;
    let time = plan.time * u32::try_from(plan.rounds).unwrap_or(1);
    let line = router.line();
    let mut looks: Vec<(Instant, u64)> = Vec::new();
    let mut look = |router: &mut Router| {
        let number = |router: &mut Router, handler: &str| {
            router.read(handler).ok().and_then(|text| text.trim().parse::<u64>().ok())
        };
        looks.push((Instant::now(), number(router, "good/c.count").unwrap_or(0)));
        if looks.len() == 1 {
            // The packets before this moment warm up.
            _ = router.write("good/d.reset", "");
            _ = router.write("account.reset_counts", "");
        }
        if looks.len() > 1 {
            // The router ends by itself if its driver is gone.
            _ = line.send(DriverEvent::Interrupted);
        }
    };
    router.run(Some((time, &mut look)));
    let [(begun, before), .., (ended, after)] = looks[..] else {
        return Err("the router has ended too soon".into());
    };
    let mut number = |handler: &str| -> f64 {
        router.read(handler).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(f64::NAN)
    };
    Ok(Outcome {
        rate: (after - before) as f64 / (ended - begun).as_secs_f64(),
        lost: number("good/q.drops") as u64,
        p99_us: number("good/d.perc99") / 1e3,
        longest_run_us: number("account.longest_run") * 1e6,
    })
}
