//! The program by the name `click`, in Click's words.

use crate::program::{click, folder, root};

const FIVE: &str = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> d :: Counter -> Discard";
const COUNTED: &str = "InfiniteSource(LIMIT $n, STOP true) -> c :: Counter -> Discard\n";

fn all(words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let result = click(words, input.as_bytes());
    (result.status, result.out, result.err)
}

/// Standard output of a successful run that writes nothing to standard error.
fn out(words: &[&str], input: &str) -> String {
    let (status, out, err) = all(words, input);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{words:?}");
    out
}

/// Standard error of a run that fails.
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
fn kinds_of_elements_are_named_as_classes_are() {
    let text = "Idle -> q :: Queue -> Idle; s :: Script(end); d :: DriverManager(stop);
                Idle -> r :: StaticIPLookup(0/0 0) -> Discard";
    let names = |kind: &str| out(&["-qe", text, "-h", &format!("{kind}.name")], "");
    assert_eq!(names("Storage"), "q.name:\nq\n\n");
    assert_eq!(names("Script"), "s.name:\ns\n\nd.name:\nd\n\n");
    assert_eq!(names("IPRouteTable"), "r.name:\nr\n\n");
    assert_eq!(names("NotifierQueue"), "q.name:\nq\n\n");
    assert_eq!(names("*").matches(".name:").count(), 8);
    // Elements that match the pattern and have no such handler are skipped.
    assert_eq!(out(&["-qe", text, "-h", "*.capacity"], ""), "q.capacity:\n1000\n\n");
}

#[test]
fn global_handlers_answer_as_clicks_do() {
    let text = "require(package fastclick); s :: TimedSource -> c :: Counter -> Discard";
    let read = |handler: &str| out(&["-qe", text, "-h", handler], "");
    assert_eq!(read("config"), format!("{text}\n"));
    assert!(read("flatconfig").contains("require(package fastclick);"), "{}", read("flatconfig"));
    assert_eq!(read("driver"), "userlevel\n");
    assert!(read("requirements").contains("fastclick\n"), "{}", read("requirements"));
    assert!(read("packages").contains("userlevel\n"));
    assert_eq!(read("version"), format!("{}\n", env!("CARGO_PKG_VERSION")));
    let classes = read("classes");
    assert!(classes.lines().any(|class| class == "ARPQuerier"), "{classes}");
    let handlers = read("handlers");
    for line in ["config\tr", "list\tr", "stop\tw", "timewarp\trw"] {
        assert!(handlers.lines().any(|l| l == line), "{handlers}");
    }
    assert_eq!(read("threads"), "1\n");
    let load = read("load");
    let share = load.strip_prefix("0 ").and_then(|share| share.trim().parse().ok());
    assert!(share.is_some_and(|share: f64| (0.0..=1.0).contains(&share)), "{load}");
    assert_eq!(read("timewarp"), "1\n");
    assert_eq!(out(&["--simtime", "-qe", text, "-h", "timewarp"], ""), "simulation\n");
    assert_eq!(read("active_ports"), "s\to0\nc\to0\n");
    // A number for each of them.
    assert_eq!(out(&["-e", FIVE, "-h", "active_ports"], "").lines().count(), 3);
    assert_eq!(out(&["-e", FIVE, "-h", "active_port_stats"], ""), "5\n5\n5\n");
}

#[test]
fn every_element_has_name_class_and_counters() {
    let text = "InfiniteSource(LIMIT 5, STOP true) -> s :: Switch(1); s[0] -> Idle -> Discard;
                s[1] -> c :: Counter -> t :: Tee -> d :: Discard; t[1] -> d";
    let read = |handler: &str| out(&["-e", text, "-h", handler], "");
    assert_eq!(read("s.name"), "s\n");
    assert_eq!(read("s.class"), "Switch\n");
    assert_eq!(read("s.config"), "1\n");
    let ports = "1 input\npush\t-\tInfiniteSource@1 [0]\n\
                 2 outputs\npush\t-\t[0] Idle@3\npush\t-\t[0] c\n";
    assert_eq!(read("s.ports"), ports);
    assert_eq!(read("c.ports"), "1 input\npush~\t-\ts [1]\n1 output\npush~\t-\t[0] t\n");
    assert_eq!(read("s.icounts"), "5\n");
    assert_eq!(read("s.ocounts"), "0\n5\n");
    // Both outputs lead to one input: nobody knows how many came by which.
    assert_eq!(read("t.ocounts"), "??\n??\n");
    assert_eq!(read("d.icounts"), "10\n");
    assert_eq!(read("d.ocounts"), "");
    // One worker reaches the element, and there is no queue on the way.
    assert_eq!((read("c.workers"), read("c.full_push")), ("0\n".into(), "true\n".into()));
    let queued = "Idle -> q :: Queue -> u :: Unqueue -> d :: Discard";
    let read_queued = |handler: &str| out(&["-qe", queued, "-h", handler], "");
    assert_eq!(
        (read_queued("d.full_push"), read_queued("d.workers")),
        ("false\n".into(), "0\n".into())
    );
    assert!(read("c.handlers").contains("count\tr\n"), "{}", read("c.handlers"));
    assert!(read("c.handlers").contains("reset\tw\n"), "{}", read("c.handlers"));
}

