//! Handlers of the router itself, and the counts at its ports.

use super::Router;
use super::handlers::{drop_counts, unknown};
use castanet_element::args::{FromArg, Names};
use castanet_element::class::ports::is_agnostic;
use castanet_element::error::ArgError;
use castanet_element::exec::Counters;
use castanet_element::flow::Flow;
use castanet_element::handler::HandlerDoc;
use castanet_element::time::Warp;
use std::fmt::Write;

/// Read handlers of the router itself.
pub const READS: &[HandlerDoc] = &[
    HandlerDoc {
        name: "accounts",
        doc: "Accounts of processor time with their shares and what they have used, one a line \
              behind a heading; nothing where none is declared.",
    },
    HandlerDoc {
        name: "active_port_stats",
        doc: "Packets at each port of `active_ports`, one number a line; `??` where they are not \
              counted apart from those of other ports.",
    },
    HandlerDoc {
        name: "active_ports",
        doc: "Ports that move packets, push outputs and pull inputs: name, tabulator, `i` or `o` \
              and the number of the port.",
    },
    HandlerDoc {
        name: "class_cycles.csv",
        doc: "CPU cycles by class since `count_cycles`, as CSV with a heading.",
    },
    HandlerDoc { name: "classes", doc: "All classes, one a line." },
    HandlerDoc { name: "config", doc: "The configuration as it was written." },
    HandlerDoc {
        name: "count_cycles",
        doc: "Whether the workers count cycles; a read of one of the other handlers about cycles \
              starts that, too.",
    },
    HandlerDoc { name: "driver", doc: "`userlevel`, as in Click." },
    HandlerDoc { name: "drops", doc: "Dropped packets: element, reason and number, one a line." },
    HandlerDoc {
        name: "element_cycles.csv",
        doc: "CPU cycles by element since `count_cycles`, as CSV with a heading.",
    },
    HandlerDoc { name: "flatconfig", doc: "The configuration without compound elements." },
    HandlerDoc {
        name: "frames",
        doc: "The pools of packet buffers: frames they may have, in use, cached by workers, most \
              at a time, kept in reserve, and how often none was left.",
    },
    HandlerDoc { name: "handlers", doc: "The global handlers: name, tabulator, `r`, `w` or `rw`." },
    HandlerDoc { name: "list", doc: "The number of elements, then their names, one a line." },
    HandlerDoc {
        name: "load",
        doc: "Each worker and the share, 0 to 1, of the time since the last read in which its \
              thread had a CPU.",
    },
    HandlerDoc { name: "packages", doc: "The packages that `require` may name, one a line." },
    HandlerDoc { name: "requirements", doc: "The requirements of the configuration, one a line." },
    HandlerDoc { name: "threads", doc: "The number of workers." },
    HandlerDoc {
        name: "timewarp",
        doc: "How fast the clock is: a factor, `nowait` if waits take no time, or `simulation`.",
    },
    HandlerDoc { name: "version", doc: "The version of Castanet." },
];

/// Write handlers of the router itself: the first where the configuration may be replaced, the last
/// where the speed of the clock can be changed.
pub const WRITES: &[HandlerDoc] = &[
    HandlerDoc {
        name: "hotconfig",
        doc: "Replaces the configuration by this text, without losing a packet; with \
              `castanet run -R` only.",
    },
    HandlerDoc {
        name: "count_cycles",
        doc: "Starts or ends the counting of cycles: true or false.",
    },
    HandlerDoc { name: "reset_cycles", doc: "Counts the cycles of all elements from zero." },
    HandlerDoc {
        name: "stop",
        doc: "Requests the end of the router, as often as the number says, or once.",
    },
    HandlerDoc {
        name: "timewarp",
        doc: "Changes the speed of the clock, under `click` and not in simulated time: a factor \
              greater than 0, or `nowait`, with which waits take no time.",
    },
];

/// Whether a handler is among these.
pub(super) fn knows(handlers: &[HandlerDoc], name: &str) -> bool {
    handlers.iter().any(|doc| doc.name == name)
}

/// The names of handlers.
pub(super) fn names(handlers: &[HandlerDoc]) -> Vec<&'static str> {
    handlers.iter().map(|doc| doc.name).collect()
}

/// The element and the handler of a path; the router's own handlers have no element, and some of
/// them have a point in their name.
pub(super) fn split(handler: &str) -> (&str, &str) {
    match handler.split_once('.') {
        Some(parts) if !knows(READS, handler) => parts,
        _ => ("", handler),
    }
}

/// Click's mark for a port that is not counted.
const UNCOUNTED: &str = "??";

