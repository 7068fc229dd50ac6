//! Formats source text: one statement on a line, indented bodies, comments at their positions.

use std::collections::{HashMap, HashSet};

use crate::lexer::{Token, TokenKind};
use crate::source::Span;
use crate::tree::{Body, Chain, ClassExpr, Compound, Head, Stmt, Tree};

/// A chain is broken before the arrow at which it would pass this column.
const WIDTH: usize = 96;
const INDENT: &str = "    ";

/// Formats a configuration. Tokens, comments and line breaks within statements stay; spacing,
/// indentation, semicolons and blank lines become uniform.
pub fn pretty(tree: &Tree) -> String {
    let mut bounds = StatementBounds::default();
    bounds.stmts(&tree.body);
    let mut formatter = Formatter {
        text: &tree.text,
        items: items(tree),
        multiline: multiline(tree),
        bounds,
        open_bodies: Vec::new(),
        out: String::new(),
        column: 0,
        indent: 0,
    };
    for at in 0..formatter.items.len() {
        formatter.item(at);
    }
    if !formatter.out.is_empty() {
        formatter.out.push('\n');
    }
    formatter.out
}

/// A token, comment or directive of the source text.
struct SourceItem {
    span: Span,
    /// `None` for a comment or directive.
    kind: Option<TokenKind>,
    /// Number of line ends before it.
    breaks: usize,
}

/// Offsets at which statements begin and end.
#[derive(Default)]
struct StatementBounds {
    starts: HashSet<u32>,
    /// Ends of statements that need a semicolon.
    ends: HashSet<u32>,
}

impl StatementBounds {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            let (span, semicolon) = match stmt {
                Stmt::Chain(chain) => {
                    self.chain(chain);
                    (chain.span, true)
                }
                Stmt::ElementClass(class) => {
                    self.class(&class.class);
                    (class.span, !matches!(class.class, ClassExpr::Compound(_)))
                }
                Stmt::Require(require) => (require.span, true),
                Stmt::Define(defines) => match defines.first() {
                    Some(define) => (define.span, true),
                    None => continue,
                },
            };
            self.starts.insert(span.start);
            if semicolon {
                self.ends.insert(span.end);
            }
        }
    }

    fn chain(&mut self, chain: &Chain) {
        for element in chain.lists.iter().flat_map(|list| &list.elements) {
            match &element.head {
                Head::Compound(compound) => self.compound(compound),
                Head::Group(body) => self.stmts(&body.stmts),
                Head::Name(_) | Head::Implicit => {}
            }
            element.class.iter().for_each(|class| self.class(class));
        }
    }

    fn class(&mut self, class: &ClassExpr) {
        if let ClassExpr::Compound(compound) = class {
            self.compound(compound);
        }
    }

    fn compound(&mut self, compound: &Compound) {
        compound.overloads.iter().for_each(|Body { stmts, .. }| self.stmts(stmts));
    }
}

/// Returns tokens and comments in source order.
fn items(tree: &Tree) -> Vec<SourceItem> {
    let tokens = tree.tokens.iter().map(|token| (token.span, Some(token.kind)));
    let comments = tree.comments.iter().map(|&span| (span, None));
    let mut all: Vec<_> = tokens.chain(comments).collect();
    all.sort_by_key(|(span, _)| (span.start, span.end));
    let mut end = 0;
    let item = |(span, kind): (Span, Option<TokenKind>)| {
        let between = tree.text.get(end..span.start as usize).unwrap_or("");
        end = span.end as usize;
        let crlf = between.matches("\r\n").count();
        let breaks = between.matches(['\n', '\r']).count() - crlf;
        SourceItem { span, kind, breaks }
    };
    all.into_iter().map(item).collect()
}

/// Returns for each bracket that opens a body, by offset, whether the body has several lines.
fn multiline(tree: &Tree) -> HashMap<u32, bool> {
    let mut open: Vec<Token> = Vec::new();
    let mut multiline = HashMap::new();
    for token in &tree.tokens {
        match token.kind {
            TokenKind::Char('{' | '(') => open.push(*token),
            TokenKind::Char('}' | ')') => {
                if let Some(start) = open.pop().map(|token| token.span.start) {
                    let body = tree.text.get(start as usize..token.span.start as usize);
                    multiline.insert(start, body.is_some_and(|body| body.contains(['\n', '\r'])));
                }
            }
            _ => {}
        }
    }
    multiline
}

