//! Chains and groups: which elements they name, declare and connect.

use super::connect::{Item, connect_all};
use super::scope::{ClassId, DeclKind, Scopes};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Body, Chain, ConfigText, ElementExpr, Head, LinkKind, List, Ports};

/// An element of a list, before its names are known to be good.
struct Draft<'a> {
    expr: &'a ElementExpr,
    name: String,
    /// The class that the name is of.
    class: Option<ClassId>,
    /// The class after `::`.
    declared: Option<ClassId>,
    config: Option<ConfigText>,
    inputs: Option<Ports>,
    outputs: Option<Ports>,
}

impl<'a> Scopes<'a> {
    /// Walks a chain; whether it ends with `output` alone, for a warning at the next one.
    pub(super) fn chain(&mut self, chain: &'a Chain, ends_output: bool) -> bool {
        let mut before: Vec<Item> = Vec::new();
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
                let arrow = if link.kind == LinkKind::Wide { "=>" } else { "->" };
                let message =
                    format!("suggest 'input {arrow}' or '[0] {arrow}' to start connection");
                self.diagnostics.warning(link.span, message);
            }
            let items = self.list(list, i == 0, after.is_some());
            match i.checked_sub(1).map(|i| &chain.links[i]) {
                None => self.useless(items.iter().map(|item| &item.inputs), true),
                Some(link) => {
                    let (scope, left) = (&mut self.current, &mut self.links_left);
                    connect_all(scope, &before, &items, link, left, &mut self.diagnostics);
                }
            }
            before = items;
        }
        self.useless(before.iter().map(|item| &item.outputs), false);
        let output = self.current.by_name.get("output").copied();
        matches!(&before[..], [Item { inputs: None, outputs: None, element }] if Some(*element) == output)
    }

    fn useless<'p>(&mut self, ports: impl Iterator<Item = &'p Option<Ports>>, start: bool) {
        if let Some(ports) = ports.flatten().next() {
            let message = if start {
                "input ports ignored at start of chain"
            } else {
                "output ports ignored at end of chain"
            };
            self.diagnostics.error(ports.span, message);
        }
    }

    fn list(&mut self, list: &'a List, first: bool, linked: bool) -> Vec<Item> {
        let mut drafts: Vec<_> = list.elements.iter().map(|expr| self.draft(expr, first)).collect();
        let implicit = list.elements.iter().any(|e| matches!(e.head, Head::Implicit));
        if implicit && !first && linked {
            self.diagnostics.error(list.span, "implicit ports used in the middle of a chain");
        }
        let ported = drafts.iter().any(|d| d.inputs.is_some() || d.outputs.is_some());
        if first && !linked && !ported && !implicit {
            spread(&mut drafts);
        }
        drafts.into_iter().map(|draft| self.place(draft)).collect()
    }

    /// Looks classes up and walks compounds and groups.
    fn draft(&mut self, expr: &'a ElementExpr, first: bool) -> Draft<'a> {
        let (mut inputs, mut outputs) = (expr.inputs.clone(), expr.outputs.clone());
        let mut class = None;
        let name = match &expr.head {
            Head::Name(name) => {
                class = self.lookup(&name.text);
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
                    (count > 0).then_some(Ports { list, open: false, span: expr.span })
                };
                inputs = inputs.or_else(|| all(counts[0]));
                outputs = outputs.or_else(|| all(counts[1]));
                name
            }
            Head::Implicit => (if first { "input" } else { "output" }).to_string(),
        };
        let declared = expr.class.as_ref().map(|class| self.class(class, ""));
        if let Some(config) = &expr.config
            && class.is_none()
            && self.current.by_name.contains_key(&name)
        {
            let message = "configuration string ignored on element reference";
            self.diagnostics.error(config.span, message);
        }
        Draft { expr, name, class, declared, config: expr.config.clone(), inputs, outputs }
    }

    /// Walks a group: its elements belong to this scope, but `input` and `output` are its own.
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

    /// Finds the element, or adds it to the scope.
    fn place(&mut self, draft: Draft) -> Item {
        let Draft { expr, mut name, mut class, declared, config, inputs, outputs } = draft;
        let item = |element| Item { element, inputs, outputs };
        if class.is_none()
            && let Some(&known) = self.current.by_name.get(&name)
        {
            if declared.is_some() {
                self.redeclared(&name, expr.span, known);
            }
            return item(known);
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
        item(at)
    }

    fn redeclared(&mut self, name: &str, span: Span, known: usize) {
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

/// `a, b, c :: Class(config)` declares them all.
fn spread(drafts: &mut [Draft]) {
    let bare = |draft: &Draft| {
        matches!(draft.expr.head, Head::Name(_))
            && draft.expr.class.is_none()
            && draft.expr.config.is_none()
    };
    if let Some((last, others)) = drafts.split_last_mut()
        && others.iter().all(bare)
    {
        for other in others {
            other.declared = last.declared;
            other.config = last.config.clone();
        }
    }
}
