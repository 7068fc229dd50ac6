//! Click's optimizers, whose work Castanet does by itself: configurations pass unchanged.

use super::{TEXT, all, complaints, file, out};
use crate::build::Place;
use crate::program::link;

const SAID: [(&str, &str); 2] = [
    (
        "click-fastclassifier",
        "click-fastclassifier: the configuration is passed on unchanged: Castanet compiles the \
         patterns of each classifier when a router starts; `castanet build` compiles the elements \
         around it\n",
    ),
    (
        "click-devirtualize",
        "click-devirtualize: the configuration is passed on unchanged: Castanet runs elements that \
         follow each other as one pass; `castanet build` compiles more of them\n",
    ),
];

#[test]
fn configurations_pass_through_unchanged() {
    let text = "// a comment\ndefine($n 3)\n  InfiniteSource(LIMIT $n, STOP true)\n\
                -> c :: Counter -> Discard // no semicolon";
    for (tool, output) in SAID {
        assert_eq!(all(tool, &[], text), (Some(0), text.into(), output.into()));
        for option in [
            "-k",
            "-u",
            "-c",
            "-r",
            "--kernel",
            "--user",
            "--config",
            "--reverse",
            "-l",
            "--linuxmodule",
            "--userlevel",
        ] {
            assert_eq!(out(tool, &["-q", option, "-e", text], ""), text, "{tool} {option}");
        }
        for option in ["-s", "--source"] {
            let err = complaints(tool, &[option, "-e", text], "");
            assert!(err.starts_with(&format!("{tool}: there is no source code: ")), "{err}");
        }
    }
    let wrong = file("wrong.click", "a -> b");
    for (tool, _) in SAID {
        let err = complaints(tool, &[&wrong], "");
        assert!(err.contains("wrong.click:1: undeclared element 'a'\n"), "{err}");
        assert_eq!(complaints(tool, &["-"], "a"), "<stdin>:1: undeclared element 'a'\n");
    }
    for words in [
        &["-n", "Counter", "--no-devirtualize", "Queue"][..],
        &["-i", "/no/such", "--instructions", "/no/such"],
    ] {
        let words = [&["-q"], words].concat();
        assert_eq!(out("click-devirtualize", &words, text), text);
    }
    // A pipeline of tools still works.
    let text = out("click-fastclassifier", &["-q"], text);
    let text = out("click-devirtualize", &["-q"], &text);
    assert_eq!(out("click", &["-h", "c.count"], &text), "3\n");
}

#[test]
fn a_driver_is_built() {
    let tool = "click-mkmindriver";
    let place = Place::new("driver", "1.95.0", "");
    let source = file("driver.click", TEXT);
    std::fs::create_dir(place.path("d")).unwrap();
    for (words, driver) in [
        (&["-p", "x", "-e", TEXT][..], "xclick"),
        (
            &["--package", "y", &source, "-f", &source, "-a", "-u", "-d", "d", "--no-extras"],
            "d/yclick",
        ),
        (&["-p", "x", "--all", "--userlevel", "--directory", ".", "-E", "Queue Tee"], "xclick"),
        (&["-p", "x", "--elements", "Queue", "--file", &source], "xclick"),
        (&["-p", "x", "-e", TEXT, "-o", "other"], "other"),
    ] {
        _ = std::fs::remove_file(place.path(driver));
        let result = place.run(link(tool), words, "");
        assert_eq!((result.status, result.out.as_str()), (Some(0), ""), "{words:?} {}", result.err);
        assert!(place.text(driver).contains("is_driver: true"), "{}", place.text(driver));
    }
    let result = place.run(link(tool), &["-q", "-p", "z"], TEXT);
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    for option in ["-V", "--verbose"] {
        let err = place.run(link(tool), &[option, "-p", "x", "-e", TEXT], "").err;
        assert!(
            err.starts_with("config: i needs InfiniteSource\nconfig: d needs Discard\n"),
            "{err}"
        );
    }
    let text = "Idle -> Paint(1) -> Strip(14) -> Discard";
    let result = place.run(link(tool), &["-p", "x", "-e", text], "");
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(place.text("xclick").contains("castanet::fuse!("), "{}", place.text("xclick"));
}

#[test]
fn drivers_that_cannot_be_are_not_built() {
    let tool = "click-mkmindriver";
    let err = complaints(tool, &["-p", "x", "-e", "Foo -> Discard", "-E", "Queu"], "");
    assert_eq!(
        err,
        "click-mkmindriver: unknown element class 'Queu'; did you mean 'Queue'?\n\
         config:1: unknown element class 'Foo'\n"
    );
    let err = complaints(tool, &["-e", TEXT], "");
    assert!(
        err.starts_with("click-mkmindriver: fatal error: no package name specified\n"),
        "{err}"
    );
    let err = complaints(tool, &["-p", "x", "-d", "/no/such", "-e", TEXT], "");
    assert_eq!(err, "click-mkmindriver: /no/such/xclick: there is no folder /no/such\n");
    for option in ["-l", "-k", "--linuxmodule", "--kernel"] {
        let err = complaints(tool, &["-p", "x", option, "-e", TEXT], "");
        assert_eq!(
            err,
            "click-mkmindriver: Castanet runs at user level only, not as linuxmodule\n"
        );
    }
}

#[test]
fn nothing_is_built() {
    let options = ["-f", "x", "-e", TEXT, "-o", "/no/such", "-C", "/no/such", "-q"];
    for words in [&[][..], &["elem2make", "x"], &["makepackage"], &options] {
        let err = complaints("click-buildtool", words, "");
        assert_eq!(
            err,
            "click-buildtool: nothing to build: Castanet's elements are built with it, by cargo; \
             `castanet elements` lists them\n"
        );
    }
}