/// The error about a write handler that the router itself does not have.
pub(super) fn no_write(name: &str, known: &[HandlerDoc]) -> ArgError {
    let error = ArgError::new(format!("global has no write handler '{name}'"));
    unknown(error, name, "write", name, &names(known))
}

/// The error about a handler that the router itself does not have; `writes` are those that can be
/// written.
pub(super) fn missing(name: &str, write: bool, writes: &[HandlerDoc]) -> ArgError {
    if write {
        return no_write(name, writes);
    }
    let error = ArgError::new(format!("the router has no read handler '{name}'"));
    unknown(error, name, "read", name, &names(READS))
}

impl Router {
    /// Write handlers of the router itself.
    pub(super) fn global_writes(&self) -> &'static [HandlerDoc] {
        let end = WRITES.len() - usize::from(!self.control.clock.can_warp());
        &WRITES[usize::from(!self.is_replaceable())..end]
    }

    pub(super) fn read_global(&mut self, name: &str) -> Result<String, ArgError> {
        let lines = |names: &[&str]| names.iter().fold(String::new(), |s, n| s + n + "\n");
        Ok(match name {
            "version" => env!("CARGO_PKG_VERSION").to_owned(),
            "driver" => "userlevel".to_owned(),
            "list" => {
                let elements = &self.config.graph.elements;
                let names = elements.iter().map(|e| e.name.as_str());
                names.fold(format!("{}\n", elements.len()), |s, n| s + n + "\n")
            }
            "classes" => lines(&self.config.classes),
            "packages" => lines(self.config.packages),
            // The text is not kept then, as in Click.
            "config" if self.config.requirements.iter().any(|it| it == "compact_config") => {
                self.config.flat_text.clone()
            }
            "config" => self.config.text.clone().unwrap_or_else(|| self.config.flat_text.clone()),
            "flatconfig" => self.config.flat_text.clone(),
            "frames" => self.control.frames.table(),
            "requirements" => {
                self.config.requirements.iter().fold(String::new(), |s, r| s + r + "\n")
            }
            "handlers" => {
                let writes = self.global_writes();
                let kind = |name| if knows(writes, name) { "rw" } else { "r" };
                let reads = READS.iter().map(|doc| (doc.name, kind(doc.name)));
                let others = writes.iter().filter(|doc| !knows(READS, doc.name));
                let mut all: Vec<_> = reads.chain(others.map(|doc| (doc.name, "w"))).collect();
                all.sort_unstable();
                all.iter().fold(String::new(), |s, (name, kind)| s + name + "\t" + kind + "\n")
            }
            "load" => self.load(),
            "threads" => self.workers.len().to_string(),
            "timewarp" => self.control.clock.warp().to_string(),
            "accounts" => self.accounts_table()?,
            "drops" => self.all_drops()?,
            "element_cycles.csv" => self.element_cycles(),
            "class_cycles.csv" => self.class_cycles(),
            "count_cycles" => self.counts_cycles().to_string(),
            "active_ports" => {
                self.active_ports(|_, name, side, port| Ok(format!("{name}\t{side}{port}")))?
            }
            "active_port_stats" => self.active_ports(|router, it, side, port| {
                let element = router.config.graph.find(it).unwrap_or_default();
                Ok(router.port_counts(element, side == 'i')?.swap_remove(port))
            })?,
            _ => return Err(missing(name, false, &[])),
        })
    }

    pub(super) fn write_global(&mut self, name: &str, value: &str) -> Result<(), ArgError> {
        if name == "stop" {
            // As in Click: a text that is no number counts as one request.
            let requests: i64 = value.trim().parse().unwrap_or(1);
            self.control.stops = self
                .control
                .stops
                .saturating_add_signed(i32::try_from(requests).unwrap_or(i32::MAX));
            return Ok(());
        }
        if name == "hotconfig" && self.is_replaceable() {
            return self.prepare(value);
        }
        if name == "timewarp" && self.control.clock.can_warp() {
            return self.set_warp(value.trim()).map_err(|e| e.of_handler(name));
        }
        if name == "reset_cycles" {
            self.reset_cycles(None);
            return Ok(());
        }
        if name == "count_cycles" {
            let on = bool::from_arg(value.trim(), &Names::default());
            return on.map(|on| self.count_cycles(on)).map_err(|e| e.of_handler(name));
        }
        Err(no_write(name, self.global_writes()))
    }

    /// Changes the speed of the clock. Workers that sleep until a time wake, and compute its distance anew.
    fn set_warp(&mut self, value: &str) -> Result<(), ArgError> {
        let warp = match (value, value.parse::<f64>()) {
            ("nowait", _) => Warp::NoWait,
            (_, Ok(factor)) if factor > 0.0 && factor.is_finite() => Warp::Factor(factor),
            (_, Ok(_)) => return Err(ArgError::new("timefactor must be > 0")),
            (_, Err(_)) => {
                let error =
                    ArgError::new(format!("`{value}` is no factor, such as 4, and not `nowait`"));
                return Err(error.click("expected double"));
            }
        };
        self.control.clock.set_warp(warp);
        self.workers.ask_all(|_| ());
        Ok(())
    }

    /// `element reason count` of each reason with drops.
    fn all_drops(&mut self) -> Result<String, ArgError> {
        let mut out = String::new();
        for (it, counters) in self.all_counters()?.iter().enumerate() {
            let element = &self.config.graph.elements[it];
            for (reason, n) in drop_counts(element, counters).iter().filter(|c| c.1 > 0) {
                _ = writeln!(out, "{} {reason} {n}", element.name);
            }
        }
        Ok(out)
    }

    /// A line for every port that moves packets: pull inputs and push outputs.
    fn active_ports(
        &mut self,
        line: impl Fn(&mut Router, &str, char, usize) -> Result<String, ArgError>,
    ) -> Result<String, ArgError> {
        let mut active = Vec::new();
        for element in &self.config.graph.elements {
            let of = |flows: &[Flow], wanted| -> Vec<usize> {
                (0..flows.len()).filter(|&port| flows[port] == wanted).collect()
            };
            let inputs = of(&element.inputs, Flow::Pull).into_iter().map(|port| ('i', port));
            let outputs = of(&element.outputs, Flow::Push).into_iter().map(|port| ('o', port));
            active.extend(inputs.chain(outputs).map(|(side, n)| (element.name.clone(), side, n)));
        }
        let lines =
            active.into_iter().map(|(name, side, n)| Ok(line(self, &name, side, n)? + "\n"));
        lines.collect()
    }

    /// Packets at each input, or output; of several ports only those whose packets the elements at
    /// their other ends have counted alone.
    pub(super) fn port_counts(&mut self, it: usize, inputs: bool) -> Result<Vec<String>, ArgError> {
        let element = &self.config.graph.elements[it];
        let ports = if inputs { element.inputs.len() } else { element.outputs.len() };
        if ports == 1 {
            let counters = self.exact_counters(it)?;
            return Ok(vec![if inputs { counters.input } else { counters.output }.to_string()]);
        }
        (0..ports).map(|port| self.count_beyond(it, inputs, port)).collect()
    }

    /// The count of the elements beyond a port, if only this port's packets come there.
    fn count_beyond(&mut self, it: usize, inputs: bool, port: usize) -> Result<String, ArgError> {
        let edges: Vec<(usize, usize)> = match inputs {
            true => {
                let edges = self.config.graph.in_edges(it).filter(|e| e.to.port == port);
                let beyond = edges.map(|e| e.from.node);
                beyond.map(|node| (node, self.config.graph.out_edges(node).count())).collect()
            }
            false => {
                let edges = self.config.graph.out_edges(it).filter(|e| e.from.port == port);
                let beyond = edges.map(|e| e.to.node);
                beyond.map(|node| (node, self.config.graph.in_edges(node).count())).collect()
            }
        };
        if edges.iter().any(|&(_, edges)| edges != 1) {
            return Ok(UNCOUNTED.to_owned());
        }
        let beyond = edges.into_iter().map(|(node, _)| self.exact_counters(node));
        let counters: Counters = beyond.sum::<Result<_, _>>()?;
        Ok(if inputs { counters.output } else { counters.input }.to_string())
    }

    /// Click's description of ports: number, processing, connections.
    pub(super) fn ports_text(&self, it: usize) -> String {
        let element = &self.config.graph.elements[it];
        let mut out = String::new();
        for (number, (side, flows)) in
            [("input", &element.inputs), ("output", &element.outputs)].into_iter().enumerate()
        {
            let s = if flows.len() == 1 { "" } else { "s" };
            _ = writeln!(out, "{} {side}{s}", flows.len());
            for (port, flow) in flows.iter().enumerate() {
                let name = |node: usize| self.config.graph.elements[node].name.as_str();
                let ends: Vec<String> = match side {
                    "input" => {
                        let edges = self.config.graph.in_edges(it).filter(|e| e.to.port == port);
                        edges.map(|e| format!("{} [{}]", name(e.from.node), e.from.port)).collect()
                    }
                    _ => {
                        let edges = self.config.graph.out_edges(it).filter(|e| e.from.port == port);
                        edges.map(|e| format!("[{}] {}", e.to.port, name(e.to.node))).collect()
                    }
                };
                let agnostic = is_agnostic(element.class, number, port);
                let tilde = if agnostic { "~" } else { "" };
                _ = writeln!(out, "{}{tilde}\t-\t{}", flow.word(), ends.join(", "));
            }
        }
        out
    }
}
