//! `castanet check`: everything wrong at once, and lints.

use crate::program::{RunResult, castanet, click, named, root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs `castanet check` on a text; the messages, a line each, without their places.
fn check(words: &[&str], text: &str) -> (Option<i32>, Vec<String>) {
    let words = [&["check"], words, &["-"]].concat();
    let RunResult { status, err, .. } = castanet(&words, text.as_bytes());
    let is_message = |line: &&str| line.starts_with("error") || line.starts_with("warning");
    (status, err.lines().filter(is_message).map(str::to_owned).collect())
}

/// The warnings of a configuration that has no errors: the lint, and the element.
fn warnings(words: &[&str], text: &str) -> Vec<(String, String)> {
    let (status, found) = check(words, text);
    assert_eq!(status, Some(0), "{text}\n{found:?}");
    let pair = |line: String| {
        let (lint, message) = line.strip_prefix("warning[")?.split_once("]: '")?;
        Some((lint.to_owned(), message.split_once(" :: ")?.0.to_owned()))
    };
    found.into_iter().map(|line| pair(line.clone()).expect(&line)).collect()
}

#[test]
fn errors_of_all_kinds_are_found_at_once_in_the_order_of_the_text() {
    let text = "s :: Script(read q.lenght, write nosuch.reset, print $(q.reset));
        i :: InfiniteSource(LIMIT five) -> Qeue -> q :: Queue(0x) -> Discard;
        t :: Tee -> Idle; Idle -> [1]t;
        Idle -> x :: Nothing(1) -> c :: Counter(COUNT_CALL 1 c.reste) -> Discard;
        HandlerAggregate(c, d);
        Idle -> CheckIPHeader -> Paint(999) -> Discard\n";
    let want = [
        "error: s :: Script: 'q :: Queue' has no read handler 'lenght'",
        "error: s :: Script: no element named 'nosuch'",
        "error: s :: Script: 'q :: Queue' has no read handler 'reset'",
        "error: i :: InfiniteSource: LIMIT: `five` is not an integer",
        "error: undeclared element 'Qeue'",
        "error: q :: Queue: CAPACITY: `0x` is not a number",
        "error: 't :: Tee' has no input 1",
        "error: 't :: Tee' input 0 unused",
        "error: unknown element class 'Nothing'",
        "error: c :: Counter: 'c :: Counter' has no write handler 'reste'",
        "error: HandlerAggregate@13 :: HandlerAggregate: no element named 'd'",
        "error: Paint@16 :: Paint: COLOR: 999 is out of range; it wants a number from 0 to 255",
    ];
    assert_eq!(check(&[], text), (Some(1), want.map(str::to_owned).to_vec()));
}

#[test]
fn an_unknown_class_causes_no_other_errors() {
    for text in [
        "Idle -> Qeue(7) -> Discard",
        "f :: Foo; f[0] -> Discard; f[1] -> Print -> ToDevice(lo); Idle -> [2]f",
        "Idle -> f :: Foo -> RoundRobinSched -> Discard; Script(read f.count, write f.reset 7)",
        "f :: Foo(TABLE x); f -> Queue -> Discard; f -> Queue -> Discard; f [300] -> Discard",
        "elementclass C { input -> Foo -> output } Idle -> C -> c :: Counter -> Discard;
            DriverManager(read C@2/Foo@1.length, print $(c.count))",
        "Idle -> RED(1, 2, 0.5) -> Foo -> Discard",
    ] {
        let (status, found) = check(&[], text);
        assert_eq!((status, found.len()), (Some(1), 1), "{text}: {found:?}");
        assert!(found[0].ends_with("'Foo'") || found[0].ends_with("'Qeue'"), "{text}: {found:?}");
    }
}

#[test]
fn handlers_that_scripts_name_are_looked_for() {
    let config = |step: &str| {
        format!(
            "Idle -> q :: Queue -> Discard; p :: Script(TYPE PROXY, return 1);
             a :: {{ c :: Counter; Idle -> c -> Discard; Script({step}) }};
             s :: Script(TYPE PASSIVE, export limit 7, return $limit); Script({step})"
        )
    };
    let absent = |step: &str| check(&[], &config(step)).1;
    for right in [
        "read q.length",
        "write q.reset",
        "print $(q.length) $(add 1 $(q.drops))",
        "print q.length",
        "save q.length -",
        "goto end $(gt $(q.length) 2)",
        "read s.limit, read s.run 7, write s.step",
        "read p.anything, write p.whatever 7",
        "read config, write stop",
        "set q q, read $q.lenght, write $(catq q .rest)",
        "print '$(q.lenght)'",
        "print \"nosuch.handler\"",
        "export x 3, print $(x), write set x 4, write goto end",
        "read q.drops.overflow, read q.icounts",
    ] {
        assert_eq!(absent(right), Vec::<String>::new(), "{right}");
    }
    for (wrong, what) in [
        ("read q.lenght", "has no read handler 'lenght'"),
        ("read q.reset", "has no read handler 'reset'"),
        ("write q.length 1", "has no write handler 'length'"),
        ("print $(add 1 $(q.lenght))", "has no read handler 'lenght'"),
        ("print \"all $(q.lenght)\"", "has no read handler 'lenght'"),
        ("goto end $(gt $(x.length) 2)", "no element named 'x'"),
        ("wait $(x.time)", "no element named 'x'"),
        ("save x.length -", "no element named 'x'"),
        ("printq x.length", "no element named 'x'"),
        ("return $(x.length)", "no element named 'x'"),
        ("set y $(nosuch 7)", "the router has no read handler 'nosuch'"),
        ("write stpo", "global has no write handler 'stpo'"),
        ("read s.limits", "has no read handler 'limits'"),
    ] {
        let found = absent(wrong);
        assert_eq!(found.len(), 2, "{wrong}: {found:?}");
        assert!(found.iter().all(|it| it.contains(what)), "{wrong}: {found:?}");
    }
    // The element of a compound is found in the compound only.
    assert_eq!(absent("read c.count").len(), 1);
    assert_eq!(absent("read a/c.count"), Vec::<String>::new());
}

#[test]
fn a_handler_for_the_other_direction_is_named() {
    let text =
        "Idle -> c :: Counter -> Discard; Script(TYPE PASSIVE, read c.reset, write c.count 3)";
    let err = castanet(&["check", "-e", text], b"").err;
    assert!(err.contains("'c.reset' can only be written"), "{err}");
    assert!(err.contains("'c.count' can only be read"), "{err}");
}

#[test]
fn elements_that_sockets_name_are_looked_for() {
    let (_, found) = check(&[], "ControlSocket(TCP, 7777, PROXY p);");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("no element named 'p'"), "{found:?}");
    let text = "ControlSocket(TCP, 7777, PROXY p); p :: Script(TYPE PROXY)";
    assert_eq!(check(&[], text), (Some(0), Vec::new()));
}

