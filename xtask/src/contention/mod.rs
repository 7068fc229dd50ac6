//! `cargo xtask contention`: counts the cache lines that move between workers for a packet, and
//! compares them with the record.
//!
//! Each path of `castanet bench scale` runs under valgrind's tool lackey, which prints every
//! instruction and access, with as many workers as are asked for on whatever cores there are. The
//! trace is read as if the bursts of all workers ran at the same time, an instruction of each in
//! turn, on cores with caches without limit that keep to MESI: a line moves when a worker reads
//! what another wrote last, or writes what others have read or written since. Lines that nobody
//! writes stay with all workers. Where state has a lock for the length of a burst, fewer lines move
//! than so: those are counted beside, as if one burst were over before the next begins.
//!
//! Programs run some thousand times slower so, but clocks do not: what elements do by the clock,
//! such as expiring connections, occurs with nearly each burst.

mod lines;
mod symbols;
mod trace;

use crate::cost::{program, tools_here};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::BufReader;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use symbols::{Mappings, Symbols};
use trace::{Count, Extent, Reader};

/// The record, from the root of the repository.
const RECORD: &str = "xtask/contention.json";
/// Packets of a burst.
const BURST: u64 = 64;
/// Bursts of each worker before the count, after which caches and pools are as they stay, and all
/// flows are known.
const WARM_UP: u64 = 6;
/// Bursts of each worker that are counted, but for those of the last round.
const BURSTS: u64 = 6;
/// The number of workers, unless others are asked for.
const WORKERS: usize = 4;
/// Growth that counts, in transfers a packet, and as a share of the record.
const LEAST: f64 = 0.02;
const SHARE: f64 = 0.15;
/// Places of a path that the table shows.
const PLACES: usize = 6;

/// The options of the command.
#[derive(Default)]
pub(crate) struct Options {
    /// Whether the counts are to become the record.
    pub(crate) record: bool,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Numbers of workers.
    pub(crate) workers: Vec<usize>,
    /// The paths to count; all of them if it is empty.
    pub(crate) cases: Vec<String>,
}

impl Options {
    /// Reads the words behind `cargo xtask contention`; `None` if one of them is unknown.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--record" => options.record = true,
                "--json" => options.json = true,
                "-j" => {
                    let numbers = words.next()?.split(',').map(|word| word.parse().ok());
                    options.workers = numbers.collect::<Option<_>>()?;
                }
                word if word.starts_with('-') => return None,
                case => options.cases.push(case.to_owned()),
            }
        }
        if options.workers.is_empty() {
            options.workers = vec![WORKERS];
        }
        options.workers.iter().all(|n| (2..=64).contains(n)).then_some(options)
    }
}

/// Transfers a packet: by path, by number of workers.
type Counts = BTreeMap<String, BTreeMap<String, f64>>;

/// The count of one path with one number of workers.
struct Contention {
    case: String,
    workers: usize,
    recorded: Option<f64>,
    transfers: f64,
    /// The same where one burst is over before the next begins.
    in_turn: f64,
    places: Vec<Place>,
}

/// Code that takes lines from other workers.
struct Place {
    /// Transfers a packet.
    transfers: f64,
    /// Number of lines.
    lines: usize,
    /// Whether the workers use different bytes of all these lines.
    is_false_sharing: bool,
    code: String,
    data: String,
}

impl Contention {
    /// Whether more lines move than the record says.
    fn is_more(&self) -> bool {
        self.recorded.is_some_and(|recorded| self.transfers > recorded * (1.0 + SHARE) + LEAST)
    }
}

/// Counts, prints, and compares with the record or writes it; an error if more lines move on a
/// path than the record says, or if it does not have the path.
pub(crate) fn contention(options: &Options) -> Result<(), String> {
    let program = program()?;
    let symbols = Symbols::read(&program)?;
    let all = names(&program)?;
    if let Some(unknown) = options.cases.iter().find(|case| !all.contains(case)) {
        return Err(format!("no path is called {unknown}; there are {}", all.join(", ")));
    }
    let cases = if options.cases.is_empty() { all.clone() } else { options.cases.clone() };
    let mut record = read_record()?;
    let mut counted = count_all(&symbols, &program, &cases, &options.workers)?;
    for it in &mut counted {
        it.recorded = record.get(&it.case).and_then(|of| of.get(&it.workers.to_string())).copied();
    }
    print!("{}", if options.json { as_json(&counted)? } else { table(&counted) });
    if !options.record {
        return verdict(&counted);
    }
    for it in counted {
        record.entry(it.case).or_default().insert(it.workers.to_string(), it.transfers);
    }
    record.retain(|case, _| all.contains(case));
    let record = json!({ "tools": tools_here()?, "transfers_per_packet": record });
    let text = serde_json::to_string_pretty(&record).map_err(|e| e.to_string())?;
    fs::write(RECORD, text + "\n").map_err(|e| format!("{RECORD}: {e}"))
}

