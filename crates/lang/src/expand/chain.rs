//! Resolves chains and groups: the elements that they name, declare and connect.

use super::connect::{ElementPorts, connect_all};
use super::scope::{ClassId, DeclKind, Resolver};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Body, Chain, ConfigText, ElementExpr, Head, LinkKind, List, Ports};

/// An element expression of a list whose classes are resolved and whose name is not yet checked.
struct PendingElement<'a> {
    expr: &'a ElementExpr,
    name: String,
    /// The class, if the expression begins with one.
    class: Option<ClassId>,
    /// The class after `::`.
    declared: Option<ClassId>,
    config: Option<ConfigText>,
    inputs: Option<Ports>,
    outputs: Option<Ports>,
}

impl<'a> Resolver<'a> {
    /// Walks a chain and returns whether it ends with `output` alone, for a warning at the next
    /// one. `ends_output` is that result for the chain before.
    pub(super) fn chain(&mut self, chain: &'a Chain, ends_output: bool) -> bool {
        let mut before: Vec<ElementPorts> = Vec::new();
        for (i, list) in chain.lists.iter().enumerate() {
            let after = chain.links.get(i);
            if i == 0
                && let Some(link) = after
                && !ends_output
                && matches!(
                    &list.elements[..],
                    [ElementExpr { head: Head::Implicit, outputs: None, .. }]
                )
            {
                let arrow = if link.kind == LinkKind::DoubleArrow { "=>" } else { "->" };
                let message =
                    format!("suggest 'input {arrow}' or '[0] {arrow}' to start connection");
                self.diagnostics.warning(link.span, message);
            }
            let items = self.list(list, i == 0, after.is_some());
            match i.checked_sub(1).map(|i| &chain.links[i]) {
                None => self.report_unused_ports(items.iter().map(|item| &item.inputs), true),
                Some(link) => {
                    let (scope, left) = (&mut self.current, &mut self.links_left);
                    connect_all(scope, &before, &items, link, left, &mut self.diagnostics);
                }
            }
            before = items;
        }
        self.report_unused_ports(before.iter().map(|item| &item.outputs), false);
        let output = self.current.by_name.get("output").copied();
        match &before[..] {
            [ElementPorts { inputs: None, outputs: None, element }] => Some(*element) == output,
            _ => false,
        }
    }

