//! Joining the connections outside a compound or group to those inside it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::context::{self, Wire};
use super::instance::{Graph, NodeKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::{Flat, Port};

/// More connections than this are taken for a mistake.
const MAX_CONNECTIONS: usize = 4_000_000;

/// A node and one of its ports.
type End = (usize, usize);
/// An input port of an element, and the link that changes context on the way there.
type Target = (End, Option<usize>);

struct Tunnels<'a> {
    graph: &'a Graph,
    /// Links that begin at an output port.
    from: HashMap<End, Vec<usize>>,
    /// Where the links that begin at an end of a tunnel lead in the end.
    known: HashMap<End, Rc<[Target]>>,
    room: usize,
}

/// Removes all tunnels. `contexts` says whether context links are to be given their elements.
pub(super) fn connect(graph: Graph, contexts: bool, diagnostics: &mut Diagnostics) -> Flat {
    let mut from: HashMap<End, Vec<usize>> = HashMap::new();
    for (i, link) in graph.links.iter().enumerate() {
        from.entry(link.from).or_default().push(i);
    }
    check(&graph, &from, diagnostics);
    let mut tunnels = Tunnels { graph: &graph, from, known: HashMap::new(), room: MAX_CONNECTIONS };
    let wires = tunnels.wires();
    if tunnels.room == 0 {
        diagnostics.error(graph.links[0].span, "too many connections");
    }
    let mut numbers = vec![0; graph.nodes.len()];
    let mut elements = Vec::new();
    for (node, number) in graph.nodes.into_iter().zip(&mut numbers) {
        if let NodeKind::Element(element) = node.kind {
            *number = elements.len();
            elements.push(*element);
        }
    }
    let port = |(node, port): End| Port { element: numbers[node], port };
    let wires = wires.into_iter().map(|(from, (to, context), span)| Wire {
        from: port(from),
        to: port(to),
        span,
        context: context.and_then(|link| context::name(&graph.links[link].kind)),
    });
    let wires: Vec<_> = wires.collect();
    let mut connections = if contexts {
        context::dispatch(wires, &mut elements)
    } else {
        wires.into_iter().map(Wire::plain).collect()
    };
    connections.sort_by_key(|c| (c.to, c.from));
    connections.dedup_by_key(|c| (c.to, c.from));
    Flat { elements, connections, ..Flat::default() }
}

impl Tunnels<'_> {
    /// Every connection between elements.
    fn wires(&mut self) -> Vec<(End, Target, crate::source::Span)> {
        let graph = self.graph;
        let mut wires = Vec::new();
        for (i, link) in graph.links.iter().enumerate() {
            if !matches!(graph.nodes[link.from.0].kind, NodeKind::Element(_)) {
                continue;
            }
            for &(to, context) in self.targets(i).iter() {
                if self.room == 0 {
                    return wires;
                }
                self.room -= 1;
                let context = context::name(&link.kind).map(|_| i).or(context);
                wires.push((link.from, (to, context), link.span));
            }
        }
        wires
    }

    /// The input ports that a link leads to.
    fn targets(&mut self, link: usize) -> Rc<[Target]> {
        match inside(self.graph, self.graph.links[link].to) {
            Side::Element(end) => Rc::new([(end, None)]),
            Side::Tunnel(end) => {
                self.follow(end);
                self.known.get(&end).cloned().unwrap_or_default()
            }
            Side::Nothing => Rc::new([]),
        }
    }

    /// Fills `known` for a tunnel end, those behind it first. A tunnel that leads to itself leads
    /// nowhere.
    fn follow(&mut self, end: End) {
        let mut open = vec![(end, 0, Vec::new())];
        let mut entered = HashSet::from([end]);
        while let Some((end, next, found)) = open.last_mut() {
            let end = *end;
            if self.known.contains_key(&end) {
                open.pop();
                continue;
            }
            let Some(&link) = self.from.get(&end).and_then(|links| links.get(*next)) else {
                let found: Vec<Target> = std::mem::take(found);
                self.room = self.room.saturating_sub(found.len());
                self.known.insert(end, found.into());
                open.pop();
                continue;
            };
            let context = context::name(&self.graph.links[link].kind).map(|_| link);
            match inside(self.graph, self.graph.links[link].to) {
                Side::Element(to) => found.push((to, context)),
                Side::Nothing => {}
                Side::Tunnel(behind) => match self.known.get(&behind) {
                    Some(known) if known.len() <= self.room => {
                        found.extend(known.iter().map(|&(to, c)| (to, context.or(c))));
                    }
                    None if entered.insert(behind) => {
                        open.push((behind, 0, Vec::new()));
                        continue;
                    }
                    _ => {}
                },
            }
            *next += 1;
        }
    }
}

/// Where a link to an input port goes on.
enum Side {
    Element(End),
    Tunnel(End),
    Nothing,
}

fn inside(graph: &Graph, (node, port): End) -> Side {
    match graph.nodes[node].kind {
        NodeKind::Element(_) => Side::Element((node, port)),
        NodeKind::Whole(inside) => Side::Tunnel((inside, port)),
        NodeKind::Output(whole) => Side::Tunnel((whole, port)),
        NodeKind::Input(_) | NodeKind::Error => Side::Nothing,
    }
}

/// Reports ports of compounds and groups that are connected on one side only.
fn check(graph: &Graph, from: &HashMap<End, Vec<usize>>, diagnostics: &mut Diagnostics) {
    let to: HashSet<End> = graph.links.iter().map(|link| link.to).collect();
    let mut reported = HashSet::new();
    let mut report = |whole: usize, what: &'static str, port: usize, good: bool| {
        if good || !reported.insert((whole, what, port)) {
            return;
        }
        let node = &graph.nodes[whole];
        let message = match what.strip_suffix(" unused") {
            Some(side) => format!("'{}' {side} {port} unused", node.name),
            None => format!("'{}' has no {what} {port}", node.name),
        };
        diagnostics.push(Diagnostic::error(node.span, message));
    };
    for link in &graph.links {
        let (node, port) = link.to;
        match graph.nodes[node].kind {
            NodeKind::Whole(inside) => {
                report(node, "input", port, from.contains_key(&(inside, port)));
            }
            NodeKind::Output(whole) => {
                report(whole, "output unused", port, from.contains_key(&(whole, port)));
            }
            _ => {}
        }
        let (node, port) = link.from;
        match graph.nodes[node].kind {
            NodeKind::Whole(inside) => {
                report(node, "output", port, to.contains(&(inside + 1, port)));
            }
            NodeKind::Input(whole) => {
                report(whole, "input unused", port, to.contains(&(whole, port)));
            }
            _ => {}
        }
    }
}
