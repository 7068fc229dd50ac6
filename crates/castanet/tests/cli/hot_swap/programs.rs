//! Programs that replace their own configuration, and configurations that are refused.

use super::{replaced, run};
use crate::program::{click, folder, wait_until};

#[test]
fn an_invalid_configuration_changes_nothing() {
    let config = "s :: RatedSource(RATE 1000) -> c :: Counter -> Discard;";
    let mut it = run("wrong", &["-j", "2"], config);
    let folder = folder("hot-swap");
    let nowhere = folder.join("no/such/folder/dump");
    for (wrong, words) in [
        ("c :: Counter".to_owned(), "'c :: Counter' input 0 unused"),
        ("Idle -> Counter ->".to_owned(), "syntax error"),
        (format!("{config} y :: Foo"), "unknown element class 'Foo'"),
        (format!("{config} Idle -> Queue(many) -> Idle"), "`many`"),
        (format!("{config} Idle -> ToDump({})", nowhere.display()), "No such file"),
        (format!("{config} Idle -> ToDevice(nowhere0)"), "nowhere0"),
        (String::new(), ""),
    ] {
        let before: u64 = it.client.read("c.count").parse().unwrap();
        if !wrong.is_empty() {
            let output = it.swap(&wrong).unwrap_err();
            assert!(output.contains(words), "{wrong}: {output}");
        }
        // It runs on.
        wait_until(&format!("{wrong} has stopped it"), || {
            it.client.read("c.count").parse::<u64>().unwrap() > before
        });
    }
    assert!(it.client.read("handlers").contains("hotconfig\tw\n"));
    it.end();
    // A router without the option has no such handler.
    let answer = click(&["-e", "DriverManager(write hotconfig \"\", stop)"], b"");
    assert!(answer.err.contains("hotconfig"), "{}", answer.err);
}

#[test]
fn scripts_begin_anew_and_may_ask_themselves() {
    let second = "c :: Counter; RatedSource(RATE 10) -> c -> Discard;
                  DriverManager(print \"second\" $(c.count), wait 1s, print $(c.count), stop)";
    let file = folder("hot-swap").join("second.click");
    std::fs::write(&file, second).unwrap();
    let first = format!(
        "c :: Counter; RatedSource(RATE 10) -> c -> Discard;
         DriverManager(wait 2s, print \"first\" $(c.count),
                       write hotconfig $(cat {}), wait 100s, print \"never\")",
        file.display()
    );
    let result = click(&["--allow-reconfigure", "--simtime", "-e", &first], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{}", result.out);
    let counts: Vec<u64> =
        result.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(result.out.starts_with("first ") && result.out.contains("\nsecond "), "{}", result.out);
    // The counter has gone on, by what ten a second come to.
    assert!((20..=21).contains(&counts[0]) && counts[1] == counts[0], "{counts:?}");
    assert!((counts[1] + 10..=counts[1] + 11).contains(&counts[2]), "{counts:?}");
}

#[test]
fn the_end_of_the_old_driver_stops_nothing() {
    let second = "DriverManager(wait 0.1s, print \"second\", stop)";
    for first in [
        "DriverManager(write hotconfig SECOND, print \"rest\")",
        "DriverManager(wait 0.05s, write hotconfig SECOND, print \"rest\", stop)",
        "Script(wait 0.05s, write hotconfig SECOND, print \"rest\", stop)",
        "Script(wait 0.05s, write hotconfig SECOND, print \"rest\"); Script(wait 0.05s, print \"never\", stop)",
        "DriverManager(wait 0.05s, write hotconfig SECOND, print \"rest\", write stop)",
    ] {
        for words in [&["--simtime"] as &[&str], &[], &["-j", "2"]] {
            let result = replaced("driver.click", words, first, second);
            let (status, output) = (result.status, result.out.as_str());
            assert_eq!((status, output), (Some(0), "rest\nsecond\n"), "{first}: {}", result.err);
        }
    }
}

#[test]
fn a_configuration_that_cannot_be_initialized_answers_with_all_lines() {
    let output = |second: &str| {
        let first = "DriverManager(write hotconfig SECOND, stop)";
        replaced("refused.click", &["--simtime"], first, second).err
    };
    let lines = output("Idle -> Print");
    let end = "config:1: 'Print@2 :: Print' output 0 unused\nRouter could not be initialized!\n";
    let flush: String = lines.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    assert!(flush.ends_with(end), "{lines}");
    for wrong in ["Idle -> ->", "Idle -> x :: Foo -> Discard"] {
        assert!(!output(wrong).contains("initialized"), "{wrong}");
    }
}