    fn report_unused_ports<'p>(
        &mut self,
        ports: impl Iterator<Item = &'p Option<Ports>>,
        start: bool,
    ) {
        if let Some(ports) = ports.flatten().next() {
            let message = if start {
                "input ports ignored at start of chain"
            } else {
                "output ports ignored at end of chain"
            };
            self.diagnostics.error(ports.span, message);
        }
    }

    fn list(&mut self, list: &'a List, first: bool, linked: bool) -> Vec<ElementPorts> {
        // `a, b :: Class` declares both.
        let declares =
            first && !linked && list.elements.last().is_some_and(|it| it.class.is_some());
        let mut pending: Vec<_> =
            list.elements.iter().map(|expr| self.element(expr, first, declares)).collect();
        let implicit = list.elements.iter().any(|e| matches!(e.head, Head::Implicit));
        if implicit && !first && linked {
            self.diagnostics.error(list.span, "implicit ports used in the middle of a chain");
        }
        let has_ports = pending.iter().any(|d| d.inputs.is_some() || d.outputs.is_some());
        if first && !linked && !has_ports && !implicit {
            share_declaration(&mut pending);
        }
        pending.into_iter().map(|element| self.find_or_add(element)).collect()
    }

    /// Looks up the classes of an element expression, and walks its compounds and groups.
    fn element(
        &mut self,
        expr: &'a ElementExpr,
        first: bool,
        declares: bool,
    ) -> PendingElement<'a> {
        let (mut inputs, mut outputs) = (expr.inputs.clone(), expr.outputs.clone());
        let mut class = None;
        // In `K :: K`, the class comes first.
        let declared = expr.class.as_ref().map(|class| self.class(class, ""));
        let name = match &expr.head {
            Head::Name(name) => {
                let is_element = declares || self.current.by_name.contains_key(&name.text);
                class = match declared.is_some() || is_element {
                    true => self.lookup(&name.text),
                    false => self.lookup_or_presume(&name.text),
                };
                name.text.clone()
            }
            Head::Compound(compound) => {
                class = Some(self.compound(compound, ""));
                String::new()
            }
            Head::Group(body) => {
                let (name, counts) = self.group(body);
                let all = |count: usize| {
                    let list = (0..count as u32).collect();
                    (count > 0).then_some(Ports { list, expandable: false, span: expr.span })
                };
                inputs = inputs.or_else(|| all(counts[0]));
                outputs = outputs.or_else(|| all(counts[1]));
                name
            }
            Head::Implicit => (if first { "input" } else { "output" }).to_string(),
        };
        if let Some(config) = &expr.config
            && class.is_none()
            && self.current.by_name.contains_key(&name)
        {
            let message = "configuration string ignored on element reference";
            self.diagnostics.error(config.span, message);
        }
        PendingElement { expr, name, class, declared, config: expr.config.clone(), inputs, outputs }
    }

    /// Walks a group and returns its name and its numbers of inputs and outputs. Its elements
    /// belong to the current scope, but it has its own `input` and `output`.
    fn group(&mut self, body: &'a Body) -> (String, [usize; 2]) {
        let scope = &mut self.current;
        let name = scope.anonymous_name("");
        let outer = scope.add(&name, DeclKind::Group, None, body.span);
        scope.add(&format!("{name}/input"), DeclKind::Pseudo, None, body.span);
        scope.add(&format!("{name}/output"), DeclKind::Pseudo, None, body.span);
        let input = scope.by_name.insert("input".to_string(), outer + 1);
        let output = scope.by_name.insert("output".to_string(), outer + 2);
        let since = scope.links.len();
        self.stmts(&body.stmts);
        let (shown, diagnostics) = ("<anonymous group>", &mut self.diagnostics);
        let counts = [
            self.current.pseudo(outer + 1, since, false, shown, diagnostics),
            self.current.pseudo(outer + 2, since, true, shown, diagnostics),
        ];
        for (word, before) in [("input", input), ("output", output)] {
            let names = &mut self.current.by_name;
            match before {
                Some(before) => names.insert(word.to_string(), before),
                None => names.remove(word),
            };
        }
        (name, counts)
    }

    /// Finds the element in the scope, or adds it.
    fn find_or_add(&mut self, element: PendingElement) -> ElementPorts {
        let PendingElement { expr, mut name, mut class, declared, config, inputs, outputs } =
            element;
        let with_ports = |element| ElementPorts { element, inputs, outputs };
        if class.is_none()
            && let Some(&known) = self.current.by_name.get(&name)
        {
            if declared.is_some() {
                self.report_redeclaration(&name, expr.span, known);
            }
            return with_ports(known);
        }
        match (class, declared) {
            (Some(_), Some(_)) => {
                let message = format!("class '{name}' used as element name");
                let help =
                    format!("pick another name, or write '{name}' alone for an anonymous one");
                self.diagnostics.push(Diagnostic::error(expr.span, message).with_help(help));
            }
            (None, None) => {
                let message = format!("undeclared element '{name}'");
                let help = self.suggest(&name, expr.span, true);
                let span = head_span(expr);
                self.diagnostics.push(Diagnostic::error(span, message).with_maybe_help(help));
                class = Some(self.error_class(&name));
            }
            _ => {}
        }
        if class.is_some() {
            name = self.current.anonymous_name(&name);
        }
        let kind = DeclKind::Class(class.or(declared).unwrap_or_default());
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if name.split('/').any(digits) {
            let message = format!("element name '{name}' has all-digit component");
            self.diagnostics.error(expr.span, message);
        }
        let at = self.current.add(&name, kind, config, expr.span);
        with_ports(at)
    }

    fn report_redeclaration(&mut self, name: &str, span: Span, known: usize) {
        let message = format!("redeclaration of element '{name}'");
        let mut error = Diagnostic::error(span, message);
        let known = &self.current.elements[known];
        if matches!(known.kind, DeclKind::Class(_)) {
            let note = format!("element '{name}' previously declared here");
            error = error.with_note(known.span, note);
        }
        self.diagnostics.push(error);
    }
}

fn head_span(expr: &ElementExpr) -> Span {
    match &expr.head {
        Head::Name(name) => name.span,
        _ => expr.span,
    }
}

/// Gives all elements of `a, b, c :: Class(config)` the class and configuration of the last.
fn share_declaration(pending: &mut [PendingElement]) {
    let bare = |element: &PendingElement| {
        matches!(element.expr.head, Head::Name(_))
            && element.expr.class.is_none()
            && element.expr.config.is_none()
    };
    if let Some((last, others)) = pending.split_last_mut()
        && others.iter().all(bare)
    {
        for other in others {
            other.declared = last.declared;
            other.config = last.config.clone();
        }
    }
}
