//! `cargo xtask cost`: counts the instructions of a packet on short paths, and compares them with
//! the record.
//!
//! Each path of `castanet bench paths` runs twice under callgrind, with N packets and with twice as
//! many: the difference divided by N is the cost of a packet without the start. The count depends
//! neither on the order of functions in the program nor on the load of the machine, but on the
//! compiler, and on the processor, as far as the C library chooses its copies by it.

use crate::steps::{output, run};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// The record, from the root of the repository.
const RECORD: &str = "xtask/cost.json";
/// Packets of the shorter run, after which tables and caches are as they stay.
const PACKETS: u64 = 65_536;
/// Growth from which on a path has become dearer, in percent.
const TOLERANCE: f64 = 3.0;
/// The smallest growth that counts, in instructions: bursts and timers are not spread evenly.
const LEAST: f64 = 0.5;

/// The options of the command.
#[derive(Default)]
pub(crate) struct Options {
    /// Whether the counts are to become the record.
    pub(crate) record: bool,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// The paths to count; all of them if it is empty.
    pub(crate) cases: Vec<String>,
}

impl Options {
    /// Reads the words behind `cargo xtask cost`; `None` if one of them is unknown.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let mut options = Options::default();
        for word in words {
            match *word {
                "--record" => options.record = true,
                "--json" => options.json = true,
                word if word.starts_with('-') => return None,
                case => options.cases.push(case.to_owned()),
            }
        }
        Some(options)
    }
}

/// Instructions a packet, by path.
type Costs = BTreeMap<String, f64>;

/// A path's cost beside that of the record.
struct Comparison {
    case: String,
    recorded: Option<f64>,
    counted: f64,
}

impl Comparison {
    /// Growth in percent; none for a path that the record does not have.
    fn growth(&self) -> Option<f64> {
        self.recorded.map(|recorded| (self.counted / recorded - 1.0) * 100.0)
    }

    /// Whether the path has become dearer.
    fn is_dearer(&self) -> bool {
        let least = self.recorded.is_some_and(|recorded| self.counted - recorded > LEAST);
        least && self.growth().is_some_and(|percent| percent > TOLERANCE)
    }
}

/// Counts, prints, and compares with the record or writes it; an error if a path has become dearer,
/// or if the record and the paths do not have the same names.
pub(crate) fn cost(options: &Options) -> Result<(), String> {
    let program = program()?;
    let all = names(&program)?;
    if let Some(unknown) = options.cases.iter().find(|case| !all.contains(case)) {
        return Err(format!("no path is called {unknown}; there are {}", all.join(", ")));
    }
    let cases = if options.cases.is_empty() { all.clone() } else { options.cases.clone() };
    let counted = count_all(&program, &cases)?;
    let (tools, mut record) = read_record()?;
    let here = tools_here()?;
    let comparisons: Vec<Comparison> = cases
        .iter()
        .map(|case| Comparison {
            case: case.clone(),
            recorded: record.get(case).copied(),
            counted: counted[case],
        })
        .collect();
    print!("{}", if options.json { as_json(&comparisons)? } else { table(&comparisons) });
    if options.record {
        record.extend(counted);
        record.retain(|case, _| all.contains(case));
        return write_record(&here, &record);
    }
    if tools != here && !tools.is_empty() {
        eprintln!("the record is of {tools}, and this is {here}: counts may differ");
    }
    verdict(&comparisons)
}

/// An error if a path has become dearer or is not in the record.
fn verdict(comparisons: &[Comparison]) -> Result<(), String> {
    let names = |is: &dyn Fn(&&Comparison) -> bool| {
        comparisons.iter().filter(is).map(|it| it.case.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (dearer, new) = (names(&|it| it.is_dearer()), names(&|it| it.recorded.is_none()));
    let mut message = String::new();
    if !dearer.is_empty() {
        message += &format!("a packet costs over {TOLERANCE} % more than in {RECORD}: {dearer}\n");
    }
    if !new.is_empty() {
        message += &format!("{RECORD} does not have {new}\n");
    }
    if message.is_empty() {
        return Ok(());
    }
    Err(message + "if that is meant, `cargo xtask cost --record` writes the new counts")
}

/// Builds the program and returns its path.
pub(crate) fn program() -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    run(&cargo, &["build", "--quiet", "--release", "--package", "castanet"])?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into());
    Ok(Path::new(&target).join("release/castanet").display().to_string())
}

/// The names of all paths, which run without callgrind for that.
fn names(program: &str) -> Result<Vec<String>, String> {
    let (text, _) = output(program, &["bench", "paths", "--packets", "64", "--json"])?;
    let records: Vec<Map<String, Value>> =
        serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let name = |record: &Map<String, Value>| record.get("case")?.as_str().map(str::to_owned);
    Ok(records.iter().filter_map(name).collect())
}

/// Counts all paths, on all processors.
fn count_all(program: &str, cases: &[String]) -> Result<Costs, String> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (next, costs) = (Mutex::new(cases.iter()), Mutex::new(Ok(Costs::new())));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases.len()) {
            scope.spawn(|| {
                let take = || next.lock().ok().and_then(|mut it| it.next());
                while let Some(case) = take() {
                    let counted = count(program, case);
                    let Ok(mut costs) = costs.lock() else { break };
                    match (&mut *costs, counted) {
                        (Ok(all), Ok(cost)) => _ = all.insert(case.clone(), cost),
                        (Ok(_), Err(error)) => *costs = Err(format!("{case}: {error}")),
                        (Err(_), _) => break,
                    }
                }
            });
        }
    });
    costs.into_inner().map_err(|e| e.to_string())?
}

