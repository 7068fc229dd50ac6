//! The source formatter: one statement a line, indented bodies, comments where they were.

use std::collections::{HashMap, HashSet};

use crate::lexer::{Kind, Token};
use crate::source::Span;
use crate::tree::{Body, Chain, ClassExpr, Compound, Head, Stmt, Tree};

/// A chain that would pass this column is broken before its next arrow.
const WIDTH: usize = 96;
const INDENT: &str = "    ";

/// Formats a configuration. Tokens, comments and line breaks within statements stay; spacing,
/// indentation, semicolons and blank lines become uniform.
pub fn pretty(tree: &Tree) -> String {
    let mut marks = Marks::default();
    marks.stmts(&tree.body);
    let mut pretty = Pretty {
        text: &tree.text,
        items: items(tree),
        multi: multi(tree),
        marks,
        frames: Vec::new(),
        out: String::new(),
        column: 0,
        indent: 0,
    };
    for at in 0..pretty.items.len() {
        pretty.item(at);
    }
    if !pretty.out.is_empty() {
        pretty.out.push('\n');
    }
    pretty.out
}

/// A token or comment.
struct Item {
    span: Span,
    /// `None` for a comment or directive.
    kind: Option<Kind>,
    /// Line ends before it.
    breaks: usize,
}

/// Where statements begin and end.
#[derive(Default)]
struct Marks {
    starts: HashSet<u32>,
    /// Ends after which a semicolon belongs.
    ends: HashSet<u32>,
}

impl Marks {
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

/// Tokens and comments by place.
fn items(tree: &Tree) -> Vec<Item> {
    let tokens = tree.tokens.iter().map(|token| (token.span, Some(token.kind)));
    let comments = tree.comments.iter().map(|&span| (span, None));
    let mut all: Vec<_> = tokens.chain(comments).collect();
    all.sort_by_key(|(span, _)| (span.start, span.end));
    let mut end = 0;
    let item = |(span, kind): (Span, Option<Kind>)| {
        let between = tree.text.get(end..span.start as usize).unwrap_or("");
        end = span.end as usize;
        let crlf = between.matches("\r\n").count();
        let breaks = between.matches(['\n', '\r']).count() - crlf;
        Item { span, kind, breaks }
    };
    all.into_iter().map(item).collect()
}

/// For each bracket that opens a body, whether its body has lines of its own.
fn multi(tree: &Tree) -> HashMap<u32, bool> {
    let mut open: Vec<Token> = Vec::new();
    let mut multi = HashMap::new();
    for token in &tree.tokens {
        match token.kind {
            Kind::Char('{' | '(') => open.push(*token),
            Kind::Char('}' | ')') => {
                if let Some(start) = open.pop().map(|token| token.span.start) {
                    let body = tree.text.get(start as usize..token.span.start as usize);
                    multi.insert(start, body.is_some_and(|body| body.contains(['\n', '\r'])));
                }
            }
            _ => {}
        }
    }
    multi
}

/// A body that is open.
#[derive(Clone, Copy)]
struct Frame {
    /// Whether its statements have lines of their own.
    multi: bool,
    /// Indentation of the line that opened it.
    indent: usize,
}

struct Pretty<'a> {
    text: &'a str,
    items: Vec<Item>,
    multi: HashMap<u32, bool>,
    marks: Marks,
    frames: Vec<Frame>,
    out: String,
    column: usize,
    /// Indentation of the current line.
    indent: usize,
}

