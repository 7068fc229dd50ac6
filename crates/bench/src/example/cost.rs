//! Measures the cost of classes: replays the packets of their examples and counts the cycles of
//! every visit.

use super::bench::build;
use super::core_speed::CoreSpeed;
use super::ports::{self, INPUT};
use super::sink::SINK;
use castanet_element::args::{FromArg, Names};
use castanet_element::class::{Class, Library, Role};
use castanet_element::example::{Script, at};
use castanet_element::exec::CycleAccounting;
use castanet_packet::{Batch, MAX_BURST, Packet, Pool};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::graph::target::Target;
use castanet_runtime::router::{Options, Router};
use std::sync::Arc;
use std::time::Duration;

/// Packets in a burst.
const BURST: usize = 32;
/// Bursts of each group of packets before the script goes on.
const BURSTS: usize = 4;
/// Turns of the worker after each burst: sources may never come to rest.
const TURNS: usize = 256;
/// Timers that may pass while the script lets time go by.
const TIMERS: usize = 1000;
/// Packets in one part of a measurement, of which the middle one counts: parts
/// are short, so that few of them are disturbed.
const PART: u64 = 256;
/// Longer packets test limits in examples, and their copies dominate the cost: longer than a jumbo
/// frame.
const LONGEST: usize = 9018;
/// With fewer packets a figure means nothing; for as many the script is replayed longer than
/// `time`, but not for ever.
const FEWEST: u64 = 1000;
const PLAYS: u32 = 40;

/// Interval between two core-speed probes.
const BEAT: Duration = Duration::from_micros(200);
/// The measurement ends when this many parts, or a quarter of all parts, ran at full core speed; at
/// the latest after `LONGER` times the time that was asked for.
const ENOUGH: usize = 100;
const LONGER: u32 = 20;

/// The measured cost of a class.
#[derive(Clone, Copy, Debug)]
pub struct CostMeasurement {
    /// Number of the example, from 1.
    pub example: usize,
    /// Packets that came to its elements, or were made by them.
    pub packets: u64,
    /// Packets in a burst.
    pub burst: f64,
    /// Ticks of the time-stamp counter for a packet.
    pub cycles: f64,
    /// Nanoseconds for a packet.
    pub ns: f64,
    /// Whether the core was at full speed; if not, there was no such time ([`CoreSpeed`]).
    pub undisturbed: bool,
}

/// Measures a class by the first of its examples in which enough packets come to it, for about
/// `time`; an error says why there is none.
pub fn cost(class: &Class, library: &Library, time: Duration) -> Result<CostMeasurement, String> {
    let why = match class.role {
        Role::Info => "it declares something, and no packet comes to it",
        Role::Control => "it is a program, and no packet comes to it",
        _ if class.factory.device.is_some() => "it needs a device",
        _ => "its documentation has no example that runs by itself",
    };
    let mut failed = Err(why.to_owned());
    for (n, text) in castanet_element::example::blocks(class.spec.doc).enumerate() {
        let script = Script::new(&text);
        let measured =
            Replay::new(class, &script, library).and_then(|mut rehearsal| rehearsal.measure(time));
        match measured {
            Ok(measured) => return Ok(CostMeasurement { example: n + 1, ..measured }),
            // An example without packets has given its reason already.
            Err(_) if matches!(class.role, Role::Info | Role::Control) => {}
            Err(error) => failed = Err(error),
        }
    }
    failed
}

/// Measures a class by an example that is not in its documentation.
pub fn cost_of(
    class: &Class,
    text: &str,
    library: &Library,
    time: Duration,
) -> Result<CostMeasurement, String> {
    Replay::new(class, &Script::new(text), library)?.measure(time)
}

/// A line of the script.
enum Step {
    Feed(Target, Vec<Packet>),
    Write(String, String),
    Advance(Duration),
}

