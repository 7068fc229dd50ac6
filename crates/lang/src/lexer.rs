//! Tokens of the Click language.

use std::sync::Arc;

use crate::args;
use crate::source::{FileId, LineDirective, Span, line_directive};
use crate::tree::ConfigText;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident,
    Variable,
    Arrow,
    Wide,
    Context,
    Colons,
    Bars,
    Dots,
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
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// A fault of the text that is not one of the grammar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadDirective(pub(crate) Span);

/// Cuts a text into tokens, on demand: only the parser knows where configuration strings are.
pub(crate) struct Lexer {
    text: Arc<str>,
    file: FileId,
    at: usize,
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Span>,
    pub(crate) directives: Vec<LineDirective>,
    pub(crate) bad: Vec<BadDirective>,
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
            bad: Vec::new(),
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

    /// Takes the line directive at the current place, up to its line end.
    fn directive(&mut self) -> usize {
        let at = self.at;
        let line = &self.text[at..];
        let end = at + line.find(['\n', '\r']).unwrap_or(line.len());
        match line_directive(&self.text[at + 1..end]) {
            None => self.bad.push(BadDirective(self.span(at, end))),
            Some((line, name)) => {
                let crlf = self.text[end..].starts_with("\r\n");
                let at = (end + 1 + usize::from(crlf)) as u32;
                self.directives.push(LineDirective { at, line, name });
            }
        }
        self.at = end;
        end
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        self.skip();
        let start = self.at;
        let kind = self.kind();
        let token = Token { kind, span: self.span(start, self.at) };
        if kind != Kind::End {
            self.tokens.push(token);
        }
        token
    }

    fn kind(&mut self) -> Kind {
        let Some(first) = self.text[self.at..].chars().next() else { return Kind::End };
        if is_word(first) {
            return self.word();
        }
        const SYMBOLS: [(&str, Kind); 6] = [
            ("==>", Kind::Wide),
            ("=>", Kind::Wide),
            ("->", Kind::Arrow),
            ("::", Kind::Colons),
            ("||", Kind::Bars),
            ("...", Kind::Dots),
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
                return Kind::Variable;
            }
        }
        if first == '~' {
            let inner = rest[1..].bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'/');
            let end = 1 + inner.count();
            if rest[end..].starts_with('>') {
                self.at += end + 1;
                return Kind::Context;
            }
        }
        self.at += first.len_utf8();
        Kind::Char(first)
    }

    /// Letters, digits, `_` and `@`, with single slashes between.
    fn word(&mut self) -> Kind {
        let start = self.at;
        let is_word = |byte: u8| is_word(char::from(byte));
        while is_word(self.byte(self.at))
            || (self.byte(self.at) == b'/' && is_word(self.byte(self.at + 1)))
        {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "elementclass" => Kind::ElementClass,
            "require" => Kind::Require,
            "provide" => Kind::Provide,
            "define" => Kind::Define,
            _ => Kind::Ident,
        }
    }

    /// The configuration string that begins here, up to the parenthesis that ends it.
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
                    // The line end stays outside, so that a directive may follow.
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
        self.tokens.push(Token { kind: Kind::Config, span });
        ConfigText { text, span, cuts }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '@'
}