#[test]
fn handlers_of_the_command_line_are_looked_for() {
    let text = "InfiniteSource(LIMIT 3, STOP true) -> c :: Counter -> Discard";
    let words = ["--handler", "c.count", "--handler", "c.cuont", "--handler", "d.count"];
    let wrong =
        ["c.cuont: 'c :: Counter' has no read handler 'cuont'", "d.count: no element named 'd'"];
    let want: Vec<String> = wrong.iter().map(|it| format!("error: --handler {it}")).collect();
    assert_eq!(check(&words, text), (Some(1), want));
    assert_eq!(check(&words[..2], text), (Some(0), Vec::new()));
    // A run does not begin.
    let forever = "InfiniteSource -> c :: Counter -> Discard";
    let RunResult { status, out, err } =
        castanet(&[&["run", "-e", forever], &words[..]].concat(), b"");
    assert_eq!((status, out.as_str()), (Some(1), ""), "{err}");
    assert!(wrong.iter().all(|it| err.contains(it)), "{err}");
    // Click says so at the end, when it reads them.
    let RunResult { status, out, err } =
        click(&["-e", text, "-h", "c.cuont", "-h", "c.count"], b"");
    assert_eq!((status, out.as_str()), (Some(1), "c.count:\n3\n\n"), "{err}");
    assert_eq!(err, "no 'c.cuont' handler\n");
}

#[test]
fn click_check_stops_where_click_does() {
    let text = "Idle -> Queue(five) -> Discard; Script(read x.y)";
    let RunResult { status, err, .. } = named("click-check", &["-e", text], b"");
    assert_eq!(status, Some(1));
    assert_eq!(
        err,
        "config:1: While configuring 'Queue@2 :: Queue':\n  CAPACITY: invalid number\n"
    );
    let right = named(
        "click-check",
        &["-e", "FromDevice(lo) -> IPPrint -> Discard; Script(read x.y)"],
        b"",
    );
    assert_eq!(right.status, Some(0), "{}", right.err);
    assert_eq!(right.err, "config: configuration OK in userlevel driver\n");
}

#[test]
fn impossible_workers_and_cores_are_refused() {
    for (words, what) in [
        (&["-j", "0"][..], "this is no number of workers from 1 to 256"),
        (&["-j", "257"], "this is no number of workers from 1 to 256"),
        (&["--affinity", "1000"], "--affinity: there is no core 1000; this machine has 0"),
        (&["--affinity", "0,1000-1002", "-j", "4"], "there is no core 1000"),
    ] {
        let run = castanet(&[&["run", "-e", "InfiniteSource -> Discard"], words].concat(), b"");
        assert_eq!((run.status, run.out.as_str()), (Some(2), ""), "{words:?}: {}", run.err);
        assert!(run.err.contains(what), "{words:?}: {}", run.err);
    }
}

