//! Collects the marks of a configuration's text.

use std::collections::HashMap;

use super::{HtmlLinks, class_anchor, escape};
use crate::diagnostic::Diagnostics;
use crate::lexer::TokenKind;
use crate::outline::ClassRef;
use crate::source::Span;
use crate::tree::{Body, Chain, ClassExpr, Compound, ElementExpr, Head, Name, Stmt, Tree};

/// Tags around a range of the text.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) open: String,
    pub(super) close: &'static str,
}

/// Returns all marks in the order of their starts, outer marks before inner ones.
pub(super) fn marks(tree: &Tree, diagnostics: &Diagnostics, links: &HtmlLinks) -> Vec<Mark> {
    let mut declared = HashMap::new();
    for (scope, it) in links.outline.scopes.iter().enumerate() {
        for (element, it) in it.graph.elements.iter().enumerate() {
            declared.insert((it.span.start, it.span.end), (scope, element));
        }
    }
    let file = links.outline.scopes.len().saturating_sub(1);
    let mut collector = MarkCollector { tree, links, declared, scope: file, marks: Vec::new() };
    collector.tokens();
    collector.stmts(&tree.body);
    collector.errors(diagnostics);
    let mut marks = collector.marks;
    marks.sort_by_key(|mark| (mark.start, usize::MAX - mark.end));
    marks
}

/// Walks a syntax tree and collects marks.
struct MarkCollector<'a> {
    tree: &'a Tree,
    links: &'a HtmlLinks<'a>,
    /// Scope and index of an element by the span of its declaration.
    declared: HashMap<(u32, u32), (usize, usize)>,
    /// The scope being walked.
    scope: usize,
    marks: Vec<Mark>,
}

impl MarkCollector<'_> {
    fn mark(&mut self, span: Span, open: String, close: &'static str) {
        if span.file == self.tree.file {
            let (start, end) = (span.start as usize, span.end as usize);
            self.marks.push(Mark { start, end, open, close });
        }
    }

    fn span(&mut self, span: Span, class: &str) {
        self.mark(span, format!("<span class='{class}'>"), "</span>");
    }

    /// Marks comments, keywords and configuration strings.
    fn tokens(&mut self) {
        let tree = self.tree;
        tree.comments.iter().for_each(|&span| self.span(span, "c-cmt"));
        for token in &tree.tokens {
            match token.kind {
                TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Define
                | TokenKind::Provide => {
                    self.span(token.span, "c-kw");
                }
                TokenKind::Config => self.span(token.span, "c-cfg"),
                _ => {}
            }
        }
    }

    fn errors(&mut self, diagnostics: &Diagnostics) {
        for one in diagnostics {
            if let Some(span) = one.span {
                let title = escape(&one.message);
                self.mark(span, format!("<span class='c-err' title='{title}'>"), "</span>");
            }
        }
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Chain(chain) => self.chain(chain),
                Stmt::ElementClass(class) => {
                    let declares = &self.links.outline.scopes.get(self.scope);
                    let declares = declares.map_or(&[][..], |scope| &scope.declares);
                    let known = declares.iter().rev().find(|(name, _)| *name == class.name.text);
                    let known = known.map(|(_, class)| class.clone());
                    match &class.class {
                        ClassExpr::Compound(compound) => {
                            if let Some(ClassRef::Compound(scope)) = known {
                                self.declaration(&class.name, scope);
                            }
                            self.compound(compound);
                        }
                        ClassExpr::Name(name) => self.reference(name.span, known),
                        ClassExpr::Missing => {}
                    }
                }
                Stmt::Require(_) | Stmt::Define(_) => {}
            }
        }
    }

    /// Marks the name of a compound at its declaration.
    fn declaration(&mut self, name: &Name, scope: usize) {
        let open = format!("<a name='{}'><span class='c-cd'>", class_anchor(scope));
        self.mark(name.span, open, "</span></a>");
    }

    fn reference(&mut self, span: Span, class: Option<ClassRef>) {
        if let Some(href) = class.and_then(|class| self.links.class(&class)) {
            self.mark(span, format!("<a href='{}'>", escape(&href)), "</a>");
        }
    }

    fn chain(&mut self, chain: &Chain) {
        for element in chain.lists.iter().flat_map(|list| &list.elements) {
            self.element(element);
        }
    }

    fn element(&mut self, expr: &ElementExpr) {
        let declaration = self.declared.get(&(expr.span.start, expr.span.end)).copied();
        let class =
            declaration.map(|(scope, at)| self.links.outline.scopes[scope].classes[at].clone());
        match (&expr.head, declaration) {
            (Head::Name(name), Some((scope, at))) => {
                let anchor = escape(&self.links.element_anchor(scope, at));
                self.mark(name.span, format!("<a name='{anchor}'>"), "</a>");
                let declared = expr.class.is_some() || expr.config.is_some();
                let whole = if declared { span_without_ports(expr) } else { name.span };
                self.span(whole, "c-ed");
                self.title(whole, scope, at);
                match &expr.class {
                    Some(ClassExpr::Name(name)) => self.reference(name.span, class),
                    Some(_) => {}
                    None => self.reference(name.span, class),
                }
            }
            (Head::Name(name), None) => {
                let outline = self.links.outline;
                let known = outline.scopes.get(self.scope);
                if let Some(at) = known.and_then(|scope| scope.graph.find(&name.text)) {
                    self.title(name.span, self.scope, at);
                }
            }
            (Head::Compound(compound), _) => self.compound(compound),
            (Head::Group(body), _) => self.stmts(&body.stmts),
            (Head::Implicit, _) => {}
        }
        if let Some(ClassExpr::Compound(compound)) = &expr.class {
            self.compound(compound);
        }
    }

    /// Adds a title with an element's name and class, which a browser shows under the pointer.
    fn title(&mut self, span: Span, scope: usize, at: usize) {
        let it = &self.links.outline.scopes[scope].graph.elements[at];
        if self.links.outline.scopes[scope].classes[at] != ClassRef::Port {
            let title = escape(&format!("{} :: {}", it.name, it.class));
            self.mark(span, format!("<span title='{title}'>"), "</span>");
        }
    }

    fn compound(&mut self, compound: &Compound) {
        for body in &compound.overloads {
            let outer = self.scope;
            self.scope = self.scope_of(body).unwrap_or(outer);
            self.stmts(&body.stmts);
            self.scope = outer;
        }
    }

    /// Returns the scope of a body, found by an element that the body declares.
    fn scope_of(&self, body: &Body) -> Option<usize> {
        let chains = body.stmts.iter().filter_map(|stmt| match stmt {
            Stmt::Chain(chain) => Some(chain),
            _ => None,
        });
        let mut elements = chains.flat_map(|chain| &chain.lists).flat_map(|list| &list.elements);
        elements.find_map(|expr| match &expr.head {
            Head::Group(inner) => self.scope_of(inner),
            _ => self.declared.get(&(expr.span.start, expr.span.end)).map(|&(scope, _)| scope),
        })
    }
}

/// Returns the span of an element expression without its ports.
fn span_without_ports(expr: &ElementExpr) -> Span {
    let start = expr.inputs.as_ref().map_or(expr.span.start, |ports| ports.span.end);
    let end = expr.outputs.as_ref().map_or(expr.span.end, |ports| ports.span.start);
    let head = match &expr.head {
        Head::Name(name) => name.span.start,
        _ => start,
    };
    Span { file: expr.span.file, start: head, end: end.max(head) }
}