/// An example that is replayed.
struct Replay {
    router: Router,
    pool: Pool,
    steps: Vec<Step>,
    /// The elements of the class.
    elements: Vec<usize>,
    /// Handler writes by which sources go on for ever.
    revive: Vec<(String, &'static str)>,
}

/// Cycles of the elements so far.
#[derive(Clone, Copy, Default)]
struct Sum {
    packets: u64,
    calls: u64,
    cycles: u64,
}

impl Sum {
    fn since(self, before: Sum) -> Sum {
        Sum {
            packets: self.packets - before.packets,
            calls: self.calls - before.calls,
            cycles: self.cycles - before.cycles,
        }
    }
}

/// A measurement in parts.
#[derive(Default)]
struct Parts {
    /// Each part, with the number of the probe after it.
    all: Vec<(Sum, usize)>,
    probes: Vec<CoreSpeed>,
    /// Parts between two probes at full speed.
    calm: usize,
}

impl Parts {
    /// Probes the core again.
    fn beat(&mut self) {
        self.probes.push(CoreSpeed::probe());
        let last = self.probes.len() - 1;
        if self.is_full(last) {
            self.calm += self.all.iter().rev().take_while(|(_, after)| *after == last).count();
        }
    }

    /// Whether the core was at full speed often enough.
    fn is_enough(&self) -> bool {
        self.calm >= ENOUGH.min(self.all.len() / 4)
    }

    /// Whether a probe and the one before it were at full speed.
    fn is_full(&self, after: usize) -> bool {
        let both = after.checked_sub(1).and_then(|before| self.probes.get(before..=after));
        both.is_some_and(|both| both.iter().all(|probe| probe.is_full()))
    }

    /// Cost of a packet in the median part of those at full speed; of all parts if there are none.
    fn middle(&self) -> (f64, bool) {
        let empty = CycleAccounting::empty();
        let a_packet = |part: &Sum| {
            let cycles = part.cycles as f64 - empty * part.calls as f64;
            cycles.max(0.0) / part.packets as f64
        };
        let calm = self.all.iter().filter(|(_, after)| self.is_full(*after));
        let mut costs: Vec<f64> = calm.map(|(part, _)| a_packet(part)).collect();
        let undisturbed = !costs.is_empty();
        if costs.is_empty() {
            costs.extend(self.all.iter().map(|(part, _)| a_packet(part)));
        }
        costs.sort_by(f64::total_cmp);
        (costs.get(costs.len() / 2).copied().unwrap_or(f64::NAN), undisturbed)
    }
}

impl Replay {
    fn new(class: &Class, script: &Script, library: &Library) -> Result<Replay, String> {
        let mut library = library.clone();
        library.add(&INPUT);
        library.add(&SINK);
        let (declarations, _) = script.ports(&library)?;
        let mut options = Options::new(Arc::new(SilentConsole));
        (options.burst, options.simulated, options.frames) = (BURST, true, Some(16384));
        let mut router = build(&declarations, &script.config, &library, &options)?;
        let pool = router.pool().clone();
        let graph = router.graph();
        let all = graph.elements.iter().enumerate();
        let own = all.filter(|(_, it)| std::ptr::eq(it.class.spec, class.spec));
        let elements = own.map(|(it, _)| it).collect();
        let revive = reviving(&router);
        router.count_cycles(true);
        let steps = steps(script, &router)?;
        Ok(Replay { router, pool, steps, elements, revive })
    }

    /// Replays for `time`, or longer while the core is not at full speed.
    fn measure(&mut self, time: Duration) -> Result<CostMeasurement, String> {
        let clock = quanta::Clock::new();
        // First, caches are filled, tables learn, memory is allocated.
        self.play();
        let mut parts = Parts::default();
        parts.beat();
        let (started, first, mut plays) = (clock.now(), self.sum(), 0);
        let (mut begun, mut last, mut beat) = (first, first, started);
        loop {
            let (now, packets) = (clock.now(), last.packets - first.packets);
            let is_over = now - started >= time * LONGER || parts.is_enough();
            if now - started >= time && (packets >= FEWEST || plays >= PLAYS) && is_over {
                break;
            }
            self.play();
            plays += 1;
            last = self.sum();
            if last.packets - begun.packets >= PART {
                parts.all.push((last.since(begun), parts.probes.len()));
                // Between two parts: each part lies between two probes.
                if clock.now() - beat >= BEAT {
                    parts.beat();
                    beat = clock.now();
                }
                begun = last;
            }
        }
        parts.beat();
        let packets = last.packets - first.packets;
        if packets < FEWEST {
            return Err(match last.packets {
                0 => "no packet comes to it in its example".to_owned(),
                few => format!("only {few} packets come to it in its example"),
            });
        }
        let (cycles, undisturbed) = parts.middle();
        let second = clock.delta_as_nanos(0, 1_000_000_000) as f64 / 1e9;
        let burst = packets as f64 / (last.calls - first.calls).max(1) as f64;
        Ok(CostMeasurement { example: 0, packets, burst, cycles, ns: cycles * second, undisturbed })
    }

