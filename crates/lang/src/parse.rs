//! From text to syntax tree: statements and connections.

mod element;
mod statement;

use std::collections::VecDeque;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Kind, Lexer, Token};
use crate::source::{FileId, SourceMap, Span};
use crate::tree::{Body, Chain, Link, LinkKind, List, Stmt, Tree};

/// Braces and parentheses may be nested this deep; Click allows 50.
const MAX_DEPTH: usize = 100;

/// A file may write this many port numbers, those within ranges too.
const MAX_PORTS: usize = 1_000_000;

/// Finds the files that `require(library FILE)` names.
pub trait Libraries {
    /// Adds the library to the map (or finds it there), or says why not. `from` is the text that
    /// asks for it. A file that was included before is not included again.
    fn library(
        &mut self,
        sources: &mut SourceMap,
        name: &str,
        from: FileId,
    ) -> Result<FileId, String>;
}

/// No library is ever found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLibraries;

impl Libraries for NoLibraries {
    fn library(&mut self, _: &mut SourceMap, name: &str, _: FileId) -> Result<FileId, String> {
        Err(format!("library '{name}' not found in CLICKPATH/conf"))
    }
}

/// Parses a text that includes no libraries.
pub fn parse(sources: &mut SourceMap, file: FileId) -> (Tree, Diagnostics) {
    parse_with(sources, file, &mut NoLibraries)
}

/// Parses a text, and the libraries that it includes.
pub fn parse_with(
    sources: &mut SourceMap,
    file: FileId,
    libraries: &mut dyn Libraries,
) -> (Tree, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut included = vec![file];
    let tree = parse_file(sources, file, libraries, &mut included, &mut diagnostics);
    (tree, diagnostics)
}

fn parse_file(
    sources: &mut SourceMap,
    file: FileId,
    libraries: &mut dyn Libraries,
    included: &mut Vec<FileId>,
    diagnostics: &mut Diagnostics,
) -> Tree {
    let text = sources.text(file);
    let lexer = Lexer::new(file, text.clone());
    if let Some(fault) = sources.fault(file) {
        diagnostics.error(lexer.span(0, 0), fault);
    }
    let mut parser = Parser {
        lexer,
        pending: VecDeque::new(),
        sources,
        libraries,
        included,
        diagnostics,
        depth: 0,
        ports_left: MAX_PORTS,
        last: Span { file, start: 0, end: 0 },
    };
    let body = parser.stmts(Within::File);
    let Lexer { tokens, comments, directives, bad, .. } = parser.lexer;
    for fault in bad {
        diagnostics.error(fault.0, "unknown preprocessor directive");
    }
    // The last alone can reach the end of the text.
    if let Some(&open) = comments.last().filter(|span| unclosed(&text[span.range()])) {
        let warning =
            Diagnostic::warning(Span { end: open.start + 2, ..open }, "comment not closed");
        diagnostics.push(warning.with_help("everything from here on is part of it; write '*/'"));
    }
    for &at in sources.not_utf8(file) {
        let inside = comments.partition_point(|c| c.start <= at);
        if inside == 0 || comments[inside - 1].end <= at {
            let span = Span { file, start: at, end: at + 3 };
            let warning = Diagnostic::warning(span, "a byte here is not UTF-8");
            diagnostics.push(warning.with_help("write bytes as \\<hex>, for example \\<ff>"));
            break;
        }
    }
    sources.set_directives(file, directives);
    Tree { file, body, tokens, comments, text }
}

fn unclosed(comment: &str) -> bool {
    comment.strip_prefix("/*").is_some_and(|rest| !rest.ends_with("*/"))
}

/// What statements stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    File,
    Compound(Span),
    Group(Span),
}

