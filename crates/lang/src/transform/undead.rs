//! Dead elements removed: what no packet can come to, or come on from, and what does nothing.

use super::edit::Edit;
use super::facts;
use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::{Flat, Port};
use crate::source::Span;

/// What is left of a graph.
#[derive(Debug)]
pub struct Undead {
    /// The graph; `None` if no element of it is alive.
    pub graph: Option<Flat>,
    /// What could not be understood.
    pub found: Diagnostics,
    /// What was decided, element by element, for those who ask.
    pub notes: Vec<(Span, String)>,
}

/// Removes elements that are not on a way from where packets begin to where they end; switches that
/// never switch; `Null`; ports of schedulers and tees that lead nowhere; schedulers and tees that
/// have one port left. Elements without ports stay.
pub fn undead(graph: &Flat) -> Undead {
    let mut work = Work {
        ports: graph.ports(),
        edit: Edit::new(graph),
        found: Diagnostics::new(),
        notes: Vec::new(),
    };
    work.static_switches();
    work.static_pull_switches();
    work.nulls();
    if work.bury() {
        while work.schedulers() | work.tees() {}
        work.close();
        return Undead { graph: Some(work.edit.finish()), found: work.found, notes: work.notes };
    }
    let message = "no live elements in configuration";
    work.found.push(Diagnostic::warning(None, message));
    Undead { graph: None, found: work.found, notes: work.notes }
}

struct Work {
    edit: Edit,
    /// How many inputs and outputs each element is to have in the end, so that none is left open.
    ports: Vec<(usize, usize)>,
    found: Diagnostics,
    notes: Vec<(Span, String)>,
}

impl Work {
    fn idle(&mut self, span: Span) -> usize {
        self.ports.push((0, 0));
        self.edit.add_anonymous("Idle", "", span)
    }

    fn warn(&mut self, element: usize, what: &str) {
        let message = format!("odd connections {what} '{}'", self.edit.label(element));
        self.found.warning(self.edit.elements[element].span, message);
    }

    fn note(&mut self, element: usize, text: String) {
        self.notes.push((self.edit.elements[element].span, text));
    }

    /// The number that a switch is set to; none is reported.
    fn setting(&mut self, element: usize, class: &str) -> Option<usize> {
        let it = &self.edit.elements[element];
        let config = args::uncomment(&it.config);
        let number: Result<i64, _> = config.trim().parse();
        if number.is_err() {
            let message = format!("{}: bad configuration '{class}({config})'", it.name);
            self.found.error(it.span, message);
        }
        number.ok().and_then(|n| usize::try_from(n).ok())
    }

    /// `StaticSwitch(N)` becomes a wire to what is behind output N; the other outputs are idle.
    fn static_switches(&mut self) {
        for switch in self.edit.of_class("StaticSwitch") {
            let chosen = self.setting(switch, "StaticSwitch");
            let idle = self.idle(self.edit.elements[switch].span);
            let (input, mut unused) = (Port { element: switch, port: 0 }, 0);
            let mut end = Port { element: idle, port: 0 };
            for port in 0..self.edit.ports(switch).1 {
                let targets = self.edit.after(Port { element: switch, port });
                if targets.len() > 1 {
                    self.warn(switch, "from");
                }
                if Some(port) == chosen && targets.len() == 1 {
                    end = targets[0];
                    continue;
                }
                for to in targets {
                    self.edit.link(Port { element: idle, port: unused }, to);
                    unused += 1;
                }
            }
            for from in self.edit.before(input) {
                if end.element != switch {
                    self.edit.link(from, end);
                }
            }
            self.edit.remove(switch);
        }
    }