/// An error if more lines move than the record says, or if the record does not have a path.
fn verdict(counted: &[Contention]) -> Result<(), String> {
    let names = |is: &dyn Fn(&&Contention) -> bool| {
        let name = |it: &Contention| format!("{} with {} workers", it.case, it.workers);
        counted.iter().filter(is).map(name).collect::<Vec<_>>().join(", ")
    };
    let (more, new) = (names(&|it| it.is_more()), names(&|it| it.recorded.is_none()));
    let mut message = String::new();
    if !more.is_empty() {
        message += &format!("more cache lines move between workers than in {RECORD}: {more}\n");
    }
    if !new.is_empty() {
        message += &format!("{RECORD} does not have {new}\n");
    }
    if message.is_empty() {
        return Ok(());
    }
    Err(message + "if that is meant, `cargo xtask contention --record` writes the new counts")
}

/// The names of all paths.
fn names(program: &str) -> Result<Vec<String>, String> {
    let words = ["bench", "scale", "-j", "1", "--bursts", "1", "--json"];
    let (text, _) = crate::steps::output(program, &words)?;
    let records: Vec<Map<String, Value>> =
        serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let name = |record: &Map<String, Value>| record.get("case")?.as_str().map(str::to_owned);
    Ok(records.iter().filter_map(name).collect())
}

/// Counts all paths, on all processors.
fn count_all(
    symbols: &Symbols,
    program: &str,
    cases: &[String],
    workers: &[usize],
) -> Result<Vec<Contention>, String> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (next, counted) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases.len()) {
            scope.spawn(|| {
                let take = || next.lock().ok().and_then(|mut it| it.next());
                while let Some(case) = take() {
                    let counts = count(symbols, program, case, workers);
                    let counts = counts.map_err(|error| format!("{case}: {error}"));
                    let Ok(mut all) = counted.lock() else { break };
                    all.push((case, counts));
                }
            });
        }
    });
    let mut counted = counted.into_inner().map_err(|e| e.to_string())?;
    counted.sort_by_key(|(case, _)| cases.iter().position(|it| it == *case));
    let counted: Result<Vec<_>, _> = counted.into_iter().map(|(_, counts)| counts).collect();
    Ok(counted?.into_iter().flatten().collect())
}

/// Counts one path with all numbers of workers, in one process.
fn count(
    symbols: &Symbols,
    program: &str,
    case: &str,
    workers: &[usize],
) -> Result<Vec<Contention>, String> {
    let bursts = WARM_UP + BURSTS;
    let extent = |&threads| Extent { threads, bursts, warm_up: WARM_UP };
    let reader = Reader::new(workers.iter().map(extent).collect());
    let numbers = workers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let bursts = bursts.to_string();
    let words = ["bench", "scale", "--case", case, "-j", &numbers, "--bursts", &bursts];
    let mut child = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--trace-sched=yes", "--fair-sched=yes"])
        .arg(program)
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run valgrind: {e}"))?;
    let trace = child.stderr.take().ok_or("no trace")?;
    let id = child.id();
    let read = reader.read(BufReader::with_capacity(1 << 16, trace), || {
        let mappings = Mappings::of_process(id)?;
        let places = symbols.places(&mappings)?;
        Ok((mappings, places))
    });
    if read.is_err() {
        // It is ours, and nobody reads its trace any more.
        child.kill().map_err(|e| e.to_string())?;
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    let (counts, other) = read?;
    if !status.success() || counts.len() != workers.len() {
        return Err(format!("{status}, {} of {} counts\n{other}", counts.len(), workers.len()));
    }
    let counts = counts.into_iter().zip(workers);
    counts.map(|(count, &n)| contention_of(symbols, case, n, &count)).collect()
}

/// Transfers a packet, by the code that causes them and the data.
fn contention_of(
    symbols: &Symbols,
    case: &str,
    workers: usize,
    count: &Count,
) -> Result<Contention, String> {
    let packets = (count.bursts * BURST) as f64;
    let codes: BTreeSet<u64> = count.lines.transfers().map(|(it, _)| it.code).collect();
    let functions = symbols.functions(&count.mappings, &codes)?;
    let mut places: HashMap<(String, String), (u64, BTreeSet<u64>)> = HashMap::new();
    for (transfer, times) in count.lines.transfers() {
        let code = functions.get(&transfer.code).cloned().unwrap_or_default();
        let data = symbols.data(&count.mappings, transfer.line);
        let (all, lines) = places.entry((code, data)).or_default();
        *all += times;
        lines.insert(transfer.line);
    }
    let place = |((code, data), (times, lines)): ((String, String), (u64, BTreeSet<u64>))| Place {
        transfers: times as f64 / packets,
        lines: lines.len(),
        is_false_sharing: lines.iter().all(|&line| count.lines.is_false_sharing(line)),
        code,
        data,
    };
    let mut places: Vec<Place> = places.into_iter().map(place).collect();
    places.sort_by(|a, b| b.transfers.total_cmp(&a.transfers).then(a.code.cmp(&b.code)));
    // In thousandths, as the record has them.
    let a_packet = |transfers: u64| (transfers as f64 / packets * 1e3).round() / 1e3;
    let (transfers, in_turn) = (a_packet(count.lines.total()), a_packet(count.in_turn.total()));
    Ok(Contention { case: case.into(), workers, recorded: None, transfers, in_turn, places })
}

/// The counts of the record; empty if there is none.
fn read_record() -> Result<Counts, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{RECORD}: {e}");
    let text = match fs::read_to_string(RECORD) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(e) => return Err(wrong(&e)),
    };
    let mut record: Value = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    serde_json::from_value(record["transfers_per_packet"].take()).map_err(|e| wrong(&e))
}

