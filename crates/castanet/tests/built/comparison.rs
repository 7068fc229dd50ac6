//! `castanet` with a configuration and the program that was built of it, seen from outside: the same
//! output of every command, the same packets, the same value of every handler.

use crate::builds;
use crate::worlds::World;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Handlers whose values are times of this machine.
const TIMES: [&str; 4] = ["cycles", "class_cycles.csv", "element_cycles.csv", "load"];

/// Exit status, standard output and standard error.
type Outcome = (Option<i32>, String, String);

/// `castanet` that reads a configuration, and the program that has it.
struct Pair<'a> {
    world: &'a World,
    /// The folders in which they run, with the program by each of its names.
    folders: [PathBuf; 2],
}

impl Pair<'_> {
    fn new(world: &World) -> Pair<'_> {
        // It is built without a value for the captures.
        let settings: Vec<&str> = world.settings.iter().map(String::as_str).collect();
        let built = builds::build(world.name, &world.text, &settings);
        let programs = [env!("CARGO_BIN_EXE_castanet").into(), built];
        let folders = ["plain", "built"].map(|name| world.folder.join(name));
        for (folder, program) in folders.iter().zip(&programs) {
            std::fs::create_dir(folder).unwrap();
            for name in ["castanet", "click"] {
                std::os::unix::fs::symlink(program, folder.join(name)).unwrap();
            }
        }
        Pair { world, folders }
    }

    /// Runs both by this name, with these words and settings.
    fn run(&self, name: &str, words: &[&str], settings: &[&str]) -> [Outcome; 2] {
        [0, 1].map(|n| {
            let mut command = Command::new(self.folders[n].join(name));
            command.current_dir(&self.folders[n]);
            command.args(words).args((n == 0).then_some("-")).args(&self.world.settings);
            command.args(["in=../in.pcap", "out=out"]).args(settings);
            outcome(&mut command, if n == 0 { &self.world.text } else { "" })
        })
    }

    /// The same output of both.
    fn same(&self, name: &str, words: &[&str], settings: &[&str]) -> Outcome {
        let [plain, built] = self.run(name, words, settings);
        let few = &words[..words.len().min(6)];
        let what = format!("{}: {name} {few:?} {settings:?}", self.world.name);
        assert_eq!((plain.0, &plain.2), (built.0, &built.2), "{what}");
        match name {
            "click" => same_text(&what, &sorted(&plain.1), &sorted(&built.1)),
            _ => same_text(&what, &plain.1, &built.1),
        }
        plain
    }
}

fn outcome(command: &mut Command, input: &str) -> Outcome {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Values of handlers, each with its lines in order: tables are hashed with random seeds.
fn sorted(values: &str) -> String {
    let value = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.get_mut(1..).unwrap_or_default().sort_unstable();
        lines.join("\n")
    };
    values.split("\n\n").map(value).collect::<Vec<_>>().join("\n\n")
}

/// Names the first lines that differ: the texts are long.
fn same_text(what: &str, plain: &str, built: &str) {
    let lines = || plain.lines().zip(built.lines()).enumerate();
    let differing = lines().filter(|(_, (plain, built))| plain != built).take(5);
    let list: String = differing
        .map(|(n, (plain, built))| {
            let names = plain.lines().take(n).filter(|line| line.ends_with(':'));
            let above = names.last().unwrap_or_default();
            format!("\nline {n}, below {above}\n  {plain}\n  {built}")
        })
        .collect();
    let counts = (plain.lines().count(), built.lines().count());
    assert!(plain == built, "{what}: {counts:?} lines{list}");
}

/// `explain` without the steps in which the two differ; and the number of rows that run as one pass.
fn explained(text: &str) -> (String, usize) {
    let text = match text.starts_with("built from ") {
        true => text.split_once("\n\n").unwrap().1,
        false => text,
    };
    let title = text.lines().find(|line| line.ends_with("rows of elements that run as one pass"));
    let (before, rows) = text.split_once(title.unwrap()).unwrap();
    (before.to_owned(), rows.lines().filter(|line| line.contains(" -> ")).count())
}

