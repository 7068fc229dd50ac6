//! The commands of `castanet`.

use crate::program::{RunResult, castanet, folder, root};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The commands that users call.
pub(crate) const COMMANDS: [&str; 14] = [
    "run",
    "check",
    "explain",
    "build",
    "graph",
    "flatten",
    "pretty",
    "elements",
    "element",
    "splitbox",
    "tenants",
    "install-links",
    "completions",
    "man",
];

const FIVE: &str = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard";

/// Standard output of a successful run.
fn out(words: &[&str]) -> String {
    let RunResult { status, out, err } = castanet(words, b"");
    assert_eq!(status, Some(0), "{words:?}\n{err}");
    out
}

/// Status and both outputs at once.
fn all(words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let result = castanet(words, input.as_bytes());
    (result.status, result.out, result.err)
}

#[test]
fn help_and_version() {
    assert_eq!(out(&["--help"]), include_str!("help.txt"));
    assert_eq!(out(&["--version"]), concat!("castanet ", env!("CARGO_PKG_VERSION"), "\n"));
    for command in COMMANDS {
        let help = out(&[command, "--help"]);
        assert!(help.contains(&format!("Usage: castanet {command} ")), "{help}");
        assert!(out(&[command, "-h"]).contains(&format!("Usage: castanet {command} ")));
    }
}

#[test]
fn wrong_command_lines_end_with_2() {
    for words in [&["frobnicate"][..], &[], &["run", "--frob"], &["bench"]] {
        let (status, out, err) = all(words, "");
        assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}\n{err}");
        assert!(err.contains("Usage: castanet"), "{err}");
    }
    let nothing = "castanet: no configuration: name a file or give one with -e\n";
    assert_eq!(all(&["check"], ""), (Some(2), String::new(), nothing.into()));
    let twice = "castanet: more than one configuration\n";
    assert_eq!(all(&["check", "a", "b"], ""), (Some(2), String::new(), twice.into()));
}

#[test]
fn run_prints_handlers() {
    let running = "castanet: running\n".to_owned();
    let one = all(&["run", "-e", FIVE, "--handler", "c.count"], "");
    assert_eq!(one, (Some(0), "5\n".into(), running.clone()));
    let two = all(&["run", "-e", FIVE, "--handler", "c.count", "--handler", "c.class"], "");
    assert_eq!(two, (Some(0), "c.count:\n5\n\nc.class:\nCounter\n\n".into(), running));
    let wrong = all(&["run", "-e", FIVE, "--handler", "c.cout"], "");
    let message = "castanet: --handler c.cout: 'c :: Counter' has no read handler 'cout'; did you \
                   mean 'count'?\n";
    assert_eq!(wrong, (Some(1), String::new(), message.into()));
}

#[test]
fn run_takes_values_for_variables() {
    let text = "InfiniteSource(LIMIT $n, STOP true) -> c :: Counter -> Discard";
    assert_eq!(out(&["run", "-e", text, "n=7", "--handler", "c.count"]), "7\n");
    let result = castanet(&["run", "-", "n=8", "--handler", "c.count"], text.as_bytes());
    assert_eq!((result.status, result.out.as_str()), (Some(0), "8\n"), "{}", result.err);
}

#[test]
fn values_for_variables_that_there_are_not_are_errors() {
    let text = "InfiniteSource(LIMIT ${packets-5}, STOP true) -> c :: Counter -> Discard";
    for command in ["run", "check", "explain"] {
        let (status, out, err) = all(&[command, "-e", text, "pakcets=7"], "");
        assert_eq!(status, Some(1), "{command}: {out}{err}");
        let message = "pakcets=7: the configuration has no variable 'pakcets'";
        assert!(err.contains(message), "{command}: {err}");
        assert!(err.contains("did you mean 'packets'?"), "{command}: {err}");
    }
    // Click takes it silently.
    let words = ["-e", text, "pakcets=7", "-h", "c.count"];
    let RunResult { status, out, err } = crate::program::click(&words, b"");
    assert_eq!((status, out.as_str()), (Some(0), "5\n"), "{err}");
    assert!(err.contains("warning: pakcets=7: the configuration has no variable"), "{err}");
    let words = ["-w", "-e", text, "pakcets=7"];
    assert_eq!(crate::program::click(&words, b"").err, "");
    // Names that are put together, and those of definitions, are known.
    let text = "define($a 3, $n1 4); InfiniteSource(LIMIT ${n$x}, STOP true) -> Discard";
    assert_eq!(all(&["check", "-e", text, "a=1", "n1=3", "x=1"], "").0, Some(0));
}

