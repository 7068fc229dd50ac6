//! `click-flatten`, `click-check`, `click-undead`, `click-align`, `click-xform`.

use super::{FLAT, TEXT, all, complaints, file, out};
use castanet_lang::{Member, SourceMap, archive};

const COMPOUND: &str = "define($n 5)
elementclass Pair { $a | input -> Queue($a) -> Unqueue -> output }
i :: InfiniteSource -> Pair($n) -> d :: Discard;";

#[test]
fn flattening() {
    let tool = "click-flatten";
    let flat = |n: &str, before: &str| {
        format!(
            "{before}i :: InfiniteSource;\nd :: Discard;\nPair@2/Queue@1 :: Queue({n});\n\
             Pair@2/Unqueue@2 :: Unqueue;\n\n\
             i -> Pair@2/Queue@1\n    -> Pair@2/Unqueue@2\n    -> d;\n"
        )
    };
    let kept = flat("$n", "define($n 5);\n\n");
    assert_eq!(out(tool, &["-e", COMPOUND], ""), kept);
    assert_eq!(out(tool, &["--no-expand-vars", "-e", COMPOUND], ""), kept);
    let given = flat("$n", "define($n 7);\n\n");
    assert_eq!(out(tool, &["-e", COMPOUND, "n=7"], ""), given);
    for option in ["-E", "--expand-vars"] {
        assert_eq!(out(tool, &[option, "-e", COMPOUND], ""), flat("5", ""));
    }
    assert_eq!(out(tool, &["-E", "-e", COMPOUND, "n=7"], ""), flat("7", ""));
    for option in ["-c", "--classes"] {
        let classes = "Discard\nInfiniteSource\nQueue\nUnqueue\n";
        assert_eq!(out(tool, &[option, "-e", COMPOUND], ""), classes);
    }
    for option in ["-n", "--names", "--elements"] {
        let names = "Pair@2/Queue@1\nPair@2/Unqueue@2\nd\ni\n";
        assert_eq!(out(tool, &[option, "-e", COMPOUND], ""), names);
    }
    for option in ["-d", "--declarations", "--decls"] {
        let lines = "Pair@2/Queue@1 :: Queue\nPair@2/Unqueue@2 :: Unqueue\nd :: Discard\n\
                     i :: InfiniteSource\n";
        assert_eq!(out(tool, &[option, "-e", COMPOUND], ""), lines);
    }
    assert_eq!(out(tool, &["-c", "-d", "-n", "-c", "-e", TEXT], ""), "Discard\nInfiniteSource\n");
    // A flattened configuration stays as it is.
    assert_eq!(out(tool, &[], &kept), kept);
    // Classes need not exist.
    assert!(out(tool, &["-e", "Foo -> Bar"], "").contains("Foo@1 -> Bar@2;"));
    let (status, out, err) = all(tool, &[], "");
    assert_eq!((status, out.as_str()), (Some(0), ""));
    assert_eq!(err, "warning: <stdin>: empty configuration\n");
}

/// An archive of a configuration and another file.
fn bundle(text: &str) -> Vec<u8> {
    let member = |name: &str, data: &str| Member { name: name.into(), data: data.into() };
    archive(&[member("config", text), member("notes.txt", "odd")])
}

/// Members of an archive: the configuration, and the names of the others.
fn unbundle(path: &str) -> (String, Vec<String>) {
    let mut sources = SourceMap::new();
    let id = sources.load(path).unwrap();
    let names = sources.members(id).iter().map(|member| member.name.clone()).collect();
    (sources.text(id).to_string(), names)
}

#[test]
fn archives_stay_archives() {
    let source = file("bundle", bundle(TEXT));
    let target = file("bundle-out", "");
    for tool in ["click-flatten", "click-undead", "click-align", "click-xform"] {
        assert_eq!(out(tool, &["-q", &source, "-o", &target], ""), "");
        assert_eq!(unbundle(&target), (FLAT.into(), vec!["notes.txt".into()]), "{tool}");
    }
    assert_eq!(out("click-check", &["-q", &source, "-o", &target], ""), "");
    assert_eq!(unbundle(&target), (FLAT.into(), vec!["notes.txt".into()]));
    for tool in ["click-fastclassifier", "click-devirtualize"] {
        assert_eq!(out(tool, &["-q", &source, "-o", &target], ""), "");
        assert_eq!(std::fs::read(&target).unwrap(), bundle(TEXT), "{tool}");
    }
    assert_eq!(out("click-flatten", &["--config", &source], ""), FLAT);
    assert_eq!(out("click-undead", &["-c", &source], ""), FLAT);
    assert_eq!(out("click-undead", &["--config", &source], ""), FLAT);
    let (status, out, err) = all("click", &["-q", &source], "");
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), "", ""));
}

