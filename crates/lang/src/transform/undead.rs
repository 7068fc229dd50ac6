//! `click-undead`: removes elements that no packet can reach or leave, and elements without effect.

use super::classes;
use super::editor::GraphEditor;
use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::{FlatGraph, Port};
use crate::source::Span;

/// Result of [`undead`].
#[derive(Debug)]
pub struct UndeadOutput {
    /// The graph; `None` if no element is alive.
    pub graph: Option<FlatGraph>,
    /// Errors and warnings about elements that the transformation does not understand.
    pub diagnostics: Diagnostics,
    /// One line for each decision, with the element's source text, for verbose output.
    pub notes: Vec<(Span, String)>,
}

/// Removes elements that are not on a path from a source to a sink; `StaticSwitch`,
/// `StaticPullSwitch` and `Null` elements; unused ports of schedulers and tees; and schedulers and
/// tees with one port left. Elements without ports stay.
pub fn undead(graph: &FlatGraph) -> UndeadOutput {
    let mut remover = DeadElementRemover {
        ports: graph.ports(),
        editor: GraphEditor::new(graph),
        diagnostics: Diagnostics::new(),
        notes: Vec::new(),
    };
    remover.remove_static_switches(false);
    remover.remove_static_switches(true);
    remover.remove_nulls();
    if remover.remove_dead() {
        while remover.compact_schedulers() | remover.compact_tees() {}
        remover.connect_open_ports();
        return UndeadOutput {
            graph: Some(remover.editor.finish()),
            diagnostics: remover.diagnostics,
            notes: remover.notes,
        };
    }
    let message = "no live elements in configuration";
    remover.diagnostics.push(Diagnostic::warning(None, message));
    UndeadOutput { graph: None, diagnostics: remover.diagnostics, notes: remover.notes }
}

/// A graph whose dead elements are being removed.
struct DeadElementRemover {
    editor: GraphEditor,
    /// Final numbers of inputs and outputs of each element; ports below them must be connected.
    ports: Vec<(usize, usize)>,
    diagnostics: Diagnostics,
    notes: Vec<(Span, String)>,
}

impl DeadElementRemover {
    fn add_idle(&mut self, span: Span) -> usize {
        self.ports.push((0, 0));
        self.editor.add_anonymous("Idle", "", span)
    }

    fn warn_odd_connections(&mut self, element: usize, what: &str) {
        let message = format!("odd connections {what} '{}'", self.editor.label(element));
        self.diagnostics.warning(self.editor.elements[element].span, message);
    }

    fn note(&mut self, element: usize, text: String) {
        self.notes.push((self.editor.elements[element].span, text));
    }

    /// Returns the number of the port that a switch selects; reports a bad configuration.
    fn switch_setting(&mut self, element: usize, class: &str) -> Option<usize> {
        let it = &self.editor.elements[element];
        let config = args::uncomment(&it.config);
        let number: Result<i64, _> = config.trim().parse();
        if number.is_err() {
            let message = format!("{}: bad configuration '{class}({config})'", it.name);
            self.diagnostics.error(it.span, message);
        }
        number.ok().and_then(|n| usize::try_from(n).ok())
    }

    /// Replaces each `StaticSwitch(N)` by connections to the target of output N, or, with `pull`, each
    /// `StaticPullSwitch(N)` by connections from the source of input N. The other targets or sources
    /// get an `Idle`.
    fn remove_static_switches(&mut self, pull: bool) {
        let (class, side) =
            if pull { ("StaticPullSwitch", "to") } else { ("StaticSwitch", "from") };
        for switch in self.editor.with_class(class) {
            let setting = self.switch_setting(switch, class);
            let idle = self.add_idle(self.editor.elements[switch].span);
            let (inputs, outputs) = self.editor.ports(switch);
            let (mut end, mut unused) = (Port { element: idle, port: 0 }, 0);
            for port in 0..if pull { inputs } else { outputs } {
                let peers = self.peers(Port { element: switch, port }, pull);
                if peers.len() > 1 {
                    self.warn_odd_connections(switch, side);
                }
                if Some(port) == setting && peers.len() == 1 {
                    end = peers[0];
                    continue;
                }
                for peer in peers {
                    self.link(Port { element: idle, port: unused }, peer, pull);
                    unused += 1;
                }
            }
            for peer in self.peers(Port { element: switch, port: 0 }, !pull) {
                if end.element != switch {
                    self.link(peer, end, pull);
                }
            }
            self.editor.remove(switch);
        }
    }