    fn sum(&mut self) -> Sum {
        let costs = self.router.costs();
        let mut sum = Sum::default();
        for &it in &self.elements {
            let (counters, cost) = (self.router.counters(it), costs[it].total());
            let source = self.router.graph().elements[it].inputs.is_empty();
            sum.packets += if source { counters.made } else { counters.input };
            sum.calls += cost.calls;
            sum.cycles += cost.ticks;
        }
        sum
    }

    /// The whole script once, and a while for sources.
    fn play(&mut self) {
        let mut next = 0;
        for step in &self.steps {
            match step {
                Step::Feed(to, models) => {
                    for _ in 0..BURSTS {
                        let batch = burst(&self.pool, models, &mut next);
                        if let Some(worker) = self.router.worker(0) {
                            worker.inject(to.node, to.port, batch);
                        }
                        self.router.settle(TURNS);
                    }
                }
                Step::Write(handler, value) => {
                    // A handler may refuse a value at another time than the example's.
                    _ = self.router.write(handler, value);
                    self.router.settle(TURNS);
                }
                Step::Advance(time) => self.router.advance_within(*time, TURNS, TIMERS),
            }
        }
        for (handler, value) in &self.revive {
            _ = self.router.write(handler, value);
        }
        self.router.advance_within(Duration::from_millis(10), TURNS, TIMERS);
    }
}

/// Fresh copies of the models in turn, from the `next` one on.
fn burst(pool: &Pool, models: &[Packet], next: &mut usize) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..BURST.min(MAX_BURST) {
        let model = &models[*next % models.len()];
        *next += 1;
        // Where elements keep all frames, there are fewer.
        let Some(mut packet) = pool.copy_in(model.bytes()) else { break };
        packet.copy_annotations(model);
        packet.copy_header_offsets(model);
        // As elements before this one have looked at the header.
        _ = packet.ipv4();
        batch.push(packet);
    }
    batch
}

/// The writes by which every source of the example goes on for ever.
fn reviving(router: &Router) -> Vec<(String, &'static str)> {
    let mut writes = Vec::new();
    for element in &router.graph().elements {
        if !matches!(element.class.role, Role::Source | Role::Duplex) {
            continue;
        }
        let known = (element.class.writes)();
        for (name, value) in [("limit", "-1"), ("reset", ""), ("active", "true")] {
            if known.iter().any(|handler| handler.name == name) {
                writes.push((format!("{}.{name}", element.name), value));
            }
        }
    }
    writes
}

/// The steps of the script without its expectations and without longer packets; packets for one
/// port go together unless other lines than expectations stand between them.
fn steps(script: &Script, router: &Router) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for &(n, line) in &script.lines {
        let rest = line[1..].trim();
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match line.as_bytes()[0] {
            b'>' => {
                let graph = router.graph();
                let edge = graph.find(name).and_then(|node| graph.out_edges(node).next());
                let to = edge.ok_or("a feeding port is not connected")?.to;
                let packet = ports::build(value.trim()).map_err(|e| at(n, line, &e))?;
                if packet.len() > LONGEST {
                    continue;
                }
                match steps.last_mut() {
                    Some(Step::Feed(last, models)) if *last == to => models.push(packet),
                    _ => steps.push(Step::Feed(to, vec![packet])),
                }
            }
            b'!' => steps.push(Step::Write(name.to_owned(), value.trim().to_owned())),
            b'+' => {
                let time = Duration::from_arg(rest, &Names::default());
                steps.push(Step::Advance(time.map_err(|e| at(n, line, &e.to_string()))?));
            }
            _ => {}
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_between_two_calm_pulses() {
        // From here on there is a fastest one.
        CoreSpeed::probe();
        let (calm, busy) = (CoreSpeed(0), CoreSpeed(u64::MAX));
        let part = |cycles, after| (Sum { packets: 1, calls: 0, cycles }, after);
        let all = vec![part(70, 1), part(140, 2), part(141, 3), part(142, 3), part(72, 4)];
        let probes = vec![calm, calm, busy, calm, calm];
        let mut parts = Parts { all, probes, calm: 0 };
        assert_eq!(parts.middle(), (72.0, true));
        parts.probes[1] = busy;
        parts.probes[4] = busy;
        assert_eq!(parts.middle(), (140.0, false), "of all, where there was no such time");
    }
}