    /// `StaticPullSwitch(N)` becomes a wire from what is before input N.
    fn static_pull_switches(&mut self) {
        for switch in self.edit.of_class("StaticPullSwitch") {
            let chosen = self.setting(switch, "StaticPullSwitch");
            let idle = self.idle(self.edit.elements[switch].span);
            let (output, mut unused) = (Port { element: switch, port: 0 }, 0);
            let mut start = Port { element: idle, port: 0 };
            for port in 0..self.edit.ports(switch).0 {
                let sources = self.edit.before(Port { element: switch, port });
                if sources.len() > 1 {
                    self.warn(switch, "to");
                }
                if Some(port) == chosen && sources.len() == 1 {
                    start = sources[0];
                    continue;
                }
                for from in sources {
                    self.edit.link(from, Port { element: idle, port: unused });
                    unused += 1;
                }
            }
            for to in self.edit.after(output) {
                if start.element != switch {
                    self.edit.link(start, to);
                }
            }
            self.edit.remove(switch);
        }
    }

    fn nulls(&mut self) {
        for null in self.edit.of_class("Null") {
            if self.edit.ports(null) != (1, 1) {
                self.warn(null, "to");
                continue;
            }
            self.splice(null);
        }
    }

    /// Joins what is before and after an element of one input and one output, and removes it.
    fn splice(&mut self, element: usize) {
        let port = Port { element, port: 0 };
        for from in self.edit.before(port) {
            for to in self.edit.after(port) {
                if from.element != element && to.element != element {
                    self.edit.link(from, to);
                }
            }
        }
        self.edit.remove(element);
    }

    /// Removes what is dead; whether anything is alive.
    fn bury(&mut self) -> bool {
        let alive = self.alive();
        let all: Vec<usize> = self.edit.live().collect();
        if !all.is_empty() && !all.iter().any(|&at| alive[at]) {
            return false;
        }
        for dead in all.into_iter().filter(|&at| !alive[at]) {
            let text = format!("removing '{}'", self.edit.label(dead));
            self.note(dead, text);
            self.edit.remove(dead);
        }
        true
    }