    /// The outputs that are connected to an input, or, without `sources`, the inputs that are connected
    /// to an output.
    fn peers(&self, port: Port, sources: bool) -> Vec<Port> {
        if sources { self.editor.sources(port) } else { self.editor.targets(port) }
    }

    /// Connects two ports, in the other direction with `reversed`.
    fn link(&mut self, from: Port, to: Port, reversed: bool) {
        if reversed { self.editor.link(to, from) } else { self.editor.link(from, to) }
    }

    fn remove_nulls(&mut self) {
        for null in self.editor.with_class("Null") {
            if self.editor.ports(null) != (1, 1) {
                self.warn_odd_connections(null, "to");
                continue;
            }
            self.splice(null);
        }
    }

    /// Removes an element with one input and one output, and connects its neighbours.
    fn splice(&mut self, element: usize) {
        let port = Port { element, port: 0 };
        for from in self.editor.sources(port) {
            for to in self.editor.targets(port) {
                if from.element != element && to.element != element {
                    self.editor.link(from, to);
                }
            }
        }
        self.editor.remove(element);
    }

    /// Removes dead elements; returns `false`, without a change, if none is alive.
    fn remove_dead(&mut self) -> bool {
        let alive = self.alive();
        let all: Vec<usize> = self.editor.live().collect();
        if !all.is_empty() && !all.iter().any(|&at| alive[at]) {
            return false;
        }
        for dead in all.into_iter().filter(|&at| !alive[at]) {
            let text = format!("removing '{}'", self.editor.label(dead));
            self.note(dead, text);
            self.editor.remove(dead);
        }
        true
    }

    /// Whether each element is on a path from a source to a sink, or has no ports.
    fn alive(&mut self) -> Vec<bool> {
        let count = self.editor.elements.len();
        let (mut sources, mut sinks) = (vec![false; count], vec![false; count]);
        let mut alive = vec![false; count];
        for at in self.editor.live() {
            let class = self.editor.elements[at].class.clone();
            let (inputs, outputs) = self.ports[at];
            let known = classes::source_and_sink(&class);
            (sources[at], sinks[at]) = known.unwrap_or((inputs == 0, outputs == 0));
            let assuming = if known.is_none() { "assuming " } else { "" };
            let label = self.editor.label(at);
            let what = match (sources[at], sinks[at]) {
                (true, true) => "source and sink",
                (true, false) => "source",
                (false, true) => "sink",
                (false, false) => continue,
            };
            self.note(at, format!("{assuming}'{label}' is {what}"));
            if (inputs, outputs) == (0, 0) {
                alive[at] = true;
                self.note(at, format!("assuming '{label}' is live"));
            }
        }
        let downstream = self.reach(&sources, Direction::Forward);
        let upstream = self.reach(&sinks, Direction::Backward);
        for at in self.editor.live() {
            let idle = matches!(self.editor.elements[at].class.as_str(), "Idle" | "SimpleIdle");
            let from = sources[at] || (downstream[at] && !idle);
            let to = sinks[at] || (upstream[at] && !idle);
            alive[at] = (alive[at] && !idle) || (from && to);
        }
        alive
    }

    /// Returns the elements that packets reach from the elements marked in `start`, or, backward,
    /// those from which packets reach them.
    fn reach(&self, start: &[bool], direction: Direction) -> Vec<bool> {
        let mut elements = vec![false; self.editor.elements.len()];
        let mut seen = std::collections::HashSet::new();
        let marked = self.editor.live().filter(|&at| start[at]);
        let mut stack: Vec<Port> = marked.flat_map(|at| self.far_ports(at, direction)).collect();
        while let Some(port) = stack.pop() {
            if !seen.insert(port) {
                continue;
            }
            elements[port.element] = true;
            let class = &self.editor.elements[port.element].class;
            let onward = match direction {
                Direction::Forward => self.editor.outgoing(port.element),
                Direction::Backward => self.editor.incoming(port.element),
            };
            stack.extend(onward.into_iter().filter_map(|(from, to)| match direction {
                Direction::Forward => classes::can_flow(class, port.port, from.port).then_some(to),
                Direction::Backward => classes::can_flow(class, to.port, port.port).then_some(from),
            }));
        }
        elements
    }

