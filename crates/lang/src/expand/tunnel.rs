//! Removes compounds and groups from a graph: joins the connections outside to those inside.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::context::{self, ContextConnection};
use super::instance::{Graph, NodeKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::{FlatGraph, Port};

/// Most connections of a configuration; more are taken for a mistake.
const MAX_CONNECTIONS: usize = 4_000_000;

/// A node and one of its ports.
type NodePort = (usize, usize);
/// An input port of an element, and the link on the way there that changes context, if any.
type Target = (NodePort, Option<usize>);

/// A graph whose compounds and groups are being removed.
struct Tunnels<'a> {
    graph: &'a Graph,
    /// Links by the output port at which they begin.
    from: HashMap<NodePort, Vec<usize>>,
    /// The element ports that the links from a tunnel's end lead to.
    known: HashMap<NodePort, Rc<[Target]>>,
    /// Number of connections that may still be made.
    room: usize,
}

/// Removes all tunnels. `contexts` selects whether context links get their elements.
pub(super) fn connect(graph: Graph, contexts: bool, diagnostics: &mut Diagnostics) -> FlatGraph {
    let mut from: HashMap<NodePort, Vec<usize>> = HashMap::new();
    for (i, link) in graph.links.iter().enumerate() {
        from.entry(link.from).or_default().push(i);
    }
    check(&graph, &from, diagnostics);
    let mut tunnels = Tunnels { graph: &graph, from, known: HashMap::new(), room: MAX_CONNECTIONS };
    let connections = tunnels.connections();
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
    let port = |(node, port): NodePort| Port { element: numbers[node], port };
    let connections =
        connections.into_iter().map(|(from, (to, context), span)| ContextConnection {
            from: port(from),
            to: port(to),
            span,
            context: context.and_then(|link| context::name(&graph.links[link].kind)),
        });
    let connections: Vec<_> = connections.collect();
    let mut connections = if contexts {
        context::dispatch(connections, &mut elements)
    } else {
        connections.into_iter().map(ContextConnection::plain).collect()
    };
    connections.iter_mut().enumerate().for_each(|(age, connection)| connection.age = age);
    connections.sort_by_key(|c| (c.to, c.from));
    connections.dedup_by_key(|c| (c.to, c.from));
    FlatGraph { elements, connections, ..FlatGraph::default() }
}

impl Tunnels<'_> {
    /// Returns every connection between elements.
    fn connections(&mut self) -> Vec<(NodePort, Target, crate::source::Span)> {
        let graph = self.graph;
        let mut connections = Vec::new();
        // As in Click, those that replace compounds and groups are the youngest.
        let is_direct =
            |i: &usize| matches!(link_target(graph, graph.links[*i].to), LinkTarget::Element(_));
        let (direct, through): (Vec<_>, Vec<_>) = (0..graph.links.len()).partition(is_direct);
        for i in direct.into_iter().chain(through) {
            let link = &graph.links[i];
            if !matches!(graph.nodes[link.from.0].kind, NodeKind::Element(_)) {
                continue;
            }
            for &(to, context) in self.targets(i).iter() {
                if self.room == 0 {
                    return connections;
                }
                self.room -= 1;
                let context = context::name(&link.kind).map(|_| i).or(context);
                connections.push((link.from, (to, context), link.span));
            }
        }
        connections
    }

    /// Returns the element ports that a link leads to.
    fn targets(&mut self, link: usize) -> Rc<[Target]> {
        match link_target(self.graph, self.graph.links[link].to) {
            LinkTarget::Element(end) => Rc::new([(end, None)]),
            LinkTarget::Tunnel(end) => {
                self.follow(end);
                self.known.get(&end).cloned().unwrap_or_default()
            }
            LinkTarget::Nothing => Rc::new([]),
        }
    }

    /// Fills `known` for a tunnel's end, after the tunnel ends that it leads to. A tunnel that
    /// leads only to itself has no targets.
    fn follow(&mut self, end: NodePort) {
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
            match link_target(self.graph, self.graph.links[link].to) {
                LinkTarget::Element(to) => found.push((to, context)),
                LinkTarget::Nothing => {}
                LinkTarget::Tunnel(behind) => match self.known.get(&behind) {
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

/// Target of a link: an element's port, the tunnel end at which the path goes on, or nothing.
enum LinkTarget {
    Element(NodePort),
    Tunnel(NodePort),
    Nothing,
}

fn link_target(graph: &Graph, (node, port): NodePort) -> LinkTarget {
    match graph.nodes[node].kind {
        NodeKind::Element(_) => LinkTarget::Element((node, port)),
        NodeKind::Outer(inside) => LinkTarget::Tunnel((inside, port)),
        NodeKind::Output(outer) => LinkTarget::Tunnel((outer, port)),
        NodeKind::Input(_) | NodeKind::Error => LinkTarget::Nothing,
    }
}

/// Reports ports of compounds and groups that are connected on one side only.
fn check(graph: &Graph, from: &HashMap<NodePort, Vec<usize>>, diagnostics: &mut Diagnostics) {
    let to: HashSet<NodePort> = graph.links.iter().map(|link| link.to).collect();
    let mut reported = HashSet::new();
    let mut report = |outer: usize, fault: &'static str, port: usize, is_connected: bool| {
        if is_connected || !reported.insert((outer, fault, port)) {
            return;
        }
        let node = &graph.nodes[outer];
        let message = match fault.strip_suffix(" unused") {
            Some(side) => format!("'{}' {side} {port} unused", node.name),
            None => format!("'{}' has no {fault} {port}", node.name),
        };
        diagnostics.push(Diagnostic::error(node.span, message));
    };
    for link in &graph.links {
        let (node, port) = link.to;
        match graph.nodes[node].kind {
            NodeKind::Outer(inside) => {
                report(node, "input", port, from.contains_key(&(inside, port)));
            }
            NodeKind::Output(outer) => {
                report(outer, "output unused", port, from.contains_key(&(outer, port)));
            }
            _ => {}
        }
        let (node, port) = link.from;
        match graph.nodes[node].kind {
            NodeKind::Outer(inside) => {
                report(node, "output", port, to.contains(&(inside + 1, port)));
            }
            NodeKind::Input(outer) => {
                report(outer, "input unused", port, to.contains(&(outer, port)));
            }
            _ => {}
        }
    }
}
