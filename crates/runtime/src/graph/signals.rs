//! Click's signals: which notifiers an element depends on, upstream or downstream.
//!
//! A notifier is a bit that says whether there is something to pull (`empty`) or room to push (`full`).
//! The notifiers of a kind have numbers in the order in which Click makes them.

use super::{Element, Flow, Graph};
use castanet_element::class::ports::paired;
use castanet_element::class::{NotifierOrder, Role};
use std::fmt::Write;

/// The signal at one side of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// Never on.
    Idle,
    /// Always on.
    Busy,
    /// On while one of these notifiers is.
    Of(SignalKind, Vec<Notifier>),
}

/// The question that a notifier answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SignalKind {
    /// Whether there is something to pull.
    Empty,
    /// Whether there is room to push.
    Full,
}

/// A notifier: its number, and its element with the port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Notifier {
    pub(crate) number: usize,
    pub(crate) element: usize,
    pub(crate) port: usize,
}

/// Bits of one word of Click's.
const WORD: usize = u32::BITS as usize;

impl Signal {
    /// The signal of the element's first input if it is pulled, else of its first output.
    pub(crate) fn at(graph: &Graph, element: usize) -> Signal {
        let kind = match graph.elements[element].inputs.first() {
            Some(Flow::Pull) => SignalKind::Empty,
            _ => SignalKind::Full,
        };
        let mut search = Search { graph, kind, found: Vec::new(), seen: Vec::new() };
        let is_busy = search.beyond(element, 0);
        search.found.sort_unstable();
        match (is_busy, search.found.is_empty()) {
            (true, _) => Signal::Busy,
            (false, true) => Signal::Idle,
            (false, false) => Signal::Of(kind, search.found),
        }
    }

    /// The text of a signal, given which of its notifiers are on.
    pub(crate) fn text(&self, on: &[bool]) -> String {
        let (kind, notifiers) = match self {
            Signal::Idle => return "idle".to_owned(),
            Signal::Busy => return "busy*".to_owned(),
            Signal::Of(SignalKind::Empty, notifiers) => ("empty", notifiers),
            Signal::Of(SignalKind::Full, notifiers) => ("full", notifiers),
        };
        let all: Vec<(usize, bool)> =
            notifiers.iter().zip(on).map(|(it, on)| (it.number, *on)).collect();
        let mut text = String::new();
        for of_word in all.chunk_by(|a, b| a.0 / WORD == b.0 / WORD) {
            let bits = |(mask, value), &(number, on): &(usize, bool)| {
                let bit = 1u32 << (number % WORD);
                (mask | bit, if on { value | bit } else { value })
            };
            let (mask, value) = of_word.iter().fold((0, 0), bits);
            let plus = if text.is_empty() { "" } else { "+" };
            let star = if value == 0 { "" } else { "*" };
            let word = of_word[0].0 / WORD;
            _ = write!(text, "{plus}{kind}.{word}/{mask:x}:{value:x}{star}");
        }
        text
    }
}

/// A search for notifiers.
struct Search<'a> {
    graph: &'a Graph,
    kind: SignalKind,
    found: Vec<Notifier>,
    /// Ports that were visited: elements and port numbers.
    seen: Vec<(usize, usize)>,
}

impl Search<'_> {
    /// Visits the ports that are connected to one port of an element; returns whether the signal is
    /// always on.
    fn beyond(&mut self, element: usize, port: usize) -> bool {
        let graph = self.graph;
        let ends: Vec<(usize, usize)> = match self.kind {
            SignalKind::Empty => {
                let edges = graph.in_edges(element).filter(|edge| edge.to.port == port);
                edges.map(|edge| (edge.from.node, edge.from.port)).collect()
            }
            SignalKind::Full => {
                let edges = graph.out_edges(element).filter(|edge| edge.from.port == port);
                edges.map(|edge| (edge.to.node, edge.to.port)).collect()
            }
        };
        ends.into_iter().any(|(element, port)| self.visit(element, port))
    }

    fn visit(&mut self, element: usize, port: usize) -> bool {
        if self.seen.contains(&(element, port)) {
            return false;
        }
        self.seen.push((element, port));
        let it = &self.graph.elements[element];
        if let Some(number) = number(self.graph, self.kind, element) {
            let port = if it.class.notifies || it.inputs.is_empty() { 0 } else { port };
            let notifier = Notifier { number, element, port };
            if !self.found.contains(&notifier) {
                self.found.push(notifier);
            }
            return false;
        }
        let (own, opposite, away) = match self.kind {
            SignalKind::Empty => (&it.outputs, &it.inputs, Flow::Push),
            SignalKind::Full => (&it.inputs, &it.outputs, Flow::Pull),
        };
        if own.get(port) == Some(&away) {
            return true;
        }
        let ends: Vec<usize> = match paired(it.class) {
            true => (0..opposite.len()).filter(|&end| end == port).collect(),
            false => (0..opposite.len()).collect(),
        };
        // An Idle is known never to have packets, nor to take any; no other end is.
        if ends.is_empty() || it.class.spec.class == IDLE {
            return it.class.spec.class != IDLE;
        }
        ends.into_iter().any(|end| self.beyond(element, end))
    }
}

const IDLE: &str = "Idle";

/// The only store that tells nobody, under this name.
const WITHOUT_NOTIFIER: &str = "SimpleQueue";

/// When an element's notifier of a kind gets its number; `None` if it has none.
fn order(it: &Element, kind: SignalKind) -> Option<NotifierOrder> {
    match kind {
        SignalKind::Full => it.class.notifies.then_some(NotifierOrder::Configuration),
        SignalKind::Empty => {
            let is_pulled = it.outputs.first() == Some(&Flow::Pull);
            let tells = |order: &NotifierOrder| match (it.class.role, order) {
                (Role::Store, _) => is_pulled && it.source.class != WITHOUT_NOTIFIER,
                (_, NotifierOrder::Configuration) => true,
                (_, NotifierOrder::Initialization) => is_pulled,
            };
            it.class.notifier.filter(tells)
        }
    }
}

/// The number of an element's notifier of a kind; `None` if it has none.
fn number(graph: &Graph, kind: SignalKind, element: usize) -> Option<usize> {
    let own = (order(&graph.elements[element], kind)?, element);
    let orders = graph.elements.iter().map(|it| order(it, kind)).enumerate();
    Some(orders.filter_map(|(at, order)| Some((order?, at))).filter(|&it| it < own).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_written_as_click_writes_them() {
        assert_eq!(
            (Signal::Idle.text(&[]), Signal::Busy.text(&[])),
            ("idle".into(), "busy*".into())
        );
        let of = |numbers: &[usize]| {
            let notifier = |&number| Notifier { number, element: 0, port: 0 };
            Signal::Of(SignalKind::Empty, numbers.iter().map(notifier).collect())
        };
        assert_eq!(of(&[3, 5]).text(&[false, false]), "empty.0/28:0");
        assert_eq!(of(&[3, 5]).text(&[false, true]), "empty.0/28:20*");
        assert_eq!(
            of(&[1, 31, 32, 65]).text(&[true, false, false, true]),
            "empty.0/80000002:2*+empty.1/1:0+empty.2/2:2*"
        );
    }
}
