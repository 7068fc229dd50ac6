//! `castanet top` on a terminal: keys, and the screen that they cause.

use super::{RuntimeFolder, ends_well};
use crate::program::wait_until;
use crate::shell::{Shell, fresh};

/// Two counters in a compound element, and another one.
const CONFIG: &str = "
    elementclass Pair { input -> first :: Counter -> second :: Counter -> output }
    s :: RatedSource(LENGTH 60, RATE 1000) -> pair :: Pair -> sink :: Discard;
    r :: RatedSource(LENGTH 60, RATE 100) -> lone :: Counter -> Discard;\n";

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const LINES: usize = 40;
const COLUMNS: usize = 120;

/// The screen after all that a program has printed: the sequences of ECMA-48 that ratatui uses.
fn screen(output: &str) -> Vec<String> {
    let mut cells = vec![vec![' '; COLUMNS]; LINES];
    let (mut line, mut column) = (0, 0);
    let mut rest = output.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.clone().next() == Some('[') => {
                rest.next();
                let is_last = |c: &char| ('@'..='~').contains(c);
                let parameters: String = rest.clone().take_while(|c| !is_last(c)).collect();
                let last = rest.nth(parameters.chars().count()).unwrap_or(' ');
                let number = |at: usize| {
                    let text = parameters.split(';').nth(at).unwrap_or_default();
                    text.parse::<usize>().unwrap_or(1)
                };
                match last {
                    'H' => (line, column) = (number(0) - 1, number(1) - 1),
                    'J' => cells.iter_mut().for_each(|line| line.fill(' ')),
                    'K' => cells[line][column..].fill(' '),
                    _ => {}
                }
            }
            '\r' => column = 0,
            '\n' => line = (line + 1).min(LINES - 1),
            c if c.is_control() => {}
            c => {
                if let Some(cell) = cells.get_mut(line).and_then(|line| line.get_mut(column)) {
                    *cell = c;
                }
                column += 1;
            }
        }
    }
    cells
        .into_iter()
        .map(|line| line.into_iter().collect::<String>().trim_end().to_owned())
        .collect()
}

/// `castanet top` on a terminal.
struct TopScreen(Shell);

impl TopScreen {
    fn start(it: &RuntimeFolder) -> TopScreen {
        let words = format!("top {}", it.socket("one").display());
        TopScreen(Shell::start_on_screen(&words, &fresh("top")))
    }

    fn lines(&self) -> Vec<String> {
        screen(&self.0.output())
    }

    /// Waits until the screen is as a condition says.
    #[track_caller]
    fn shows(&self, what: &str, condition: impl Fn(&[String]) -> bool) {
        let mut last = Vec::new();
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_secs(30) {
            last = self.lines();
            if condition(&last) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("no {what} in\n{}", last.join("\n"));
    }

    /// Presses a key, and waits until the screen is as a condition says.
    #[track_caller]
    fn press(&mut self, key: &str, what: &str, condition: impl Fn(&[String]) -> bool) {
        self.0.press(key);
        self.shows(what, condition);
    }
}

/// Whether a line begins with this word.
fn has_row(lines: &[String], name: &str) -> bool {
    lines.iter().any(|line| line.split_whitespace().next() == Some(name))
}

/// Whether a text is anywhere.
fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|line| line.contains(text))
}

/// Whether the table of all elements is shown.
fn is_table(lines: &[String]) -> bool {
    ["s", "pair/first", "pair/second", "lone"].iter().all(|name| has_row(lines, name))
        && has(lines, "ELEMENT")
        && has(lines, "PACKETS/S")
}

