//! Prints a configuration as HTML: its source text with marked names, errors and links.

mod marks;

use std::collections::HashMap;

use crate::diagnostic::Diagnostics;
use crate::outline::{ClassRef, Outline};
use crate::tree::Tree;
use marks::{Mark, marks};

/// Names and documentation that the HTML text links to.
pub struct HtmlLinks<'a> {
    /// The names that the configuration declares.
    pub outline: &'a Outline,
    /// Returns the URL of the documentation of a primitive class, if there is one.
    pub docs: &'a dyn Fn(&str) -> Option<String>,
}

impl HtmlLinks<'_> {
    /// Returns the URL for a class: that of its declaration, or of its documentation.
    pub fn class(&self, class: &ClassRef) -> Option<String> {
        match class {
            ClassRef::Primitive(name) => (self.docs)(name),
            ClassRef::Compound(scope) => Some(format!("#{}", class_anchor(*scope))),
            ClassRef::Port | ClassRef::Unknown => None,
        }
    }

    /// Returns the anchor at the declaration of a scope's element.
    pub fn element_anchor(&self, scope: usize, element: usize) -> String {
        let name = &self.outline.scopes[scope].graph.elements[element].name;
        match scope + 1 == self.outline.scopes.len() {
            true => format!("e-{name}"),
            false => format!("e{scope}-{name}"),
        }
    }
}

fn class_anchor(scope: usize) -> String {
    format!("decl{scope}")
}

/// Prints the text of a configuration in a `<pre>`. It marks comments (`c-cmt`), keywords (`c-kw`),
/// configuration strings (`c-cfg`), declarations of classes (`c-cd`) and elements (`c-ed`), and
/// errors (`c-err`). Element names have a title with their class; classes link to their
/// declaration.
pub fn html(tree: &Tree, diagnostics: &Diagnostics, links: &HtmlLinks) -> String {
    let marks = marks(tree, diagnostics, links);
    let mut out = String::from("<pre>");
    let mut writer = HtmlWriter { out: &mut out, open: Vec::new() };
    let (mut starts, mut reopened): (HashMap<usize, Vec<&Mark>>, Vec<&Mark>) = Default::default();
    for mark in marks.iter().filter(|mark| mark.start < mark.end) {
        starts.entry(mark.start).or_default().push(mark);
    }
    for (at, c) in tree.text.char_indices() {
        writer.close(at, &mut reopened);
        for mark in starts.get(&at).into_iter().flatten() {
            writer.open(mark);
        }
        writer.character(c, &tree.text[at..]);
    }
    writer.close(usize::MAX, &mut reopened);
    out.push_str("</pre>\n");
    out
}

/// Writes text and nested marks.
struct HtmlWriter<'a, 'm> {
    out: &'a mut String,
    /// Marks that are open, outermost first.
    open: Vec<&'m Mark>,
}

impl<'m> HtmlWriter<'_, 'm> {
    fn open(&mut self, mark: &'m Mark) {
        self.out.push_str(&mark.open);
        self.open.push(mark);
    }

    /// Closes the marks that end at `at`. Marks inside them are closed and opened again; `reopened`
    /// is scratch space for these.
    fn close(&mut self, at: usize, reopened: &mut Vec<&'m Mark>) {
        let Some(first) = self.open.iter().position(|mark| mark.end <= at) else { return };
        for mark in self.open.drain(first..).rev() {
            self.out.push_str(mark.close);
            if mark.end > at {
                reopened.push(mark);
            }
        }
        while let Some(mark) = reopened.pop() {
            self.open(mark);
        }
    }

    /// Writes a character. A line end closes all marks and opens them again, because some browsers
    /// render marks over several lines badly.
    fn character(&mut self, c: char, rest: &str) {
        match c {
            '\r' if rest.starts_with("\r\n") => {}
            '\n' | '\r' => {
                self.open.iter().rev().for_each(|mark| self.out.push_str(mark.close));
                self.out.push('\n');
                self.open.iter().for_each(|mark| self.out.push_str(&mark.open));
            }
            c => push(self.out, c),
        }
    }
}

fn push(out: &mut String, c: char) {
    match c {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '\'' => out.push_str("&#39;"),
        '"' => out.push_str("&quot;"),
        c if c.is_control() && c != '\t' => out.push('\u{fffd}'),
        c => out.push(c),
    }
}

/// Escapes text for HTML, also in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            c => push(&mut out, c),
        }
    }
    out
}
