//! Parses element expressions: names, classes, configuration strings, ports.

use super::{BodyKind, Parser};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::source::Span;
use crate::tree::{ClassExpr, Compound, ConfigText, ElementExpr, Formal, Head, Name, Ports};

/// Port numbers are below this limit, so that `[0-999999999]` does not fill the memory.
const PORT_LIMIT: u32 = 1 << 16;

impl Parser<'_> {
    /// Parses one element of a list. `first` marks the first list of a chain, `lone` the first
    /// element of a list.
    pub(super) fn element(&mut self, first: bool, nested: bool, lone: bool) -> Option<ElementExpr> {
        let inputs = self.ports();
        let token = self.next();
        let start = inputs.as_ref().map_or(token.span, |ports| ports.span);
        let head = match token.kind {
            TokenKind::Ident => Head::Name(self.name(token)),
            TokenKind::Char('{') => Head::Compound(self.compound(token)),
            TokenKind::Char('(') => {
                let body = self.nested_body(BodyKind::Group(token.span));
                self.accept(TokenKind::Char(')'));
                Head::Group(body)
            }
            kind if implicit(kind, first, nested, lone, inputs.is_some()) => {
                self.back(token);
                return Some(implicit_element(token, first, inputs));
            }
            _ => {
                self.no_element(token, first && nested, lone, inputs);
                return None;
            }
        };
        let class = self.class();
        let config = self.config();
        let outputs = self.ports();
        Some(ElementExpr { inputs, head, class, config, outputs, span: start.to(self.last_end()) })
    }

    /// Returns the span of the last token that was not put back.
    fn last_end(&self) -> Span {
        match self.pending.front() {
            Some(next) => {
                let before = self.lexer.tokens.partition_point(|t| t.span.start < next.span.start);
                before.checked_sub(1).map_or(self.last, |at| self.lexer.tokens[at].span)
            }
            None => self.last,
        }
    }

    /// Reports that `token` begins no element.
    fn no_element(&mut self, token: Token, opening: bool, lone: bool, ports: Option<Ports>) {
        if let Some(ports) = ports {
            self.error(ports.span, "stranded port ignored");
        }
        if opening && lone {
            // The statement holds only ports; the next token begins another statement.
            self.back(token);
            return;
        }
        self.syntax_error(token);
        let closes = matches!(
            token.kind,
            TokenKind::Char('}' | ')' | ';') | TokenKind::DoubleBar | TokenKind::End
        );
        if closes || !lone {
            self.back(token);
        }
    }

    pub(super) fn name(&self, token: Token) -> Name {
        Name { text: self.text(token).to_string(), span: token.span }
    }

    fn class(&mut self) -> Option<ClassExpr> {
        self.accept(TokenKind::DoubleColon)?;
        let token = self.next();
        Some(match token.kind {
            TokenKind::Ident => ClassExpr::Name(self.name(token)),
            TokenKind::Char('{') => ClassExpr::Compound(self.compound(token)),
            _ => {
                self.back(token);
                let error = Diagnostic::error(token.span, "missing element type in declaration");
                self.diagnostics.push(error.with_help("a class name or '{' belongs after '::'"));
                ClassExpr::Missing
            }
        })
    }

    fn config(&mut self) -> Option<ConfigText> {
        let open = self.accept(TokenKind::Char('('))?;
        Some(self.config_after(open))
    }

    /// Parses the configuration string after an opening parenthesis, and the closing one.
    pub(super) fn config_after(&mut self, open: Token) -> ConfigText {
        debug_assert!(self.pending.is_empty(), "a configuration string begins at its parenthesis");
        let config = self.lexer.config();
        if self.accept(TokenKind::Char(')')).is_none() {
            let end = config.span.end as usize;
            let error = Diagnostic::error(self.lexer.span(end, end), "expected ')'");
            self.diagnostics.push(error.with_note(open.span, "'(' opened here"));
        }
        config
    }

    /// Parses `{ … || … }` after its opening brace.
    pub(super) fn compound(&mut self, open: Token) -> Compound {
        let mut overloads = Vec::new();
        let mut extends = None;
        loop {
            if let Some(dots) = self.accept(TokenKind::Ellipsis) {
                let next = self.next();
                self.back(next);
                if overloads.is_empty() || next.kind != TokenKind::Char('}') {
                    let message = "'...' should occur last, after one or more compounds";
                    self.error(dots.span, message);
                }
                extends = Some(dots.span);
            } else {
                overloads.push(self.nested_body(BodyKind::Compound(open.span)));
            }
            if self.accept(TokenKind::DoubleBar).is_none() {
                break;
            }
        }
        // A missing brace at the end of the file has been reported with the body.
        if self.accept(TokenKind::Char('}')).is_none() && extends.is_some() {
            let next = self.next();
            self.back(next);
            self.error(next.span, "expected '}'");
        }
        Compound { overloads, extends, span: open.span.to(self.last_end()) }
    }

    /// Parses `$a, KEY $b |`.
    pub(super) fn formals(&mut self) -> Vec<Formal> {
        let mut formals = Vec::new();
        loop {
            let token = self.next();
            let formal = match token.kind {
                TokenKind::Char('|') => break,
                TokenKind::Variable => self.formal(None, token),
                TokenKind::Ident => {
                    let variable = self.next();
                    if variable.kind != TokenKind::Variable {
                        self.back(variable);
                        self.back(token);
                        self.expected_variable(token, &formals);
                        break;
                    }
                    self.formal(Some(token), variable)
                }
                _ => {
                    self.back(token);
                    self.expected_variable(token, &formals);
                    break;
                }
            };
            formals.push(formal);
            let separator = self.next();
            match separator.kind {
                TokenKind::Char('|') => break,
                TokenKind::Char(',') => {}
                _ => {
                    self.back(separator);
                    self.error(separator.span, "expected ',' or '|'");
                    break;
                }
            }
        }
        formals
    }

    fn formal(&self, keyword: Option<Token>, variable: Token) -> Formal {
        Formal {
            name: self.text(variable)[1..].to_string(),
            keyword: keyword.map_or_else(String::new, |token| self.text(token).to_string()),
            span: keyword.map_or(variable.span, |token| token.span.to(variable.span)),
        }
    }

    fn expected_variable(&mut self, token: Token, formals: &[Formal]) {
        if !formals.is_empty() {
            self.error(token.span, "expected variable");
        }
    }

    /// Parses `[0, 2-4, 7-]`, if there is a bracket.
    fn ports(&mut self) -> Option<Ports> {
        let open = self.accept(TokenKind::Char('['))?;
        let mut ports = Ports { list: Vec::new(), expandable: false, span: open.span };
        let mut range = false;
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::Ident => self.port(token, range, &mut ports.list),
                TokenKind::Char(']') => {
                    ports.expandable = true;
                    break;
                }
                _ => {
                    self.back(token);
                    self.error(token.span, "syntax error: expected port number");
                    break;
                }
            }
            let token = self.next();
            match token.kind {
                TokenKind::Char(']') => break,
                TokenKind::Char('-') if !range => range = true,
                TokenKind::Char(',') => range = false,
                _ => {
                    self.back(token);
                    self.error(token.span, "syntax error: expected ','");
                    break;
                }
            }
        }
        if ports.list.is_empty() {
            ports.list.push(0);
        }
        ports.span = open.span.to(self.last_end());
        Some(ports)
    }

    fn port(&mut self, token: Token, range: bool, list: &mut Vec<u32>) {
        let port = match integer(self.text(token)) {
            Some(port) if port < PORT_LIMIT => port,
            Some(_) => {
                let message = format!("port number too large, the limit is {}", PORT_LIMIT - 1);
                self.error(token.span, message);
                0
            }
            None => {
                self.error(token.span, "syntax error: port number should be integer");
                0
            }
        };
        let first = list.last().filter(|_| range).map_or(port, |last| last + 1);
        let count = (port + 1).saturating_sub(first) as usize;
        match self.ports_left.checked_sub(count) {
            Some(left) => {
                self.ports_left = left;
                list.extend(first..=port);
            }
            None => self.error(token.span, "too many ports"),
        }
    }
}

/// Whether a missing element before the token `next` stands for `input` or `output`.
fn implicit(next: TokenKind, first: bool, nested: bool, lone: bool, ports: bool) -> bool {
    nested
        && match next {
            TokenKind::Arrow | TokenKind::DoubleArrow | TokenKind::Context => {
                first && (ports || lone)
            }
            TokenKind::Char(',') => ports,
            TokenKind::DoubleColon => false,
            _ => !first && (ports || lone),
        }
}

fn implicit_element(next: Token, first: bool, ports: Option<Ports>) -> ElementExpr {
    let span = ports.as_ref().map_or(next.span.head(), |ports| ports.span);
    // The inputs written at the start of a chain are outputs of `input`.
    let (inputs, outputs) = if first { (None, ports) } else { (ports, None) };
    ElementExpr { inputs, head: Head::Implicit, class: None, config: None, outputs, span }
}

/// Parses a decimal, `0x` hexadecimal or `0` octal number.
fn integer(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    // A number that is too large for `u32` is still a number: the caller reports the limit.
    Some(u32::from_str_radix(digits, radix).unwrap_or(u32::MAX))
}
