//! `castanet bench classify`: the rule element against sets of rules of many sizes and
//! kinds, beside rules asked one by one; and the classifiers, beside their tests.

mod filters;
mod live;
mod sets;

use super::measure::{is_selected, middle};
use crate::example::{CoreSpeed, CostMeasurement, cost_of};
use castanet_element::class::Library;
use castanet_middlebox::headers::Headers;
use castanet_middlebox::language::{Command, commands};
use castanet_middlebox::rule::Rule;
use castanet_middlebox::{ActiveRules, Matcher, PacketView, RuleSet};
use castanet_packet::Packet;
use castanet_wire::sketch;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use filters::filters;
use live::live;
use sets::{Set, sets};

/// One line of the table.
#[derive(Default, Serialize)]
pub struct Record {
    /// The set of rules.
    pub case: &'static str,
    /// Rules in it.
    pub rules: usize,
    /// Flows in the traffic.
    pub flows: usize,
    /// Different masks in the table.
    pub masks: usize,
    /// Ticks of the time-stamp counter a packet, for the whole element.
    pub cycles: f64,
    /// Nanoseconds a packet.
    pub ns: f64,
    /// Whether there was a time at which the core was at full speed; these are of that.
    pub undisturbed: bool,
    /// Rules that were about a packet, in the mean.
    pub hits: f64,
    /// Milliseconds to read and learn the rules from a text.
    pub load_ms: f64,
    /// Microseconds until one more rule is in force, in the middle of many.
    pub insert_us: Option<f64>,
    /// Microseconds until it has gone again.
    pub remove_us: Option<f64>,
    /// Changes a second while packets flow, each in force when it is answered.
    pub live_changes: Option<f64>,
    /// Packet rate during changes, as a share of the rate without changes.
    pub live_rate: Option<f64>,
    /// The matcher that a classifier uses, and the reason.
    pub matcher: Option<String>,
    /// Name of the reference.
    pub reference: &'static str,
    /// Its nanoseconds for a packet.
    pub reference_ns: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases; all of them if it is empty.
    pub cases: Vec<String>,
    /// The most rules.
    pub most: usize,
    /// Number of flows.
    pub flows: usize,
    /// Time for which each case is measured.
    pub time: Duration,
}

/// Rules that are asked one by one, at most, for one comparison.
const ASKED: usize = 20_000_000;
/// Rules that come and go again.
const CHANGES: usize = 101;

/// Measures every case; `on_record` gets each record as it is made.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    let wanted = |case| is_selected(&plan.cases, case);
    let mut add = |case, count, record: Result<Record, String>| {
        on_record(record.map_err(|error| format!("{case} {count}: {error}"))?);
        Ok::<(), String>(())
    };
    for set in sets(plan.most).iter().filter(|set| wanted(set.case)) {
        add(set.case, set.count, measure(set, plan, library))?;
    }
    for filter in filters(plan.most).iter().filter(|filter| wanted(filter.case())) {
        add(filter.case(), filter.count(), filter.measure(plan, library))?;
    }
    Ok(())
}

fn measure(set: &Set, plan: &Plan, library: &Library) -> Result<Record, String> {
    let text = set.text();
    let started = Instant::now();
    let active_rules = ActiveRules::new(RuleSet::new(parsed(&text)?));
    let mut matcher = Matcher::default();
    matcher.set_tables(active_rules.tables());
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let packets: Vec<String> = (0..plan.flows).map(|flow| set.packet(flow)).collect();
    let (hits, reference_ns) = compared(&mut matcher, active_rules.rules(), &packets)?;
    let masks = active_rules.tables().masks().count();
    let (insert_us, remove_us) = changed(&mut matcher, active_rules, set)?;
    drop(matcher);
    let file = RulesFile::of(&text)?;
    let CostMeasurement { cycles, ns, undisturbed, .. } =
        element(&file.0, &packets, plan, library)?;
    let live = live(&file.0, set.count, &set.rule(set.count), plan.time, library)?;
    Ok(Record {
        case: set.case,
        rules: set.count,
        flows: plan.flows,
        masks,
        cycles,
        ns,
        undisturbed,
        hits,
        load_ms,
        insert_us: Some(insert_us),
        remove_us: Some(remove_us),
        live_changes: Some(live.changes),
        live_rate: Some(live.rate),
        reference: "rules one by one",
        reference_ns,
        ..Record::default()
    })
}

