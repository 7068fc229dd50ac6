//! `castanet bench classify`.

use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::classify::{Plan, Record, run};
use clap::Args;
use std::time::Duration;

/// Arguments of `castanet bench classify`.
#[derive(Args)]
#[command(
    long_about = "Rules of the element Middlebox, and patterns of classifiers, in bursts of 32 packets.

  5-tuples     addresses, protocol and destination port, one mask
  masks        10000 rules of prefixes, of 1 to 200 different masks
  access-list  nested prefixes, ports exact, any and in ranges
  tcp-options  rules about TCP options, on SYNs with four of them
  stateful     5-tuples that begin connections, which all flows have
  nat          one rule that translates addresses and ports of all flows
  ipfilter     IPFilter with 5-tuples; ipfilter-list with an access list
  ipclassifier IPClassifier of 16 patterns, whose alternatives are an access list
  classifier   Classifier with 5-tuples, up to 200, as many as there are outputs

Cycles are those of the whole element, by the time-stamp counter, in the middle of
many short parts; the packets' headers are in the cache, as behind a device. Parts
count in which the core was at full speed, which a loop tells that needs nothing else:
where others have the other half of a core, it goes on for up to twenty times as long
to find some, and says `?` if there were none. Beside it the same rules are asked one
by one, for some of the packets, and both have to say the same; for classifiers, these
are their patterns as tests. Adding and removing is the cost for the client that gives
the command; workers only take the new tables. Then a script adds a rule and deletes it again
some thousand times a second (`live /s`) while a worker forwards as fast as it can:
`rate` is how many packets go on meanwhile, of as many as without changes. These
packets are those of `castanet bench router`, which few of the rules are about. Column
`by` says whether a classifier takes packets through tests or looks them up in a
table, the JSON record also why.",
    after_help = "Examples:
  castanet bench classify
  castanet bench classify --case masks,nat --json
  castanet bench classify --rules 10000"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',')]
    cases: Vec<String>,
    /// Only sets of at most so many rules
    #[arg(long, default_value_t = 1_000_000)]
    rules: usize,
    /// Flows in the traffic
    #[arg(long, default_value_t = 60_000)]
    flows: usize,
    /// Milliseconds of each case
    #[arg(long, default_value_t = 500)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        most: arguments.rules,
        flows: arguments.flows.clamp(1, 1 << 20),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    super::run_and_print(arguments.json, &heading(), row, |on_record| {
        run(&plan, &library(), on_record)
    })
}

fn heading() -> String {
    super::title(&format!(
        "{:<13} {:>8} {:>6} {:>7} {:>10} {:>10} {:>5} {:>9} {:>10} {:>10} {:>8} {:>6} {:>12} {:<5}",
        "case",
        "rules",
        "masks",
        "flows",
        "cycles/pkt",
        "ns/packet",
        "hits",
        "load ms",
        "insert us",
        "remove us",
        "live /s",
        "rate",
        "one by one ns",
        "by"
    ))
}

/// Cycles, with a mark where the core was never at full speed.
fn disturbed(r: &Record) -> String {
    format!("{:.0}{}", r.cycles, if r.undisturbed { "" } else { "?" })
}

fn row(r: &Record) -> String {
    let change = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.1}"));
    let rate = r.live_rate.map_or("-".to_owned(), |rate| format!("{:.0} %", rate * 100.0));
    let by = r.matcher.as_deref().and_then(|why| why.split(':').next());
    format!(
        "{:<13} {:>8} {:>6} {:>7} {:>10} {:>10.1} {:>5.2} {:>9.1} {:>10} {:>10} {:>8} {:>6} {:>12.0} {}\n",
        r.case,
        r.rules,
        r.masks,
        r.flows,
        disturbed(r),
        r.ns,
        r.hits,
        r.load_ms,
        change(r.insert_us),
        change(r.remove_us),
        r.live_changes.map_or("-".to_owned(), |n| format!("{n:.0}")),
        rate,
        r.reference_ns,
        by.unwrap_or("table")
    )
}
