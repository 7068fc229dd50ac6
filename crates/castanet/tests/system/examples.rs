//! Each example runs by the command in its own comment and prints the lines of that comment.

use std::fs;
use std::time::Duration;

use castanet_lab::{Lab, require};

use crate::testbed::{SOON, conf, program, root};

/// Interfaces and commands that an example's opening comment gives.
struct ExampleHeader {
    /// The words of the command.
    command: Vec<String>,
    /// The lines it prints, in order; `…` stands for anything.
    prints: Vec<String>,
}

/// Reads the opening comment: of its indented lines the first is the command.
fn header(text: &str) -> ExampleHeader {
    let comment = text.lines().map_while(|line| line.strip_prefix("//"));
    let mut indented = comment.filter_map(|line| line.strip_prefix("   "));
    let command = indented.next().expect("a command in the opening comment");
    ExampleHeader {
        command: command.split_whitespace().map(str::to_owned).collect(),
        prints: indented.map(str::to_owned).collect(),
    }
}

/// Whether a line is as expected; `…` stands for anything.
fn fits(line: &str, expected: &str) -> bool {
    let mut rest = line;
    let parts: Vec<&str> = expected.split('…').collect();
    for (i, part) in parts.iter().enumerate() {
        match rest.find(part) {
            Some(at) if i > 0 || at == 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || expected.ends_with('…')
}

#[test]
fn examples_print_the_lines_of_their_comments() {
    let mut names: Vec<String> = fs::read_dir(conf("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "ping-tap.click")
        .collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    let lab = Lab::new("examples").unwrap();
    let place = lab.namespace("place").unwrap();
    for name in names {
        let header = header(&fs::read_to_string(conf("examples").join(&name)).unwrap());
        let file = format!("conf/examples/{name}");
        assert!(header.command[0] == "castanet" && header.command.contains(&file), "{name}");
        assert!(!header.prints.is_empty(), "{name} does not say what it prints");
        // In a namespace: an example that opened a device would find none of the machine.
        let result = place.command(program()).args(&header.command[1..]).current_dir(root());
        let result = result.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let printed = result.printed();
        let mut lines = printed.lines();
        for expected in &header.prints {
            assert!(
                lines.any(|line| fits(line, expected)),
                "{name}: no `{expected}` in\n{printed}"
            );
        }
    }
}

#[test]
fn a_tap_answers_ping() {
    require(&["ip", "ping"]).unwrap();
    let lab = Lab::new("tap").unwrap();
    let place = lab.namespace("place").unwrap();
    let config = conf("examples/ping-tap.click");
    let mut running = place.command(program()).arg("run").arg(config).spawn().unwrap();
    running.wait_for(castanet_lab::Router::READY, SOON).unwrap();
    let answered = place.ping(&["-i", "0.2"], 3, "10.9.9.2");
    answered.unwrap_or_else(|error| panic!("{error}\n{}", running.stderr()));
    running.interrupt();
    running.wait(Duration::from_secs(5)).unwrap();
}

#[test]
fn the_wildcard_matches_any_text() {
    assert!(fits("busy 500 modest 499", "busy … modest …"));
    assert!(fits("exactly", "exactly"));
    assert!(!fits("exactly so", "exactly"));
    assert!(!fits("not exactly", "exactly"));
    assert!(!fits("busy 500", "busy … modest …"));
}