#[test]
fn run_takes_options_in_all_their_forms() {
    for words in [
        &["-e", FIVE, "-q", "-j", "2"][..],
        &["--expression", FIVE, "--quiet", "--threads", "2", "--pin"],
        &["-e", FIVE, "-q", "--burst", "1", "--frames", "64", "--simtime"],
        &["-e", FIVE, "-q", "--burst", "0", "--frames", "0"],
    ] {
        let words = [&["run", "--handler", "c.count"], words].concat();
        assert_eq!(all(&words, ""), (Some(0), "5\n".into(), String::new()), "{words:?}");
    }
    // Only who may be replaced has the handler that does it.
    let text = "c :: Script(writeq hotconfig \"c :: Counter; Script(wait 0, stop); Idle -> c -> Discard\")";
    for option in ["-R", "--allow-reconfigure"] {
        let words = ["run", "-q", option, "-e", text, "--handler", "c.class"];
        assert_eq!(all(&words, ""), (Some(0), "Counter\n".into(), String::new()));
    }
    let ends = "c :: Script(write hotconfig \"\", stop)";
    let (status, _, err) = all(&["run", "-q", "-e", ends], "");
    assert_eq!(status, Some(0));
    assert!(err.contains("no write handler 'hotconfig'"), "{err}");
    let slow = "RatedSource(RATE 100) -> c :: Counter -> Discard; Script(wait 300ms, stop)";
    let words = ["run", "-q", "-e", slow, "--watch", "--json", "--interval", "0.01"];
    assert!(out(&words).lines().count() > 2, "{}", out(&words));
}

#[test]
fn texts_come_and_go_by_long_options_too() {
    let file = folder("castanet").join("long.svg");
    let to = ["--output", file.to_str().unwrap()];
    for words in [&["graph"][..], &["graph", "--dot"], &["flatten"], &["pretty"]] {
        let want = out(&[words, &["-e", FIVE]].concat());
        assert_eq!(out(&[words, &["--expression", FIVE]].concat()), want, "{words:?}");
        assert_eq!(out(&[words, &["--expression", FIVE], &to].concat()), "", "{words:?}");
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written == want, "{words:?}\n{written}\n{want}");
    }
    let right = "right: 3 elements, 2 connections\n";
    assert_eq!(out(&["check", "--expression", FIVE]), right);
    let two = out(&["explain", "--expression", FIVE, "--threads", "2"]);
    assert_eq!(out(&["explain", "-e", FIVE, "-j", "2"]), two);
    assert_ne!(out(&["explain", "-e", FIVE]), two);
}

#[test]
fn run_watches() {
    let words = ["run", "-e", FIVE, "--watch", "--json"];
    let text = out(&words);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let elements = last["elements"].as_array().unwrap();
    assert_eq!(elements.len(), 2, "{text}");
    for row in elements {
        assert_eq!((&row["packets"], &row["drops"]), (&5.into(), &0.into()), "{text}");
    }
}

#[test]
fn check_says_right() {
    assert_eq!(out(&["check", "-e", FIVE]), "right: 3 elements, 2 connections\n");
    let router = out(&["check", "conf/router.click"]);
    assert!(router.starts_with("right: "), "{router}");
    assert_eq!(out(&["check", "--json", "-e", FIVE]), "[]\n");
}

const WRONG: &str = "InfiniteSource(LIMIT 5, STOP true)\n  -> Qeue(5) -> Discard;\n";

