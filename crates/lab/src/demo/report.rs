//! The report of the demo, and its output on a terminal or to a file.

use std::io::{self, IsTerminal, Write};

use crate::error::Result;

/// Report of a demo.
#[derive(Debug, Clone, Default)]
pub struct DemoReport {
    /// The steps of the demo.
    pub steps: Vec<DemoStep>,
    /// Whether a pcap file was replayed because no network could be built.
    pub replayed: bool,
}

impl DemoReport {
    /// Whether there are steps and all have passed.
    pub fn all_passed(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|step| step.passed)
    }
}

/// One step of the demo, with its result.
#[derive(Debug, Clone)]
pub struct DemoStep {
    /// Name of the step.
    pub name: String,
    /// The sender.
    pub from: String,
    /// The receiver; may be empty.
    pub to: String,
    /// The result, as text.
    pub outcome: String,
    /// Whether the step has passed.
    pub passed: bool,
}

impl DemoStep {
    pub(crate) fn new(
        name: &str,
        from: &str,
        to: &str,
        outcome: Result<(bool, String)>,
    ) -> DemoStep {
        let (passed, outcome) = outcome.unwrap_or_else(|error| (false, error.to_string()));
        let (name, from, to) = (name.to_owned(), from.to_owned(), to.to_owned());
        DemoStep { name, from, to, outcome, passed }
    }

    fn between(&self) -> String {
        let arrow = if self.to.is_empty() { "" } else { " → " };
        format!("{}{arrow}{}", self.from, self.to)
    }
}

/// Standard output, with colours if it is a terminal and `NO_COLOR` is not set.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    colours: bool,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Terminal { colours: wanted && io::stdout().is_terminal() }
    }

    pub(crate) fn print(&self, text: &str) {
        // An error means that standard output is closed; the demo must still clean up.
        let _ = writeln!(io::stdout().lock(), "{text}");
    }

    /// Prints a drawing of the network.
    pub(crate) fn network(&self) {
        self.print("  h1 10.0.1.2 ──── 10.0.1.1 ┐");
        self.print("  h2 10.0.2.2 ──── 10.0.2.1 ├ castanet run conf/router.click");
        self.print("  h3 10.0.3.2 ──── 10.0.3.1 ┘\n");
    }

    /// Prints a line of the running router's output.
    pub(crate) fn router_line(&self, line: &str) {
        self.print(&self.paint("2", &format!("  router │ {line}")));
    }

    /// Prints a step with its result.
    pub(crate) fn step(&self, step: &DemoStep) {
        let mark = if step.passed { self.paint("32", "✓") } else { self.paint("31", "✗") };
        self.print(&format!("{mark} {} {}: {}", step.name, step.between(), step.outcome));
    }

    /// Prints all steps in columns, and the verdict.
    pub(crate) fn table(&self, report: &DemoReport) {
        let width = |of: &dyn Fn(&DemoStep) -> String| {
            report.steps.iter().map(|step| of(step).chars().count()).max().unwrap_or(0)
        };
        let (name, between) = (width(&|step| step.name.clone()), width(&DemoStep::between));
        self.print("");
        for step in &report.steps {
            let mark = if step.passed { self.paint("32", "✓") } else { self.paint("31", "✗") };
            let (left, middle) = (&step.name, step.between());
            self.print(&format!("  {mark} {left:name$}  {middle:between$}  {}", step.outcome));
        }
        let verdict = match report.all_passed() {
            true => self.paint("32", "All as it should be."),
            false => self.paint("31", "Not all is as it should be."),
        };
        self.print(&format!("\n{verdict}"));
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_passes_only_with_steps_that_all_pass() {
        let passed = DemoStep::new("ping", "a", "b", Ok((true, "fine".into())));
        let ill = DemoStep::new("ping", "a", "b", Err(crate::Error::NotRoot));
        let report = |steps: &[&DemoStep]| DemoReport {
            steps: steps.iter().map(|step| (*step).clone()).collect(),
            replayed: false,
        };
        assert!(!report(&[]).all_passed());
        assert!(report(&[&passed, &passed]).all_passed());
        assert!(!report(&[&passed, &ill]).all_passed());
        assert_eq!(passed.between(), "a → b");
    }
}