    /// Returns the ports at the far ends of an element's connections in one direction.
    fn far_ports(&self, element: usize, direction: Direction) -> Vec<Port> {
        match direction {
            Direction::Forward => {
                self.editor.outgoing(element).into_iter().map(|(_, to)| to).collect()
            }
            Direction::Backward => {
                self.editor.incoming(element).into_iter().map(|(from, _)| from).collect()
            }
        }
    }

    /// Removes unused inputs of schedulers; returns whether a scheduler was removed.
    fn compact_schedulers(&mut self) -> bool {
        let mut changed = false;
        for class in ["RoundRobinSched", "PrioSched", "StrideSched"] {
            for element in self.editor.with_class(class) {
                changed |= self.compact_scheduler(element, class == "StrideSched");
            }
        }
        changed
    }

    fn compact_scheduler(&mut self, element: usize, shares: bool) -> bool {
        if self.editor.ports(element).1 != 1 {
            self.warn_odd_connections(element, "to");
            return false;
        }
        let config = &self.editor.elements[element].config;
        let mut args: Vec<_> = args::split(config).into_iter().map(|arg| arg.text).collect();
        let inputs = self.ports[element].0.max(self.editor.ports(element).0);
        if shares && args.len() != inputs {
            return false;
        }
        let at = |port| Port { element, port };
        let mut kept = 0;
        for port in 0..inputs {
            if self.editor.sources(at(port)).is_empty() {
                continue;
            }
            if kept != port {
                self.editor.redirect_input(at(port), at(kept));
            }
            if shares {
                args.swap(kept, port);
            }
            kept += 1;
        }
        if shares && kept < inputs {
            args.truncate(kept);
            self.editor.elements[element].config = args::join(&args);
        }
        self.ports[element].0 = kept;
        kept == 1 && self.remove_redundant(element, "scheduler")
    }

    /// Removes unused outputs of tees; returns whether a tee was removed.
    fn compact_tees(&mut self) -> bool {
        let mut changed = false;
        for (class, first) in [("Tee", 0), ("PullTee", 1)] {
            for element in self.editor.with_class(class) {
                changed |= self.compact_tee(element, first);
            }
        }
        changed
    }

    /// Removes unused outputs of a tee from `first` on.
    fn compact_tee(&mut self, element: usize, first: usize) -> bool {
        if self.editor.ports(element).0 != 1 {
            self.warn_odd_connections(element, "to");
            return false;
        }
        let at = |port| Port { element, port };
        let mut kept = 0;
        for port in 0..self.editor.ports(element).1 {
            if port >= first && self.editor.targets(at(port)).is_empty() {
                continue;
            }
            if kept != port {
                self.editor.redirect_output(at(port), at(kept));
            }
            kept += 1;
        }
        self.ports[element].1 = kept;
        self.editor.elements[element].config = kept.to_string();
        kept == 1 && self.remove_redundant(element, "tee")
    }

    fn remove_redundant(&mut self, element: usize, what: &str) -> bool {
        let text = format!("removing redundant {what} '{}'", self.editor.label(element));
        self.note(element, text);
        self.splice(element);
        true
    }

    /// Connects ports that have lost their neighbours to an `Idle`.
    fn connect_open_ports(&mut self) {
        let mut open = (Vec::new(), Vec::new());
        for element in self.editor.live() {
            let (inputs, outputs) = self.ports[element];
            let at = |port| Port { element, port };
            open.0.extend((0..inputs).map(at).filter(|&p| self.editor.sources(p).is_empty()));
            open.1.extend((0..outputs).map(at).filter(|&p| self.editor.targets(p).is_empty()));
        }
        let Some(port) = open.0.first().or(open.1.first()) else { return };
        let idle = self.add_idle(self.editor.elements[port.element].span);
        for (port, to) in open.0.into_iter().enumerate() {
            self.editor.link(Port { element: idle, port }, to);
        }
        for (port, from) in open.1.into_iter().enumerate() {
            self.editor.link(from, Port { element: idle, port });
        }
    }
}

/// Direction of a search: along the flow of packets, or against it.
#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}
