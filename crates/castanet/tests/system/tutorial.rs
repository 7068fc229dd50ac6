//! `docs/tutorial.md` is right: its commands are run as a reader pastes them, and print what it says.
//!
//! A shell runs them in a mount namespace with a `/run` of its own, and in a PID namespace: names of
//! network namespaces and instances are private to it, and all of it ends with the shell.

use castanet_lab::{Command, ConsoleStep, Lab, Process, code_blocks, require};
use std::time::{Duration, Instant};

use crate::testbed::{LATER, SOON, program, root};

/// Programs of the page.
const TOOLS: &[&str] = &["curl", "ip", "ping", "python3", "unshare"];

/// Writes each number as `#`, with the unit that stands beside it, and each space as one.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for c in line.trim().chars() {
        let part_of_number = text.ends_with('#') && (c == '.' || matches!(c, 'k' | 'M' | 'G'));
        match c {
            '0'..='9' if !text.ends_with('#') => text.push('#'),
            '0'..='9' => {}
            _ if part_of_number => {}
            _ if c.is_whitespace() && text.ends_with(' ') => {}
            _ => text.push(c),
        }
    }
    text
}

/// Whether a printed line is that of the page; `...` stands for any words.
fn is_like(printed: &str, expected: &str) -> bool {
    let parts: Vec<String> = expected.split("...").map(without_numbers).collect();
    let mut rest = without_numbers(printed);
    for (i, part) in parts.iter().enumerate() {
        match rest.find(part.as_str()) {
            Some(at) if i > 0 || at == 0 => rest = rest.split_off(at + part.len()),
            _ => return false,
        }
    }
    rest.is_empty() || expected.trim_end().ends_with("...")
}

/// The lines of the page that a step has not printed.
fn missing<'e>(printed: &str, step: &'e ConsoleStep) -> Vec<&'e str> {
    // A line of marks below a packet is as long as its numbers.
    let is_text = |line: &&str| !line.trim().chars().all(|c| matches!(c, '^' | ' ' | '.'));
    let found = |line: &&str| printed.lines().any(|printed| is_like(printed, line));
    step.output.lines().filter(is_text).filter(|line| !found(line)).collect()
}

/// The shell of the page.
struct PageShell {
    process: Process,
    steps: usize,
}

impl PageShell {
    fn new(lab: &Lab) -> PageShell {
        let path = format!(
            "{}:/usr/sbin:/sbin:{}",
            program().parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let shell = Command::on_host("unshare").args(namespaces).args(["bash", "-s"]);
        let shell = shell.current_dir(lab.directory()).env("PATH", path).env("LC_ALL", "C");
        let mut process = shell.pipe_stdin().spawn().unwrap();
        process.write_line("exec 2>&1; unset RUNTIME_DIRECTORY; set -m").unwrap();
        process.write_line("mount -t tmpfs tmpfs /run && echo private").unwrap();
        process.wait_for("private\n", LATER).unwrap();
        PageShell { process, steps: 0 }
    }

    /// Runs a step, and returns what the page has and it did not print.
    fn run(&mut self, step: &ConsoleStep) -> Result<(), String> {
        let start = self.process.stdout().len();
        self.steps += 1;
        let end = format!("end of step {}", self.steps);
        self.process.write_line(&step.command).unwrap();
        self.process.write_line(&format!("echo '{end}'")).unwrap();
        self.process.wait_for(&format!("{end}\n"), LATER).map_err(|e| e.to_string())?;
        // A process in the background may print later.
        let patience = if step.command.ends_with('&') { LATER } else { SOON };
        let began = Instant::now();
        loop {
            let all = self.process.stdout();
            let missing = missing(&all[start..], step);
            if missing.is_empty() {
                return Ok(());
            }
            if began.elapsed() > patience {
                let (command, missing) = (&step.command, missing.join("\n"));
                return Err(format!("{command}\nlacks:\n{missing}\nprinted:\n{}", &all[start..]));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn the_page_is_pasted_and_prints_what_it_says() {
    require(TOOLS).unwrap();
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let lab = Lab::new("tutorial").unwrap();
    let mut shell = PageShell::new(&lab);
    let mut wrong = Vec::new();
    for block in code_blocks(&page) {
        match block.language.as_str() {
            "click" => std::fs::write(lab.directory().join("nat.click"), &block.text).unwrap(),
            "console" => {
                for step in block.steps() {
                    let outcome = shell.run(&step);
                    wrong.extend(outcome.err().map(|e| format!("line {}: {e}", block.line)));
                }
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "docs/tutorial.md is wrong:\n{}", wrong.join("\n"));
    assert!(shell.steps > 30, "{} steps", shell.steps);
}

#[test]
fn lines_are_compared_without_numbers() {
    assert!(is_like("64 bytes from 203.0.113.2: time=0.6 ms", "64 bytes from 1.2.3.4: time=12 ms"));
    assert!(is_like("a   1.2k  x", "a 7 x"));
    assert!(is_like("castanet: lan0: AF_XDP in copy mode (x)", "castanet: lan0: AF_XDP in ..."));
    assert!(is_like("0.1 s  eth a > b", "...eth a > b"));
    assert!(!is_like("2 received, 0% packet loss", "0 received, 100% loss"));
    assert!(!is_like("castanet: lan0: packet socket", "castanet: lan0: AF_XDP ..."));
    assert!(!is_like("a b c", "a b"));
}