impl Pretty<'_> {
    fn kind(&self, at: Option<usize>) -> Option<Kind> {
        self.items.get(at?).and_then(|item| item.kind)
    }

    fn slice(&self, at: usize) -> &str {
        &self.text[self.items[at].span.range()]
    }

    /// Whether the parenthesis at `at` opens a configuration string.
    fn config(&self, at: usize) -> bool {
        self.kind(Some(at)) == Some(Kind::Char('('))
            && self.kind(Some(at + 1)) == Some(Kind::Config)
    }

    fn next_token(&self, at: usize) -> Option<Kind> {
        self.items[at + 1..].iter().find_map(|item| item.kind)
    }

    fn frame(&self) -> Frame {
        self.frames.last().copied().unwrap_or(Frame { multi: true, indent: 0 })
    }

    /// Indentation of statements here.
    fn base(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.indent + usize::from(frame.multi))
    }

    fn item(&mut self, at: usize) {
        let kind = self.items[at].kind;
        let before = at.checked_sub(1);
        let raw = kind == Some(Kind::Config)
            || (kind == Some(Kind::Char(')')) && self.kind(before) == Some(Kind::Config));
        let closes = matches!(kind, Some(Kind::Char('}' | ')'))) && !raw;
        let closed = if closes { self.frames.pop() } else { None };
        if !raw {
            match self.line_break(at, closed) {
                Some(indent) => self.new_line(at, indent),
                None if at > 0 && self.spaced(at - 1, at) => self.push(" "),
                None => {}
            }
        }
        let text = self.slice(at).to_string();
        let text = if kind.is_none() { text.trim_end().to_string() } else { text };
        self.push(&text);
        if matches!(kind, Some(Kind::Char('{' | '('))) && !self.config(at) {
            let multi = self.multi.get(&self.items[at].span.start).copied().unwrap_or(true);
            self.frames.push(Frame { multi, indent: self.indent });
        }
        let ends = kind.is_some() && self.marks.ends.contains(&self.items[at].span.end);
        let next = self.next_token(at);
        let last = matches!(next, Some(Kind::Char('}' | ')')) | Some(Kind::Bars));
        if ends && next != Some(Kind::Char(';')) && (self.frame().multi || !last) {
            self.push(";");
        }
    }

    /// The indentation of the line that an item begins, if it begins one.
    fn line_break(&self, at: usize, closed: Option<Frame>) -> Option<usize> {
        let item = &self.items[at];
        let before = at.checked_sub(1)?;
        let own = self.base();
        if item.kind.is_none() && self.slice(at).starts_with('#') {
            return Some(0);
        }
        let after_line = self.items[before].kind.is_none()
            && (self.slice(before).starts_with("//") || self.slice(before).starts_with('#'));
        if let Some(frame) = closed {
            return (frame.multi || after_line).then_some(frame.indent);
        }
        if item.kind == Some(Kind::Bars) {
            return (self.frame().multi || after_line).then_some(self.frame().indent);
        }
        let starts = item.kind.is_some() && self.marks.starts.contains(&item.span.start);
        let boundary = match item.kind {
            // A comment belongs to what follows it.
            None => {
                let next = self.items[at + 1..].iter().find(|item| item.kind.is_some());
                next.is_none_or(|next| {
                    self.marks.starts.contains(&next.span.start)
                        || matches!(next.kind, Some(Kind::Char('}' | ')')))
                })
            }
            Some(_) => starts || self.opens(before),
        };
        let indent = if boundary { own } else { own + 1 };
        let broken = match item.kind {
            None => item.breaks > 0,
            // Parameters stand beside their brace.
            Some(_) if self.opens(before) && self.formals(at) => false,
            Some(Kind::Char(';' | ',' | ']')) => false,
            Some(_) if starts || self.opens(before) => self.frame().multi,
            Some(Kind::Arrow | Kind::Wide | Kind::Context) => {
                item.breaks > 0 || self.column + self.ahead(at) > WIDTH
            }
            Some(_) => item.breaks > 0 && !self.config(at),
        };
        (broken || after_line).then_some(indent)
    }

    /// Whether an item opens a body, or ends the parameters of one.
    fn opens(&self, at: usize) -> bool {
        match self.kind(Some(at)) {
            Some(Kind::Char('{' | '|') | Kind::Bars) => true,
            Some(Kind::Char('(')) => !self.config(at),
            _ => false,
        }
    }

    /// Whether parameters begin at an item.
    fn formals(&self, at: usize) -> bool {
        let variable = |at| self.kind(Some(at)) == Some(Kind::Variable);
        self.kind(at.checked_sub(1)) != Some(Kind::Char('|'))
            && (variable(at) || (self.kind(Some(at)) == Some(Kind::Ident) && variable(at + 1)))
    }

    /// Length of an arrow and the element after it.
    fn ahead(&self, at: usize) -> usize {
        let mut end = at + 1;
        while end < self.items.len() {
            match self.items[end].kind {
                Some(Kind::Arrow | Kind::Wide | Kind::Context | Kind::Char(';' | '{' | '}')) => {
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

    /// Whether a space separates two items on a line.
    fn spaced(&self, left: usize, right: usize) -> bool {
        let (a, b) = (self.kind(Some(left)), self.kind(Some(right)));
        match (a, b) {
            (_, Some(Kind::Char(';' | ',' | ']'))) => false,
            (Some(Kind::Char('[')), _) => false,
            (_, Some(Kind::Char('('))) if self.config(right) => {
                !matches!(a, Some(Kind::Ident | Kind::Require | Kind::Define))
                    && a != Some(Kind::Char('}'))
            }
            (Some(Kind::Char('-')), Some(Kind::Ident | Kind::Char('-')))
            | (Some(Kind::Ident), Some(Kind::Char('-'))) => false,
            _ => true,
        }
    }

    fn new_line(&mut self, at: usize, indent: usize) {
        let blank = self.items[at].breaks > 1 && !self.opens(at - 1);
        let closes = matches!(self.kind(Some(at)), Some(Kind::Char('}' | ')')));
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
