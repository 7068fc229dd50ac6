//! Name resolution: walks the statements of files and compound bodies, and builds a scope of each.

use std::collections::HashMap;

use super::{ClassInfo, declarations};
use crate::diagnostic::Diagnostics;
use crate::source::Span;
use crate::tree::{ClassExpr, ConfigText, LinkKind, Stmt, Tree};

/// Index of a class in [`Resolver::classes`].
pub(super) type ClassId = usize;

/// Most connections that the statements of a configuration may make.
const MAX_LINKS: usize = 1_000_000;
/// Most names compared for a suggestion.
pub(super) const MAX_CANDIDATES: usize = 10_000;

/// The class that a name refers to.
#[derive(Clone, Debug)]
pub(super) enum Class {
    /// A class of the library.
    Primitive(String),
    /// A compound: an index in [`Resolver::done`].
    Compound(usize),
    /// No known class; the error has been reported.
    Error,
}

/// A file or a compound body with its names resolved.
#[derive(Debug)]
pub(super) struct Scope {
    /// Name of the class; empty if it has none.
    pub(super) name: String,
    pub(super) span: Span,
    /// Number of scopes around it.
    pub(super) depth: usize,
    /// Parameters: names and keywords.
    pub(super) formals: Vec<(String, String)>,
    pub(super) defines: Vec<(String, String)>,
    pub(super) elements: Vec<Decl>,
    pub(super) by_name: HashMap<String, usize>,
    pub(super) links: Vec<LinkDecl>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Compound classes, including anonymous ones, and synonyms that it declares.
    pub(super) declares: Vec<(String, ClassId)>,
    /// The class to try if ports or arguments do not fit this one.
    pub(super) next: Option<ClassId>,
    /// Least number of elements of an instance, compounds expanded.
    pub(super) size: u64,
}

/// An element of a scope.
#[derive(Clone, Debug)]
pub(super) struct Decl {
    /// Its name; a generated one that may still change begins with a semicolon.
    pub(super) name: String,
    pub(super) kind: DeclKind,
    pub(super) config: Option<ConfigText>,
    pub(super) span: Span,
    /// One more than the highest port that is connected: inputs, outputs.
    pub(super) ports: [usize; 2],
}

/// Kind of a scope's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclKind {
    /// An element of a class.
    Class(ClassId),
    /// A group as seen from outside; its `input` and `output` are the next two elements.
    Group,
    /// `input` or `output` of a scope or group.
    Pseudo,
}

/// A connection in a scope.
#[derive(Clone, Debug)]
pub(super) struct LinkDecl {
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) kind: LinkKind,
    pub(super) span: Span,
}

/// Resolves the names of a syntax tree: its state while it walks the tree.
pub(super) struct Resolver<'a> {
    pub(super) tree: &'a Tree,
    pub(super) info: &'a dyn ClassInfo,
    pub(super) diagnostics: Diagnostics,
    pub(super) classes: Vec<Class>,
    /// Finished scopes; the file itself comes last.
    pub(super) done: Vec<Scope>,
    /// Class names, outermost scope first.
    pub(super) names: Vec<HashMap<String, ClassId>>,
    /// The scope being walked.
    pub(super) current: Scope,
    /// Names of the classes being walked, outermost first.
    pub(super) stack: Vec<&'a str>,
    /// Number of connections that may still be made.
    pub(super) links_left: usize,
    /// All `elementclass` statements, built when an unknown class needs an explanation.
    pub(super) index: Option<declarations::DeclarationIndex<'a>>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(tree: &'a Tree, info: &'a dyn ClassInfo) -> Self {
        Resolver {
            tree,
            info,
            diagnostics: Diagnostics::new(),
            classes: Vec::new(),
            done: Vec::new(),
            names: vec![HashMap::new()],
            current: Scope::new(String::new(), Span { file: tree.file, start: 0, end: 0 }, 0),
            stack: Vec::new(),
            links_left: MAX_LINKS,
            index: None,
        }
    }

    /// Walks the whole tree.
    pub(super) fn file(&mut self) {
        let tree = self.tree;
        self.stmts(&tree.body);
        let empty = Scope::new(String::new(), self.current.span, 0);
        let scope = std::mem::replace(&mut self.current, empty);
        self.finish(scope);
    }

    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) {
        let mut ends_output = true;
        for stmt in stmts {
            match stmt {
                Stmt::Chain(chain) => ends_output = self.chain(chain, ends_output),
                Stmt::ElementClass(class) => {
                    let id = self.class(&class.class, &class.name.text);
                    if matches!(class.class, ClassExpr::Name(_)) {
                        self.current.declares.push((class.name.text.clone(), id));
                    }
                    self.bind(&class.name.text, id);
                }
                Stmt::Require(require) => {
                    require.libraries.iter().for_each(|library| self.stmts(&library.body));
                }
                Stmt::Define(defines) => {
                    defines.iter().for_each(|d| self.define(&d.name, &d.value, d.span));
                }
            }
        }
    }

    pub(super) fn define(&mut self, name: &str, value: &str, span: Span) {
        if self.current.has_variable(name) {
            let message = format!("parameter '${name}' multiply defined");
            self.diagnostics.error(span, message);
        } else {
            self.current.defines.push((name.to_string(), value.to_string()));
        }
    }
}

