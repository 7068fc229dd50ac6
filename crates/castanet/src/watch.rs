//! Live rates: what each element passes and drops a second.

use crate::observe::rates::{ElementRates, Rates, WorkerRates};
use crate::observe::snapshot::Snapshot;
use castanet_element::streams::StandardOutput;
use castanet_element::time::Time;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Columns for an element's name and its first argument.
const NAME: usize = 30;

/// The rates of all elements at one time.
#[derive(Serialize)]
struct WatchRecord {
    /// Seconds since the start.
    seconds: f64,
    workers: Vec<WorkerRates>,
    elements: Vec<ElementRates>,
}

/// A live view of a running router.
pub(crate) struct RateDisplay {
    json: bool,
    colours: bool,
    /// The interval of looks.
    every: Duration,
    started: Time,
    /// Totals at the last look.
    last: Option<Snapshot>,
    /// Lines of the table that stands on the terminal.
    lines: usize,
}

impl RateDisplay {
    /// Starts counting now, for looks at an interval.
    pub(crate) fn new(router: &mut Router, json: bool, every: Duration) -> RateDisplay {
        let colours = crate::terminal::colours_on_stdout();
        let last = Snapshot::take(router, None).ok();
        let started = router.clock().now();
        RateDisplay { json, colours, every, started, last, lines: 0 }
    }

    /// Prints the changes since the last call.
    pub(crate) fn look(&mut self, router: &mut Router) {
        // Samples are taken until the next look but one.
        // A worker that is stuck is shown as an interval without a line.
        let Ok(now) = Snapshot::take(router, Some(self.every * 2)) else { return };
        let Some(last) = self.last.replace(now.clone()) else { return };
        let Rates { workers, mut elements, .. } = Rates::between(&last, &now);
        elements.retain(|it| it.packets > 0 && (it.is_end || it.drops > 0));
        let seconds = (Time(now.time) - self.started).as_secs_f64();
        self.print(&WatchRecord { seconds, workers, elements });
    }

    fn print(&mut self, look: &WatchRecord) {
        let mut out = StandardOutput;
        let text = match self.json {
            true => serde_json::to_string(look).unwrap_or_default() + "\n",
            false => self.table(look),
        };
        // A reader that went away is no reason to stop a router.
        _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn table(&mut self, look: &WatchRecord) -> String {
        let mut text = String::new();
        if self.colours && self.lines > 0 {
            // Back to the first line of the table, and clear what follows.
            _ = write!(text, "\x1b[{}A\x1b[J", self.lines);
        }
        let title = format!(
            "{:<NAME$} {:>12} {:>12} {:>10} {:>10}",
            format!("{:.0} s", look.seconds),
            "packets",
            "packets/s",
            "drops",
            "drops/s",
        );
        _ = writeln!(text, "{}", crate::terminal::bold(&title, self.colours));
        for row in &look.elements {
            let mut drops = format!("{:>10} {:>10.0}", row.drops, row.drops_per_second);
            for (reason, n) in &row.reasons {
                _ = write!(drops, "  {reason} {n}");
            }
            let colour = anstyle::AnsiColor::Yellow;
            let shown = crate::terminal::coloured(&drops, colour, self.colours && row.drops > 0);
            let name = format!("{} {}", row.element, row.argument);
            let name: String = name.chars().take(NAME).collect();
            let rate = row.packets_per_second;
            _ = writeln!(text, "{name:<NAME$} {:>12} {rate:>12.0} {shown}", row.packets);
        }
        self.lines = look.elements.len() + 1;
        text
    }
}
