//! `cargo xtask compare`: compares a benchmark of the working tree with that of another commit.
//!
//! The addresses of functions in a program change the results by several per cent, in either
//! direction, although the instructions are the same. Therefore each side is linked several times
//! with its functions in a different order (`--shuffle-sections` of lld), and the programs run
//! alternately on the same machine.

use crate::steps::{output, run};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Default number of layouts: orders of the functions in which each side is linked.
pub(crate) const LAYOUTS: usize = 5;
/// Number of runs of each program.
const RUNS: usize = 3;
/// Fields of a JSON record that together identify a case of a benchmark.
const KEY_FIELDS: [&str; 8] =
    ["device", "case", "class", "program", "rules", "frames", "workers", "flows"];
/// A field, and its value in records of commits that did not have it.
const NEW_FIELD: (&str, &str) = ("program", "plain");
/// Fields with the result of a case, and whether more is better; the first field that a record has
/// counts.
const RESULT_FIELDS: [(&str, bool); 3] = [("ns_per_packet", false), ("ns", false), ("mpps", true)];

/// Results of one case: by side (base first), then by layout, then by run.
type Results = [Vec<Vec<f64>>; 2];

/// Results by case and index in [`RESULT_FIELDS`].
type Cases = BTreeMap<(String, usize), Results>;

/// Prints for each case of `castanet bench WORDS` the median of each side over its layouts, with
/// the least and the greatest, and how much faster or slower the working tree is than `base`.
pub(crate) fn compare(base: &str, layouts: usize, words: &[&str]) -> Result<(), String> {
    let (commit, _) = output("git", &["rev-parse", "--short", &format!("{base}^{{commit}}")])?;
    let commit = commit.trim();
    let root = std::env::current_dir().map_err(|e| e.to_string())?;
    let folder = root.join("target/compare");
    let clone = folder.join(commit);
    if !clone.exists() {
        let to = clone.display().to_string();
        run("git", &["clone", "--quiet", "--shared", "--no-checkout", ".", &to])?;
        run("git", &["-C", &to, "checkout", "--quiet", "--detach", commit])?;
    }
    let sides = [
        programs(&clone, &folder.join(format!("{commit}-programs")), layouts)?,
        programs(&root, &folder.join("programs"), layouts)?,
    ];
    let mut cases = Cases::new();
    for run in 0..RUNS {
        eprintln!("turn {} of {RUNS}", run + 1);
        for (layout, programs) in sides[0].iter().zip(&sides[1]).enumerate() {
            for side in [run % 2, 1 - run % 2] {
                let program = [programs.0, programs.1][side].display().to_string();
                let words = [&["bench"], words, &["--json"]].concat();
                record(&mut cases, side, layout, &output(&program, &words)?.0)?;
            }
        }
    }
    print!("{}", table(commit, &cases));
    Ok(())
}

/// Builds the sources in `folder`, and returns the programs in `into`, one for each layout.
fn programs(folder: &Path, into: &Path, layouts: usize) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", into.display());
    fs::create_dir_all(into).map_err(failed)?;
    // The name `cc` tells rustc which arguments the linker takes.
    let linker = into.join("cc");
    let text = format!(
        "#!/bin/sh\n# Links a program, and then with its functions in {layouts} other orders.\nset -e\n\
         cc \"$@\"\nfor n in $(seq {layouts}); do\n    \
         cc \"$@\" -Wl,--shuffle-sections=.text*=$n -o {}/castanet-$n\ndone\n",
        into.display()
    );
    let programs: Vec<PathBuf> =
        (1..=layouts).map(|n| into.join(format!("castanet-{n}"))).collect();
    let is_complete = programs.iter().all(|it| it.exists());
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let manifest = folder.join("Cargo.toml").display().to_string();
    if !is_complete || fs::read_to_string(&linker).ok().as_ref() != Some(&text) {
        fs::write(&linker, &text).map_err(failed)?;
        run("chmod", &["+x", &linker.display().to_string()])?;
        // Cargo must link the program again, with the new linker.
        run(
            &cargo,
            &["clean", "--release", "--package", "castanet", "--manifest-path", &manifest],
        )?;
    }
    let linker = format!("linker={}", linker.display());
    let target = ["--release", "--package", "castanet", "--bin", "castanet"];
    let words = [&["rustc", "--manifest-path", &manifest], &target[..], &["--", "-C", &linker]];
    run(&cargo, &words.concat())?;
    Ok(programs)
}