fn says_the_same(pair: &Pair<'_>) {
    for words in [
        &["check"][..],
        &["flatten"],
        &["pretty"],
        &["graph", "--dot"],
        &["explain", "--json"],
        &["explain", "--json", "-j", "2"],
    ] {
        let (status, out, err) = pair.same("castanet", words, &[]);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{words:?}");
        assert!(words[0] == "check" || out.len() > 1000, "{words:?}: {out}");
    }
    let [plain, built] = pair.run("castanet", &["explain"], &[]);
    assert_eq!((plain.0, built.0), (Some(0), Some(0)));
    let [(plain, few), (built, many)] = [explained(&plain.1), explained(&built.1)];
    same_text("explain", &plain, &built);
    assert!(many > few, "{many} rows of the built program, {few} without");
    // Errors, with their places in the text.
    for (words, settings, status) in [
        (&["check"][..], &["nothing=1"][..], 1),
        (&["run"], &["in=/no/such"], 1),
        (&["run", "--nonsense"], &[], 2),
    ] {
        let (is, _, err) = pair.same("castanet", words, settings);
        assert!(is == Some(status) && !err.is_empty(), "{words:?} {settings:?}: {err}");
    }
}

/// The captures that the two have written in their last run. In bursts, paths that meet again may
/// interleave otherwise; `in_order` says that each packet came alone.
fn writes_the_same(pair: &Pair<'_>, in_order: bool) {
    for n in 0..3 {
        let read = |which: usize| std::fs::read(pair.folders[which].join(format!("out-{n}.pcap")));
        let (Ok(plain), Ok(built)) = (read(0), read(1)) else {
            assert!(n == 2 && pair.world.name != "large", "no capture {n}");
            continue;
        };
        let [mut plain, mut built] = [records(&plain), records(&built)];
        if !in_order {
            plain.sort_unstable();
            built.sort_unstable();
        }
        assert!(plain.len() > 20, "{n}: {} packets", plain.len());
        let differing = plain.iter().zip(&built).position(|(plain, built)| plain != built);
        let lengths = (plain.len(), built.len());
        assert!(plain == built, "capture {n}: {lengths:?} packets, from {differing:?} on");
    }
}

/// The packets of a capture, each with its time and length.
fn records(capture: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut all) = (&capture[24..], Vec::new());
    while let Some(len) = rest.get(8..12) {
        let (record, after) =
            rest.split_at(16 + u32::from_ne_bytes(len.try_into().unwrap()) as usize);
        all.push(record);
        rest = after;
    }
    all
}

/// The names of all handlers that can be read, of the router and of the elements.
fn handlers(pair: &Pair<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let readable = |text: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let names =
            lines.filter(|(_, kind)| kind.starts_with('r')).map(|(name, _)| name.to_owned());
        names.filter(|name| !TIMES.contains(&name.as_str())).collect()
    };
    let read = |handler: &str| {
        let (status, out, _) = pair.same("click", &["--simtime", "-h", handler], &[]);
        assert_eq!(status, Some(0), "{handler}");
        out
    };
    (readable(&read("handlers")), readable(&read("*.handlers")))
}

fn counts_the_same(pair: &Pair<'_>) {
    let (global, of_elements) = handlers(pair);
    assert!(global.contains("drops") && of_elements.contains("icounts"), "{of_elements:?}");
    let names = global.into_iter().chain(of_elements.iter().map(|name| format!("*.{name}")));
    let words = names.flat_map(|name| ["-h".to_owned(), name]);
    let words: Vec<String> = std::iter::once("--simtime".to_owned()).chain(words).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (_, out, _) = pair.same("click", &words, &[]);
    let drops = out.lines().skip_while(|line| *line != "drops:").skip(1);
    let drops: Vec<&str> = drops.take_while(|line| !line.is_empty()).collect();
    assert!(drops.len() > 1, "the packets are of few kinds: {drops:?}");
    writes_the_same(pair, false);
    for burst in ["1", "3", "256"] {
        let words = ["run", "--quiet", "--simtime", "--handler", "drops", "--burst", burst];
        let (status, out, _) = pair.same("castanet", &words, &[]);
        assert_eq!(status, Some(0));
        assert!(out.lines().count() > 1, "{out}");
        writes_the_same(pair, burst == "1");
    }
}

fn compare(world: &World) {
    let pair = Pair::new(world);
    says_the_same(&pair);
    counts_the_same(&pair);
}

#[test]
fn a_built_nat_gateway_is_the_same() {
    compare(&World::nat());
}

#[test]
fn a_built_ipv6_router_is_the_same() {
    compare(&World::router6());
}

#[test]
fn a_built_middlebox_is_the_same() {
    compare(&World::middlebox());
}

#[test]
fn a_built_configuration_of_2000_elements_is_the_same() {
    let world = World::large();
    let flat = outcome(
        Command::new(env!("CARGO_BIN_EXE_castanet")).args(["flatten", "-"]).args(&world.settings),
        &world.text,
    );
    assert_eq!((flat.0, flat.2.as_str()), (Some(0), ""));
    let elements = flat.1.lines().filter(|line| line.contains(" :: ")).count();
    assert!(elements >= 2000, "{elements} elements");
    compare(&world);
}
