//! Every option, handler and command that the program lists has a test from the outside.

use crate::program::{castanet, click, named, root};
use std::path::Path;

/// A test function, as its source text shows it.
struct Test {
    /// Its text.
    text: String,
    /// Text that it shares with the tests of its file.
    head: String,
}

/// All tests that run the program.
fn tests() -> Vec<Test> {
    let mut all = Vec::new();
    gather(&root().join("crates/castanet/tests"), &mut all);
    assert!(all.len() > 150, "{} tests", all.len());
    all
}

fn gather(folder: &Path, all: &mut Vec<Test>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, all);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("inventory.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let (head, tests) = text.split_once("#[test]").unwrap_or((&text, ""));
            // Lines that are said end so; what follows begins a word.
            let plain = |text: &str| text.replace("\\n", " ").replace("\\r", " ");
            all.extend(
                tests.split("#[test]").map(|it| Test { text: plain(it), head: plain(head) }),
            );
        }
    }
}

impl Test {
    /// Whether it has this option among its words: `"--long"`, `"--long=…"`,
    /// `"-s"`, `"-s…"`, or a short one in a cluster.
    fn has(&self, option: &str) -> bool {
        self.text.split('"').any(|word| match option.strip_prefix("--") {
            Some(_) => word.split('=').next() == Some(option),
            None => {
                let letters = word.strip_prefix('-').unwrap_or_default();
                let is_cluster = !letters.starts_with('-') && letters.len() < 20;
                letters.starts_with(&option[1..])
                    || is_cluster && letters.starts_with('q') && letters[1..] == option[1..]
            }
        })
    }

    /// Whether it runs the program by this name.
    fn runs(&self, name: &str) -> bool {
        let name_in = |text: &str| text.contains(&format!("\"{name}\""));
        // A list of all tools does not say of which of them a test is.
        let by_name = name_in(&self.text) || !self.head.contains("EVERY") && name_in(&self.head);
        let list = |all: &[&str], list: &str| all.contains(&name) && self.text.contains(list);
        by_name
            || list(&crate::tools::FILTERS, "FILTERS")
            || list(&crate::tools::EVERY, "EVERY")
            || list(&crate::castanet::COMMANDS, "COMMANDS")
    }

    fn names(&self, what: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.text.match_indices(what).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + what.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }
}

