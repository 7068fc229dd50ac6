//! The parser: builds the syntax tree of a text. This file holds statements and connections.

mod element;
mod statement;

use std::collections::VecDeque;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::{FileId, SourceMap, Span};
use crate::tree::{Body, Chain, Link, LinkKind, List, Stmt, Tree};

/// Greatest depth to which braces and parentheses may be nested; Click allows 50.
const MAX_DEPTH: usize = 100;

/// Most port numbers that a file may write, including those of ranges.
const MAX_PORTS: usize = 1_000_000;

/// Finds the files that `require(library FILE)` names.
pub trait Libraries {
    /// Adds the library `name` to `sources`, or finds it there, for the text `from`; an error is
    /// the message for the user. The parser does not include a file twice.
    fn library(
        &mut self,
        sources: &mut SourceMap,
        name: &str,
        from: FileId,
    ) -> Result<FileId, String>;
}

/// A [`Libraries`] that finds no library.
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

/// Parses a text and the libraries that it includes.
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
    let body = parser.stmts(BodyKind::File);
    let Lexer { tokens, comments, directives, bad_directives, .. } = parser.lexer;
    for span in bad_directives {
        diagnostics.error(span, "unknown preprocessor directive");
    }
    // Only the last comment can reach the end of the text.
    if let Some(&open) = comments.last().filter(|span| is_unclosed(&text[span.range()])) {
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

fn is_unclosed(comment: &str) -> bool {
    comment.strip_prefix("/*").is_some_and(|rest| !rest.ends_with("*/"))
}

/// The body that statements belong to: a file, or a compound or group with its opening bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    File,
    Compound(Span),
    Group(Span),
}