/// Instructions of a packet on one path.
fn count(program: &str, case: &str) -> Result<f64, String> {
    let [once, twice] = [PACKETS, 2 * PACKETS].map(|packets| instructions(program, case, packets));
    let (once, twice) = (once?, twice?);
    let more = twice.checked_sub(once).filter(|&more| more > 0);
    let more = more.ok_or_else(|| format!("{once} instructions, and {twice} for twice as many"))?;
    // In hundredths, as the record has them.
    Ok((more as f64 / PACKETS as f64 * 100.0).round() / 100.0)
}

/// Instructions of one run.
fn instructions(program: &str, case: &str, packets: u64) -> Result<u64, String> {
    let packets = packets.to_string();
    let words = ["--tool=callgrind", "--callgrind-out-file=/dev/null", program];
    let path = ["bench", "paths", "--case", case, "--packets", &packets, "--json"];
    let (_, report) = output("valgrind", &[&words[..], &path].concat())?;
    collected(&report).ok_or_else(|| format!("callgrind reported no count:\n{report}"))
}

/// The count in what callgrind reports: a line `==PID== Collected : COUNT`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?.1;
    line.trim().parse().ok()
}

/// The versions of the compiler and of valgrind.
pub(crate) fn tools_here() -> Result<String, String> {
    let [compiler, valgrind] = ["rustc", "valgrind"].map(|tool| output(tool, &["--version"]));
    Ok(format!("{}, {}", compiler?.0.trim(), valgrind?.0.trim()))
}

/// The tools that made the record, and its costs; empty if there is none.
fn read_record() -> Result<(String, Costs), String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{RECORD}: {e}");
    let text = match fs::read_to_string(RECORD) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(e) => return Err(wrong(&e)),
    };
    let record: Value = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    let costs = record["instructions_per_packet"].as_object();
    let costs = costs.ok_or_else(|| wrong(&"no object `instructions_per_packet`"))?;
    let cost = |(case, value): (&String, &Value)| {
        let value = value.as_f64().filter(|value| *value > 0.0);
        value.map(|value| (case.clone(), value)).ok_or_else(|| wrong(case))
    };
    let tools = record["tools"].as_str().unwrap_or_default().to_owned();
    Ok((tools, costs.iter().map(cost).collect::<Result<_, _>>()?))
}

fn write_record(tools: &str, costs: &Costs) -> Result<(), String> {
    let record = json!({ "tools": tools, "instructions_per_packet": costs });
    let text = serde_json::to_string_pretty(&record).map_err(|e| e.to_string())?;
    fs::write(RECORD, text + "\n").map_err(|e| format!("{RECORD}: {e}"))
}

fn as_json(comparisons: &[Comparison]) -> Result<String, String> {
    let record = |it: &Comparison| {
        json!({
            "case": it.case,
            "instructions_per_packet": it.counted,
            "recorded": it.recorded,
            "growth_percent": it.growth(),
        })
    };
    let records: Vec<Value> = comparisons.iter().map(record).collect();
    serde_json::to_string_pretty(&records).map(|text| text + "\n").map_err(|e| e.to_string())
}

fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!("{:<20} {:>10} {:>10} {:>8}\n", "case", "recorded", "counted", "growth");
    for it in comparisons {
        let recorded = it.recorded.map_or("-".into(), |cost| format!("{cost:.2}"));
        let growth = it.growth().map_or("new".into(), |percent| format!("{percent:+.1} %"));
        let mark = if it.is_dearer() { " (!)" } else { "" };
        // Writing to a string cannot fail.
        _ = writeln!(text, "{:<20} {recorded:>10} {:>10.2} {growth:>8}{mark}", it.case, it.counted);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(recorded: Option<f64>, counted: f64) -> Comparison {
        Comparison { case: "router".into(), recorded, counted }
    }

    #[test]
    fn growth_beyond_the_tolerance_fails() {
        let is_dearer = |recorded, counted| compared(Some(recorded), counted).is_dearer();
        assert!(is_dearer(100.0, 103.1));
        assert!(!is_dearer(100.0, 102.9));
        assert!(!is_dearer(100.0, 50.0));
        assert!(!is_dearer(10.0, 10.4), "less than {LEAST} instructions");
        let message = verdict(&[compared(Some(100.0), 110.0), compared(None, 1.0)]).unwrap_err();
        assert!(message.contains("more than in xtask/cost.json: router\n"), "{message}");
        assert!(message.contains("does not have router\n"), "{message}");
        assert_eq!(verdict(&[compared(Some(100.0), 90.0)]), Ok(()));
    }

    #[test]
    fn tables_and_records_have_the_growth() {
        let all = [compared(Some(100.0), 110.0), compared(None, 7.0)];
        let text = table(&all);
        assert!(
            text.contains("router                   100.00     110.00  +10.0 % (!)\n"),
            "{text}"
        );
        assert!(text.contains("router                        -       7.00      new\n"), "{text}");
        let records: Value = serde_json::from_str(&as_json(&all).unwrap()).unwrap();
        assert_eq!(records[0]["instructions_per_packet"], 110.0);
        assert_eq!(records[1]["recorded"], Value::Null);
    }

    #[test]
    fn counts_are_read_from_the_report_of_callgrind() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 1234\n==7== \n"), Some(1234));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }

    #[test]
    fn words_choose_paths() {
        let options = Options::parse(&["--record", "tee", "nat", "--json"]).unwrap();
        assert!(options.record && options.json);
        assert_eq!(options.cases, ["tee", "nat"]);
        assert!(Options::parse(&["--recrod"]).is_none());
    }
}