#[test]
fn checking() {
    let tool = "click-check";
    let good = |words: &[&str]| {
        let (status, out, err) = all(tool, words, "");
        assert_eq!((status, out.as_str()), (Some(0), ""), "{words:?}");
        err
    };
    let ok = "config: configuration OK in userlevel driver\n";
    assert_eq!(good(&["-e", TEXT]), ok);
    assert_eq!(good(&["-u", "-e", TEXT]), ok);
    assert_eq!(good(&["--userlevel", "-e", TEXT]), ok);
    assert_eq!(good(&["-q", "-e", TEXT]), "");
    let (_, _, err) = all(tool, &[], TEXT);
    assert_eq!(err, "<stdin>: configuration OK in userlevel driver\n");
    for option in ["-p", "--filter"] {
        assert_eq!(out(tool, &[option, "-e", TEXT], ""), FLAT);
    }
    let target = file("checked.click", "");
    assert_eq!(good(&["-o", &target, "-e", TEXT]), "");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), FLAT);
    assert_eq!(out(tool, &["-o", "-", "-e", TEXT], ""), FLAT);
    let wrong = "i :: InfiniteSource -> q :: Queue(lots) -> d :: Discard; q2 :: Queue";
    for words in [&["-e", wrong][..], &["-p", "-e", wrong], &["-qe", wrong]] {
        let err = complaints(tool, words, "");
        assert!(err.contains("config:1: 'q2 :: Queue' input 0 unused\n"), "{err}");
    }
    let err = complaints(tool, &["-e", "Idle -> Queue(lots) -> Discard"], "");
    let want = "config:1: While configuring 'Queue@2 :: Queue':\n  CAPACITY: invalid number\n";
    assert_eq!(err, want);
    // Classes that may come from elsewhere are no errors, as in Click.
    let unknown = "config:1: warning: unknown element class 'Foo'\n";
    assert_eq!(good(&["-e", "Foo -> Foo -> Discard"]), unknown);
    assert_eq!(good(&["-q", "-e", "Foo -> Foo -> Discard"]), "");
    for (option, driver) in [
        ("-l", "linuxmodule"),
        ("-k", "linuxmodule"),
        ("--linuxmodule", "linuxmodule"),
        ("--kernel", "linuxmodule"),
        ("-b", "bsdmodule"),
        ("--bsdmodule", "bsdmodule"),
    ] {
        let err = complaints(tool, &[option, "-e", TEXT], "");
        let want =
            format!("click-check: config: Castanet runs at user level only, not as {driver}\n");
        assert_eq!(err, want);
    }
}

const HALF_DEAD: &str = "Idle -> Counter -> a :: ToDump(a);
InfiniteSource -> ss :: StaticSwitch(1);
ss[0] -> ToDump(c);
ss[1] -> Queue -> rr :: RoundRobinSched;
Idle -> [1]rr;
rr -> b :: ToDump(b);";
const ALIVE: &str = "InfiniteSource@4 :: InfiniteSource;\nQueue@7 :: Queue;\nb :: ToDump(b);\n\n\
                     InfiniteSource@4 -> Queue@7\n    -> b;\n";