struct Parser<'a> {
    lexer: Lexer,
    /// Tokens taken back.
    pending: VecDeque<Token>,
    sources: &'a mut SourceMap,
    libraries: &'a mut dyn Libraries,
    included: &'a mut Vec<FileId>,
    diagnostics: &'a mut Diagnostics,
    depth: usize,
    /// Port numbers that may still be written.
    ports_left: usize,
    /// The token taken last.
    last: Span,
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        let token = self.pending.pop_front().unwrap_or_else(|| self.lexer.next());
        self.last = token.span;
        token
    }

    fn back(&mut self, token: Token) {
        self.pending.push_front(token);
    }

    fn text(&self, token: Token) -> &str {
        self.lexer.slice(token.span)
    }

    /// Takes the next token if it is a `kind`.
    fn accept(&mut self, kind: Kind) -> Option<Token> {
        let token = self.next();
        if token.kind == kind {
            return Some(token);
        }
        self.back(token);
        None
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.error(span, message);
    }

    fn syntax_error(&mut self, token: Token) {
        let message = match token.kind {
            Kind::End => "syntax error near end of file".to_string(),
            _ => format!("syntax error near '{}'", self.text(token)),
        };
        let mut error = Diagnostic::error(token.span, message);
        match token.kind {
            Kind::Char('=' | '-' | '>') => {
                error = error.with_help("connections are written '->' or '=>'");
            }
            Kind::Char(':') => error = error.with_help("declarations are written 'name :: Class'"),
            Kind::Char('}' | ')') => error = error.with_help("nothing is open here that it closes"),
            _ => {}
        }
        self.diagnostics.push(error);
    }

    /// Statements, up to what ends them, which is left for the caller.
    fn stmts(&mut self, within: Within) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                Kind::Ident
                | Kind::Char('[' | '{' | '(')
                | Kind::Arrow
                | Kind::Wide
                | Kind::Context => {
                    self.back(token);
                    let nested = within != Within::File;
                    stmts.extend(self.chain(nested).map(Stmt::Chain));
                }
                Kind::ElementClass => stmts.extend(self.elementclass(token)),
                Kind::Require => stmts.extend(self.require(token, within)),
                Kind::Define => stmts.extend(self.define(token)),
                Kind::Char(';') => {}
                Kind::Char('}') | Kind::Bars if matches!(within, Within::Compound(_)) => {
                    self.back(token);
                    return stmts;
                }
                Kind::Char(')') if matches!(within, Within::Group(_)) => {
                    self.back(token);
                    return stmts;
                }
                Kind::Char('}') | Kind::Bars if matches!(within, Within::Group(_)) => {
                    self.syntax_error(token);
                    self.back(token);
                    return stmts;
                }
                Kind::End => {
                    self.back(token);
                    self.unclosed(token, within);
                    return stmts;
                }
                _ => self.syntax_error(token),
            }
        }
    }

    fn unclosed(&mut self, token: Token, within: Within) {
        let (close, open, at) = match within {
            Within::File => return,
            Within::Compound(at) => ('}', '{', at),
            Within::Group(at) => (')', '(', at),
        };
        let error = Diagnostic::error(token.span, format!("expected '{close}'"));
        self.diagnostics.push(error.with_note(at, format!("'{open}' opened here")));
    }

    /// Lists and the arrows between them; `None` if nothing was there after all.
    fn chain(&mut self, nested: bool) -> Option<Chain> {
        let mut lists: Vec<List> = Vec::new();
        let mut links: Vec<Link> = Vec::new();
        while let Some(list) = self.list(lists.is_empty(), nested) {
            lists.push(list);
            match self.link() {
                Some(link) => links.push(link),
                None => break,
            }
        }
        // After an arrow that leads nowhere, an error has been reported.
        links.truncate(lists.len().saturating_sub(1));
        let span = lists.first()?.span.to(lists.last()?.span);
        Some(Chain { lists, links, span })
    }

    fn link(&mut self) -> Option<Link> {
        loop {
            let token = self.next();
            let kind = match token.kind {
                Kind::Arrow => LinkKind::Arrow,
                Kind::Wide => LinkKind::Wide,
                Kind::Context => {
                    let text = self.text(token);
                    LinkKind::Context(text[1..text.len() - 1].to_string())
                }
                Kind::Char(',') | Kind::Colons => {
                    self.syntax_error(token);
                    continue;
                }
                Kind::Char(';') => return None,
                Kind::Ident
                | Kind::Char('{' | '}' | '[' | ')')
                | Kind::Bars
                | Kind::ElementClass
                | Kind::Require
                | Kind::Provide
                | Kind::Define
                | Kind::End => {
                    self.back(token);
                    return None;
                }
                _ => {
                    self.syntax_error(token);
                    return None;
                }
            };
            return Some(Link { kind, span: token.span });
        }
    }

    /// Elements separated by commas; `None` if there was not one.
    fn list(&mut self, first: bool, nested: bool) -> Option<List> {
        let mut elements = Vec::new();
        loop {
            if let Some(element) = self.element(first, nested, elements.is_empty()) {
                elements.push(element);
            }
            if elements.is_empty() || self.accept(Kind::Char(',')).is_none() {
                break;
            }
        }
        let span = elements.first()?.span.to(elements.last()?.span);
        Some(List { elements, span })
    }

    /// The body of a compound or group, unless it is nested too deep.
    fn nested_body(&mut self, within: Within) -> Body {
        let (open, what) = match within {
            Within::File => (self.last, ""),
            Within::Compound(open) => (open, "compound element"),
            Within::Group(open) => (open, "element group"),
        };
        if self.depth >= MAX_DEPTH {
            let message = format!("maximum {what} nesting depth exceeded");
            let error = Diagnostic::error(open, message);
            self.diagnostics
                .push(error.with_help(format!("at most {MAX_DEPTH} may be nested in one another")));
            self.skip_nested();
            return Body { formals: Vec::new(), stmts: Vec::new(), span: open.to(self.last) };
        }
        self.depth += 1;
        let formals =
            if matches!(within, Within::Compound(_)) { self.formals() } else { Vec::new() };
        let stmts = self.stmts(within);
        self.depth -= 1;
        Body { formals, stmts, span: open.to(self.last) }
    }

    /// Skips what is nested too deep, up to the bracket that closes it, which is left.
    fn skip_nested(&mut self) {
        let mut depth = 0usize;
        loop {
            let token = self.next();
            match token.kind {
                Kind::Char('(') => {
                    self.lexer.config();
                    self.accept(Kind::Char(')'));
                }
                Kind::Char('{') => depth += 1,
                Kind::Char('}' | ')') if depth > 0 => depth -= 1,
                Kind::Char('}' | ')') | Kind::End => {
                    self.back(token);
                    return;
                }
                _ => {}
            }
        }
    }
}