#[test]
fn each_lint_finds_what_it_is_for() {
    let expect = |text: &str, wanted: &[(&str, &str)]| {
        let found = warnings(&[], text);
        let found: Vec<_> = found.iter().map(|(lint, at)| (lint.as_str(), at.as_str())).collect();
        assert_eq!(found, wanted, "{text}");
    };
    let encap = "EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)";
    let not_stripped = |class: &str, element: &str| {
        let text = format!("FromDevice(eth0) -> Counter -> x :: {class} -> Discard");
        expect(&text, &[("ethernet-not-stripped", element)]);
    };
    for class in ["CheckIPHeader", "MarkIPHeader(0)", "CheckIPHeader2(OFFSET 0)", "CheckIP6Header"]
    {
        not_stripped(class, "x");
    }
    for (text, wanted) in [
        ("FromDevice(eth0) -> CheckIPHeader(14) -> IPPrint -> Discard", &[][..]),
        ("FromDevice(eth0) -> MarkIPHeader(OFFSET 14) -> x :: IPPrint -> Strip(14) -> Discard", &[]),
        ("FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Discard", &[]),
        ("FromDevice(eth0) -> x :: IPPrint -> Discard", &[("header-not-marked", "x")]),
        ("FromDevice(eth0, FORCE_IP true) -> IPPrint -> Discard", &[]),
        ("FromDevice(eth0) -> Strip(14) -> x :: DecIPTTL -> IPPrint -> Discard", &[("header-not-marked", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: CheckUDPHeader -> Discard", &[("header-not-marked", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: CheckTCPHeader -> IPPrint -> Discard", &[("header-not-marked", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: DecIP6HLIM -> Discard", &[("header-not-marked", "x")]),
        ("InfiniteSource -> Queue -> Unqueue -> x :: IPClassifier(-) -> Discard", &[("header-not-marked", "x")]),
        ("FromDump(a.pcap) -> IPPrint -> CheckIPHeader -> Discard", &[]),
        ("FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> Queue -> x :: ToDevice(eth1)", &[("ethernet-missing", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> Queue -> x :: ToDevice(eth1)", &[("ethernet-missing", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: EtherMirror -> Discard", &[("ethernet-missing", "x")]),
        ("FromDevice(eth0) -> Queue -> ToDevice(eth1)", &[]),
        ("FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> Unstrip(14) -> Queue -> ToDevice(eth1)", &[]),
        ("FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> q :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1)
            -> Queue -> ToDevice(eth1); FromDevice(eth1) -> [1]q", &[]),
        ("FromDevice(eth0) -> Strip(14) -> Print -> x :: Strip(14) -> Discard", &[("stripped-twice", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: CheckIPHeader(14) -> Discard", &[("stripped-twice", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> x :: StripEtherVLANHeader -> Discard", &[("stripped-twice", "x")]),
        ("FromDevice(eth0) -> Strip(14) -> Strip(4) -> CheckIPHeader -> Discard", &[]),
        ("FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> StripIPHeader -> Strip(14) -> Discard", &[]),
        ("FromDevice(eth0) -> x :: ENCAP -> Queue -> ToDevice(eth1)", &[("encapsulated-twice", "x")]),
        ("InfiniteSource -> ENCAP -> Queue -> Unqueue -> x :: ENCAP -> Discard", &[("encapsulated-twice", "x")]),
        ("FromDevice(eth0) -> x :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1) -> Discard; Idle -> [1]x",
            &[("encapsulated-twice", "x")]),
    ] {
        expect(&text.replace("ENCAP", encap), wanted);
    }
}

#[test]
fn any_thread_may_be_there() {
    let text = "i :: InfiniteSource -> Discard; StaticThreadSched(i 7)";
    let result = castanet(&["check", "-e", text], b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""));
}

#[test]
fn where_packets_of_several_kinds_meet_no_lint_guesses() {
    for text in [
        "FromDevice(eth0) -> n :: Null -> CheckIPHeader -> Discard;
            FromDevice(eth1) -> Strip(14) -> n",
        "FromDevice(eth0) -> StoreData(0, abc) -> CheckIPHeader -> Discard",
        "FromDevice(eth0) -> Strip(14) -> Resize(4, 0) -> Strip(14) -> Discard",
        "n :: Null -> Strip(14) -> n; FromDevice(eth0) -> n",
    ] {
        assert_eq!(warnings(&[], text), Vec::new(), "{text}");
    }
    // One of several ways is enough where all packets of that way are meant.
    let text = "FromDevice(eth0) -> Strip(14) -> m :: MarkIPHeader -> x :: IPPrint -> Discard;
        FromDevice(eth1) -> Strip(14) -> x";
    assert_eq!(warnings(&[], text), [("header-not-marked".to_owned(), "x".to_owned())]);
}

#[test]
fn lints_are_explained_and_silenced() {
    let text = "FromDevice(eth0) -> Strip(14)\n    -> Strip(14) -> Discard;";
    assert_eq!(warnings(&[], text).len(), 1);
    assert_eq!(warnings(&["--allow", "stripped-twice"], text), []);
    assert_eq!(warnings(&["--allow", "header-not-marked"], text).len(), 1);
    let comments = [
        text.replace("\n", "\n // castanet: allow stripped-twice\n"),
        format!("{text} // castanet: allow header-not-marked, stripped-twice\n"),
        text.replace("-> Discard", "-> Discard /* castanet: allow stripped-twice */"),
    ];
    comments.iter().for_each(|text| assert_eq!(warnings(&[], text), [], "{text}"));
    let far = format!("// castanet: allow stripped-twice\n\n{text}");
    assert_eq!(warnings(&[], &far).len(), 1);

    let list = castanet(&["check", "--lints"], b"").out;
    assert!(list.lines().count() >= 5, "{list}");
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap();
        let page = castanet(&["check", "--explain", name], b"");
        assert_eq!(page.status, Some(0), "{}", page.err);
        let comment = format!("// castanet: allow {name}\n");
        assert!(
            page.out.starts_with(&format!("{name}: ")) && page.out.contains(&comment),
            "{}",
            page.out
        );
    }
    for words in [&["--explain", "striped-twice"][..], &["--allow", "striped-twice", "-e", "Idle"]]
    {
        let wrong = castanet(&[&["check"], words].concat(), b"");
        assert_eq!(wrong.status, Some(2));
        assert!(wrong.err.contains("did you mean 'stripped-twice'?"), "{}", wrong.err);
    }
    let json = castanet(&["check", "--json", "-e", text], b"").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json[0]["severity"], &json[0]["lint"]),
        (&"warning".into(), &"stripped-twice".into())
    );
}

#[test]
fn a_run_warns_where_all_packets_are_lost_or_not_printed() {
    let lossy = castanet(
        &["run", "-q", "-e", "InfiniteSource(LIMIT 1, STOP true) -> DecIPTTL -> Discard"],
        b"",
    );
    let words =
        "'DecIPTTL@2 :: DecIPTTL' takes packets with a marked IP header, but no element has";
    assert!(lossy.err.contains(words), "{}", lossy.err);
    let text = "InfiniteSource(LIMIT 3, STOP true) -> IPPrint -> Discard";
    let run = castanet(&["run", "-q", "-e", text], b"");
    assert_eq!(run.status, Some(0));
    assert!(
        run.err.contains("warning[header-not-marked]: 'IPPrint@2 :: IPPrint' acts on packets with a marked IP header and passes others on, and no element has"),
        "{}",
        run.err
    );
    let silent = format!("{text} // castanet: allow header-not-marked");
    assert_eq!(castanet(&["run", "-q", "-e", &silent], b"").err, "");
    assert_eq!(click(&["-e", text], b"").err, "");
}

/// All files of a folder with configurations.
fn configurations(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => configurations(&path, found),
            false if path.extension().is_some_and(|it| it == "click") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn the_configurations_of_the_repository_have_no_lints() {
    let mut files = Vec::new();
    configurations(&root().join("conf"), &mut files);
    assert!(files.len() > 15, "{files:?}");
    let found: BTreeMap<_, _> = files
        .iter()
        .map(|file| (file, castanet(&["check", file.to_str().unwrap()], b"").err))
        .filter(|(_, err)| err.contains("warning["))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_page_about_checking_says_what_is_printed() {
    let page = std::fs::read_to_string(root().join("docs/checking.md")).unwrap();
    for line in castanet(&["check", "--lints"], b"").out.lines() {
        let (name, summary) = line.split_once(' ').unwrap();
        let row = format!("| `{name}` | {} |", summary.trim());
        assert!(page.contains(&row), "the page has no row {row}");
    }
    let block = |language: &str| {
        let rest = page.split_once(&format!("```{language}\n")).unwrap().1;
        rest.split_once("```").unwrap().0
    };
    let printed = castanet(&["check", "-"], block("click").as_bytes());
    assert_eq!((printed.status, printed.err.as_str()), (Some(0), block("text")));
    let (_, answer) = block("console").split_once('\n').unwrap();
    assert_eq!(castanet(&["check", "conf/router.click"], b"").out, answer);
}