#[test]
fn burying_the_dead() {
    let tool = "click-undead";
    for option in ["-q", "-k", "--kernel", "-u", "--user", "-c", "--config"] {
        assert_eq!(out(tool, &[option, "-e", HALF_DEAD], ""), ALIVE, "{option}");
    }
    assert_eq!(out(tool, &[], ALIVE), ALIVE);
    for option in ["-V", "--verbose"] {
        let (status, out, err) = all(tool, &[option, "-e", HALF_DEAD], "");
        assert_eq!((status, out.as_str()), (Some(0), ALIVE));
        for line in [
            "config:2: assuming 'InfiniteSource@4 :: InfiniteSource' is source\n",
            "config:6: 'b :: ToDump' is sink\n",
            "config:1: removing 'Counter@2 :: Counter'\n",
            "config:4: removing redundant scheduler 'rr :: RoundRobinSched'\n",
        ] {
            assert!(err.contains(line), "{line}\n{err}");
        }
    }
    let dead = complaints(tool, &["-e", "Idle -> Discard"], "");
    assert!(dead.contains("warning: no live elements in configuration\n"), "{dead}");
    let vars = "define($p 0) i :: InfiniteSource -> s :: StaticSwitch($p) -> d :: Discard";
    assert_eq!(out(tool, &["-e", vars], ""), FLAT);
    let (status, _, err) = all(tool, &["-e", "InfiniteSource -> Foo -> Discard"], "");
    assert_eq!(status, Some(0));
    assert_eq!(err, "config:1: warning: unknown element class 'Foo'\n");
    let bad = "InfiniteSource -> s :: StaticSwitch(x) -> Discard; Idle; RatedSource -> Discard";
    let (status, _, err) = all(tool, &["-e", bad], "");
    assert_eq!(
        (status, err.as_str()),
        (Some(1), "config:1: s: bad configuration 'StaticSwitch(x)'\n")
    );
}

#[test]
fn a_reduced_router_counts_the_same() {
    let text = "InfiniteSource(LIMIT 50, STOP true) -> Null -> t :: Tee -> c :: Counter -> Discard;
                t[1] -> s :: StaticSwitch(1) -> Discard; s[1] -> d :: Counter -> Discard;
                Idle -> Counter -> Discard;";
    let words = ["-h", "c.count", "-h", "d.count"];
    let counts = out("click", &[&["-e", text], &words[..]].concat(), "");
    assert_eq!(counts, "c.count:\n50\n\nd.count:\n50\n\n");
    let left = out("click-undead", &["-e", text], "");
    assert!(!left.contains("Null") && !left.contains("StaticSwitch"), "{left}");
    assert_eq!(out("click", &words, &left), counts);
}

#[test]
fn aligning() {
    let tool = "click-align";
    let text = "f :: FromDump(x) -> c :: CheckIPHeader -> d :: Discard";
    let want = "f :: FromDump(x);\nc :: CheckIPHeader;\nd :: Discard;\n\
                Align@click_align@4 :: Align(4, 0);\n\n\
                f -> Align@click_align@4\n    -> c\n    -> d;\n";
    let warning = "warning: added 1 Align element\n";
    let (status, text_out, err) = all(tool, &["-e", text], "");
    assert_eq!((status, text_out.as_str(), err.as_str()), (Some(0), want, warning));
    for option in ["-q", "--quiet"] {
        assert_eq!(out(tool, &[option, "-e", text], ""), want);
    }
    for option in ["-b", "-l", "-u", "--bsdmodule", "--linuxmodule", "--userlevel"] {
        assert_eq!(out(tool, &["-q", option, "-e", text], ""), want);
    }
    for option in ["-V", "--verbose"] {
        let (_, _, err) = all(tool, &[option, "-e", text], "");
        assert_eq!(err, format!("[0]c: adding Align(4, 0) to fix 1/0\n{warning}"));
    }
    let asserted = out(tool, &["--assertions", "-e", text], "");
    assert!(asserted.contains("CheckAlign@click_align@4 :: CheckAlign(4, 0, ASSERT true);"));
    let info = out(tool, &["-e", "FromDevice(e) -> c :: Classifier(-) -> Discard"], "");
    assert!(info.contains("AlignmentInfo@click_align@4 :: AlignmentInfo(c  4 2);\n"), "{info}");
}

#[test]
fn connections_are_printed_by_age() {
    let declared = "x :: X; y :: Y; p :: P; q :: Q; r :: R;";
    let links = "x -> a1 :: Align(8, 2) -> a2 :: Align(4, 2) -> y; p -> a2; q -> a1; a1 -> r";
    let aligned = out("click-align", &["-q", "-e", &format!("{declared} {links}")], "");
    let chains = "\n\nx -> a1\n    -> r;\np -> a2\n    -> y;\nq -> a1;\na1 -> y;\n";
    assert!(aligned.ends_with(chains), "{aligned}");
    // The driver prints them by input port.
    let text = "Idle -> [1] s :: RoundRobinSched; Idle -> [0] s; s -> Discard";
    let flat = out("click-flatten", &["-e", text], "");
    assert!(flat.contains("\n\nIdle@1 -> [1] s;\nIdle@3 -> s\n"), "{flat}");
    let driver = out("click", &["-q", "-e", text, "-h", "flatconfig"], "");
    assert!(driver.contains("\n\nIdle@3 -> s\n    -> Discard@4;\nIdle@1 -> [1] s;\n"), "{driver}");
}

