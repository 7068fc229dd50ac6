//! `click-install` and `click-uninstall`, at the control socket of a router.

use super::{all, complaints, file};
use crate::ctl::{RuntimeFolder, ends_well};

/// A router whose configuration may be replaced.
const FIRST: &str = "c :: Counter; InfiniteSource(LIMIT 5, STOP false) -> c -> Discard;";
const SECOND: &str = "InfiniteSource(LIMIT 0) -> c :: Counter -> d :: Counter -> Discard;";

#[test]
fn a_router_runs_what_is_installed() {
    let folder = RuntimeFolder::new("click-install");
    folder.write("router.click", FIRST);
    let router = folder.run(&["router.click", "--allow-reconfigure"]);
    let socket = folder.socket("router");
    let socket = socket.to_str().unwrap();
    crate::program::wait_until("five packets", || folder.number("router", "c.count") == 5);
    let path = file("second.click", SECOND);
    let run = |tool: &str, words: &[&str], input: &str| {
        assert_eq!(all(tool, words, input), (Some(0), String::new(), String::new()), "{words:?}");
    };
    for words in [
        &["-h", &path][..],
        &["--hot-swap", "-f", &path],
        &["--file", &path],
        &["-e", SECOND],
        &["--expression", SECOND],
    ] {
        run("click-install", &[words, &["--socket", socket]].concat(), "");
        assert_eq!(folder.read("router", "config"), SECOND, "{words:?}");
        assert_eq!(folder.number("router", "c.count"), 5);
    }
    // From standard input, with a library and a variable: as text without them.
    let library = file("library.click", "elementclass Pair { input -> Counter -> output }");
    let text = format!(
        "require(library {library}) define($n 3); InfiniteSource(LIMIT $n) -> Pair -> Discard;"
    );
    run("click-install", &["--socket", socket, "n=0"], &text);
    let config = folder.read("router", "config");
    assert!(config.contains("define($n 0)") && !config.contains("require"), "{config}");
    assert!(config.contains("Pair@2/Counter@1 :: Counter"), "{config}");
    // A wrong one changes nothing.
    let said =
        complaints("click-install", &["--socket", socket, "-e", "x :: Nonsense -> Discard"], "");
    assert!(said.contains("unknown element class 'Nonsense'"), "{said}");
    let said = complaints("click-install", &["--socket", socket, "-e", "Idle -> c[7]"], "");
    assert!(said.contains("c"), "{said}");
    assert_eq!(folder.read("router", "config"), config);
    run("click-uninstall", &["--socket", socket], "");
    ends_well(router);
}

#[test]
fn both_say_what_they_do_not_take() {
    for option in ["-o", "--output"] {
        let said = complaints("click-install", &[option, "file", "-e", SECOND], "");
        assert!(said.contains("is installed, and not written to a file"), "{said}");
    }
    for words in [
        &["-f", "x"][..],
        &["--file", "x"],
        &["-e", "Idle"],
        &["--expression", "Idle"],
        &["-o", "x"],
        &["--output", "x"],
        &["x.click"],
    ] {
        let said = complaints("click-uninstall", words, "");
        assert!(said.contains("click-uninstall: it takes no configuration"), "{words:?} {said}");
    }
    for tool in ["click-install", "click-uninstall"] {
        for option in ["-q", "--quiet"] {
            let input = "Idle -> Discard;";
            let said = complaints(tool, &[option, "--socket", "/nowhere/socket"], input);
            assert!(said.contains("/nowhere/socket"), "{said}");
        }
    }
    for option in ["-C", "--clickpath"] {
        let words = [option, "/nowhere", "--socket", "/nowhere/socket"];
        let said = complaints("click-uninstall", &words, "");
        assert!(said.contains("/nowhere/socket"), "{said}");
    }
    for option in ["-u", "--uninstall"] {
        let words = [option, "-e", SECOND, "--socket", "/nowhere/socket"];
        let said = complaints("click-install", &words, "");
        assert!(said.contains("/nowhere/socket"), "{said}");
    }
}
