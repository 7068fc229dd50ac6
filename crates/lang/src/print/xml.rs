//! Prints a configuration as XML of Click's document type.

use std::fmt::Write;

use crate::outline::{ClassRef, Outline, OutlineScope, Processing};
use crate::source::{SourceMap, Span};

const HEAD: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>
<!DOCTYPE configuration SYSTEM \"https://raw.githubusercontent.com/tbarbette/fastclick/master/tools/click2xml/clickconfig.dtd\">
<configuration xmlns=\"http://www.lcdf.org/click/xml/\">
";

/// Prints a configuration as `click2xml` does: its classes, elements and connections, each with its
/// location, and elements and connections with their processing code.
pub fn xml(outline: &Outline, processing: &[Vec<Processing>], sources: &SourceMap) -> String {
    let mut writer = XmlWriter {
        outline,
        processing,
        sources,
        written: vec![false; outline.scopes.len()],
        out: HEAD.to_owned(),
    };
    if let Some(file) = outline.scopes.len().checked_sub(1) {
        writer.scope(file, 0);
    }
    writer.out.push_str("</configuration>\n");
    writer.out
}

/// Greatest indentation, in steps of two columns; lines nested deeper are not indented further.
const MAX_INDENT: usize = 40;

/// Steps that are one tab, as in Click.
const TAB: usize = 4;

/// Writes an outline as XML; each compound class once.
struct XmlWriter<'a> {
    outline: &'a Outline,
    processing: &'a [Vec<Processing>],
    sources: &'a SourceMap,
    written: Vec<bool>,
    out: String,
}

impl XmlWriter<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        let indent = indent.min(MAX_INDENT);
        let (tabs, spaces) = ("\t".repeat(indent / TAB), "  ".repeat(indent % TAB));
        let _ = writeln!(self.out, "{tabs}{spaces}{text}");
    }

    fn scope(&mut self, at: usize, indent: usize) {
        let outline = self.outline;
        let scope = &outline.scopes[at];
        for (name, class) in &scope.declares {
            match class {
                ClassRef::Compound(inner) if outline.scopes[*inner].name == *name => {
                    self.class(*inner, indent);
                }
                _ => self.synonym(name, class, indent),
            }
        }
        let counts = scope.graph.ports();
        for (i, element) in scope.graph.elements.iter().enumerate() {
            if scope.classes[i] == ClassRef::Port {
                continue;
            }
            let (inputs, outputs) = counts[i];
            let mut text = format!(
                "<element name=\"{}\" {}{} ninputs=\"{inputs}\" noutputs=\"{outputs}\"",
                quoted(&element.name),
                reference("class", &scope.classes[i]),
                self.location(element.span),
            );
            if inputs + outputs > 0 {
                let _ = write!(text, " processing=\"{}\"", self.processing[at][i].code());
            }
            if !element.config.is_empty() {
                let _ = write!(text, " config=\"{}\"", quoted(&element.config));
            }
            self.line(indent, &(text + " />"));
        }
        self.connections(scope, at, indent);
    }

    fn connections(&mut self, scope: &OutlineScope, at: usize, indent: usize) {
        let name = |element: usize| quoted(&scope.graph.elements[element].name);
        let mut by_age: Vec<_> = scope.graph.connections.iter().collect();
        by_age.sort_by_key(|connection| connection.age);
        for c in by_age {
            let letter = self.processing[at][c.from.element].outputs.get(c.from.port);
            let text = format!(
                "<connection from=\"{}\" fromport=\"{}\" to=\"{}\" toport=\"{}\" processing=\"{}\" />",
                name(c.from.element),
                c.from.port,
                name(c.to.element),
                c.to.port,
                letter.unwrap_or(&'a'),
            );
            self.line(indent, &text);
        }
    }

    /// Writes a compound class, after the classes that it falls back to.
    fn class(&mut self, at: usize, indent: usize) {
        if std::mem::replace(&mut self.written[at], true) {
            return;
        }
        let scope = &self.outline.scopes[at];
        if let Some(ClassRef::Compound(next)) = scope.next {
            self.class(next, indent);
        }
        let name = match scope.name.as_str() {
            "" => String::new(),
            name => format!("classname=\"{}\" ", quoted(name)),
        };
        let location = self.location(scope.span);
        self.line(indent, &format!("<elementclass {name}classid=\"c{at}\"{location}>"));
        let over = scope.next.as_ref().map(|next| format!(" {}", reference("prevclass", next)));
        let text = format!(
            "<compound{} ninputs=\"{}\" noutputs=\"{}\" nformals=\"{}\">",
            over.unwrap_or_default(),
            scope.inputs,
            scope.outputs,
            scope.formals.len(),
        );
        self.line(indent + 1, &text);
        for (number, (name, keyword)) in scope.formals.iter().enumerate() {
            let key = match keyword.as_str() {
                "" => String::new(),
                keyword => format!("key=\"{}\" ", quoted(keyword)),
            };
            let name = quoted(name);
            let text = format!("<formal number=\"{number}\" name=\"{name}\" {key}/>");
            self.line(indent + 2, &text);
        }
        self.scope(at, indent + 2);
        self.line(indent + 1, "</compound>");
        self.line(indent, "</elementclass>");
    }

    /// Writes a synonym for a class.
    fn synonym(&mut self, name: &str, class: &ClassRef, indent: usize) {
        let id = self.out.len();
        let text = format!("<elementclass classname=\"{}\" classid=\"s{id}\">", quoted(name));
        self.line(indent, &text);
        self.line(indent + 1, &format!("<synonym {} />", reference("class", class)));
        self.line(indent, "</elementclass>");
    }

    fn location(&self, span: Span) -> String {
        let at = self.sources.location(span);
        format!(" file=\"{}\" line=\"{}\"", quoted(at.name), at.line)
    }
}

/// Returns a reference to a class by its name, or by its identifier in the document.
fn reference(word: &str, class: &ClassRef) -> String {
    match class {
        ClassRef::Primitive(name) => format!("{word}name=\"{}\"", quoted(name)),
        ClassRef::Compound(at) => format!("{word}id=\"c{at}\""),
        ClassRef::Port | ClassRef::Unknown => format!("{word}name=\"\""),
    }
}

/// Escapes text in an attribute. Line ends and tabs become character references, because a parser
/// replaces them by spaces otherwise.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => _ = write!(out, "&#{};", u32::from(c)),
            c => push_escaped(&mut out, c),
        }
    }
    out
}

/// Appends a character of a text. XML has no control characters, not even as references.
pub(super) fn push_escaped(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
        c => out.push(c),
    }
}