/// The parser of one file.
struct Parser<'a> {
    lexer: Lexer,
    /// Tokens that the parser has put back.
    pending: VecDeque<Token>,
    sources: &'a mut SourceMap,
    libraries: &'a mut dyn Libraries,
    included: &'a mut Vec<FileId>,
    diagnostics: &'a mut Diagnostics,
    depth: usize,
    /// Number of ports that may still be written.
    ports_left: usize,
    /// Span of the last token taken.
    last: Span,
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        let token = self.pending.pop_front().unwrap_or_else(|| self.lexer.next());
        self.last = token.span;
        token
    }

    /// Puts a token back, so that it is the next one.
    fn back(&mut self, token: Token) {
        self.pending.push_front(token);
    }

    fn text(&self, token: Token) -> &str {
        self.lexer.slice(token.span)
    }

    /// Takes the next token if it is a `kind`.
    fn accept(&mut self, kind: TokenKind) -> Option<Token> {
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
            TokenKind::End => "syntax error near end of file".to_string(),
            _ => format!("syntax error near '{}'", self.text(token)),
        };
        let mut error = Diagnostic::error(token.span, message);
        match token.kind {
            TokenKind::Char('=' | '-' | '>') => {
                error = error.with_help("connections are written '->' or '=>'");
            }
            TokenKind::Char(':') => {
                error = error.with_help("declarations are written 'name :: Class'")
            }
            TokenKind::Char('}' | ')') => {
                error = error.with_help("nothing is open here that it closes")
            }
            _ => {}
        }
        self.diagnostics.push(error);
    }

    /// Parses statements up to the token that ends the body, which it leaves for the caller.
    fn stmts(&mut self, enclosing: BodyKind) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::Ident
                | TokenKind::Char('[' | '{' | '(')
                | TokenKind::Arrow
                | TokenKind::DoubleArrow
                | TokenKind::Context => {
                    self.back(token);
                    let nested = enclosing != BodyKind::File;
                    stmts.extend(self.chain(nested).map(Stmt::Chain));
                }
                TokenKind::ElementClass => stmts.extend(self.elementclass(token)),
                TokenKind::Require => stmts.extend(self.require(token, enclosing)),
                TokenKind::Define => stmts.extend(self.define(token)),
                TokenKind::Char(';') => {}
                TokenKind::Char('}') | TokenKind::DoubleBar
                    if matches!(enclosing, BodyKind::Compound(_)) =>
                {
                    self.back(token);
                    return stmts;
                }
                TokenKind::Char(')') if matches!(enclosing, BodyKind::Group(_)) => {
                    self.back(token);
                    return stmts;
                }
                TokenKind::Char('}') | TokenKind::DoubleBar
                    if matches!(enclosing, BodyKind::Group(_)) =>
                {
                    self.syntax_error(token);
                    self.back(token);
                    return stmts;
                }
                TokenKind::End => {
                    self.back(token);
                    self.report_unclosed(token, enclosing);
                    return stmts;
                }
                _ => self.syntax_error(token),
            }
        }
    }

    fn report_unclosed(&mut self, token: Token, enclosing: BodyKind) {
        let (close, open, at) = match enclosing {
            BodyKind::File => return,
            BodyKind::Compound(at) => ('}', '{', at),
            BodyKind::Group(at) => (')', '(', at),
        };
        let error = Diagnostic::error(token.span, format!("expected '{close}'"));
        self.diagnostics.push(error.with_note(at, format!("'{open}' opened here")));
    }

    /// Parses lists and the arrows between them; `None` if there is no list.
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
        // An arrow without a list after it has been reported.
        links.truncate(lists.len().saturating_sub(1));
        let span = lists.first()?.span.to(lists.last()?.span);
        Some(Chain { lists, links, span })
    }

    fn link(&mut self) -> Option<Link> {
        loop {
            let token = self.next();
            let kind = match token.kind {
                TokenKind::Arrow => LinkKind::Arrow,
                TokenKind::DoubleArrow => LinkKind::DoubleArrow,
                TokenKind::Context => {
                    let text = self.text(token);
                    LinkKind::Context(text[1..text.len() - 1].to_string())
                }
                TokenKind::Char(',') | TokenKind::DoubleColon => {
                    self.syntax_error(token);
                    continue;
                }
                TokenKind::Char(';') => return None,
                TokenKind::Ident
                | TokenKind::Char('{' | '}' | '[' | ')')
                | TokenKind::DoubleBar
                | TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Provide
                | TokenKind::Define
                | TokenKind::End => {
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

    /// Parses elements separated by commas; `None` if there is no element.
    fn list(&mut self, first: bool, nested: bool) -> Option<List> {
        let mut elements = Vec::new();
        loop {
            if let Some(element) = self.element(first, nested, elements.is_empty()) {
                elements.push(element);
            }
            if elements.is_empty() || self.accept(TokenKind::Char(',')).is_none() {
                break;
            }
        }
        let span = elements.first()?.span.to(elements.last()?.span);
        Some(List { elements, span })
    }

    /// Parses the body of a compound or group, unless it is nested too deep.
    fn nested_body(&mut self, enclosing: BodyKind) -> Body {
        let (open, what) = match enclosing {
            BodyKind::File => (self.last, ""),
            BodyKind::Compound(open) => (open, "compound element"),
            BodyKind::Group(open) => (open, "element group"),
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
            if matches!(enclosing, BodyKind::Compound(_)) { self.formals() } else { Vec::new() };
        let stmts = self.stmts(enclosing);
        self.depth -= 1;
        Body { formals, stmts, span: open.to(self.last) }
    }

    /// Skips a body that is nested too deep, up to the bracket that closes it, which stays.
    fn skip_nested(&mut self) {
        let mut depth = 0usize;
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::Char('(') => {
                    self.lexer.config();
                    self.accept(TokenKind::Char(')'));
                }
                TokenKind::Char('{') => depth += 1,
                TokenKind::Char('}' | ')') if depth > 0 => depth -= 1,
                TokenKind::Char('}' | ')') | TokenKind::End => {
                    self.back(token);
                    return;
                }
                _ => {}
            }
        }
    }
}