/// Adds the results that a benchmark has written as JSON.
fn record(cases: &mut Cases, side: usize, layout: usize, json: &str) -> Result<(), String> {
    let records: Vec<Map<String, Value>> = serde_json::from_str(json).map_err(|e| e.to_string())?;
    for record in records {
        let Some((kind, result)) =
            RESULT_FIELDS.iter().enumerate().find_map(|(kind, (name, _))| {
                record.get(*name).and_then(Value::as_f64).map(|result| (kind, result))
            })
        else {
            continue;
        };
        let fields = KEY_FIELDS.iter().filter_map(|&name| Some((name, record.get(name)?)));
        let known = fields
            .filter(|(name, value)| (*name, value.as_str()) != (NEW_FIELD.0, Some(NEW_FIELD.1)));
        let names = known.map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let name = names.collect::<Vec<_>>().join(" ");
        let results = &mut cases.entry((name, kind)).or_default()[side];
        results.resize_with(results.len().max(layout + 1), Vec::new);
        results[layout].push(result);
    }
    Ok(())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats the results as a table.
fn table(commit: &str, cases: &Cases) -> String {
    let mut text = format!("{:28} {:>24} {:>24}\n", "", commit, "working tree");
    for ((name, kind), sides) in cases {
        let (unit, more_is_better) = RESULT_FIELDS[*kind];
        let mut line = format!("{name:28}");
        let medians = sides.each_ref().map(|layouts| {
            let by_layout: Vec<f64> = layouts.iter().map(|all| median(all.clone())).collect();
            let least = by_layout.iter().copied().fold(f64::INFINITY, f64::min);
            let most = by_layout.iter().copied().fold(0.0, f64::max);
            let all = median(by_layout);
            let range = format!("{all:.2} ({least:.2}-{most:.2})");
            // Writing to a string cannot fail.
            _ = write!(line, " {range:>24}");
            all
        });
        let speed = if more_is_better { medians[1] / medians[0] } else { medians[0] / medians[1] };
        let word = if speed < 1.0 { "slower" } else { "faster" };
        _ = writeln!(text, "{line} {unit}, {:.1} % {word}", (speed - 1.0).abs() * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_and_the_change_of_speed() {
        let mut cases = Cases::new();
        let io =
            |mpps: f64| format!(r#"[{{"case": "counted", "device": "net_null", "mpps": {mpps}}}]"#);
        let rules = |ns: f64| format!(r#"[{{"case": "nat", "rules": 10, "ns": {ns}}}]"#);
        for (side, layout, mpps) in
            [(0, 0, 60.0), (0, 0, 10.0), (0, 0, 61.0), (0, 1, 50.0), (1, 0, 66.0), (1, 1, 55.0)]
        {
            record(&mut cases, side, layout, &io(mpps)).unwrap();
        }
        record(&mut cases, 0, 0, &rules(50.0)).unwrap();
        record(&mut cases, 1, 0, &rules(62.5)).unwrap();
        let text = table("abc", &cases);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(
            lines[0].starts_with("nat 10 ") && lines[0].ends_with("ns, 20.0 % slower"),
            "{text}"
        );
        assert!(lines[1].starts_with("net_null counted "), "{text}");
        assert!(lines[1].contains(" 60.00 (50.00-60.00) "), "{text}");
        assert!(lines[1].ends_with(" 66.00 (55.00-66.00) mpps, 10.0 % faster"), "{text}");
        assert!(record(&mut cases, 0, 0, "none").is_err());
    }
}