#[test]
fn check_points_at_everything_wrong() {
    let undeclared = "\
error: undeclared element 'Qeue'
 --> <stdin>:2:6
  |
2 |   -> Qeue(5) -> Discard;
  |      ^^^^
  |
  = help: did you mean 'Queue'?
";
    assert_eq!(all(&["check", "-"], WRONG), (Some(1), String::new(), undeclared.into()));
    let arguments = "\
error: Queue@2 :: Queue: CAPACITY: `five` is not a number
 --> <stdin>:1:15
  |
1 | Idle -> Queue(five, six) -> Discard
  |               ^^^^

error: Queue@2 :: Queue: `six` is one argument too many
 --> <stdin>:1:21
  |
1 | Idle -> Queue(five, six) -> Discard
  |                     ^^^
";
    let answer = all(&["check", "-"], "Idle -> Queue(five, six) -> Discard\n");
    assert_eq!(answer, (Some(1), String::new(), arguments.into()));
    let both = "Idle -> Strip(fourteen) -> Queue(-1) -> Discard;\nIdle -> Paint(256) -> Discard";
    let (_, _, err) = all(&["check", "-e", both], "");
    for part in ["fourteen", "-1", "256", "config:1:", "config:2:"] {
        assert!(err.contains(part), "{part} is not in\n{err}");
    }
    let missing = "error: no-such.click: No such file or directory\n";
    assert_eq!(all(&["check", "no-such.click"], ""), (Some(1), String::new(), missing.into()));
}

#[test]
fn check_gives_the_same_as_data() {
    let (status, out, err) = all(&["check", "--json", "-"], WRONG);
    assert_eq!((status, err.as_str()), (Some(1), ""));
    let found: Value = serde_json::from_str(&out).unwrap();
    let want = serde_json::json!([{
        "severity": "error", "file": "<stdin>", "line": 2, "column": 6,
        "message": "undeclared element 'Qeue'", "help": "did you mean 'Queue'?"
    }]);
    assert_eq!(found, want);
}

/// The names that a flat configuration declares.
fn names(flat: &str) -> Vec<&str> {
    let declared = flat.lines().take_while(|line| !line.is_empty());
    declared.filter_map(|line| Some(line.split_once(" :: ")?.0)).collect()
}

#[test]
fn explain_shows_where_packets_go_one_at_a_time() {
    let calls = "i :: InfiniteSource -> Counter(COUNT_CALL 1 stop) -> d :: Discard";
    let text = castanet(&["explain", "-e", calls], b"").out;
    let part = text.split("one packet at a time").nth(1).expect("a step");
    let part = part.split("rows of").next().unwrap_or_default();
    assert!(part.contains("i :: InfiniteSource") && !part.contains("d :: Discard"), "{text}");
    assert!(!castanet(&["explain", "-e", FIVE], b"").out.contains("one packet at a time"));
    let exact = castanet(&["explain", "--exact", "-e", calls], b"").out;
    let part = exact.split("one packet at a time, for Click's order").nth(1).expect("a step");
    assert!(part.split("rows of").next().unwrap_or_default().contains("d :: Discard"), "{exact}");
}

#[test]
fn accounts_are_explained_and_charged() {
    let config = "a :: { s :: RatedSource(RATE 10000, LIMIT 2000) -> Discard };
                  b :: { s :: RatedSource(RATE 10000, LIMIT 2000) -> Discard };
                  x :: CPUAccount(a, GUARANTEE 20%, LIMIT 30%, DELAY 1ms); CPUAccount(b);
                  DriverManager(wait 0.3s, stop)";
    let text = castanet(&["explain", "-e", config], b"").out;
    let part = text.split("accounts of processor time").nth(1).expect("a step");
    assert!(part.contains("a: at least 20.0 % of each worker, at most 30.0 %, waits at most 1ms"));
    assert!(part.contains("b: at least 0.0 % of each worker, no limit\n"), "{part}");
    let json = castanet(&["explain", "--json", "-e", config], b"").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let tasks: Vec<&Value> = (0..3).map(|n| &json["accounts"][n]["tasks"]).collect();
    assert_eq!(tasks, [&json!([]), &json!(["a/s"]), &json!(["b/s"])]);

    let run = castanet(&["run", "--quiet", "--handler", "accounts", "-e", config], b"");
    let rows: Vec<Vec<&str>> = run.out.lines().map(|line| line.split('\t').collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).filter(|name| name.len() == 1).collect();
    assert_eq!(names, ["-", "a", "b"], "{}{}", run.out, run.err);
    for row in rows.iter().filter(|row| ["a", "b"].contains(&row[0])) {
        let time: f64 = row[3].parse().unwrap();
        assert!(time > 0.0 && row[6] != "0", "{}", run.out);
    }
}

