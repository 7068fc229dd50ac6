//! Explains why a class is unknown at its use although the file declares it: the declaration comes
//! later, or the class contains itself.

use std::collections::{HashMap, HashSet};

use crate::source::Span;
use crate::tree::{Body, ClassExpr, ElementClass, Head, Stmt, Tree};

/// All `elementclass` statements of a configuration by name.
pub(super) struct DeclarationIndex<'a> {
    classes: HashMap<&'a str, &'a ElementClass>,
}

impl<'a> DeclarationIndex<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        let mut index = DeclarationIndex { classes: HashMap::new() };
        index.stmts(&tree.body);
        index
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::ElementClass(class) => {
                    self.classes.entry(&class.name.text).or_insert(class);
                }
                Stmt::Require(require) => {
                    require.libraries.iter().for_each(|library| self.stmts(&library.body));
                }
                _ => {}
            }
        }
    }

    /// Returns a help line for the class `name`, which is unknown at `at` but declared elsewhere;
    /// `stack` holds the names of the classes around, outermost first.
    pub(super) fn explain_unknown(&self, name: &str, at: Span, stack: &[&str]) -> Option<String> {
        if let Some(first) = stack.iter().position(|&open| open == name) {
            return Some(cycle(stack[first..].iter().copied().chain([name])));
        }
        let class = self.classes.get(name)?;
        if class.span.file != at.file || class.span.start <= at.start {
            return None;
        }
        for (i, open) in stack.iter().enumerate().filter(|(_, open)| !open.is_empty()) {
            if let Some(path) = self.path(name, open) {
                return Some(cycle(stack[i..].iter().copied().chain(path)));
            }
        }
        Some(format!("'{name}' is declared further down; move its elementclass up"))
    }

    /// Returns the chain of classes by which class `from` contains class `to`, if it does.
    fn path(&self, from: &str, to: &str) -> Option<Vec<&'a str>> {
        let (&from, _) = self.classes.get_key_value(from)?;
        let mut parent: HashMap<&str, &str> = HashMap::new();
        let mut seen = HashSet::from([from]);
        let mut queue = vec![from];
        while let Some(name) = queue.pop() {
            let Some(class) = self.classes.get(name) else { continue };
            let mut used = Vec::new();
            class_names(&class.class, &mut used);
            for next in used {
                if seen.insert(next) {
                    parent.insert(next, name);
                    queue.push(next);
                }
                if next == to {
                    parent.entry(next).or_insert(name);
                    let mut path = vec![next];
                    let mut at = *parent.get(next)?;
                    while at != from && path.len() <= parent.len() {
                        path.push(at);
                        at = *parent.get(at)?;
                    }
                    path.push(from);
                    path.reverse();
                    return Some(path);
                }
            }
        }
        None
    }
}

fn cycle<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| if name.is_empty() { "{…}" } else { name }).collect();
    format!("a compound element cannot contain itself: {}", names.join(" -> "))
}

/// Collects every name in a class expression that may be the name of a class.
fn class_names<'a>(class: &'a ClassExpr, into: &mut Vec<&'a str>) {
    match class {
        ClassExpr::Name(name) => into.push(&name.text),
        ClassExpr::Compound(compound) => {
            compound.overloads.iter().for_each(|body| body_names(body, into));
        }
        ClassExpr::Missing => {}
    }
}

fn body_names<'a>(body: &'a Body, into: &mut Vec<&'a str>) {
    for stmt in &body.stmts {
        match stmt {
            Stmt::ElementClass(class) => class_names(&class.class, into),
            Stmt::Chain(chain) => {
                for element in chain.lists.iter().flat_map(|list| &list.elements) {
                    match &element.head {
                        Head::Name(name) => into.push(&name.text),
                        Head::Compound(compound) => {
                            compound.overloads.iter().for_each(|body| body_names(body, into));
                        }
                        Head::Group(body) => body_names(body, into),
                        Head::Implicit => {}
                    }
                    if let Some(class) = &element.class {
                        class_names(class, into);
                    }
                }
            }
            _ => {}
        }
    }
}