/// The options of a help text, in all the forms that it names.
fn options(help: &str) -> Vec<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let options: Vec<String> = lines
        .flat_map(|line| {
            let aliases = line.split_once("alias: ").map(|(_, alias)| alias.trim_end_matches(']'));
            let words = line.split("  ").next().unwrap_or_default().split(", ");
            let words = words.filter_map(|word| word.split([' ', '[', '=']).next());
            words.chain(aliases).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert!(options.len() > 1, "{help}");
    options
}

/// Options without a test.
fn missing(name: &str, help: &str, runs: impl Fn(&Test) -> bool) -> Vec<String> {
    let tests: Vec<Test> = tests().into_iter().filter(runs).collect();
    let untested = |option: &String| !tests.iter().any(|test| test.has(option));
    options(help).into_iter().filter(untested).map(|option| format!("{name} {option}")).collect()
}

#[test]
fn every_option_of_click_is_tested() {
    let is_of_castanet = |test: &Test| test.head.starts_with("//! The commands of `castanet`");
    let missing = missing("click", &click(&["--help"], b"").out, |it| !is_of_castanet(it));
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_option_of_every_tool_is_tested() {
    let mut all = Vec::new();
    for tool in crate::tools::EVERY {
        all.extend(missing(tool, &named(tool, &["--help"], b"").out, |test| test.runs(tool)));
    }
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn every_option_of_the_commands_that_take_scripts_is_tested() {
    let mut all = Vec::new();
    for command in crate::castanet::COMMANDS {
        let help = castanet(&[command, "--help"], b"").out;
        all.extend(missing(command, &help, |test| test.runs(command)));
    }
    assert!(all.is_empty(), "{all:?}");
}

/// The names in a list of handlers.
fn handlers(of: &str) -> Vec<String> {
    let list = click(&["-qe", "Idle -> n :: Null -> Discard", "-h", of], b"");
    let names = list.out.lines().filter_map(|line| line.split('\t').next());
    let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    assert!(names.len() > 5, "{}", list.out);
    names
}

#[test]
fn every_handler_that_all_have_is_tested() {
    let tests = tests();
    let untested = |what: &String| !tests.iter().any(|test| test.names(what));
    let global = handlers("handlers").into_iter().map(|name| format!("\"{name}\""));
    let own = handlers("n.handlers").into_iter().map(|name| format!(".{name}"));
    // A global handler may also stand in a script or in a command to a socket.
    let global = global.filter(|quoted| {
        let name = quoted.trim_matches('"');
        ["READ", "WRITE", "write", "read"].iter().all(|verb| untested(&format!("{verb} {name}")))
    });
    let own = own.filter(|name| {
        !tests.iter().any(|test| {
            test.text.match_indices(name.as_str()).any(|(at, _)| {
                let after = test.text[at + name.len()..].chars().next();
                let is_handler = |c: char| matches!(c, '"' | ' ' | ')');
                test.text[..at].ends_with(char::is_alphanumeric) && after.is_some_and(is_handler)
            })
        })
    });
    let missing: Vec<String> = global.filter(untested).chain(own).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_command_and_code_of_the_control_socket_is_tested() {
    let text = |name: &str| {
        let path = root().join("crates/io/src/control").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]").next().unwrap().to_owned()
    };
    let (protocol, input) = (text("protocol.rs"), text("input.rs"));
    let codes = protocol.lines().filter_map(|line| {
        line.split_once(": u16 = ").map(|(_, code)| code.trim_end_matches(';').to_owned())
    });
    let codes: Vec<String> = codes.collect();
    assert!(codes.len() > 8, "{codes:?}");
    // Commands are words in capitals.
    let words = input.split('"').skip(1).step_by(2);
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    let commands: Vec<String> = words.filter(is_command).map(str::to_owned).collect();
    assert!(commands.len() > 12, "{commands:?}");
    let tests = tests();
    let untested =
        |it: &&String| !tests.iter().any(|test| test.text.contains("talk(") && test.names(it));
    let missing: Vec<&String> = codes.iter().chain(&commands).filter(untested).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The handlers of a page of the manual: whether they are read, and their names.
fn documented(page: &str) -> Vec<(bool, String)> {
    let part = |title: &str| {
        let after = page.split_once(&format!("## {title} handlers\n")).map_or("", |it| it.1);
        after.split("\n## ").next().unwrap_or_default().to_owned()
    };
    let names = |reads, text: String| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("* `").map(str::to_owned));
        let words = lines.filter_map(|line| line.split(['`', ' ', '(']).next().map(str::to_owned));
        words.map(move |name| (reads, name)).collect::<Vec<_>>()
    };
    [names(true, part("Read")), names(false, part("Write"))].concat()
}

#[test]
fn every_handler_of_every_class_is_tested() {
    let mut tests = Vec::new();
    for name in ["castanet", "io"] {
        gather(&root().join(format!("crates/{name}/tests")), &mut tests);
    }
    let tested: String = tests.iter().map(|it| format!("{}\n{}\n", it.head, it.text)).collect();
    let (mut untested, mut all) = (Vec::new(), 0);
    for page in std::fs::read_dir(root().join("docs/elements")).unwrap() {
        let path = page.unwrap().path();
        let class = path.file_stem().unwrap().to_string_lossy().into_owned();
        let page = std::fs::read_to_string(&path).unwrap();
        let examples = page.split("```").skip(1).step_by(2).collect::<String>();
        let is_program = matches!(class.as_str(), "Script" | "DriverManager");
        for (reads, name) in documented(&page) {
            all += 1;
            let sign = if reads { "= " } else { "! " };
            let mut lines = examples.lines().filter_map(|line| line.strip_prefix(sign));
            // Handlers of each port carry its number.
            let dotted = format!(".{}", name.trim_end_matches('_'));
            let in_example = lines.any(|line| line.contains(&dotted));
            // Functions of scripts are called without an element.
            let calls = [format!("$({name} "), format!("$({name})")];
            let is_called = is_program && calls.iter().any(|call| tested.contains(call));
            if !in_example && !is_called && !tested.contains(&dotted) {
                untested.push(format!("{class} {sign}{name}"));
            }
        }
    }
    assert!(all > 700, "{all}");
    assert!(untested.is_empty(), "{} of {all}: {untested:?}", untested.len());
}
