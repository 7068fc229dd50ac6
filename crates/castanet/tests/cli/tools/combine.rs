//! `click-combine` and `click-uncombine`.

use super::{all, complaints, file, out};
use crate::program::named;

const A: &str = "FromDevice(eth0) -> Discard; InfiniteSource -> Queue -> ToDevice(eth0);";
const B: &str = "f :: FromDevice(eth1) -> Discard; RatedSource -> Queue -> t :: ToDevice(eth1);";
const FLAT_B: &str = "Discard@2 :: Discard;\nRatedSource@3 :: RatedSource;\nQueue@4 :: Queue;\n\
                      t :: ToDevice(eth1);\nf :: FromDevice(eth1);\n\n\
                      f -> Discard@2;\nRatedSource@3 -> Queue@4\n    -> t;\n";
const LINKS: [&str; 2] = ["a.eth0=b.eth1", "b.t=a.FromDevice@1"];

/// The lines of a configuration, in no order.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.split_inclusive(";\n").map(str::trim).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn routers_join_and_part() {
    let (a, b) = (file("a.click", A), file("b.click", B));
    let (named_a, named_b) = (format!("a={a}"), format!("b={b}"));
    let ways: [&[&str]; 5] = [
        &[&named_a, &named_b, LINKS[0], LINKS[1]],
        &["-n", "a", "-f", &a, "--name", "b", "--file", &b, "-l", LINKS[0], "--link", LINKS[1]],
        &["-n", "a", "-e", A, "-n", "b", "--expression", B, LINKS[0], LINKS[1]],
        &["-n", "a", &a, "-n", "b", &b, LINKS[0], LINKS[1]],
        &[LINKS[0], &format!("a:{a}"), &format!("b:{b}"), LINKS[1]],
    ];
    let first = out("click-combine", ways[0], "");
    for words in ways {
        assert_eq!(out("click-combine", words, ""), first, "{words:?}");
    }
    assert!(first.starts_with("!<arch>\n"), "{first}");
    for name in ["config", "componentmap", "elementmap.xml"] {
        assert!(first.contains(&format!("\n{name} ")), "{name}\n{first}");
    }
    let config = out("click-combine", &[ways[0], &["-c"]].concat(), "");
    assert_eq!(config, out("click-combine", &[ways[0], &["--config"]].concat(), ""));
    for line in [
        "link1 :: RouterLink(a ToDevice@5 ToDevice, eth0, b f FromDevice, eth1);\n",
        "a/InfiniteSource@3 -> a/Queue@4\n    -> link1\n    -> b/Discard@2;\n",
        "b/RatedSource@3 -> b/Queue@4\n    -> link2\n    -> a/Discard@2;\n",
    ] {
        assert!(config.contains(line), "{line}\n{config}");
    }
    let target = file("combined", "");
    assert_eq!(out("click-combine", &[ways[0], &["-o", &target]].concat(), ""), "");
    for words in [
        &["-n", "b", &target][..],
        &["--name", "b", "-f", &target],
        &[&target, "b"],
        &["-f", &target, "b"],
        &["-", "b"],
        &["-n", "b"],
    ] {
        let part = named("click-uncombine", words, first.as_bytes());
        assert_eq!((part.status, part.err.as_str()), (Some(0), ""), "{words:?}");
        assert_eq!(lines(&part.out), lines(FLAT_B), "{words:?}");
    }
    assert_eq!(out("click-uncombine", &["--list", &target], ""), "a\nb\n");
    // The parts of a flattened or transformed combination come back too.
    let flat = named("click-flatten", &[&target], b"");
    let part = named("click-uncombine", &["-", "b"], flat.out.as_bytes());
    assert_eq!(lines(&part.out), lines(FLAT_B));
    let part = out("click-uncombine", &[&target, "a"], "");
    let (status, _, err) = all("click-check", &["-e", &part], "");
    assert_eq!((status, err.as_str()), (Some(0), "config: configuration OK in userlevel driver\n"));
}

#[test]
fn a_combined_configuration_runs() {
    let words = [
        "-c",
        "-n",
        "a",
        "-e",
        "InfiniteSource(LIMIT 3) -> Queue -> ToDevice(eth0); FromDevice(eth0) -> c :: Counter -> Discard",
        "-n",
        "b",
        "-e",
        "FromDevice(eth1) -> c :: Counter -> Queue -> ToDevice(eth1)",
        "a.eth0=b.eth1",
        "b.eth1=a.eth0",
    ];
    let config = out("click-combine", &words, "");
    // There and back again, by two wires.
    let script = "Script(wait 1, stop)";
    let text = format!("{config} {script}");
    let result =
        named("click", &["--simtime", "-e", &text, "-h", "b/c.count", "-h", "a/c.count"], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    assert_eq!(result.out, "b/c.count:\n3\n\na/c.count:\n3\n\n");
}

#[test]
fn warnings_and_errors_of_combining() {
    let tool = "click-combine";
    let (status, _, err) = all(tool, &["-e", A, "-n", "b", "-e", B], "");
    let want = "click-combine: warning: no links between routers\n";
    assert_eq!((status, err.as_str()), (Some(0), want));
    assert_eq!(out(tool, &["-q", "-e", A, "-n", "b", "-e", B], "").matches("router1/").count(), 10);
    let (_, _, err) = all(tool, &["-n", "x", "-n", "a", "-e", A, "-c"], "");
    assert!(err.contains("warning: router name specified twice ('x' and 'a')\n"), "{err}");
    for (words, want) in [
        (&[][..], "no routers specified"),
        (&["-n", "a", "-e", A, "-n", "a", "-e", B], "two routers named 'a'"),
        (&["-n", "a b", "-e", A], "router name 'a b' is not a legal Click identifier"),
        (&["-n", "a", "-e", A, "-l", "a=b"], "bad link definition 'a=b'"),
        (&["-n", "a", "-e", A, "a.eth0=b.x"], "no router named 'b'"),
        (&["-n", "a", "-e", A, "a.eth0=a.x"], "router 'a' has no element or device named 'x'"),
    ] {
        assert_eq!(complaints(tool, words, ""), format!("{tool}: {want}\n"), "{words:?}");
    }
    let (_, _, err) = all(tool, &["-n", "a", "-e", A, "a.Queue@4=a.eth0"], "");
    assert_eq!(
        err,
        "click-combine: warning: router 'a' element 'Queue@4' has unexpected class\n\
         click-combine: warning:   expected ToDevice, got Queue\n"
    );
    let tool = "click-uncombine";
    let err = complaints(tool, &["-"], A);
    assert_eq!(
        err,
        "click-uncombine: <stdin>: not created by 'click-combine' (no 'componentmap')\n"
    );
    let both = out("click-combine", &["-q", "-n", "a", "-e", A, "-n", "b", "-e", B], "");
    assert_eq!(complaints(tool, &["-"], &both), "click-uncombine: no component specified\n");
    let err = complaints(tool, &["-", "c"], &both);
    assert_eq!(err, "click-uncombine: <stdin>: no 'c' component\n");
    let err = complaints(tool, &["-", "c", "-n", "d"], &both);
    assert!(err.starts_with("click-uncombine: component name specified twice\n"), "{err}");
}
