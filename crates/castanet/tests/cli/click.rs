//! The program by the name `click`, in Click's words.

use crate::program::{click, folder};

const FIVE: &str = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> d :: Counter -> Discard";
const COUNTED: &str = "InfiniteSource(LIMIT $n, STOP true) -> c :: Counter -> Discard\n";

fn all(words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let ran = click(words, input.as_bytes());
    (ran.status, ran.out, ran.err)
}

/// What a run that goes well, without a word to standard error, prints.
fn out(words: &[&str], input: &str) -> String {
    let (status, out, err) = all(words, input);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{words:?}");
    out
}

/// What a run that fails complains of.
fn complaints(words: &[&str]) -> String {
    let (status, out, err) = all(words, "");
    assert_eq!((status, out.as_str()), (Some(1), ""), "{words:?}\n{err}");
    err
}

#[test]
fn configurations_come_from_anywhere() {
    let file = folder("click").join("counted.click");
    std::fs::write(&file, COUNTED).unwrap();
    let file = file.to_str().unwrap();
    for words in [
        &["-e", COUNTED, "n=7", "-h", "c.count"][..],
        &["n=7", "-h", "c.count", "-e", COUNTED],
        &["-f", file, "n=7", "-h", "c.count"],
        &["n=7", file, "-h", "c.count"],
        &["--file", file, "--handler", "c.count", "n=7"],
        &["--expression", COUNTED, "n=7", "--handler=c.count"],
    ] {
        assert_eq!(out(words, ""), "7\n", "{words:?}");
    }
    assert_eq!(out(&["-h", "c.count", "n=7"], COUNTED), "7\n");
    assert_eq!(out(&["-h", "c.count", "n=7", "-"], COUNTED), "7\n");
}

#[test]
fn handlers_print_bare_or_with_their_names() {
    assert_eq!(out(&["-e", FIVE, "-h", "c.count"], ""), "5\n");
    let two = "c.count:\n5\n\nd.class:\nCounter\n\n";
    assert_eq!(out(&["-e", FIVE, "-h", "c.count", "-h", "d.class"], ""), two);
    // A pattern or a class may be several, and so prints names even of one.
    let counters = "c.count:\n5\n\nd.count:\n5\n\n";
    assert_eq!(out(&["-e", FIVE, "-h", "Counter.count"], ""), counters);
    assert_eq!(out(&["-e", FIVE, "-h", "?.count"], ""), counters);
    assert_eq!(out(&["-e", FIVE, "-h", "[^c].count"], ""), "d.count:\n5\n\n");
    let list = "4\nInfiniteSource@1\nc\nd\nDiscard@4\n";
    assert_eq!(out(&["-e", FIVE, "-h", "list"], ""), list);
}

#[test]
fn handlers_that_are_not_there() {
    for (handler, message) in [
        ("c.cout", "no 'c.cout' handler\n"),
        ("x.count", "no element 'x'\n"),
        ("x*.count", "no element matching 'x*'\n"),
        ("c.reset", "'c.reset' is a write handler\n"),
        ("lists", "no 'lists' handler\n"),
    ] {
        assert_eq!(complaints(&["-e", FIVE, "-h", handler]), message);
    }
    let mixed = all(&["-qe", FIVE, "-h", "c.cout", "-h", "c.count"], "");
    assert_eq!(mixed, (Some(1), "c.count:\n0\n\n".into(), "no 'c.cout' handler\n".into()));
}

#[test]
fn exit_handlers_give_the_status() {
    let exit = |handler: &str| all(&["-e", FIVE, "-x", handler], "");
    assert_eq!(exit("c.count"), (Some(5), String::new(), String::new()));
    let text = "exit handler value should be integer\n";
    assert_eq!(exit("c.class"), (Some(255), String::new(), text.into()));
}