#[test]
fn explain_shows_every_step() {
    let text = out(&["explain", "conf/router.click", "-j", "2"]);
    let headings: Vec<&str> =
        text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
    let want = [
        "1. parsed",
        "2. compound elements expanded",
        "3. ports resolved: push, pull",
        "4. what each edge carries",
        "5. devices, queues and workers assigned",
        "6. frames for devices, and for packets that are kept",
        "7. thread vectors: which workers reach what",
        "8. rows of elements that run as one pass",
    ];
    assert_eq!(headings, want);
    let steps: Vec<&str> = want.iter().map(|title| text.split(title).nth(1).unwrap()).collect();
    let flat = out(&["flatten", "conf/router.click"]);
    for name in names(&flat) {
        let ports = steps[2].contains(&format!("  {name} :: "));
        assert!(ports || name.starts_with("AddressInfo"), "{name} has no ports in\n{}", steps[2]);
    }
    assert!(steps[3].contains("push, carries ip\n"), "{}", steps[3]);
    assert!(steps[7].contains("side0/Strip@"), "{}", steps[7]);
    assert!(steps[4].contains("worker 0: ") && steps[4].contains("worker 1: "), "{}", steps[4]);
}

#[test]
fn explain_lists_tasks_by_worker_as_json() {
    let config = "i :: InfiniteSource -> q :: Queue -> u :: Unqueue -> d :: Discard;
                  j :: InfiniteSource -> q; StaticThreadSched(j 1)";
    let text = out(&["explain", "-j", "2", "--json", "-e", config]);
    let output: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(output["full_push"], false);
    let tasks: Vec<(&str, &str)> = output["workers"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|worker| worker["tasks"].as_array().unwrap())
        .map(|task| (task["element"].as_str().unwrap(), task["why"].as_str().unwrap()))
        .collect();
    let fewest = "the worker with the fewest tasks";
    let want = [("i", fewest), ("u", fewest), ("j", "StaticThreadSched says so")];
    assert_eq!(tasks, want);
    let reached = output["elements"].as_array().unwrap();
    let workers = |name: &str| &reached.iter().find(|it| it["element"] == name).unwrap()["workers"];
    assert_eq!((workers("q"), workers("d")), (&serde_json::json!([0, 1]), &serde_json::json!([0])));
    assert_eq!(output["devices"], serde_json::json!([]));
}

#[test]
fn workers_keep_to_the_cores_that_are_named() {
    let config = "InfiniteSource -> Discard";
    let text = out(&["explain", "-j", "3", "--affinity", "1,0", "-e", config]);
    for line in
        ["worker 0: 1 task; core 1, ", "worker 1: 0 tasks; core 0, ", "worker 2: 0 tasks; core 1, "]
    {
        assert!(text.contains(line), "{text}");
    }
    let RunResult { status, err, .. } = castanet(&["run", "--affinity", "2-1", "-e", config], b"");
    assert_eq!(status, Some(2));
    assert!(err.contains("this is no list of cores such as 0,4-7"), "{err}");
}

#[test]
fn graph_draws_every_element() {
    let file = folder("graph").join("router.svg");
    let path = file.to_str().unwrap();
    assert_eq!(out(&["graph", "conf/router.click", "-o", path]), "");
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") || svg.starts_with("<?xml"), "{}", &svg[..80]);
    assert_eq!(svg, out(&["graph", "conf/router.click"]));
    assert_eq!(svg.matches(">DecIPTTL<").count(), 3, "one for each interface");
    let dot = out(&["graph", "conf/router.click", "--dot"]);
    assert!(dot.starts_with("digraph "), "{dot}");
    let flat = out(&["flatten", "conf/router.click"]);
    assert!(names(&flat).len() > 60, "{flat}");
    for name in names(&flat) {
        assert!(svg.contains(name), "{name} is not in the drawing");
        assert!(dot.contains(name), "{name} is not in\n{dot}");
    }
    let gv = folder("graph").join("router.gv");
    assert_eq!(out(&["graph", "conf/router.click", "-o", gv.to_str().unwrap()]), "");
    assert_eq!(std::fs::read_to_string(gv).unwrap(), dot);
}

