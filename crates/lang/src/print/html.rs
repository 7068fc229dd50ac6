//! A configuration as HTML: its text as it is, with marks on what names mean.

mod marks;

use std::collections::HashMap;

use crate::diagnostic::Diagnostics;
use crate::outline::{ClassOf, Outline};
use crate::tree::Tree;
use marks::{Mark, marks};

/// What a drawing in HTML needs to know beside the text.
pub struct Links<'a> {
    /// The configuration's names.
    pub outline: &'a Outline,
    /// Where the documentation of a primitive class is, if anywhere.
    pub docs: &'a dyn Fn(&str) -> Option<String>,
}

impl Links<'_> {
    /// The place to go to for a class: its declaration, or its documentation.
    pub fn class(&self, class: &ClassOf) -> Option<String> {
        match class {
            ClassOf::Primitive(name) => (self.docs)(name),
            ClassOf::Compound(scope) => Some(format!("#{}", class_anchor(*scope))),
            ClassOf::Port | ClassOf::Unknown => None,
        }
    }

    /// The anchor at the declaration of an element of a scope.
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

/// The text of a configuration in a `<pre>`: comments (`c-cmt`), keywords (`c-kw`), configuration
/// strings (`c-cfg`), declarations of classes (`c-cd`) and elements (`c-ed`) and errors (`c-err`)
/// are marked; references say what they mean, and classes lead to where they are declared.
pub fn html(tree: &Tree, found: &Diagnostics, links: &Links) -> String {
    let marks = marks(tree, found, links);
    let mut out = String::from("<pre>");
    let mut page = Page { out: &mut out, open: Vec::new() };
    let (mut begins, mut ends): (HashMap<usize, Vec<&Mark>>, Vec<&Mark>) = Default::default();
    for mark in marks.iter().filter(|mark| mark.start < mark.end) {
        begins.entry(mark.start).or_default().push(mark);
    }
    for (at, c) in tree.text.char_indices() {
        page.close(at, &mut ends);
        for mark in begins.get(&at).into_iter().flatten() {
            page.begin(mark);
        }
        page.character(c, &tree.text[at..]);
    }
    page.close(usize::MAX, &mut ends);
    out.push_str("</pre>\n");
    out
}

struct Page<'a, 'm> {
    out: &'a mut String,
    /// Marks that have begun and not ended, outermost first.
    open: Vec<&'m Mark>,
}

impl<'m> Page<'_, 'm> {
    fn begin(&mut self, mark: &'m Mark) {
        self.out.push_str(&mark.open);
        self.open.push(mark);
    }

    /// Ends the marks that end here; those that began later begin again.
    fn close(&mut self, at: usize, again: &mut Vec<&'m Mark>) {
        let Some(first) = self.open.iter().position(|mark| mark.end <= at) else { return };
        for mark in self.open.drain(first..).rev() {
            self.out.push_str(mark.close);
            if mark.end > at {
                again.push(mark);
            }
        }
        while let Some(mark) = again.pop() {
            self.begin(mark);
        }
    }

    /// Marks end with the line and begin again with the next: some browsers want it so.
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

/// Text as HTML shows it, in attributes too.
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
