//! Which ports an arrow between two lists connects.

use super::scope::{LinkDecl, Scope};
use crate::diagnostic::Diagnostics;
use crate::tree::{Link, LinkKind, Ports};

/// An element of a list, and its ports where they are written.
pub(super) struct Item {
    pub(super) element: usize,
    pub(super) inputs: Option<Ports>,
    pub(super) outputs: Option<Ports>,
}

/// One side of an arrow.
struct Side<'a> {
    items: Vec<(usize, Option<&'a Ports>)>,
    /// Ports it has at least.
    least: usize,
    /// The item that can have more, if it must.
    open: Option<usize>,
}

impl<'a> Side<'a> {
    fn new(items: impl Iterator<Item = (usize, Option<&'a Ports>)>) -> Self {
        let items: Vec<_> = items.collect();
        let least = items.iter().map(|(_, ports)| ports.map_or(1, |p| p.list.len())).sum();
        let open = items.iter().position(|(_, ports)| ports.is_some_and(|p| p.open));
        Side { items, least, open }
    }

    fn opens(&self) -> usize {
        self.items.iter().filter(|(_, ports)| ports.is_some_and(|p| p.open)).count()
    }

    /// Whether each port has a connection of its own.
    fn steps(&self) -> bool {
        self.least > 1 || self.open.is_some()
    }

    /// All its ports, with `more` at the open item.
    fn ports(&self, more: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (at, (element, ports)) in self.items.iter().enumerate() {
            let listed = ports.map_or(&[0][..], |p| &p.list);
            all.extend(listed.iter().map(|&port| (*element, port as usize)));
            if self.open == Some(at) {
                let next = listed.last().map_or(0, |&last| last as usize + 1);
                all.extend((next..next + more).map(|port| (*element, port)));
            }
        }
        all
    }
}

/// Connects two lists.
pub(super) fn connect_all(
    scope: &mut Scope,
    from: &[Item],
    to: &[Item],
    link: &Link,
    left: &mut usize,
    diagnostics: &mut Diagnostics,
) {
    let mut outputs = Side::new(from.iter().map(|item| (item.element, item.outputs.as_ref())));
    let mut inputs = Side::new(to.iter().map(|item| (item.element, item.inputs.as_ref())));
    if outputs.items.is_empty() || inputs.items.is_empty() {
        return;
    }
    if outputs.opens() + inputs.opens() > 1 {
        diagnostics.error(link.span, "at most one expandable port allowed per connection");
        let fewer = if inputs.least < outputs.least { &mut outputs } else { &mut inputs };
        fewer.open = None;
    }
    let wide = link.kind == LinkKind::Wide;
    if wide {
        // `a => [0, 1] b` has as many outputs of `a` as it needs.
        widen(&mut inputs, outputs.least);
        widen(&mut outputs, inputs.least);
    }
    let (n, m) = (outputs.least, inputs.least);
    let both = outputs.steps() && inputs.steps();
    if both && !wide {
        diagnostics.error(link.span, "syntax error: many-to-many connections require '=>'");
    }
    if both {
        let more = |open: Option<usize>| if open.is_some() { " or more" } else { "" };
        let short = (outputs.open.is_none() && n < m) || (inputs.open.is_none() && m < n);
        if short {
            let (o, i) = (more(outputs.open), more(inputs.open));
            let message = match (outputs.open, inputs.open) {
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
    match (outputs.steps(), inputs.steps()) {
        (true, false) => many.iter().for_each(|&from| connect(from, few[0])),
        (false, true) => few.iter().for_each(|&to| connect(many[0], to)),
        _ => many.iter().zip(&few).for_each(|(&from, &to)| connect(from, to)),
    }
}

/// Lets a lone element without ports have as many as the other side.
fn widen(side: &mut Side, other: usize) {
    if side.least == 1 && other > 1 && side.items[0].1.is_none() {
        side.open = Some(0);
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