    /// Whether each element is on a way from a beginning to an end, or has no ports at all.
    fn alive(&mut self) -> Vec<bool> {
        let count = self.edit.elements.len();
        let (mut begins, mut ends) = (vec![false; count], vec![false; count]);
        let mut alive = vec![false; count];
        for at in self.edit.live() {
            let class = self.edit.elements[at].class.clone();
            let (inputs, outputs) = self.ports[at];
            let known = facts::begins_and_ends(&class);
            (begins[at], ends[at]) = known.unwrap_or((inputs == 0, outputs == 0));
            let assuming = if known.is_none() { "assuming " } else { "" };
            let label = self.edit.label(at);
            let what = match (begins[at], ends[at]) {
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
        let reached = self.reach(&begins, Way::Down);
        let leading = self.reach(&ends, Way::Up);
        for at in self.edit.live() {
            let idle = matches!(self.edit.elements[at].class.as_str(), "Idle" | "SimpleIdle");
            let from = begins[at] || (reached[at] && !idle);
            let to = ends[at] || (leading[at] && !idle);
            alive[at] = (alive[at] && !idle) || (from && to);
        }
        alive
    }

    /// The elements that packets come to from elements marked in `start` (or, upwards, from which
    /// they come to those).
    fn reach(&self, start: &[bool], way: Way) -> Vec<bool> {
        let mut elements = vec![false; self.edit.elements.len()];
        let mut seen = std::collections::HashSet::new();
        let marked = self.edit.live().filter(|&at| start[at]);
        let mut work: Vec<Port> = marked.flat_map(|at| self.far_ports(at, way)).collect();
        while let Some(port) = work.pop() {
            if !seen.insert(port) {
                continue;
            }
            elements[port.element] = true;
            let class = &self.edit.elements[port.element].class;
            let onward = match way {
                Way::Down => self.edit.leaving(port.element),
                Way::Up => self.edit.entering(port.element),
            };
            work.extend(onward.into_iter().filter_map(|(from, to)| match way {
                Way::Down => facts::passes(class, port.port, from.port).then_some(to),
                Way::Up => facts::passes(class, to.port, port.port).then_some(from),
            }));
        }
        elements
    }

    /// The ports at the other ends of an element's connections.
    fn far_ports(&self, element: usize, way: Way) -> Vec<Port> {
        match way {
            Way::Down => self.edit.leaving(element).into_iter().map(|(_, to)| to).collect(),
            Way::Up => self.edit.entering(element).into_iter().map(|(from, _)| from).collect(),
        }
    }

    /// Closes up the inputs of schedulers; whether one became a wire.
    fn schedulers(&mut self) -> bool {
        let mut changed = false;
        for class in ["RoundRobinSched", "PrioSched", "StrideSched"] {
            for element in self.edit.of_class(class) {
                changed |= self.scheduler(element, class == "StrideSched");
            }
        }
        changed
    }

    fn scheduler(&mut self, element: usize, shares: bool) -> bool {
        if self.edit.ports(element).1 != 1 {
            self.warn(element, "to");
            return false;
        }
        let config = &self.edit.elements[element].config;
        let mut args: Vec<_> = args::split(config).into_iter().map(|arg| arg.text).collect();
        let inputs = self.ports[element].0.max(self.edit.ports(element).0);
        if shares && args.len() != inputs {
            return false;
        }
        let at = |port| Port { element, port };
        let mut kept = 0;
        for port in 0..inputs {
            if self.edit.before(at(port)).is_empty() {
                continue;
            }
            if kept != port {
                self.edit.redirect(at(port), at(kept));
            }
            if shares {
                args.swap(kept, port);
            }
            kept += 1;
        }
        if shares && kept < inputs {
            args.truncate(kept);
            self.edit.elements[element].config = args::join(&args);
        }
        self.ports[element].0 = kept;
        kept == 1 && self.redundant(element, "scheduler")
    }

    /// Closes up the outputs of tees; whether one became a wire.
    fn tees(&mut self) -> bool {
        let mut changed = false;
        for (class, first) in [("Tee", 0), ("PullTee", 1)] {
            for element in self.edit.of_class(class) {
                changed |= self.tee(element, first);
            }
        }
        changed
    }

    /// Outputs below `first` stay, connected or not.
    fn tee(&mut self, element: usize, first: usize) -> bool {
        if self.edit.ports(element).0 != 1 {
            self.warn(element, "to");
            return false;
        }
        let at = |port| Port { element, port };
        let mut kept = 0;
        for port in 0..self.edit.ports(element).1 {
            if port >= first && self.edit.after(at(port)).is_empty() {
                continue;
            }
            if kept != port {
                self.edit.resource(at(port), at(kept));
            }
            kept += 1;
        }
        self.ports[element].1 = kept;
        self.edit.elements[element].config = kept.to_string();
        kept == 1 && self.redundant(element, "tee")
    }

    fn redundant(&mut self, element: usize, what: &str) -> bool {
        let text = format!("removing redundant {what} '{}'", self.edit.label(element));
        self.note(element, text);
        self.splice(element);
        true
    }

    /// Connects what lost its neighbour to an `Idle`.
    fn close(&mut self) {
        let mut open = (Vec::new(), Vec::new());
        for element in self.edit.live() {
            let (inputs, outputs) = self.ports[element];
            let at = |port| Port { element, port };
            open.0.extend((0..inputs).map(at).filter(|&p| self.edit.before(p).is_empty()));
            open.1.extend((0..outputs).map(at).filter(|&p| self.edit.after(p).is_empty()));
        }
        let Some(port) = open.0.first().or(open.1.first()) else { return };
        let idle = self.idle(self.edit.elements[port.element].span);
        for (port, to) in open.0.into_iter().enumerate() {
            self.edit.link(Port { element: idle, port }, to);
        }
        for (port, from) in open.1.into_iter().enumerate() {
            self.edit.link(from, Port { element: idle, port });
        }
    }
}

/// Which way packets are followed.
#[derive(Clone, Copy)]
enum Way {
    Down,
    Up,
}