fn as_json(counted: &[Contention]) -> Result<String, String> {
    let place = |it: &Place| {
        json!({
            "transfers_per_packet": it.transfers,
            "lines": it.lines,
            "false_sharing": it.is_false_sharing,
            "code": it.code,
            "data": it.data,
        })
    };
    let record = |it: &Contention| {
        json!({
            "case": it.case,
            "workers": it.workers,
            "transfers_per_packet": it.transfers,
            "in_turn": it.in_turn,
            "recorded": it.recorded,
            "places": it.places.iter().map(place).collect::<Vec<_>>(),
        })
    };
    let records: Vec<Value> = counted.iter().map(record).collect();
    serde_json::to_string_pretty(&records).map(|text| text + "\n").map_err(|e| e.to_string())
}

fn table(counted: &[Contention]) -> String {
    let mut text = format!(
        "{:<20} {:>7} {:>10} {:>10} {:>10}\n",
        "case", "workers", "recorded", "counted", "in turn"
    );
    // Writing to a string cannot fail.
    for it in counted {
        let recorded = it.recorded.map_or("-".into(), |transfers| format!("{transfers:.3}"));
        let mark = if it.is_more() { " (!)" } else { "" };
        _ = writeln!(
            text,
            "{:<20} {:>7} {recorded:>10} {:>10.3} {:>10.3}{mark}",
            it.case, it.workers, it.transfers, it.in_turn
        );
        for Place { transfers, lines, is_false_sharing, code, data } in
            it.places.iter().take(PLACES)
        {
            let kind = if *is_false_sharing { ", bytes side by side" } else { "" };
            let lines = if *lines == 1 { "1 line".into() } else { format!("{lines} lines") };
            _ = writeln!(text, "    {transfers:>8.3} {code}: {lines} of {data}{kind}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(recorded: Option<f64>, transfers: f64) -> Contention {
        let places = Vec::new();
        Contention { case: "router".into(), workers: 4, recorded, transfers, in_turn: 0.5, places }
    }

    #[test]
    fn a_path_that_becomes_contended_fails() {
        assert_eq!(verdict(&[counted(Some(0.0), 0.01), counted(Some(5.0), 5.7)]), Ok(()));
        let message = verdict(&[counted(Some(0.0), 0.03), counted(None, 0.0)]).unwrap_err();
        assert!(message.contains("xtask/contention.json: router with 4 workers\n"), "{message}");
        assert!(message.contains("does not have router with 4 workers\n"), "{message}");
    }

    #[test]
    fn tables_have_places() {
        let place = Place {
            transfers: 1.0,
            lines: 2,
            is_false_sharing: true,
            code: "f (a.rs:1)".into(),
            data: "heap".into(),
        };
        let it = Contention { places: vec![place], ..counted(Some(0.0), 1.0) };
        let text = table(&[it]);
        assert!(
            text.contains("router                     4      0.000      1.000      0.500 (!)\n"),
            "{text}"
        );
        assert!(text.contains("1.000 f (a.rs:1): 2 lines of heap, bytes side by side\n"), "{text}");
    }

    #[test]
    fn words_choose_paths_and_workers() {
        let options = Options::parse(&["-j", "2,4", "nat", "--json"]).unwrap();
        assert_eq!((options.workers, options.cases), (vec![2, 4], vec!["nat".to_owned()]));
        assert_eq!(Options::parse(&[]).unwrap().workers, [WORKERS]);
        assert!(Options::parse(&["-j", "1"]).is_none());
        assert!(Options::parse(&["--recrod"]).is_none());
    }
}