#[test]
fn flat_and_pretty_texts_are_stable() {
    let mut files = vec![root().join("conf/router.click"), root().join("conf/router-pcap.click")];
    let examples = std::fs::read_dir(root().join("conf/examples")).unwrap();
    files.extend(examples.map(|entry| entry.unwrap().path()));
    for file in files {
        for command in ["flatten", "pretty"] {
            let once = out(&[command, file.to_str().unwrap()]);
            assert!(!once.is_empty(), "{command} {}", file.display());
            let twice = castanet(&[command, "-"], once.as_bytes());
            assert_eq!(twice.out, once, "{command} {}\n{}", file.display(), twice.err);
        }
    }
    let text = "elementclass A{input->Null->output}a::A;Idle->a->Discard";
    let flat = "\
Idle@2 :: Idle;
Discard@3 :: Discard;
a/Null@1 :: Null;

Idle@2 -> a/Null@1
    -> Discard@3;
";
    assert_eq!(out(&["flatten", "-e", text]), flat);
    assert_eq!(out(&["flatten", "-e", text, "-o", "-"]), flat);
    let pretty = "\
elementclass A { input -> Null -> output }
a :: A;
Idle -> a -> Discard;
";
    assert_eq!(out(&["pretty", "-e", text]), pretty);
}

/// Every class there is.
fn classes() -> Vec<&'static str> {
    let io = castanet_io::elements::CLASSES.iter().chain(castanet_middlebox::CLASSES);
    let io = io.chain(castanet_splitbox::CLASSES).chain(castanet_tenants::CLASSES);
    let rooms = castanet_elements::ROOMS.iter().flat_map(|(_, classes)| classes.iter());
    rooms.chain(io).map(|class| class.spec.class).collect()
}

/// WebAssembly is in programs that were built with it.
#[cfg(not(feature = "wasm"))]
#[test]
fn an_absent_class_says_how_to_build_with_it() {
    let refused = castanet(&["check", "-e", "Idle -> WasmElement(a.wasm) -> Discard"], b"");
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("unknown element class 'WasmElement'"), "{}", refused.err);
    let build = "`cargo build --release --package castanet --features wasm`";
    assert!(refused.err.contains(build), "{}", refused.err);
}

#[test]
fn elements_lists_every_class_once() {
    let text = out(&["elements"]);
    let listed = text.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    assert_eq!(listed.collect::<Vec<_>>(), classes());
    assert_eq!(classes().iter().collect::<BTreeSet<_>>().len(), classes().len());
    let data: Value = serde_json::from_str(&out(&["elements", "--json"])).unwrap();
    let rows = data.as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["class"].as_str().unwrap()).collect::<Vec<_>>(),
        classes()
    );
    assert!(rows.iter().all(|row| row["summary"].as_str().unwrap().ends_with('.')));
}

#[test]
fn element_shows_the_page_of_the_manual() {
    let page = std::fs::read_to_string(root().join("docs/elements/DecIPTTL.md")).unwrap();
    assert_eq!(out(&["element", "DecIPTTL"]), page);
    let answer = all(&["element", "DecIPTL"], "");
    let message = "castanet: no element class DecIPTL; did you mean DecIPTTL?\n";
    assert_eq!(answer, (Some(1), String::new(), message.into()));
}