impl Scope {
    pub(super) fn new(name: String, span: Span, depth: usize) -> Self {
        Scope {
            name,
            span,
            depth,
            formals: Vec::new(),
            defines: Vec::new(),
            elements: Vec::new(),
            by_name: HashMap::new(),
            links: Vec::new(),
            inputs: 0,
            outputs: 0,
            declares: Vec::new(),
            next: None,
            size: 0,
        }
    }

    /// Checks the use of the `input` (or `output`) at `at` in the links from `since` on, and
    /// returns its number of ports.
    pub(super) fn pseudo(
        &self,
        at: usize,
        since: usize,
        output: bool,
        name: &str,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        const WORDS: [&str; 2] = ["input", "output"];
        let (side, other) = (usize::from(output), usize::from(!output));
        let Decl { ports, span, .. } = self.elements[at];
        let mut used = vec![false; ports[other]];
        for link in &self.links[since..] {
            let (end, port) = if output { link.to } else { link.from };
            if end == at {
                used[port] = true;
            }
        }
        let word = WORDS[side];
        if ports[side] > 0 {
            let only = WORDS[other];
            let message = format!("'{name}' pseudoelement '{word}' may only be used as {only}");
            diagnostics.error(span, message);
        }
        let missing = used.iter().enumerate().filter(|(_, used)| !**used);
        for (port, _) in missing {
            diagnostics.error(span, format!("'{name}' {word} {port} missing"));
            if diagnostics.is_full() {
                break;
            }
        }
        ports[other]
    }

    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.formals.iter().chain(&self.defines).any(|(known, _)| known == name)
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        kind: DeclKind,
        config: Option<ConfigText>,
        span: Span,
    ) -> usize {
        let at = self.elements.len();
        self.by_name.insert(name.to_string(), at);
        let name = name.to_string();
        self.elements.push(Decl { name, kind, config, span, ports: [0, 0] });
        at
    }

    /// Returns `;Class@N`; N counts the elements of the scope without `input` and `output`.
    pub(super) fn anonymous_name(&self, class: &str) -> String {
        let pseudo = if self.depth > 0 { 2 } else { 0 };
        format!(";{class}@{}", self.elements.len() - pseudo + 1)
    }

    /// Gives anonymous elements their final names. If a declared element has such a name, the
    /// anonymous element takes the next free number.
    pub(super) fn name_anonymous(&mut self) {
        for at in 0..self.elements.len() {
            let Some(name) = self.elements[at].name.strip_prefix(';') else { continue };
            let mut free = name.to_string();
            if let Some((class, number)) = name.rsplit_once('@') {
                let digits = number.bytes().take_while(u8::is_ascii_digit).count();
                let (number, rest) = number.split_at(digits);
                let mut number: usize = number.parse().unwrap_or(0);
                while self.by_name.get(&free).is_some_and(|&other| other != at) {
                    number += 1;
                    free = format!("{class}@{number}{rest}");
                }
            }
            self.by_name.insert(free.clone(), at);
            self.elements[at].name = free;
        }
    }
}