fn parsed(text: &str) -> Result<Vec<Rule>, String> {
    let commands = commands(text).map_err(|faults| format!("{faults:?}"))?;
    let rules = commands.into_iter().filter_map(|(_, command)| match command {
        Command::Add(rule) => Some(rule),
        _ => None,
    });
    Ok(rules.collect())
}

/// Asks the table and the rules one by one about the same packets; how many rules were
/// about a packet, and how many nanoseconds the rules took for one.
fn compared(
    matcher: &mut Matcher,
    rules: &RuleSet,
    packets: &[String],
) -> Result<(f64, f64), String> {
    let count = (ASKED / rules.len().max(1)).clamp(16, 2000).min(packets.len());
    let (mut hits, mut spent, mut found) = (0, Duration::ZERO, Vec::new());
    // From everywhere in the traffic.
    for text in packets.iter().step_by((packets.len() / count).max(1)).take(count) {
        let built = sketch::build(text)?;
        let packet = Packet::from_bytes(&built.bytes);
        let headers = Headers::of(packet.bytes(), 0).ok_or("no IP packet")?;
        let seen = PacketView::new(packet.bytes(), &headers, ("0", "0"));
        let started = Instant::now();
        let holding = rules.entries().filter(|entry| entry.rule.matches_packet(&seen));
        let plainly: Vec<u32> = holding.map(|entry| entry.slot as u32).collect();
        spent += started.elapsed();
        matcher.start_burst();
        matcher.push(packet.bytes(), &headers);
        matcher.look_up();
        matcher.matching_rules(0, &seen, &mut found);
        if found != plainly {
            return Err(format!("of {text}, the table says {found:?}, the rules {plainly:?}"));
        }
        hits += found.len();
    }
    Ok((hits as f64 / count as f64, spent.as_nanos() as f64 / count as f64))
}

/// Adds rules and deletes them again; the microseconds of one, in the middle of each.
fn changed(
    matcher: &mut Matcher,
    mut active_rules: ActiveRules,
    set: &Set,
) -> Result<(f64, f64), String> {
    let (mut inserts, mut removes) = (Vec::new(), Vec::new());
    let delete = format!("delete {}", active_rules.rules().len() + 1);
    for n in 0..CHANGES {
        for (command, times) in [(&set.rule(set.count + n), &mut inserts), (&delete, &mut removes)]
        {
            let command = castanet_middlebox::language::command(command);
            let command = command.ok().flatten().ok_or("no command")?;
            // As the element does it: rules and tables change beside those in force.
            let started = Instant::now();
            let mut rules = RuleSet::clone(active_rules.rules());
            rules.execute(&command).ok_or("no command for rules")??;
            active_rules = active_rules.with(rules);
            matcher.set_tables(active_rules.tables());
            let time = started.elapsed().as_nanos() as f64 / 1e3;
            times.push((time, CoreSpeed::probe().is_full()));
        }
    }
    Ok((middle(inserts.into_iter()).0, middle(removes.into_iter()).0))
}

/// A file of rules, for as long as it is measured.
struct RulesFile(PathBuf);

impl RulesFile {
    fn of(text: &str) -> Result<RulesFile, String> {
        let path = std::env::temp_dir().join(format!("castanet-bench-{}.mmb", std::process::id()));
        let scratch = RulesFile(path);
        let place = scratch.0.display();
        std::fs::write(&scratch.0, text).map_err(|error| format!("{place}: {error}"))?;
        Ok(scratch)
    }
}

impl Drop for RulesFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// The whole element, in bursts of 32.
fn element(
    file: &Path,
    packets: &[String],
    plan: &Plan,
    library: &Library,
) -> Result<CostMeasurement, String> {
    let mut example = format!("in -> m :: Middlebox(FILE {}) -> out\n", file.display());
    packets.iter().for_each(|packet| example += &format!("> in {packet}\n"));
    let class = library.get("Middlebox").ok_or("no Middlebox")?;
    cost_of(class, &example, library, plan.time)
}
