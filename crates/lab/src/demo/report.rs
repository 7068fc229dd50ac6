//! What the demo has seen, and how it looks on a terminal and in a file.

use std::io::{self, IsTerminal, Write};

use crate::error::Result;

/// All that a demo has seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// One row for each thing tried.
    pub rows: Vec<Row>,
    /// Whether a pcap file was replayed because there could be no network.
    pub replayed: bool,
}

impl Seen {
    /// Whether everything went well.
    pub fn all_well(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.well)
    }
}

/// One thing tried, and what came of it.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was tried.
    pub what: String,
    /// Who sent.
    pub from: String,
    /// To whom.
    pub to: String,
    /// What came of it.
    pub outcome: String,
    /// Whether that is as it should be.
    pub well: bool,
}

impl Row {
    pub(crate) fn new(what: &str, from: &str, to: &str, outcome: Result<(bool, String)>) -> Row {
        let (well, outcome) = outcome.unwrap_or_else(|error| (false, error.to_string()));
        let (what, from, to) = (what.to_owned(), from.to_owned(), to.to_owned());
        Row { what, from, to, outcome, well }
    }

    fn between(&self) -> String {
        let arrow = if self.to.is_empty() { "" } else { " → " };
        format!("{}{arrow}{}", self.from, self.to)
    }
}

/// Where the demo is shown; colours only on a terminal that wants them.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    colours: bool,
}

impl Screen {
    pub(crate) fn new() -> Screen {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { colours: wanted && io::stdout().is_terminal() }
    }

    pub(crate) fn say(&self, text: &str) {
        // Nobody reads any more when standard output is closed; the demo then still cleans up.
        let _ = writeln!(io::stdout().lock(), "{text}");
    }

    /// The network, drawn.
    pub(crate) fn map(&self) {
        self.say("  h1 10.0.1.2 ──── 10.0.1.1 ┐");
        self.say("  h2 10.0.2.2 ──── 10.0.2.1 ├ castanet run conf/router.click");
        self.say("  h3 10.0.3.2 ──── 10.0.3.1 ┘\n");
    }

    /// A line that the router prints while it runs.
    pub(crate) fn live(&self, line: &str) {
        self.say(&self.paint("2", &format!("  router │ {line}")));
    }

    /// A row as soon as it is known.
    pub(crate) fn row(&self, row: &Row) {
        let mark = if row.well { self.paint("32", "✓") } else { self.paint("31", "✗") };
        self.say(&format!("{mark} {} {}: {}", row.what, row.between(), row.outcome));
    }

    /// All rows, in columns.
    pub(crate) fn table(&self, seen: &Seen) {
        let width = |of: &dyn Fn(&Row) -> String| {
            seen.rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        let (what, between) = (width(&|row| row.what.clone()), width(&Row::between));
        self.say("");
        for row in &seen.rows {
            let mark = if row.well { self.paint("32", "✓") } else { self.paint("31", "✗") };
            let (left, middle) = (&row.what, row.between());
            self.say(&format!("  {mark} {left:what$}  {middle:between$}  {}", row.outcome));
        }
        let verdict = match seen.all_well() {
            true => self.paint("32", "All as it should be."),
            false => self.paint("31", "Not all is as it should be."),
        };
        self.say(&format!("\n{verdict}"));
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_well_only_if_something_was_seen_and_nothing_failed() {
        let well = Row::new("ping", "a", "b", Ok((true, "fine".into())));
        let ill = Row::new("ping", "a", "b", Err(crate::Error::NotRoot));
        let seen = |rows: &[&Row]| Seen {
            rows: rows.iter().map(|row| (*row).clone()).collect(),
            replayed: false,
        };
        assert!(!seen(&[]).all_well());
        assert!(seen(&[&well, &well]).all_well());
        assert!(!seen(&[&well, &ill]).all_well());
        assert_eq!(well.between(), "a → b");
    }
}
