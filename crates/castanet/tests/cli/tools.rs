//! Click's tools by their names, each option of each: process in, text out.

mod combine;
mod install;
mod links;
mod no_op_tools;
mod transform;
mod xml_and_pretty;

use crate::program::{folder, named};
use std::path::PathBuf;

/// Exit status, standard output, standard error.
fn all(tool: &str, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let result = named(tool, words, input.as_bytes());
    (result.status, result.out, result.err)
}

/// Standard output of a tool that succeeds and writes nothing to standard error.
fn out(tool: &str, words: &[&str], input: &str) -> String {
    let (status, out, err) = all(tool, words, input);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{tool} {words:?}\n{out}");
    out
}

/// Standard error of a tool that fails.
fn complaints(tool: &str, words: &[&str], input: &str) -> String {
    let (status, out, err) = all(tool, words, input);
    assert_eq!((status, out.as_str()), (Some(1), ""), "{tool} {words:?}\n{err}");
    err
}

/// A file with this text in a folder for these tests.
fn file(name: &str, text: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder("tools").join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Tools that read one configuration and write one.
pub(crate) const FILTERS: [&str; 6] = [
    "click-flatten",
    "click-undead",
    "click-align",
    "click-xform",
    "click-fastclassifier",
    "click-devirtualize",
];

/// Tools that read no configuration.
const BLIND: [&str; 2] = ["click-buildtool", "click-uninstall"];

/// All tools.
pub(crate) const EVERY: [&str; 15] = [
    "click-align",
    "click-buildtool",
    "click-check",
    "click2xml",
    "click-combine",
    "click-devirtualize",
    "click-fastclassifier",
    "click-flatten",
    "click-install",
    "click-mkmindriver",
    "click-pretty",
    "click-uncombine",
    "click-undead",
    "click-uninstall",
    "click-xform",
];

const TEXT: &str = "i :: InfiniteSource -> d :: Discard;";
const FLAT: &str = "i :: InfiniteSource;\nd :: Discard;\n\ni -> d;\n";

/// Output of a filter tool for `TEXT`.
fn made(tool: &str) -> &'static str {
    match tool {
        "click-fastclassifier" | "click-devirtualize" => TEXT,
        _ => FLAT,
    }
}

#[test]
fn configurations_come_from_anywhere_and_go_anywhere() {
    let source = file("source.click", TEXT);
    for tool in FILTERS {
        let want = made(tool);
        for words in [
            &["-q", "-e", TEXT][..],
            &["-qe", TEXT],
            &["--quiet", "--expression", TEXT],
            &["--quiet", "--expr", TEXT],
            &["-q", "-f", &source],
            &["-q", "--file", &source, "-o", "-"],
            &["-q", &source],
        ] {
            assert_eq!(out(tool, words, ""), want, "{tool} {words:?}");
        }
        assert_eq!(out(tool, &["-q"], TEXT), want, "{tool}");
        assert_eq!(out(tool, &["-q", "-"], TEXT), want, "{tool}");
        let target = file("target.click", "");
        for option in ["-o", "--output"] {
            std::fs::write(&target, "").unwrap();
            assert_eq!(out(tool, &["-q", &source, option, &target], ""), "");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), want, "{tool}");
        }
    }
}

#[test]
fn every_tool_says_its_name_and_options() {
    for tool in EVERY {
        for option in ["--version", "-v"] {
            let text = out(tool, &[option], "");
            assert!(text.starts_with(&format!("{tool} (Click) 2.1 compatible, ")), "{text}");
        }
        let help = out(tool, &["--help"], "");
        assert!(help.contains(&format!("Usage: {tool} ")), "{help}");
        for option in ["--file", "--expression", "--output", "--clickpath", "--quiet"] {
            assert!(help.contains(option), "{tool}: {option}\n{help}");
        }
        for (words, want) in [
            (&["--no-such-option"][..], "unrecognized option '--no-such-option'"),
            (&["--file"], "'--file' requires an argument"),
        ] {
            let usage = format!("Usage: {tool} [OPTION]... [ROUTERFILE]");
            let err = complaints(tool, words, "");
            let want =
                format!("{tool}: {want}\n{usage}\nTry '{tool} --help' for more information.\n");
            assert_eq!(err, want);
        }
    }
}

#[test]
fn errors_exit_with_1() {
    for tool in FILTERS {
        let quiet = |words: &[&str]| {
            let words: Vec<_> = ["-q"].iter().chain(words).copied().collect();
            complaints(tool, &words, "")
        };
        assert_eq!(quiet(&["-e", "a -> "]), "config:1: syntax error near end of file\n", "{tool}");
        assert_eq!(quiet(&["-e", "a"]), "config:1: undeclared element 'a'\n", "{tool}");
        let usage = |tool: &str, message: &str| {
            format!(
                "{tool}: {message}\nUsage: {tool} [OPTION]... [ROUTERFILE]\n\
                 Try '{tool} --help' for more information.\n"
            )
        };
        let twice = usage(tool, "router configuration specified twice");
        assert_eq!(quiet(&["-e", TEXT, "-f", "x"]), twice);
        let outputs = usage(tool, "output file specified twice");
        assert_eq!(quiet(&["-e", TEXT, "-o", "x", "-o", "y"]), outputs);
        let vars = usage(tool, "parameter 'n' multiply defined");
        assert_eq!(quiet(&["-e", TEXT, "n=1", "n=2"]), vars);
        let missing = quiet(&["/no/such.click"]);
        assert!(missing.contains("/no/such.click: No such file or directory"), "{missing}");
        let unwritable = quiet(&["-e", TEXT, "-o", "/no/such/file"]);
        assert_eq!(unwritable, format!("{tool}: /no/such/file: No such file or directory\n"));
    }
}

#[test]
fn libraries_are_looked_for_in_clickpath() {
    let library = folder("tools").join("lib/conf");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("pair.click"), "elementclass P { input -> A -> output }").unwrap();
    let text = "require(library pair.click) i :: I -> P -> d :: D";
    let path = library.parent().unwrap().to_str().unwrap();
    for option in ["-C", "--clickpath"] {
        let flat = out("click-flatten", &[option, path, "-e", text], "");
        assert!(flat.contains("P@2/A@1 :: A;"), "{flat}");
    }
    let output = "library 'pair.click' not found";
    let err = complaints("click-flatten", &["-C", "/nowhere", "-e", text], "");
    assert!(err.contains(output), "{err}");
    // Every tool that reads a configuration looks there; some want more words.
    for tool in EVERY.into_iter().filter(|tool| !BLIND.contains(tool)) {
        let words: &[&str] = match tool {
            "click-mkmindriver" => &["-p", "x"],
            "click-uncombine" => &["-n", "x"],
            _ => &[],
        };
        for option in ["-C", "--clickpath"] {
            let run = |path: &str| {
                let words = [words, &[option, path, "-e", text]].concat();
                let (_, out, err) = all(tool, &words, "");
                // A page shows it where it is.
                out.replace("&#39;", "'") + &err
            };
            assert!(!run(path).contains(output), "{tool}: {}", run(path));
            assert!(run("/nowhere").contains(output), "{tool}: {}", run("/nowhere"));
        }
    }
}