#[test]
fn options_and_clusters() {
    // Without a run nothing is counted.
    assert_eq!(out(&["-q", "-e", FIVE, "-h", "c.count"], ""), "0\n");
    assert_eq!(out(&["-qe", FIVE, "-h", "c.count"], ""), "0\n");
    assert_eq!(out(&["-qhc.count", "-e", FIVE], ""), "0\n");
    assert_eq!(out(&["-j", "2", "-e", FIVE, "-h", "c.count"], ""), "5\n");
    assert_eq!(out(&["-j2", "-e", FIVE, "-h", "c.count"], ""), "5\n");
    let flat = "\
Idle@1 :: Idle;
c :: Counter;
Discard@3 :: Discard;

Idle@1 -> c
    -> Discard@3;
";
    assert_eq!(out(&["-qo-", "-e", "Idle -> c :: Counter -> Discard"], ""), flat);
    let file = folder("click").join("flat.click");
    let words = ["-qe", "Idle -> c :: Counter -> Discard", "-o", file.to_str().unwrap()];
    assert_eq!(out(&words, ""), "");
    assert_eq!(std::fs::read_to_string(file).unwrap(), flat);
}

#[test]
fn time_is_printed_in_three_parts() {
    let text = out(&["-t", "-e", FIVE], "");
    let parts: Vec<&str> = text.trim_end().split(' ').collect();
    let [user, system, wall] = parts[..] else { panic!("{text}") };
    let seconds = |part: &str, unit| part.strip_suffix(unit).unwrap().parse::<f64>().unwrap();
    assert!(seconds(user, 'u') >= 0.0 && seconds(system, 's') >= 0.0, "{text}");
    let (minutes, rest) = wall.split_once(':').unwrap();
    assert_eq!((minutes.parse(), rest.len()), (Ok(0), 5), "{text}");
}

#[test]
fn simulated_time_is_the_same_every_time() {
    let text = "TimedSource(INTERVAL 10, LIMIT 3, STOP true) -> SetTimestamp
                -> Print(TIMESTAMP true, MAXLENGTH 0) -> Discard";
    let (status, said, first) = all(&["--simtime", "-e", text], "");
    assert_eq!((status, said.as_str()), (Some(0), ""), "{first}");
    let times: Vec<&str> = first.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(times, ["1000000010.000000", "1000000020.000000", "1000000030.000000"], "{first}");
    assert_eq!(all(&["--simtime", "-e", text], "").2, first);
    let script = "Script(wait 2s, print $(now), stop); Idle -> Discard";
    assert!(out(&["--simtime", "-e", script], "").starts_with("1000000002"));
}

#[test]
fn version_help_and_wrong_words() {
    for word in ["-V", "-v", "--version"] {
        assert!(out(&[word], "").starts_with("click (Click) 2.1"));
    }
    let help = out(&["--help"], "");
    assert!(help.contains("Usage: click [OPTION]... [ROUTERFILE]"), "{help}");
    let twice = "router configuration specified twice\n\
                 Usage: click [OPTION]... [ROUTERFILE]\n\
                 Try 'click --help' for more information.\n";
    assert_eq!(complaints(&["-e", "", "also.click"]), twice);
    assert!(complaints(&["--frobnicate"]).contains("'--frobnicate'"));
    let (status, counted, err) = all(&["-e", COUNTED, "n=1", "n=2", "-h", "c.count"], "");
    assert_eq!((status, counted.as_str()), (Some(0), "1\n"));
    assert_eq!(err, "parameter 'n' multiply defined\n");
}

#[test]
fn a_configuration_without_elements_ends() {
    let empty = "warning: config: configuration has no elements, exiting\n";
    assert_eq!(all(&["-e", ""], ""), (Some(0), String::new(), empty.into()));
    assert_eq!(out(&["-we", ""], ""), "");
    assert_eq!(out(&["-qe", ""], ""), "");
}

#[test]
fn libraries_are_looked_for_in_the_path_given() {
    let path = folder("clickpath");
    std::fs::write(path.join("pair.click"), "elementclass Pair { input -> Null -> output }\n")
        .unwrap();
    let text = "require(library pair.click) Idle -> Pair -> Discard";
    assert_eq!(out(&["-qe", text, "-C", path.to_str().unwrap()], ""), "");
}