#[test]
fn new_elements_take_the_places_of_old_ones() {
    let rules = file(
        "places.click",
        "elementclass P { input -> A -> B -> C -> output }
         elementclass P_Replacement { input -> X -> Y -> output }",
    );
    let names = |text: &str| {
        let text = out("click-xform", &["-p", &rules, "-e", text], "");
        let lines = text.lines().take_while(|line| !line.is_empty());
        let classes = lines.filter_map(|line| line.split(" :: ").nth(1));
        classes.map(|class| class.trim_end_matches(';').to_owned()).collect::<Vec<_>>()
    };
    // The place that was left last is the replacement's own; its parts take the others, the last first.
    assert_eq!(names("I -> A -> B -> C -> D"), ["I", "Y", "X", "D"]);
    // It is free for the next replacement, whose own place is again that of the last one removed.
    assert_eq!(
        names("I -> A -> B -> C -> D; J -> A -> B -> C -> E"),
        ["I", "Y", "X", "D", "J", "Y", "X", "E"]
    );
}

const RULES: &str = "elementclass Meters { input -> Meter($a) -> Shaper($b) -> output }
elementclass Meters_Replacement { input -> Meter($b) -> SlowShaper($a) -> output }
elementclass Lone { input -> A -> output }";

#[test]
fn transforming() {
    let tool = "click-xform";
    let rules = file("rules.click", RULES);
    let text = "i :: I -> Meter(1000) -> Shaper($n) -> d :: D; define($n 2000)";
    let source = file("meters.click", text);
    // One of the two places is that of the replacement as a whole.
    let want = "define($n 2000);\n\ni :: I;\nMeter@2 :: Meter($n);\nd :: D;\n\
                Meters@1/SlowShaper@2 :: SlowShaper(1000);\n\n\
                i -> Meter@2\n    -> Meters@1/SlowShaper@2\n    -> d;\n";
    for words in [
        &["-p", &rules, "-e", text][..],
        &["--patterns", &rules, "-f", &source],
        &[&source, &rules],
        &["-", &rules],
        &["--no-reverse", &source, &rules],
    ] {
        assert_eq!(out(tool, words, text), want, "{words:?}");
    }
    let back = "define($n 2000);\n\ni :: I;\nMeter@2 :: Meter(1000);\nd :: D;\n\
                Meters@2/Shaper@2 :: Shaper($n);\n\n\
                i -> Meter@2\n    -> Meters@2/Shaper@2\n    -> d;\n";
    for option in ["-r", "--reverse"] {
        assert_eq!(out(tool, &[option, "-p", &rules], want), back);
    }
    // Nothing matches: nothing changes.
    let rules2 = file("rules2.click", RULES.replace("Meter(", "Other("));
    assert_eq!(out(tool, &["-p", &rules2, "-p", &rules2], want), want);
    assert_eq!(out(tool, &["-p", &rules2, "-p", &rules, "-e", text], ""), want);
    let (status, _, err) = all(tool, &["-e", TEXT], "");
    assert_eq!((status, err.as_str()), (Some(0), "click-xform: warning: no patterns read\n"));
    let endless = file(
        "endless.click",
        "elementclass A { input -> I -> output } elementclass A_Replacement { input -> I -> output }
         elementclass B { input -> I -> output } elementclass B_Replacement { input -> I -> output }",
    );
    let err = complaints(tool, &["-p", &endless, "-e", "Idle -> I -> Discard"], "");
    assert!(err.contains("replacements never end: 'A', 'B'"), "{err}");
    let lost = file(
        "lost.click",
        "elementclass A { input -> I -> output }\nelementclass A_Replacement { input -> I }",
    );
    let err = complaints(tool, &["-p", &lost, "-e", TEXT], "");
    // Whichever other files there are.
    let more = complaints(tool, &["-p", &rules, "-p", &lost, "-p", &rules, "-e", TEXT], "");
    assert_eq!(err, more);
    assert!(
        err.ends_with("lost.click:2: output 0 of pattern 'A' is missing in its replacement\n"),
        "{err}"
    );
    let broken = file("broken.click", "elementclass A {");
    assert!(complaints(tool, &["-p", &broken, "-e", TEXT], "").contains("broken.click:1: "));
}
