//! Live rates: what each element passes and drops a second.

use castanet_element::class::Role;
use castanet_element::exec::Counters;
use castanet_element::streams::StandardOutput;
use castanet_element::time::Time;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;

/// Columns for an element's name and its first argument.
const NAME: usize = 30;

/// One element's rates.
#[derive(Serialize)]
struct ElementRates {
    element: String,
    class: &'static str,
    /// Its first argument: of a device, the interface.
    argument: String,
    packets: u64,
    packets_per_second: f64,
    drops: u64,
    drops_per_second: f64,
    /// Why packets were dropped, and how many for each reason.
    reasons: BTreeMap<String, u64>,
}

/// The rates of all elements at one time.
#[derive(Serialize)]
struct Snapshot {
    seconds: f64,
    elements: Vec<ElementRates>,
}

/// Packets of one element since the start.
#[derive(Clone, Copy, Default)]
struct Totals {
    packets: u64,
    drops: u64,
}

impl Totals {
    fn of(counters: &Counters) -> Totals {
        Totals { packets: counters.input.max(counters.made), drops: counters.lost() }
    }

    /// The change since `before`. An element that a hot swap made anew counts from 0 again.
    fn since(self, before: Totals) -> Totals {
        if self.packets < before.packets || self.drops < before.drops {
            return self;
        }
        Totals { packets: self.packets - before.packets, drops: self.drops - before.drops }
    }
}

/// The totals of all elements, by name.
fn totals_of(router: &Router, counters: &[Counters]) -> HashMap<String, Totals> {
    let names = router.graph().elements.iter().map(|it| it.name.clone());
    names.zip(counters.iter().map(Totals::of)).collect()
}

/// A live view of a running router.
pub(crate) struct RateDisplay {
    json: bool,
    colours: bool,
    started: Time,
    /// Time of the last call, and what each element had passed and dropped then, by its name: a
    /// hot swap may give it another index.
    last: (Time, HashMap<String, Totals>),
    lines: usize,
}

impl RateDisplay {
    /// Starts counting now.
    pub(crate) fn new(router: &mut Router, json: bool) -> RateDisplay {
        let now = router.clock().now();
        let colours = crate::terminal::colours_on_stdout();
        let counters = router.all_counters().unwrap_or_default();
        let last = (now, totals_of(router, &counters));
        RateDisplay { json, colours, started: now, last, lines: 0 }
    }

    /// Prints the changes since the last call.
    pub(crate) fn look(&mut self, router: &mut Router) {
        let now = router.clock().now();
        // A worker that is stuck is shown as an interval without a line.
        let Ok(counters) = router.all_counters() else { return };
        let seconds = (now - self.last.0).as_secs_f64().max(1e-9);
        let graph = router.graph();
        let mut rows = Vec::new();
        for (i, new) in counters.iter().enumerate() {
            let it = &graph.elements[i];
            let is_end =
                it.inputs.is_empty() || it.outputs.is_empty() || it.class.role == Role::Store;
            let totals @ Totals { packets, drops } = Totals::of(new);
            if packets == 0 || !(is_end || drops > 0) {
                continue;
            }
            let before = self.last.1.get(&it.name).copied().unwrap_or_default();
            let change = totals.since(before);
            rows.push(ElementRates {
                element: it.name.clone(),
                class: it.class.spec.class,
                argument: first_argument(&it.config),
                packets,
                packets_per_second: change.packets as f64 / seconds,
                drops,
                drops_per_second: change.drops as f64 / seconds,
                reasons: router.losses(i, new).into_iter().collect(),
            });
        }
        let look = Snapshot { seconds: (now - self.started).as_secs_f64(), elements: rows };
        self.last = (now, totals_of(router, &counters));
        self.print(&look);
    }

    /// Prints the last rates, so that short runs show something too.
    pub(crate) fn end(&mut self, router: &mut Router) {
        self.look(router);
    }

    fn print(&mut self, look: &Snapshot) {
        let mut out = StandardOutput;
        let text = match self.json {
            true => serde_json::to_string(look).unwrap_or_default() + "\n",
            false => self.table(look),
        };
        // A reader that went away is no reason to stop a router.
        _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn table(&mut self, look: &Snapshot) -> String {
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

/// The first argument of a configuration, if it is short enough to stand in a table.
fn first_argument(config: &str) -> String {
    let first = castanet_lang::args::split(config).into_iter().next();
    first.map(|arg| arg.text).filter(|text| text.len() <= 16).unwrap_or_default()
}
