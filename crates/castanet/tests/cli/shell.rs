//! The shell of `castanet middlebox` on a terminal: keys and the output that they cause.

use crate::middlebox::MiddleboxProcess;
use crate::program::{command, folder, wait_until};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Long enough for anything here.
const SOON: Duration = Duration::from_secs(30);
const TAB: &str = "\t";
const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const PROMPT: &str = "middlebox> ";

type TerminalOutput = Arc<(Mutex<String>, Condvar)>;

/// A program on a pseudo terminal, which script(1) makes.
pub(crate) struct Shell {
    child: Child,
    keys: ChildStdin,
    seen: TerminalOutput,
    /// Up to where it was looked at.
    at: usize,
}

impl Shell {
    fn new(it: &MiddleboxProcess, state: &PathBuf) -> Shell {
        let words = format!("middlebox --connect {}", it.socket.display());
        let mut shell = Shell::start(&words, state);
        shell.sees(PROMPT);
        shell
    }

    /// Runs `castanet` with these words.
    pub(crate) fn start(words: &str, state: &PathBuf) -> Shell {
        // The shell that runs it would die of Ctrl-C afterwards.
        Shell::run(&format!("exec {} {words}", program()), state)
    }

    /// Runs `castanet` with these words on a terminal of 120 columns and 40 lines.
    pub(crate) fn start_on_screen(words: &str, state: &PathBuf) -> Shell {
        Shell::run(&format!("stty cols 120 rows 40; exec {} {words}", program()), state)
    }