#[test]
fn bench_tenants_prints_rates_and_shares() {
    let words = "bench tenants --case overhead,limit --rounds 1 --milliseconds 100 --json";
    let run = castanet(&words.split(' ').collect::<Vec<_>>(), b"");
    assert_eq!(run.status, Some(0), "{}", run.err);
    let records: Value = serde_json::from_str(&run.out).unwrap();
    let records = records.as_array().unwrap();
    let of = |case: &str| records.iter().filter(|record| record["case"] == case).count();
    assert_eq!((of("overhead"), of("limit")), (6, 6), "{}", run.out);
    for record in records.iter().filter(|record| record["case"] == "limit") {
        assert_eq!(record["limit"], 0.15);
        // The limit holds however slow the machine is; it is the least where others run.
        let share = record["share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 0.2, "{record}");
    }
    let words = ["bench", "tenants", "--case", "overhead", "--rounds", "1", "--milliseconds", "5"];
    let text = out(&words);
    assert!(text.contains("4 x 64 packets, virtual devices, accounts"), "{text}");
}

#[test]
fn bench_models_gives_records() {
    let words = "bench models --case pipeliner,full-push-2-workers --rounds 1 --milliseconds 5";
    let text = out(&words.split(' ').chain(["--json"]).collect::<Vec<_>>());
    let records: Value = serde_json::from_str(&text).unwrap();
    let output = |r: &Value| (r["case"].as_str().unwrap().to_owned(), r["workers"].as_u64());
    let cases: Vec<_> = records.as_array().unwrap().iter().map(output).collect();
    let models = [("full-push", 1), ("pipeliner", 2), ("full-push-2-workers", 2)];
    assert_eq!(cases, models.map(|(case, workers)| (case.to_owned(), Some(workers))));
    for record in records.as_array().unwrap() {
        assert_eq!(record["reference"], "full-push");
        assert!(record["lost"].as_f64().is_some_and(|lost| (0.0..1.0).contains(&lost)), "{text}");
        for key in ["mpps", "ns_per_packet", "reference_mpps"] {
            assert!(record[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {text}");
        }
    }
}

#[test]
fn bench_paths_runs_each_path_to_its_end() {
    let text = out(&["bench", "paths", "--packets", "640", "--json"]);
    let records: Value = serde_json::from_str(&text).unwrap();
    let records = records.as_array().unwrap();
    assert!(records.len() >= 20, "{text}");
    for record in records {
        // Packets in use come round in bursts.
        let packets = record["packets"].as_u64().unwrap();
        assert!((640..=1024).contains(&packets), "{record}");
        assert!(record["ns_per_packet"].as_f64().is_some_and(|ns| ns > 0.0), "{record}");
    }
}

#[test]
fn bench_shared_gives_records() {
    let words = "bench shared --case nothing,rewriter,new-flows --flows 600 --rounds 1";
    let words = words.split(' ').chain(["--milliseconds", "20", "--json"]);
    let text = out(&words.collect::<Vec<_>>());
    let records: Value = serde_json::from_str(&text).unwrap();
    let output = |r: &Value| (r["case"].as_str().unwrap().to_owned(), r["workers"].as_u64());
    let cases: Vec<_> = records.as_array().unwrap().iter().map(output).collect();
    let wanted = ["nothing", "rewriter", "new-flows"];
    let both = wanted.map(|case| [1, 2].map(|workers| (case.to_owned(), Some(workers))));
    assert_eq!(cases, both.concat());
    for record in records.as_array().unwrap() {
        assert_eq!((&record["reference"], &record["flows"]), (&"one worker".into(), &600.into()));
        for key in ["mpps", "ns_per_packet", "reference_mpps"] {
            assert!(record[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {text}");
        }
    }
}

#[test]
fn bench_shared_packets_gives_records() {
    let words = "bench shared-packets --bytes 64,700 --frames 128 --rounds 1 --milliseconds 5";
    let text = out(&words.split(' ').chain(["--json"]).collect::<Vec<_>>());
    let records: Value = serde_json::from_str(&text).unwrap();
    let record = |r: &Value| (r["case"].as_str().unwrap().to_owned(), r["bytes"].as_u64());
    let cases: Vec<_> = records.as_array().unwrap().iter().map(record).collect();
    let names = castanet_bench::shared_packets::names();
    let both = names.map(|case| [64, 700].map(|bytes| (case.to_owned(), Some(bytes))));
    assert_eq!(cases, both.concat());
    for record in records.as_array().unwrap() {
        assert_eq!(record["frames"], 128);
        for key in ["ns_per_packet", "copy_ns", "ratio"] {
            assert!(record[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {text}");
        }
    }
}

#[test]
fn bench_flows_gives_records() {
    let words = "bench flows --flows 6400,64 -j 2 --rounds 1 --milliseconds 1 --json";
    let text = out(&words.split(' ').collect::<Vec<_>>());
    let records: Value = serde_json::from_str(&text).unwrap();
    let output = |r: &Value| (r["case"].as_str().unwrap().to_owned(), r["flows"].as_u64());
    let cases: Vec<_> = records.as_array().unwrap().iter().map(output).collect();
    let names = ["insert", "find", "find-one", "absent", "expire"];
    let of = |flows| names.map(|name| (name.to_owned(), Some(flows)));
    assert_eq!(cases, [of(6400), of(64)].concat());
    for record in records.as_array().unwrap() {
        assert_eq!((&record["workers"], &record["reference"]), (&2.into(), &"hash map".into()));
        for key in ["ns", "cycles", "longest_us", "bytes", "reference_ns"] {
            assert!(record[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {text}");
        }
    }
}

#[test]
fn man_pages_and_completions() {
    let dir = folder("man");
    assert_eq!(out(&["man", dir.to_str().unwrap()]), "");
    for (page, word) in [("castanet.1", "Exit status"), ("castanet-run.1", "simtime")] {
        let text = std::fs::read_to_string(dir.join(page)).unwrap();
        assert!(text.contains(".TH ") && text.contains(word), "{page}:\n{text}");
    }
    let bash = out(&["completions", "bash"]);
    assert!(bash.contains("complete -F _castanet") && bash.contains("--simtime"), "{bash}");
    for shell in ["zsh", "fish"] {
        assert!(out(&["completions", shell]).contains("flatten"));
    }
}

#[test]
fn explain_lists_state_that_workers_share() {
    let config = "a :: InfiniteSource -> MarkIPHeader -> c :: Counter -> r :: RoundRobinSwitch
                      -> k :: Counter(COUNT_CALL 9 stop)
                      -> s :: Script(TYPE PACKET, return 0)
                      -> m :: Middlebox(add-stateful proto udp accept)
                      -> n :: IPRewriter(drop) -> Discard;
                  b :: InfiniteSource -> MarkIPHeader -> c; r[1] -> Discard;
                  StaticThreadSched(a 0, b 1)";
    let text = out(&["explain", "-j", "2", "-e", config]);
    for line in [
        "  c  {0,1}  several workers: each has its own state, handlers add them up",
        "  r  {0,1}  several workers: they have one state, locked per burst",
        "  k  {0,1}  several workers: they have one state, locked per burst",
        "  s  {0,1}  several workers: each has its own state, handlers add them up",
        "  m  {0,1}  several workers: all read one state at a time, one changes it",
        "  n  {0,1}  several workers: all read one state at a time, one changes it",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn explain_says_which_tasks_may_move() {
    let config = "BalancedThreadSched; i :: InfiniteSource -> q :: Queue -> u :: Unqueue
                      -> c :: Counter -> d :: Discard; j :: InfiniteSource -> d;
                  StaticThreadSched(j 1)";
    let text = out(&["explain", "-j", "2", "-e", config]);
    for line in [
        "asks i :: InfiniteSource  (the worker with the fewest tasks; may move)",
        "asks j :: InfiniteSource  (StaticThreadSched says so; stays)",
        "  c  {0,1}  one of them at a time: it moves with its task",
        "  d  {0,1}  several workers: each has its own state, handlers add them up",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let output: Value =
        serde_json::from_str(&out(&["explain", "-j", "2", "--json", "-e", config])).unwrap();
    let all = |of: &str| output[of].as_array().unwrap().clone();
    let tasks: Vec<Value> =
        all("workers").iter().flat_map(|it| it["tasks"].as_array().unwrap().clone()).collect();
    let may =
        |name: &str| tasks.iter().find(|it| it["element"] == name).unwrap()["may_move"] == true;
    assert!(may("i") && may("u") && !may("j"));
    let elements = all("elements");
    let with = |name: &str| {
        let it = elements.iter().find(|it| it["element"] == name).unwrap();
        it["moves_with"].as_str().unwrap_or("-").to_owned()
    };
    assert_eq!(["i", "q", "u", "c", "d"].map(with), ["i", "-", "u", "u", "-"]);
}
