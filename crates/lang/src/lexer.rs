//! The lexer of the Click language.

use std::sync::Arc;

use crate::args;
use crate::source::{FileId, LineDirective, Span, line_directive};
use crate::tree::ConfigText;

/// Kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Ident,
    Variable,
    Arrow,
    DoubleArrow,
    Context,
    DoubleColon,
    DoubleBar,
    Ellipsis,
    ElementClass,
    Require,
    Define,
    Provide,
    Char(char),
    /// A configuration string; the parentheses around it are tokens of their own.
    Config,
    End,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// Cuts a text into tokens on demand, because only the parser knows where configuration strings
/// begin.
pub(crate) struct Lexer {
    text: Arc<str>,
    file: FileId,
    at: usize,
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Span>,
    pub(crate) directives: Vec<LineDirective>,
    /// Lines that begin with `#` but are no line directives.
    pub(crate) bad_directives: Vec<Span>,
}

impl Lexer {
    pub(crate) fn new(file: FileId, text: Arc<str>) -> Self {
        Lexer {
            text,
            file,
            at: 0,
            tokens: Vec::new(),
            comments: Vec::new(),
            directives: Vec::new(),
            bad_directives: Vec::new(),
        }
    }

    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }

    pub(crate) fn slice(&self, span: Span) -> &str {
        &self.text[span.range()]
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// Whether a line begins at `at`.
    fn line_start(&self, at: usize) -> bool {
        at == 0 || matches!(self.byte(at - 1), b'\n' | b'\r')
    }

    /// Skips space, comments and line directives.
    fn skip(&mut self) {
        while self.at < self.text.len() {
            let at = self.at;
            match self.byte(at) {
                byte if args::is_space(byte) => self.at += 1,
                b'/' if matches!(self.byte(at + 1), b'/' | b'*') => {
                    self.at = args::skip_comment(&self.text, at);
                    let end = at + self.text[at..self.at].trim_end_matches(['\n', '\r']).len();
                    self.comments.push(self.span(at, end));
                }
                b'#' if self.line_start(at) => {
                    let end = self.directive();
                    self.comments.push(self.span(at, end));
                }
                _ => break,
            }
        }
    }

    /// Records the line directive at the current offset and returns the offset of its line end.
    fn directive(&mut self) -> usize {
        let at = self.at;
        let line = &self.text[at..];
        let end = at + line.find(['\n', '\r']).unwrap_or(line.len());
        match line_directive(&self.text[at + 1..end]) {
            None => self.bad_directives.push(self.span(at, end)),
            Some((line, name)) => {
                let crlf = self.text[end..].starts_with("\r\n");
                let at = (end + 1 + usize::from(crlf)) as u32;
                self.directives.push(LineDirective { at, line, name });
            }
        }
        self.at = end;
        end
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Token {
        self.skip();
        let start = self.at;
        let kind = self.kind();
        let token = Token { kind, span: self.span(start, self.at) };
        if kind != TokenKind::End {
            self.tokens.push(token);
        }
        token
    }

    fn kind(&mut self) -> TokenKind {
        let Some(first) = self.text[self.at..].chars().next() else { return TokenKind::End };
        if is_word(first) {
            return self.word();
        }
        const SYMBOLS: [(&str, TokenKind); 6] = [
            ("==>", TokenKind::DoubleArrow),
            ("=>", TokenKind::DoubleArrow),
            ("->", TokenKind::Arrow),
            ("::", TokenKind::DoubleColon),
            ("||", TokenKind::DoubleBar),
            ("...", TokenKind::Ellipsis),
        ];
        let rest = &self.text[self.at..];
        if let Some((symbol, kind)) = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            self.at += symbol.len();
            return *kind;
        }
        if first == '$' {
            let name = rest[1..].bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_');
            let length = name.count();
            if length > 0 {
                self.at += 1 + length;
                return TokenKind::Variable;
            }
        }
        if first == '~' {
            let inner = rest[1..].bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'/');
            let end = 1 + inner.count();
            if rest[end..].starts_with('>') {
                self.at += end + 1;
                return TokenKind::Context;
            }
        }
        self.at += first.len_utf8();
        TokenKind::Char(first)
    }

    /// Takes a keyword or identifier: letters, digits, `_` and `@`, with single slashes between.
    fn word(&mut self) -> TokenKind {
        let start = self.at;
        let is_word = |byte: u8| is_word(char::from(byte));
        while is_word(self.byte(self.at))
            || (self.byte(self.at) == b'/' && is_word(self.byte(self.at + 1)))
        {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "elementclass" => TokenKind::ElementClass,
            "require" => TokenKind::Require,
            "provide" => TokenKind::Provide,
            "define" => TokenKind::Define,
            _ => TokenKind::Ident,
        }
    }

    /// Takes the configuration string at the current offset, up to the parenthesis that closes it.
    pub(crate) fn config(&mut self) -> ConfigText {
        let start = self.at;
        let mut depth = 1;
        let mut text = String::new();
        let mut cuts = Vec::new();
        let mut from = start;
        while self.at < self.text.len() {
            let at = self.at;
            match self.byte(at) {
                b'(' => depth += 1,
                b')' if depth == 1 => break,
                b')' => depth -= 1,
                b'#' if at > start && self.line_start(at) => {
                    text.push_str(&self.text[from..at]);
                    from = self.directive();
                    cuts.push((text.len() as u32, from as u32));
                    continue;
                }
                b'/' if matches!(self.byte(at + 1), b'/' | b'*') => {
                    // The line end is not part of the comment, so that a directive may follow.
                    let end = args::skip_comment(&self.text, at);
                    self.at = at + self.text[at..end].trim_end_matches(['\n', '\r']).len();
                    continue;
                }
                _ => {
                    self.at = args::skip_item(&self.text, at);
                    continue;
                }
            }
            self.at += 1;
        }
        text.push_str(&self.text[from..self.at]);
        let span = self.span(start, self.at);
        self.tokens.push(Token { kind: TokenKind::Config, span });
        ConfigText { text, span, cuts }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '@'
}
