//! Resolves class names, and walks the bodies of compounds.

use std::collections::HashMap;

use super::declarations;
use super::scope::{Class, ClassId, Decl, DeclKind, MAX_CANDIDATES, Resolver, Scope};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Body, ClassExpr, Compound};

impl<'a> Resolver<'a> {
    pub(super) fn bind(&mut self, name: &str, class: ClassId) {
        if let Some(names) = self.names.last_mut() {
            names.insert(name.to_string(), class);
        }
    }

    pub(super) fn lookup(&mut self, name: &str) -> Option<ClassId> {
        if let Some(&id) = self.names.iter().rev().find_map(|names| names.get(name)) {
            return Some(id);
        }
        self.info.knows(name).then(|| self.new_primitive(name))
    }

    /// The same for a name that is used as a class's here, which may become one by that.
    pub(super) fn lookup_or_presume(&mut self, name: &str) -> Option<ClassId> {
        self.lookup(name).or_else(|| self.info.presumes(name).then(|| self.new_primitive(name)))
    }

    fn new_primitive(&mut self, name: &str) -> ClassId {
        let id = self.new_class(Class::Primitive(name.to_string()));
        self.names[0].insert(name.to_string(), id);
        id
    }

    fn new_class(&mut self, class: Class) -> ClassId {
        self.classes.push(class);
        self.classes.len() - 1
    }

    /// Binds an unknown name to [`Class::Error`], so that it is reported only once. As in Click, the name
    /// is that of a class from now on, in all scopes.
    pub(super) fn error_class(&mut self, name: &str) -> ClassId {
        let id = self.new_class(Class::Error);
        self.names[0].insert(name.to_string(), id);
        id
    }

    /// Resolves a class expression; `name` becomes the name of a compound.
    pub(super) fn class(&mut self, class: &'a ClassExpr, name: &'a str) -> ClassId {
        match class {
            ClassExpr::Compound(compound) => self.compound(compound, name),
            ClassExpr::Missing => self.new_class(Class::Error),
            ClassExpr::Name(wanted) => match self.lookup(&wanted.text) {
                Some(id) => id,
                None if self.current.by_name.contains_key(&wanted.text) => {
                    let name = &wanted.text;
                    let message = format!("'{name}' was previously used as an element name");
                    self.diagnostics.error(wanted.span, message);
                    self.error_class(name)
                }
                None if self.info.presumes(&wanted.text) => self.new_primitive(&wanted.text),
                None => {
                    let message = format!("unknown element class '{}'", wanted.text);
                    let help = self.suggest(&wanted.text, wanted.span, false);
                    self.diagnostics
                        .push(Diagnostic::error(wanted.span, message).with_maybe_help(help));
                    self.error_class(&wanted.text)
                }
            },
        }
    }

    /// Returns a help line for an unknown class name, or also element name if `elements`.
    pub(super) fn suggest(&mut self, name: &str, span: Span, elements: bool) -> Option<String> {
        if self.diagnostics.is_full() {
            return None;
        }
        let index =
            self.index.get_or_insert_with(|| declarations::DeclarationIndex::new(self.tree));
        if let Some(help) = index.explain_unknown(name, span, &self.stack) {
            return Some(help);
        }
        let mut candidates: Vec<&str> =
            self.names.iter().flat_map(|names| names.keys().map(String::as_str)).collect();
        candidates.retain(|name| {
            self.names
                .iter()
                .rev()
                .find_map(|names| names.get(*name))
                .is_some_and(|&id| !matches!(self.classes[id], Class::Error))
        });
        candidates.extend(self.info.names());
        if elements {
            candidates.extend(self.current.by_name.keys().map(String::as_str));
        }
        candidates.sort_unstable();
        candidates.truncate(MAX_CANDIDATES);
        crate::nearest::did_you_mean(name, candidates)
    }

    pub(super) fn compound(&mut self, compound: &'a Compound, name: &'a str) -> ClassId {
        let extended = compound.extends.and_then(|span| {
            let known = self.lookup_or_presume(name);
            if known.is_none() {
                let message = format!("cannot extend unknown element class '{name}'");
                self.diagnostics.error(span, message);
            }
            known
        });
        let scopes: Vec<_> =
            compound.overloads.iter().map(|body| self.body(body, name, compound.span)).collect();
        let mut next = extended;
        for &scope in scopes.iter().rev() {
            self.done[scope].next = next;
            next = Some(self.new_class(Class::Compound(scope)));
        }
        let id = next.unwrap_or_else(|| self.new_class(Class::Error));
        self.current.declares.push((name.to_string(), id));
        id
    }

    /// Walks one body of a compound and returns its index in `done`.
    fn body(&mut self, body: &'a Body, name: &'a str, span: Span) -> usize {
        let mut scope = Scope::new(name.to_string(), span, self.stack.len() + 1);
        scope.add("input", DeclKind::Pseudo, None, span);
        scope.add("output", DeclKind::Pseudo, None, span);
        self.formals(body, &mut scope);
        let outer = std::mem::replace(&mut self.current, scope);
        self.stack.push(name);
        self.names.push(HashMap::new());
        self.stmts(&body.stmts);
        self.names.pop();
        self.stack.pop();
        let mut scope = std::mem::replace(&mut self.current, outer);
        let shown = if name.is_empty() { "<anonymous>" } else { name };
        scope.inputs = scope.pseudo(0, 0, false, shown, &mut self.diagnostics);
        scope.outputs = scope.pseudo(1, 0, true, shown, &mut self.diagnostics);
        self.finish(scope)
    }

    /// Checks the parameters of a body and adds them to its scope.
    fn formals(&mut self, body: &Body, scope: &mut Scope) {
        let mut disorder = false;
        for formal in &body.formals {
            if scope.has_variable(&formal.name) {
                let message = format!("parameter '${}' multiply defined", formal.name);
                self.diagnostics.error(formal.span, message);
                continue;
            }
            let keyword = &formal.keyword;
            if !keyword.is_empty() && scope.formals.iter().any(|(_, known)| known == keyword) {
                let message = format!("repeated keyword parameter '{keyword}' in compound element");
                self.diagnostics.error(formal.span, message);
            }
            let before = scope.formals.last().map_or("", |(_, keyword)| keyword);
            if !disorder && (before == "__REST__" || (keyword.is_empty() && !before.is_empty())) {
                disorder = true;
                let error =
                    Diagnostic::error(formal.span, "compound element parameters out of order");
                self.diagnostics.push(error.with_note(
                    formal.span,
                    "(The correct order is '[positional], [keywords], [__REST__]'.)",
                ));
            }
            scope.formals.push((formal.name.clone(), keyword.clone()));
        }
    }

    /// Names the anonymous elements of a scope, computes its size and adds it to `done`.
    pub(super) fn finish(&mut self, mut scope: Scope) -> usize {
        scope.name_anonymous();
        let size = |decl: &Decl| match decl.kind {
            DeclKind::Class(class) => self.size(class),
            _ => 0,
        };
        scope.size = scope.elements.iter().map(size).fold(0, u64::saturating_add);
        self.done.push(scope);
        self.done.len() - 1
    }

    /// Returns the least number of elements of an instance of a class, over its overloads.
    fn size(&self, class: ClassId) -> u64 {
        let mut least = u64::MAX;
        let mut class = Some(class);
        while let Some(id) = class {
            class = None;
            least = least.min(match self.classes[id] {
                Class::Compound(scope) => {
                    class = self.done[scope].next;
                    self.done[scope].size
                }
                _ => 1,
            });
        }
        least
    }
}