    /// Runs a line of sh(1).
    fn run(line: &str, state: &PathBuf) -> Shell {
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--flush", "--return", "--command", line, "/dev/null"]);
        script.env("XDG_STATE_HOME", state).env("TERM", "xterm").env("SHELL", "/bin/sh");
        let mut child =
            script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script(1)");
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = TerminalOutput::default();
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                *shared.0.lock().unwrap() += &String::from_utf8_lossy(&bytes[..count]);
                shared.1.notify_all();
            }
        });
        Shell { child, keys, seen, at: 0 }
    }

    /// All that was printed so far.
    pub(crate) fn output(&self) -> String {
        self.seen.0.lock().unwrap().clone()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until that is seen, behind what was seen before; gives what came up to it.
    pub(crate) fn sees(&mut self, text: &str) -> String {
        let deadline = Instant::now() + SOON;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(found) = seen[self.at..].find(text) {
                let before = seen[self.at..self.at + found].to_owned();
                self.at += found + text.len();
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {text:?} in {:?}", &seen[self.at..]);
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until the terminal shows no keys any more: the program may ask first, and hide then.
    pub(crate) fn hides_keys(&self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        wait_until("the terminal shows keys", || {
            let children = std::fs::read_to_string(&children).unwrap_or_default();
            let child = children.split_whitespace().next().unwrap_or_default();
            let terminal = format!("/proc/{child}/fd/0");
            let stty = std::process::Command::new("stty").args(["-F", &terminal, "-a"]).output();
            let settings = String::from_utf8_lossy(&stty.expect("stty(1)").stdout).into_owned();
            settings.split_whitespace().any(|word| word == "-echo")
        });
    }

    /// Presses keys, and waits until something is seen and the next line can be typed.
    fn says(&mut self, keys: &str, text: &str) {
        self.press(keys);
        self.sees(text);
        self.sees(PROMPT);
    }

    /// The exit status, once it has ended by itself.
    pub(crate) fn ends(mut self) -> Option<i32> {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "{:?}", self.seen.0.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The path of the program.
fn program() -> String {
    command().get_program().to_str().unwrap().to_owned()
}

/// An empty folder for history files.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let state = folder("shell").join(name);
    _ = std::fs::remove_dir_all(&state);
    std::fs::create_dir_all(&state).unwrap();
    state
}

#[test]
fn words_are_completed_and_commands_answered() {
    let it = MiddleboxProcess::new("shell-words");
    let mut shell = Shell::new(&it, &fresh("words"));
    // One candidate is completed, with a space behind it.
    shell.press("ad");
    shell.press(TAB);
    shell.sees("add");
    shell.press(" all mod ip-tt");
    shell.press(TAB);
    shell.sees("add all mod ip-ttl ");
    shell.says(&format!("9{ENTER}"), "1 id1 add all mod ip-ttl 9\r\n");
    // Several: as far as they agree, then all of them.
    shell.press("tcp-opt-m");
    shell.press(&TAB.repeat(2));
    shell.sees("tcp-opt-mptcp");
    shell.sees("tcp-opt-mss");
    shell.sees("tcp-opt-m");
    // The line is given up, not the shell.
    shell.press(CTRL_C);
    shell.sees("\n");
    shell.sees(PROMPT);
    shell.says(&format!("delete 7{ENTER}"), "there is no rule 7");
    shell.says(&format!("add all dorp{ENTER}"), "did you mean `drop`?");
    shell.says(&format!("help ip-ttl{ENTER}"), "a number from 0 to 255");
    shell.says(&format!("list{ENTER}"), "mod ip-ttl 9");
    shell.press(CTRL_D);
    assert_eq!(shell.ends(), Some(0));
}

#[test]
fn each_pasted_line_is_a_command() {
    let it = MiddleboxProcess::new("shell-paste");
    let mut shell = Shell::new(&it, &fresh("paste"));
    // As a terminal marks pasted text, with the line ends that terminals make.
    let rules = ["add all mod ip-ttl 9", "# a comment", "", "add tcp-dport 22 drop"];
    shell.press(&format!("\x1b[200~{}\r\x1b[201~", rules.join("\r")));
    shell.press(ENTER);
    shell.sees("1 id1 add all mod ip-ttl 9");
    shell.sees("2 id2 add tcp-dport 22 drop");
    shell.sees(PROMPT);
    shell.says(&format!("list{ENTER}"), "tcp-dport 22");
    // Of wrong lines, each has its message, and the others are commands all the same.
    shell.press("\x1b[200~add all dorp\radd udp-dport 53 accept\x1b[201~");
    shell.press(ENTER);
    shell.sees("did you mean `drop`?");
    shell.sees("id3 add udp-dport 53 accept");
    // Before that, nobody reads the terminal's keys, and the end is lost.
    shell.sees(PROMPT);
    shell.press(CTRL_D);
    assert_eq!(shell.ends(), Some(0));
}

#[test]
fn lines_are_kept_from_one_time_to_the_next() {
    let (it, state) = (MiddleboxProcess::new("shell-history"), fresh("history"));
    let mut shell = Shell::new(&it, &state);
    shell.says(&format!("timeout udp 77{ENTER}"), "timeout 77 s");
    shell.says(&format!("list{ENTER}"), "packets");
    // However it ends.
    drop(shell);
    let mut shell = Shell::new(&it, &state);
    shell.press(UP);
    shell.sees("list");
    shell.press(UP);
    shell.sees("timeout udp 77");
    shell.says(ENTER, "timeout 77 s");
    shell.press(&format!("quit{ENTER}"));
    assert_eq!(shell.ends(), Some(0));
    let kept = std::fs::read_to_string(state.join("castanet/middlebox_history")).unwrap();
    let lines: Vec<&str> = kept.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["timeout udp 77", "list", "timeout udp 77"], "{kept}");
}

#[test]
fn counters_are_live_until_ctrl_c() {
    let packet = "\\<4500001c00000000401100000a000001 0a0000020009000900080000>";
    let source = format!("RatedSource({packet}, 1000) -> MarkIPHeader");
    let it = MiddleboxProcess::with("shell-live", &source);
    let mut shell = Shell::new(&it, &fresh("live"));
    shell.says(&format!("all mod ip-ttl 9{ENTER}"), "1 id1 add all mod ip-ttl 9");
    shell.press(&format!("watch 1000{ENTER}"));
    // The number of packets stands behind the targets.
    let mut look = || {
        shell.sees("mod ip-ttl 9  ");
        let row = shell.sees("\r\n");
        row.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let (first, second, third) = (look(), look(), look());
    assert!(first < second && second < third, "{first} {second} {third}");
    shell.press(CTRL_C);
    shell.sees(PROMPT);
    shell.says(&format!("show tables{ENTER}"), "table of 1 rules");
    shell.says(&format!("watch 1{ENTER}"), "mod ip-ttl 9");
    shell.press(CTRL_D);
    assert_eq!(shell.ends(), Some(0));
}

#[test]
fn a_middlebox_that_goes_ends_the_shell() {
    let it = MiddleboxProcess::new("shell-gone");
    let mut shell = Shell::new(&it, &fresh("gone"));
    shell.says(&format!("list{ENTER}"), "packets");
    drop(it);
    shell.press(&format!("list{ENTER}"));
    shell.sees("the middlebox has gone");
    assert_eq!(shell.ends(), Some(1));
}
