//! A configuration as XML, by Click's document type.

use std::fmt::Write;

use crate::outline::{ClassOf, Outline, OutlineScope, Processing};
use crate::source::{SourceMap, Span};

const HEAD: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>
<!DOCTYPE configuration SYSTEM \"https://raw.githubusercontent.com/tbarbette/fastclick/master/tools/click2xml/clickconfig.dtd\">
<configuration xmlns=\"http://www.lcdf.org/click/xml/\">
";

/// A configuration as `click2xml` writes it: classes that it declares, elements, connections, each
/// with where it stands and whether packets are pushed or pulled.
pub fn xml(outline: &Outline, processing: &[Vec<Processing>], sources: &SourceMap) -> String {
    let mut printer = Printer {
        outline,
        processing,
        sources,
        written: vec![false; outline.scopes.len()],
        out: HEAD.to_owned(),
    };
    if let Some(file) = outline.scopes.len().checked_sub(1) {
        printer.scope(file, 0);
    }
    printer.out.push_str("</configuration>\n");
    printer.out
}

/// Compounds declared within compounds deeper than this are left out of the indentation.
const DEEPEST: usize = 40;

struct Printer<'a> {
    outline: &'a Outline,
    processing: &'a [Vec<Processing>],
    sources: &'a SourceMap,
    written: Vec<bool>,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "  ".repeat(indent.min(DEEPEST)));
    }

    fn scope(&mut self, at: usize, indent: usize) {
        let outline = self.outline;
        let scope = &outline.scopes[at];
        for (name, class) in &scope.declares {
            match class {
                ClassOf::Compound(inner) if outline.scopes[*inner].name == *name => {
                    self.class(*inner, indent);
                }
                _ => self.synonym(name, class, indent),
            }
        }
        let counts = scope.graph.ports();
        for (i, element) in scope.graph.elements.iter().enumerate() {
            if scope.classes[i] == ClassOf::Port {
                continue;
            }
            let (inputs, outputs) = counts[i];
            let mut text = format!(
                "<element name=\"{}\" {}{} ninputs=\"{inputs}\" noutputs=\"{outputs}\"",
                quoted(&element.name),
                reference("class", &scope.classes[i]),
                self.place(element.span),
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
        for c in &scope.graph.connections {
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

    /// A compound class, those that it goes over to before it.
    fn class(&mut self, at: usize, indent: usize) {
        if std::mem::replace(&mut self.written[at], true) {
            return;
        }
        let scope = &self.outline.scopes[at];
        if let Some(ClassOf::Compound(next)) = scope.next {
            self.class(next, indent);
        }
        let name = match scope.name.as_str() {
            "" => String::new(),
            name => format!("classname=\"{}\" ", quoted(name)),
        };
        let place = self.place(scope.span);
        self.line(indent, &format!("<elementclass {name}classid=\"c{at}\"{place}>"));
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

    /// Another name for a class.
    fn synonym(&mut self, name: &str, class: &ClassOf, indent: usize) {
        let id = self.out.len();
        let text = format!("<elementclass classname=\"{}\" classid=\"s{id}\">", quoted(name));
        self.line(indent, &text);
        self.line(indent + 1, &format!("<synonym {} />", reference("class", class)));
        self.line(indent, "</elementclass>");
    }

    fn place(&self, span: Span) -> String {
        let at = self.sources.location(span);
        format!(" file=\"{}\" line=\"{}\"", quoted(at.name), at.line)
    }
}

/// A class by its name, or by its mark in this document.
fn reference(word: &str, class: &ClassOf) -> String {
    match class {
        ClassOf::Primitive(name) => format!("{word}name=\"{}\"", quoted(name)),
        ClassOf::Compound(at) => format!("{word}id=\"c{at}\""),
        ClassOf::Port | ClassOf::Unknown => format!("{word}name=\"\""),
    }
}

/// Text in an attribute; line ends and tabs stay what they are, which only references do.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => _ = write!(out, "&#{};", u32::from(c)),
            // XML knows no other control characters, not even as references.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