#[test]
fn exit_handlers_give_the_status() {
    let exit = |handler: &str| all(&["-e", FIVE, "-x", handler], "");
    assert_eq!(exit("c.count"), (Some(5), String::new(), String::new()));
    for (handler, text) in [
        ("c.class", "exit handler value should be integer\n"),
        ("c.cout", "no 'c.cout' read handler\n"),
        ("x.count", "no element named 'x'\n"),
        ("c.reset", "no 'c.reset' read handler\n"),
        ("lists", "no 'lists' read handler\n"),
    ] {
        assert_eq!(exit(handler), (Some(255), String::new(), text.into()), "{handler}");
    }
    let scripted = |value: &str| {
        let text = format!("s :: Script(TYPE PASSIVE, return {value})");
        all(&["-qe", &text, "--exit-handler", "s.run"], "").0
    };
    for (value, status) in [("true", 0), ("f", 1), ("0x10", 16), ("-1", 255), ("259", 3)] {
        assert_eq!(scripted(value), Some(status), "{value}");
    }
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
fn options_have_long_short_and_negative_forms() {
    for words in [
        &["--quit"][..],
        &["--qui"],
        &["-q", "-q"],
        &["-q", "-a"],
        &["-q", "-a1"],
        &["-q", "--affinity=1"],
        &["-q", "--cpu", "--no-cpu"],
        &["-q", "-a0", "--no-affinity", "-j2"],
        &["-q", "--threads=-3"],
        &["-q", "-j0", "-j", "2"],
        &["-q", "-w", "--warnings"],
        &["-q", "--no-warnings"],
    ] {
        let words: Vec<&str> = [words, &["-e", FIVE, "-h", "c.count"]].concat();
        assert_eq!(out(&words, ""), "0\n", "{words:?}");
    }
    // The last of two that contradict each other counts.
    let empty = "warning: config: configuration has no elements, exiting\n";
    assert_eq!(all(&["-w", "--warnings", "-e", ""], "").2, empty);
    assert_eq!(all(&["--warnings", "-w", "-e", ""], "").2, "");
}

#[test]
fn wrong_options_are_told_in_clicks_words() {
    let usage = "Usage: click [OPTION]... [ROUTERFILE]\nTry 'click --help' for more information.\n";
    for (words, message) in [
        (&["--frobnicate"][..], "click: unrecognized option '--frobnicate'"),
        (&["-z"], "click: unrecognized option '-z'"),
        (&["-j", "x"], "click: '-j' expects an integer, not 'x'"),
        (&["--threads=x"], "click: '--threads' expects an integer, not 'x'"),
        (&["--simtime=x"], "click: '--simtime' expects a real number, not 'x'"),
        (&["--simtick", "-"], "click: '--simtick' expects an unsigned integer, not '-'"),
        (&["--socket", "x"], "click: '--socket' expects an integer, not 'x'"),
        (&["-f"], "click: '-f' requires an argument"),
        (&["--handler"], "click: '--handler' requires an argument"),
        (&["--quit=now"], "click: '--quit' can't take an argument"),
        (&["-p", "99999"], "click: '-p' expects a TCP port number, not '99999'"),
        (&["-p", "nosuchservice"], "click: '-p' expects a TCP port number, not 'nosuchservice'"),
        (&["--port=0+"], "click: '--port' expects a TCP port number, not '0+'"),
        (&["-o", "a", "--output", "b"], "output file specified twice"),
        (&["-xa", "-xb"], "--exit-handler specified twice"),
        (&["-e", "", "-e", ""], "router configuration specified twice"),
    ] {
        assert_eq!(complaints(words), format!("{message}\n{usage}"), "{words:?}");
    }
}

#[test]
fn time_is_printed_in_three_parts() {
    assert_eq!(out(&["--time", "-e", FIVE], "").split(' ').count(), 3);
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
    let (status, output, first) = all(&["--simtime", "-e", text], "");
    assert_eq!((status, output.as_str()), (Some(0), ""), "{first}");
    let times: Vec<&str> = first.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(times, ["1000000010.000000", "1000000020.000000", "1000000030.000000"], "{first}");
    assert_eq!(all(&["--simtime", "-e", text], "").2, first);
    let script = "Script(wait 2s, print $(now), stop); Idle -> Discard";
    assert!(out(&["--simtime", "-e", script], "").starts_with("1000000002"));
    // Simulated time may begin at another time, and may advance with each read.
    assert_eq!(out(&["--simtime=5.5", "-e", script], ""), "7.500000006\n");
    assert_eq!(out(&["--simulation-time=0", "-e", script], ""), "2.000000006\n");
    let looks = "Script(set a $(now), set b $(now), print $(gt $b $a), print $(sub $b $a), stop)";
    assert_eq!(out(&["--simtime=0", "--simtick=1000", "-e", looks], ""), "true\n1e-06\n");
    assert_eq!(out(&["--simtime=0", "-e", looks], ""), "true\n1e-09\n");
    assert_eq!(out(&["--simtime=0", "--simtick=0", "-e", looks], ""), "false\n0\n");
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
    for option in ["-C", "--clickpath"] {
        assert_eq!(out(&["-qe", text, option, path.to_str().unwrap()], ""), "");
    }
    let err = complaints(&["-qe", text, "-C", "/nowhere"]);
    assert!(err.contains("library 'pair.click' not found"), "{err}");
}

/// Click's messages while it reads a configuration. The router is never made,
/// so there is no message about it.
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

/// Click's messages about a router that it cannot make.
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

#[test]
fn a_capture_is_read_on_beyond_its_end() {
    let text =
        "f :: FromDump(conf/sample.pcap, END_AFTER 0.1, END_CALL s.run) -> c :: Counter -> Discard;
         s :: Script(TYPE PASSIVE, print $(c.count), goto done $(gt $(c.count) 20),
                     write f.extend_interval 0.2, exit, label done, write f.stop)";
    // Packets are 10 ms apart.
    assert_eq!(out(&["--simtime", "-e", text, "-h", "c.count"], ""), "10\n30\n30\n");
}

#[test]
fn a_capture_is_read_from_anywhere() {
    let run = |with: &str, handlers: &[&str]| {
        let text =
            format!("f :: FromDump(conf/sample.pcap, STOP true{with}) -> c :: Counter -> Discard");
        let shown = handlers.iter().flat_map(|handler| ["-h", handler]);
        let words: Vec<&str> = ["--simtime", "-e", &text].into_iter().chain(shown).collect();
        out(&words, "")
    };
    let size = std::fs::metadata(root().join("conf/sample.pcap")).unwrap().len();
    assert_eq!(run("", &["f.filepos"]), format!("{size}\n"));
    let last = run("", &["f.packet_filepos"]);
    let last = last.trim();
    assert_eq!(run(&format!(", FILEPOS {last}"), &["c.count"]), "1\n");
    // Once more from the last packet on, when all are read.
    let text = format!(
        "f :: FromDump(conf/sample.pcap) -> c :: Counter -> Discard;
         Script(wait 1, print $(c.count), write f.filepos {last}, write f.active true, wait 1, stop)"
    );
    assert_eq!(out(&["--simtime", "-e", &text, "-h", "c.count"], ""), "101\n102\n");
    let (status, _, output) = all(&["-e", "FromDump(conf/sample.pcap, FILEPOS 3) -> Discard"], "");
    assert!(status == Some(1) && output.contains("FILEPOS: packets begin at 24"), "{output}");
}

#[test]
fn flows_are_described_when_they_are_over() {
    let file = folder("click").join("flows.xml");
    let text = format!(
        "f :: FromDump(conf/sample.pcap, FORCE_IP true, STOP true)
           -> a :: AggregateIPFlows(TRACEINFO {}, SOURCE f) -> Discard; a[1] -> Discard",
        file.display()
    );
    let count: usize =
        out(&["--simtime", "-e", &text, "-h", "a.count"], "").trim().parse().unwrap();
    let trace = std::fs::read_to_string(file).unwrap();
    let head = "<?xml version='1.0' standalone='yes'?>\n<trace file='conf/sample.pcap'>\n<flow aggregate='1' src='";
    assert!(trace.starts_with(head) && trace.ends_with("</flow>\n</trace>\n"), "{trace}");
    assert!(count > 0 && trace.matches("</flow>").count() == count, "{count}\n{trace}");
    assert!(trace.contains(" begin='1700000000."), "{trace}");
    let (_, _, output) = all(&["-e", "Idle -> AggregateIPFlows(SOURCE x) -> Discard"], "");
    assert!(output.contains("SOURCE: no element named 'x'"), "{output}");
}

#[test]
fn a_prefix_that_an_arp_responder_has_twice_is_warned_of() {
    let config = "r :: ARPResponder(5.5.5.5 0:0:0:0:0:1, 6.0.0.0/8 5.5.5.5 0:0:0:0:0:2);
        Idle -> r -> Idle; DriverManager(write r.config 7.7.7.7 7.7.7.7 7.7.7.7 0:0:0:0:0:3, stop)";
    let (status, _, err) = all(&["-e", config], "");
    assert_eq!(status, Some(0), "{err}");
    let output = "While configuring 'r :: ARPResponder':\n  warning: multiple entries for ";
    assert!(err.contains(&format!("{output}5.5.5.5/32\n")), "{err}");
    // The context stands once, before a line for each repetition.
    let twice = "7.7.7.7/32\n  warning: multiple entries for 7.7.7.7/32\n";
    assert!(err.contains(&format!("{output}{twice}")), "{err}");
    assert_eq!(err.matches("multiple").count(), 3, "{err}");
    assert_eq!(err.matches("While configuring").count(), 2, "{err}");
}
