//! Connects the ports of two lists with an arrow between them.

use super::scope::{LinkDecl, Scope};
use crate::diagnostic::Diagnostics;
use crate::tree::{Link, LinkKind, Ports};

/// An element of a list with the ports that the list gives it, if any.
pub(super) struct ElementPorts {
    pub(super) element: usize,
    pub(super) inputs: Option<Ports>,
    pub(super) outputs: Option<Ports>,
}

/// One side of an arrow.
struct LinkSide<'a> {
    items: Vec<(usize, Option<&'a Ports>)>,
    /// Least number of its ports.
    min_ports: usize,
    /// Index of the item that may have more ports.
    expandable: Option<usize>,
}

impl<'a> LinkSide<'a> {
    fn new(items: impl Iterator<Item = (usize, Option<&'a Ports>)>) -> Self {
        let items: Vec<_> = items.collect();
        let min_ports = items.iter().map(|(_, ports)| ports.map_or(1, |p| p.list.len())).sum();
        let expandable = items.iter().position(|(_, ports)| ports.is_some_and(|p| p.expandable));
        LinkSide { items, min_ports, expandable }
    }

    fn expandable_count(&self) -> usize {
        self.items.iter().filter(|(_, ports)| ports.is_some_and(|p| p.expandable)).count()
    }

    /// Whether the side has, or may have, several ports.
    fn is_multiple(&self) -> bool {
        self.min_ports > 1 || self.expandable.is_some()
    }

    /// Returns all ports as element and port number, with `more` ports at the expandable item.
    fn ports(&self, more: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (at, (element, ports)) in self.items.iter().enumerate() {
            let listed = ports.map_or(&[0][..], |p| &p.list);
            all.extend(listed.iter().map(|&port| (*element, port as usize)));
            if self.expandable == Some(at) {
                let next = listed.last().map_or(0, |&last| last as usize + 1);
                all.extend((next..next + more).map(|port| (*element, port)));
            }
        }
        all
    }
}

/// Connects two lists. `left` is the number of connections that may still be made.
pub(super) fn connect_all(
    scope: &mut Scope,
    from: &[ElementPorts],
    to: &[ElementPorts],
    link: &Link,
    left: &mut usize,
    diagnostics: &mut Diagnostics,
) {
    let mut outputs = LinkSide::new(from.iter().map(|item| (item.element, item.outputs.as_ref())));
    let mut inputs = LinkSide::new(to.iter().map(|item| (item.element, item.inputs.as_ref())));
    if outputs.items.is_empty() || inputs.items.is_empty() {
        return;
    }
    if outputs.expandable_count() + inputs.expandable_count() > 1 {
        diagnostics.error(link.span, "at most one expandable port allowed per connection");
        let fewer = if inputs.min_ports < outputs.min_ports { &mut outputs } else { &mut inputs };
        fewer.expandable = None;
    }
    let many_to_many = link.kind == LinkKind::DoubleArrow;
    if many_to_many {
        // In `a => [0, 1] b`, `a` has as many outputs as `b` has inputs.
        make_expandable(&mut inputs, outputs.min_ports);
        make_expandable(&mut outputs, inputs.min_ports);
    }
    let (n, m) = (outputs.min_ports, inputs.min_ports);
    let both = outputs.is_multiple() && inputs.is_multiple();
    if both && !many_to_many {
        diagnostics.error(link.span, "syntax error: many-to-many connections require '=>'");
    }
    if both {
        let more = |expandable: Option<usize>| if expandable.is_some() { " or more" } else { "" };
        let short =
            (outputs.expandable.is_none() && n < m) || (inputs.expandable.is_none() && m < n);
        if short {
            let (o, i) = (more(outputs.expandable), more(inputs.expandable));
            let message = match (outputs.expandable, inputs.expandable) {
                (None, None) => format!("connection mismatch: {n} outputs connected to {m} inputs"),
                _ => format!("connection mismatch: {n}{o} outputs connected to {m}{i} inputs"),
            };
            diagnostics.error(link.span, message);
        }
    }
    match left.checked_sub(n.max(m)) {
        Some(rest) => *left = rest,
        None => return diagnostics.error(link.span, "too many connections"),
    }
    let (many, few) = (outputs.ports(m.saturating_sub(n)), inputs.ports(n.saturating_sub(m)));
    let mut connect = |from, to| scope.connect(from, to, link);
    match (outputs.is_multiple(), inputs.is_multiple()) {
        (true, false) => many.iter().for_each(|&from| connect(from, few[0])),
        (false, true) => few.iter().for_each(|&to| connect(many[0], to)),
        _ => many.iter().zip(&few).for_each(|(&from, &to)| connect(from, to)),
    }
}

/// Makes a side expandable that is one element without ports, if the other side has several ports.
fn make_expandable(side: &mut LinkSide, other: usize) {
    if side.min_ports == 1 && other > 1 && side.items[0].1.is_none() {
        side.expandable = Some(0);
    }
}

impl Scope {
    fn connect(&mut self, from: (usize, usize), to: (usize, usize), link: &Link) {
        let outputs = &mut self.elements[from.0].ports[1];
        *outputs = (*outputs).max(from.1 + 1);
        let inputs = &mut self.elements[to.0].ports[0];
        *inputs = (*inputs).max(to.1 + 1);
        self.links.push(LinkDecl { from, to, kind: link.kind.clone(), span: link.span });
    }
}