/// A body whose closing bracket has not been printed.
#[derive(Clone, Copy)]
struct OpenBody {
    /// Whether each statement gets a line of its own.
    multiline: bool,
    /// Indentation of the line that opened it.
    indent: usize,
}

/// Prints items with uniform spacing.
struct Formatter<'a> {
    text: &'a str,
    items: Vec<SourceItem>,
    multiline: HashMap<u32, bool>,
    bounds: StatementBounds,
    open_bodies: Vec<OpenBody>,
    out: String,
    column: usize,
    /// Indentation of the current line.
    indent: usize,
}

impl Formatter<'_> {
    fn kind(&self, at: Option<usize>) -> Option<TokenKind> {
        self.items.get(at?).and_then(|item| item.kind)
    }

    fn slice(&self, at: usize) -> &str {
        &self.text[self.items[at].span.range()]
    }

    /// Whether the parenthesis at `at` opens a configuration string.
    fn opens_config(&self, at: usize) -> bool {
        self.kind(Some(at)) == Some(TokenKind::Char('('))
            && self.kind(Some(at + 1)) == Some(TokenKind::Config)
    }

    fn next_token(&self, at: usize) -> Option<TokenKind> {
        self.items[at + 1..].iter().find_map(|item| item.kind)
    }

    fn body(&self) -> OpenBody {
        self.open_bodies.last().copied().unwrap_or(OpenBody { multiline: true, indent: 0 })
    }

    /// Indentation of the statements of the innermost body.
    fn base(&self) -> usize {
        self.open_bodies.last().map_or(0, |body| body.indent + usize::from(body.multiline))
    }

    fn item(&mut self, at: usize) {
        let kind = self.items[at].kind;
        let before = at.checked_sub(1);
        let raw = kind == Some(TokenKind::Config)
            || (kind == Some(TokenKind::Char(')')) && self.kind(before) == Some(TokenKind::Config));
        let closes = matches!(kind, Some(TokenKind::Char('}' | ')'))) && !raw;
        let closed = if closes { self.open_bodies.pop() } else { None };
        if !raw {
            match self.line_break(at, closed) {
                Some(indent) => self.new_line(at, indent),
                None if at > 0 && self.needs_space(at - 1, at) => self.push(" "),
                None => {}
            }
        }
        let text = self.slice(at).to_string();
        let text = if kind.is_none() { text.trim_end().to_string() } else { text };
        self.push(&text);
        if matches!(kind, Some(TokenKind::Char('{' | '('))) && !self.opens_config(at) {
            let multiline = self.multiline.get(&self.items[at].span.start).copied().unwrap_or(true);
            self.open_bodies.push(OpenBody { multiline, indent: self.indent });
        }
        let ends = kind.is_some() && self.bounds.ends.contains(&self.items[at].span.end);
        let next = self.next_token(at);
        let last = matches!(next, Some(TokenKind::Char('}' | ')')) | Some(TokenKind::DoubleBar));
        if ends && next != Some(TokenKind::Char(';')) && (self.body().multiline || !last) {
            self.push(";");
        }
    }

    /// Returns the indentation of the line that an item begins, if it begins a line.
    fn line_break(&self, at: usize, closed: Option<OpenBody>) -> Option<usize> {
        let item = &self.items[at];
        let before = at.checked_sub(1)?;
        let own = self.base();
        if item.kind.is_none() && self.slice(at).starts_with('#') {
            return Some(0);
        }
        let after_line = self.items[before].kind.is_none()
            && (self.slice(before).starts_with("//") || self.slice(before).starts_with('#'));
        if let Some(body) = closed {
            return (body.multiline || after_line).then_some(body.indent);
        }
        if item.kind == Some(TokenKind::DoubleBar) {
            return (self.body().multiline || after_line).then_some(self.body().indent);
        }
        let starts = item.kind.is_some() && self.bounds.starts.contains(&item.span.start);
        let boundary = match item.kind {
            // A comment belongs to the item after it.
            None => {
                let next = self.items[at + 1..].iter().find(|item| item.kind.is_some());
                next.is_none_or(|next| {
                    self.bounds.starts.contains(&next.span.start)
                        || matches!(next.kind, Some(TokenKind::Char('}' | ')')))
                })
            }
            Some(_) => starts || self.opens(before),
        };
        let indent = if boundary { own } else { own + 1 };
        let broken = match item.kind {
            None => item.breaks > 0,
            // Parameters are on the line of their brace.
            Some(_) if self.opens(before) && self.formals(at) => false,
            Some(TokenKind::Char(';' | ',' | ']')) => false,
            Some(_) if starts || self.opens(before) => self.body().multiline,
            Some(TokenKind::Arrow | TokenKind::DoubleArrow | TokenKind::Context) => {
                item.breaks > 0 || self.column + self.arrow_length(at) > WIDTH
            }
            Some(_) => item.breaks > 0 && !self.opens_config(at),
        };
        (broken || after_line).then_some(indent)
    }

    /// Whether an item opens a body, or ends the parameters of a body.
    fn opens(&self, at: usize) -> bool {
        match self.kind(Some(at)) {
            Some(TokenKind::Char('{' | '|') | TokenKind::DoubleBar) => true,
            Some(TokenKind::Char('(')) => !self.opens_config(at),
            _ => false,
        }
    }

    /// Whether an item begins parameters.
    fn formals(&self, at: usize) -> bool {
        let variable = |at| self.kind(Some(at)) == Some(TokenKind::Variable);
        self.kind(at.checked_sub(1)) != Some(TokenKind::Char('|'))
            && (variable(at) || (self.kind(Some(at)) == Some(TokenKind::Ident) && variable(at + 1)))
    }

    /// Length of an arrow and the element after it, as far as its first line.
    fn arrow_length(&self, at: usize) -> usize {
        let mut end = at + 1;
        while end < self.items.len() {
            match self.items[end].kind {
                Some(
                    TokenKind::Arrow
                    | TokenKind::DoubleArrow
                    | TokenKind::Context
                    | TokenKind::Char(';' | '{' | '}'),
                ) => {
                    break;
                }
                None => break,
                _ => end += 1,
            }
        }
        let text = &self.text.as_bytes()[self.items[at].span.start as usize..];
        let length = (self.items[end - 1].span.end - self.items[at].span.start) as usize;
        text[..length].iter().position(|&b| b == b'\n').unwrap_or(length) + 1
    }

    /// Whether a space separates two items on one line.
    fn needs_space(&self, left: usize, right: usize) -> bool {
        let (a, b) = (self.kind(Some(left)), self.kind(Some(right)));
        match (a, b) {
            (_, Some(TokenKind::Char(';' | ',' | ']'))) => false,
            (Some(TokenKind::Char('[')), _) => false,
            (_, Some(TokenKind::Char('('))) if self.opens_config(right) => {
                !matches!(a, Some(TokenKind::Ident | TokenKind::Require | TokenKind::Define))
                    && a != Some(TokenKind::Char('}'))
            }
            (Some(TokenKind::Char('-')), Some(TokenKind::Ident | TokenKind::Char('-')))
            | (Some(TokenKind::Ident), Some(TokenKind::Char('-'))) => false,
            _ => true,
        }
    }

    fn new_line(&mut self, at: usize, indent: usize) {
        let blank = self.items[at].breaks > 1 && !self.opens(at - 1);
        let closes = matches!(self.kind(Some(at)), Some(TokenKind::Char('}' | ')')));
        self.out.push_str(if blank && !closes { "\n\n" } else { "\n" });
        self.out.push_str(&INDENT.repeat(indent));
        self.indent = indent;
        self.column = indent * INDENT.len();
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = last.chars().count(),
            None => self.column += text.chars().count(),
        }
    }
}
