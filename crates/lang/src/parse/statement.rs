//! Parses the statements `elementclass`, `require` and `define`.

use super::{BodyKind, Parser, parse_file};
use crate::args;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::source::{FileId, Span};
use crate::tree::{ClassExpr, Define, ElementClass, Name, Require, Stmt, Tree};

/// Most files that a configuration may include.
const MAX_INCLUDES: usize = 64;

impl Parser<'_> {
    pub(super) fn elementclass(&mut self, keyword: Token) -> Option<Stmt> {
        let name = match self.accept(TokenKind::Ident) {
            Some(token) => self.name(token),
            None => {
                let next = self.next();
                self.back(next);
                self.error(next.span, "expected element type name");
                Name { text: String::new(), span: next.span.head() }
            }
        };
        let token = self.next();
        let class = match token.kind {
            TokenKind::Char('{') => ClassExpr::Compound(self.compound(token)),
            TokenKind::Ident => ClassExpr::Name(self.name(token)),
            _ => {
                self.syntax_error(token);
                if matches!(token.kind, TokenKind::Char(';' | '}' | ')') | TokenKind::End) {
                    self.back(token);
                }
                ClassExpr::Missing
            }
        };
        if name.text.is_empty() {
            return None;
        }
        let end = match &class {
            ClassExpr::Name(name) => name.span,
            ClassExpr::Compound(compound) => compound.span,
            ClassExpr::Missing => name.span,
        };
        Some(Stmt::ElementClass(ElementClass { name, class, span: keyword.span.to(end) }))
    }

    pub(super) fn define(&mut self, keyword: Token) -> Option<Stmt> {
        let (text, span) = self.parenthesis(keyword)?;
        let mut defines = Vec::new();
        for arg in args::split(&text) {
            let (variable, value) = args::shift_word(&arg.text);
            if variable.is_empty() {
                continue;
            }
            let name = variable.strip_prefix('$').unwrap_or("");
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                self.error(span, "bad 'define' declaration: not a variable");
            } else {
                let (name, value) = (name.to_string(), value.to_string());
                defines.push(Define { name, value, span });
            }
        }
        Some(Stmt::Define(defines))
    }

    pub(super) fn require(&mut self, keyword: Token, enclosing: BodyKind) -> Option<Stmt> {
        let (text, span) = self.parenthesis(keyword)?;
        let mut requirements = Vec::new();
        let mut libraries = Vec::new();
        for arg in args::split(&text) {
            let words = args::split_words(&arg.text);
            let kind = words.first().map(|word| args::unquote(word)).unwrap_or_default();
            match (kind.as_str(), words.get(1).map(|word| args::unquote(word)), words.len()) {
                (_, _, 0) => {}
                ("compact_config", _, 1) => requirements.push("compact_config".to_string()),
                ("package", Some(value), 2) => requirements.push(requirement(&value)),
                ("library", Some(value), 2) => {
                    libraries.extend(self.library(&value, span, enclosing))
                }
                ("package" | "library", ..) => self.bad_requirement(span),
                (package, _, 1) => requirements.push(requirement(package)),
                _ => self.bad_requirement(span),
            }
        }
        Some(Stmt::Require(Require { requirements, libraries, span }))
    }

    fn bad_requirement(&mut self, span: Span) {
        let error = Diagnostic::error(span, "syntax error at requirement");
        let help = "write 'package NAME', 'library FILE' or 'compact_config'";
        self.diagnostics.push(error.with_help(help));
    }

    /// Parses the text in the parentheses after a keyword.
    fn parenthesis(&mut self, keyword: Token) -> Option<(String, Span)> {
        let Some(open) = self.accept(TokenKind::Char('(')) else {
            let next = self.next();
            self.back(next);
            self.error(next.span, "expected '('");
            return None;
        };
        let config = self.config_after(open);
        Some((config.text, keyword.span.to(self.last)))
    }

    fn library(&mut self, name: &str, span: Span, enclosing: BodyKind) -> Option<Tree> {
        if enclosing != BodyKind::File {
            self.error(span, "'require library' must be used at file scope");
            return None;
        }
        let file = match self.libraries.library(self.sources, name, span.file) {
            Ok(file) => file,
            Err(why) => {
                self.error(span, why);
                return None;
            }
        };
        if self.was_included(file) {
            return None;
        }
        if self.included.len() >= MAX_INCLUDES {
            self.error(span, format!("more than {MAX_INCLUDES} libraries"));
            return None;
        }
        self.included.push(file);
        let (libraries, included) = (&mut *self.libraries, &mut *self.included);
        Some(parse_file(self.sources, file, libraries, included, self.diagnostics))
    }

    fn was_included(&self, file: FileId) -> bool {
        let name = self.sources.name(file);
        self.included.iter().any(|&known| known == file || self.sources.name(known) == name)
    }
}

fn requirement(package: &str) -> String {
    format!("package {}", args::quote_if_needed(package))
}
