//! `docs/handlers.md` is right: its commands, its protocol, its tables.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use castanet_lab::{CodeBlock, code_blocks};

use crate::ctl::RuntimeFolder;
use crate::program::root;

/// Runs the commands of a block as clients of the page's router.
fn run_console(folder: &RuntimeFolder, block: &CodeBlock) {
    for step in block.steps() {
        let words: Vec<&str> = step.command.split(' ').collect();
        assert_eq!(words[0], "castanet", "line {}", block.line);
        let result = folder.client(&words[1..], "");
        let printed = result.out + &result.err;
        assert_eq!(printed, step.output, "line {}: {}", block.line, step.command);
    }
}

/// Sends the client's lines of a block, and compares the answers.
fn talk(folder: &RuntimeFolder, block: &CodeBlock) {
    let stream = UnixStream::connect(folder.socket("router")).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut lines = block.text.lines();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("> ") {
            write!(writer, "{command}\r\n").unwrap();
            continue;
        }
        let mut answer = String::new();
        reader.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), line, "line {} ff.", block.line);
        if let Some(length) = line.strip_prefix("DATA ") {
            let mut data = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut data).unwrap();
            assert_eq!(String::from_utf8(data).unwrap(), lines.next().unwrap());
        }
    }
    let mut rest = String::new();
    assert_eq!(reader.read_to_string(&mut rest).unwrap(), 0, "{rest}");
}

/// The names in the first column of the tables below a heading.
fn names_below(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// The names that the handler `handlers` of the router, or of an element, lists.
fn names_of(folder: &RuntimeFolder, element: &[&str]) -> BTreeSet<String> {
    let listed = folder.client(&[&["ctl", "handlers"], element].concat(), "").out;
    listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[test]
fn commands_and_protocol_answer_as_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/handlers.md")).unwrap();
    let folder = RuntimeFolder::new("handlers-page");
    let blocks = code_blocks(&page);
    folder.write("router.click", &blocks[0].text);
    let _router = folder.run(&["router.click", "--allow-reconfigure"]);
    for block in &blocks[1..] {
        match block.language.as_str() {
            "console" => run_console(&folder, block),
            "text" => talk(&folder, block),
            other => panic!("line {}: a block of {other}", block.line),
        }
    }
    assert_eq!(blocks.len(), 6);

    let ours = names_below(&page, "Of the router");
    let theirs = names_of(&folder, &[]);
    assert_eq!(ours, theirs, "the table `Of the router` of xtask/assets/handlers.md");
    let task = ["home_thread", "notifiers", "scheduled", "tickets"].map(str::to_owned);
    let every = names_below(&page, "Of every element");
    let every: BTreeSet<String> = every.difference(&BTreeSet::from(task)).cloned().collect();
    for element in ["src", "routes", "c", "q", "u", "d"] {
        let theirs = names_of(&folder, &[element]);
        assert!(every.is_subset(&theirs), "{element} has only {theirs:?}");
    }
}
