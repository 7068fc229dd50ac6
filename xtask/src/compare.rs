//! `cargo xtask compare`: a benchmark of the working tree beside that of another commit.
//!
//! Where functions lie in a program changes figures by several per cent, either way, without another
//! instruction. So each side is linked several times, with its functions in another order each time
//! (`--shuffle-sections` of lld), and the programs run in turns on the same machine.

use crate::steps::run;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In how many orders of its functions each side is linked, unless the command says.
pub(crate) const LAYOUTS: usize = 5;
/// How often each program runs.
const TURNS: usize = 3;
/// Fields of a JSON record that together name a row of a benchmark.
const NAMES: [&str; 7] = ["device", "case", "class", "rules", "frames", "workers", "flows"];
/// Fields with the figure of a row, of which the first that a record has counts, and whether more is
/// better.
const FIGURES: [(&str, bool); 3] = [("ns_per_packet", false), ("ns", false), ("mpps", true)];

/// Figures of one row: by side, base first, then by layout, one for each turn.
type Figures = [Vec<Vec<f64>>; 2];

/// Prints, for each row of `castanet bench WORDS`, the middle figure of each side over its layouts
/// and the least and most of them, and how much faster or slower the working tree is than `base`.
pub(crate) fn compare(base: &str, layouts: usize, words: &[&str]) -> Result<(), String> {
    let commit = output("git", &["rev-parse", "--short", &format!("{base}^{{commit}}")])?;
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
    let mut rows = BTreeMap::new();
    for turn in 0..TURNS {
        eprintln!("turn {} of {TURNS}", turn + 1);
        for (layout, programs) in sides[0].iter().zip(&sides[1]).enumerate() {
            for side in [turn % 2, 1 - turn % 2] {
                let program = [programs.0, programs.1][side].display().to_string();
                let words = [&["bench"], words, &["--json"]].concat();
                note(&mut rows, side, layout, &output(&program, &words)?)?;
            }
        }
    }
    print!("{}", table(commit, &rows));
    Ok(())
}

/// Builds the sources in `folder`; the programs, one for each layout, which lie in `into`.
fn programs(folder: &Path, into: &Path, layouts: usize) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", into.display());
    fs::create_dir_all(into).map_err(failed)?;
    // By its name rustc knows what it takes.
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
        // Cargo must not find the program made already.
        run(
            &cargo,
            &["clean", "--release", "--package", "castanet", "--manifest-path", &manifest],
        )?;
    }
    let linker = format!("linker={}", linker.display());
    let what = ["--release", "--package", "castanet", "--bin", "castanet"];
    let words = [&["rustc", "--manifest-path", &manifest], &what[..], &["--", "-C", &linker]];
    run(&cargo, &words.concat())?;
    Ok(programs)
}

/// Standard output of a program that succeeds.
fn output(program: &str, words: &[&str]) -> Result<String, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{program} {}: {why}", words.join(" "));
    let done = Command::new(program).args(words).output().map_err(|e| failed(&e))?;
    if !done.status.success() {
        return Err(failed(&String::from_utf8_lossy(&done.stderr)));
    }
    String::from_utf8(done.stdout).map_err(|e| failed(&e))
}

/// Takes note of what a benchmark has written as JSON.
fn note(
    rows: &mut BTreeMap<(String, usize), Figures>,
    side: usize,
    layout: usize,
    json: &str,
) -> Result<(), String> {
    let records: Vec<Map<String, Value>> = serde_json::from_str(json).map_err(|e| e.to_string())?;
    for record in records {
        let Some((kind, figure)) = FIGURES.iter().enumerate().find_map(|(kind, (name, _))| {
            record.get(*name).and_then(Value::as_f64).map(|figure| (kind, figure))
        }) else {
            continue;
        };
        let names = NAMES.iter().filter_map(|name| record.get(*name)).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let name = names.collect::<Vec<_>>().join(" ");
        let figures = &mut rows.entry((name, kind)).or_default()[side];
        figures.resize_with(figures.len().max(layout + 1), Vec::new);
        figures[layout].push(figure);
    }
    Ok(())
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The rows as people read them.
fn table(commit: &str, rows: &BTreeMap<(String, usize), Figures>) -> String {
    let mut text = format!("{:28} {:>24} {:>24}\n", "", commit, "working tree");
    for ((name, kind), sides) in rows {
        let (unit, more_is_better) = FIGURES[*kind];
        let mut line = format!("{name:28}");
        let middles = sides.each_ref().map(|layouts| {
            let of_layouts: Vec<f64> = layouts.iter().map(|all| middle(all.clone())).collect();
            let least = of_layouts.iter().copied().fold(f64::INFINITY, f64::min);
            let most = of_layouts.iter().copied().fold(0.0, f64::max);
            let all = middle(of_layouts);
            let range = format!("{all:.2} ({least:.2}-{most:.2})");
            // Writing to a string cannot fail.
            _ = write!(line, " {range:>24}");
            all
        });
        let speed = if more_is_better { middles[1] / middles[0] } else { middles[0] / middles[1] };
        let word = if speed < 1.0 { "slower" } else { "faster" };
        _ = writeln!(text, "{line} {unit}, {:.1} % {word}", (speed - 1.0).abs() * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_middle_and_the_faster_one_is_said() {
        let mut rows = BTreeMap::new();
        let io =
            |mpps: f64| format!(r#"[{{"case": "counted", "device": "net_null", "mpps": {mpps}}}]"#);
        let rules = |ns: f64| format!(r#"[{{"case": "nat", "rules": 10, "ns": {ns}}}]"#);
        for (side, layout, mpps) in
            [(0, 0, 60.0), (0, 0, 10.0), (0, 0, 61.0), (0, 1, 50.0), (1, 0, 66.0), (1, 1, 55.0)]
        {
            note(&mut rows, side, layout, &io(mpps)).unwrap();
        }
        note(&mut rows, 0, 0, &rules(50.0)).unwrap();
        note(&mut rows, 1, 0, &rules(62.5)).unwrap();
        let text = table("abc", &rows);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(
            lines[0].starts_with("nat 10 ") && lines[0].ends_with("ns, 20.0 % slower"),
            "{text}"
        );
        assert!(lines[1].starts_with("net_null counted "), "{text}");
        assert!(lines[1].contains(" 60.00 (50.00-60.00) "), "{text}");
        assert!(lines[1].ends_with(" 66.00 (55.00-66.00) mpps, 10.0 % faster"), "{text}");
        assert!(note(&mut rows, 0, 0, "none").is_err());
    }
}