#[test]
fn keys_sort_fold_filter_and_open_an_element() {
    let it = RuntimeFolder::new("screen");
    let one = it.instance("one", CONFIG);
    let mut top = TopScreen::start(&it);
    let title = format!("one (process {})", one.id());
    top.shows("table", |lines| {
        is_table(lines) && lines[0].starts_with(&title) && lines[1].starts_with("Load of workers: ")
    });
    assert!(has(&top.lines(), "every 1 s   sorted by graph"), "{:?}", top.lines());
    // The rows are ordered.
    let mut is_sorted = |key: &str, by: &str| {
        top.press(key, by, |lines| lines[0].contains(&format!("sorted by {by}")));
    };
    ["packets", "drops", "cost", "queue", "name"].iter().for_each(|by| is_sorted("s", by));
    top.shows("names in order", |lines| {
        let at = |name: &str| lines.iter().position(|line| line.starts_with(&format!("{name} ")));
        at("lone") < at("pair/first") && at("pair/first") < at("r") && at("r") < at("s")
    });
    top.press("r", "names in reverse", |lines| {
        let at = |name: &str| lines.iter().position(|line| line.starts_with(&format!("{name} ")));
        at("s") < at("r") && at("r") < at("pair/first") && at("pair/first") < at("lone")
    });
    top.press("r", "table", is_table);
    top.press("s", "sorted by graph", |lines| lines[0].contains("sorted by graph"));
    top.press("f", "folded compound", |lines| {
        has_row(lines, "pair") && has(lines, "(compound)") && !has(lines, "pair/")
    });
    top.press("f", "unfolded compound", is_table);
    // A filter, which Esc removes.
    top.press("/", "Filter: _", |lines| lines[2].starts_with("Filter: _"));
    top.press("pair/", "filtered rows", |lines| {
        has_row(lines, "pair/first") && !has_row(lines, "lone") && lines[2] == "Filter: pair/_"
    });
    top.press(ENTER, "a filter that stays", |lines| lines[2] == "Filter: pair/");
    top.press("p", "paused", |lines| lines[0].ends_with("paused"));
    top.press("p", "no pause", |lines| !lines[0].ends_with("paused"));
    // The page of an element.
    top.press(ENTER, "page of an element", |lines| {
        has(lines, "pair/first :: Counter")
            && has_row(lines, "count")
            && has_row(lines, "byte_count")
            && has(lines, " packets, ")
    });
    let count = |lines: &[String]| {
        let row = lines.iter().find(|line| line.split_whitespace().next() == Some("count"));
        row.and_then(|row| row.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = count(&top.lines());
    top.shows("later count", |lines| count(lines) > before);
    top.press(ESCAPE, "the table behind the page", |lines| {
        has_row(lines, "pair/first") && has(lines, "ELEMENT") && !has(lines, ":: Counter")
    });
    top.press("/", "the filter", |lines| lines[2] == "Filter: pair/_");
    top.press(ESCAPE, "no filter", |lines| is_table(lines) && lines[2].is_empty());
    top.0.press("q");
    let output = top.0.output();
    assert!(output.contains("\x1b[?1049h"), "it has a screen of its own");
    ends(top, Some(0));
    assert_eq!(it.read("one", "lone.class"), "Counter");
}

/// Insists that it ends with this status and restores the terminal.
fn ends(top: TopScreen, status: Option<i32>) {
    wait_until("the screen is not restored", || {
        let output = top.0.output();
        let at = output.rfind("\x1b[?1049l");
        at > output.rfind("\x1b[?1049h") && output.rfind("\x1b[?25h") > output.rfind("\x1b[?25l")
    });
    assert_eq!(top.0.ends(), status);
}

#[test]
fn ctrl_c_and_escape_end_it() {
    let it = RuntimeFolder::new("screen-end");
    let _one = it.instance("one", CONFIG);
    for key in ["\x03", ESCAPE] {
        let mut top = TopScreen::start(&it);
        top.shows("table", is_table);
        top.0.press(key);
        ends(top, Some(0));
    }
}

#[test]
fn an_instance_that_ends_ends_it() {
    let it = RuntimeFolder::new("screen-gone");
    let one = it.instance("one", CONFIG);
    let top = TopScreen::start(&it);
    top.shows("table", is_table);
    one.interrupt();
    ends_well(one);
    wait_until("it does not tell", || top.0.output().contains("the router has ended"));
    ends(top, Some(1));
}