/// What Click says while it reads a configuration. The router is never made,
/// so nothing is said about it.
#[test]
fn reading_errors() {
    for (text, want) in [
        ("x -> Discard", "config:1: undeclared element 'x'\n"),
        ("x :: Foo; Idle -> x", "config:1: unknown element class 'Foo'\n"),
        (
            "x :: Idle;\nx :: Idle; x -> Discard",
            "config:2: redeclaration of element 'x'\n\
             config:1: element 'x' previously declared here\n",
        ),
        (
            "Idle, Idle => Discard, Discard, Discard",
            "config:1: connection mismatch: 2 outputs connected to 3 inputs\n",
        ),
        (
            "Idle, Idle -> Discard, Discard",
            "config:1: syntax error: many-to-many connections require '=>'\n",
        ),
        ("Idle -> -> Discard", "config:1: syntax error near '->'\n"),
        (
            "require(package no_such); Idle -> Discard",
            "config:1: requirement 'no_such' not available\n",
        ),
        ("# 100 \"foo\"\nx -> Discard", "foo:100: undeclared element 'x'\n"),
    ] {
        assert_eq!(complaints(&["-e", text]), want, "{text}");
    }
    let class = complaints(&["-e", "elementclass A { input -> output }; A :: Null"]);
    assert!(class.starts_with("config:1: class 'A' used as element name\n"), "{class}");
    let missing = "no-such.click: No such file or directory\n";
    assert_eq!(complaints(&["no-such.click"]), missing);
    let (status, _, err) = all(&[], "x -> Discard\n");
    assert_eq!((status, err.as_str()), (Some(1), "<stdin>:1: undeclared element 'x'\n"));
}

/// What Click says of a router that it cannot make.
#[test]
fn router_errors() {
    for (text, want) in [
        (
            "p :: Print",
            "config:1: 'p :: Print' input 0 unused\nconfig:1: 'p :: Print' output 0 unused\n",
        ),
        ("Idle -> t :: Tee; t -> Discard; Idle -> [1] t", "config:1: 't :: Tee' has no input 1\n"),
        // The ports that are there are not looked at once one is not.
        ("Discard -> Idle", "config:1: 'Discard@1 :: Discard' has no output 0\n"),
        (
            "i :: InfiniteSource; i -> Discard; i -> Discard",
            "config:1: illegal reuse of 'i :: InfiniteSource' push output 0\n",
        ),
        (
            "Idle -> Queue -> P :: Null -> Queue -> Discard",
            "config:1: agnostic 'P :: Null' in mixed context: pull input 0, push output 0\n",
        ),
        (
            "Idle -> q :: Queue(CAPACITY lots) -> Discard",
            "config:1: While configuring 'q :: Queue':\n  CAPACITY: invalid number\n",
        ),
        (
            "Idle -> q :: Queue(1, 2) -> Discard",
            "config:1: While configuring 'q :: Queue':\n  too many arguments\n",
        ),
        (
            "Idle -> Strip -> Discard",
            "config:1: While configuring 'Strip@2 :: Strip':\n  LENGTH: required argument missing\n",
        ),
        // All elements are configured, whatever became of those before.
        (
            "Idle -> Strip -> Discard;\nIdle -> Queue(lots) -> Discard",
            "config:1: While configuring 'Strip@2 :: Strip':\n  LENGTH: required argument missing\n\
             config:2: While configuring 'Queue@5 :: Queue':\n  CAPACITY: invalid number\n",
        ),
        // But none is where connections are wrong.
        ("Idle -> Strip", "config:1: 'Strip@2 :: Strip' output 0 unused\n"),
        (
            "FromDump(no-such.pcap) -> Discard",
            "config:1: While initializing 'FromDump@1 :: FromDump':\n  \
             no-such.pcap: No such file or directory\n",
        ),
    ] {
        let want = format!("{want}Router could not be initialized!\n");
        assert_eq!(complaints(&["-e", text]), want, "{text}");
    }
}
