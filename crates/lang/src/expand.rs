//! Expands a syntax tree to a flat graph: looks names and classes up, expands compounds and
//! substitutes variables.

mod chain;
mod class;
mod connect;
mod context;
mod declarations;
mod instance;
mod outline;
mod overload;
mod scope;
mod tunnel;
mod variables;

pub(crate) use instance::PORT_CLASS;
pub use instance::UNDECLARED_CLASS;
pub use outline::outline;
pub use variables::variables;

use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::FlatGraph;
use crate::source::Span;
use crate::tree::{Stmt, Tree};

/// The element classes that a configuration may use.
pub trait ClassInfo {
    /// Whether `class` is the name of a class.
    fn knows(&self, class: &str) -> bool;

    /// Whether an unknown name becomes that of a class where it is used as one first, as for Click's
    /// tools.
    fn presumes(&self, _class: &str) -> bool {
        false
    }

    /// Returns the names of all classes, for suggestions.
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether the package of `require(package NAME)` is available.
    fn provides(&self, _package: &str) -> bool {
        true
    }
}

impl<F: Fn(&str) -> bool> ClassInfo for F {
    fn knows(&self, class: &str) -> bool {
        self(class)
    }
}

/// Takes every name that begins with a capital letter, and does not stand for an element, for a class:
/// for tools without a list of classes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass;

impl ClassInfo for AnyClass {
    fn knows(&self, _class: &str) -> bool {
        false
    }
    fn presumes(&self, class: &str) -> bool {
        class.starts_with(|c: char| c.is_ascii_uppercase()) && !class.contains(['/', '@'])
    }
}

/// Most elements of a configuration; more are taken for a mistake.
const MAX_ELEMENTS: u64 = 1_000_000;

/// Expands a configuration. `vars` are variables from the command line; they override those that
/// the file defines.
///
/// If there are errors, the graph holds the part of the configuration without errors, and elements
/// of [`UNDECLARED_CLASS`] for those of unknown classes.
pub fn expand(
    tree: &Tree,
    classes: &dyn ClassInfo,
    vars: &[(String, String)],
) -> (FlatGraph, Diagnostics) {
    let mut resolver = scope::Resolver::new(tree, classes);
    resolver.file();
    let scope::Resolver { mut diagnostics, done, classes: resolved, .. } = resolver;
    if diagnostics.is_full() {
        // The text is garbage, of which a graph would be useless.
        return (FlatGraph::default(), diagnostics);
    }
    let mut requirements = Vec::new();
    collect_requirements(tree, classes, &mut requirements, &mut diagnostics);
    let graph = instance::expand(&done, &resolved, vars, &mut diagnostics);
    let name = context::DISPATCHER;
    let has_dispatcher = classes.knows(name) || classes.presumes(name);
    let mut flat = tunnel::connect(graph, has_dispatcher, &mut diagnostics);
    flat.requirements = requirements;
    (flat, diagnostics)
}

/// A compound class of a file with its expanded body, in which `input` and `output` are elements.
#[derive(Debug)]
pub(crate) struct Compound {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) body: FlatGraph,
}

/// Returns the compound classes that a file itself defines, in source order, with expanded bodies;
/// of several classes with one name, the last.
pub(crate) fn compounds(tree: &Tree, classes: &dyn ClassInfo) -> (Vec<Compound>, Diagnostics) {
    let mut resolver = scope::Resolver::new(tree, classes);
    resolver.file();
    let scope::Resolver { mut diagnostics, done, classes: resolved, names, .. } = resolver;
    let mut compounds: Vec<Compound> = Vec::new();
    for stmt in &tree.body {
        let Stmt::ElementClass(class) = stmt else { continue };
        let name = &class.name.text;
        let id = names.first().and_then(|names| names.get(name));
        let Some(scope::Class::Compound(body)) = id.map(|&id| &resolved[id]) else { continue };
        if compounds.iter().any(|known| known.name == *name) {
            continue;
        }
        let graph = instance::expand_body(&done, &resolved, *body, &mut diagnostics);
        let body = tunnel::connect(graph, false, &mut diagnostics);
        compounds.push(Compound { name: name.clone(), span: class.name.span, body });
    }
    (compounds, diagnostics)
}

fn collect_requirements(
    tree: &Tree,
    classes: &dyn ClassInfo,
    into: &mut Vec<String>,
    diagnostics: &mut Diagnostics,
) {
    for stmt in &tree.body {
        let Stmt::Require(require) = stmt else { continue };
        for requirement in &require.requirements {
            if into.contains(requirement) {
                continue;
            }
            into.push(requirement.clone());
            let package = requirement.strip_prefix("package ").map(args::unquote);
            if let Some(package) = package.filter(|package| !classes.provides(package)) {
                let message = format!("requirement '{package}' not available");
                diagnostics.push(Diagnostic::error(require.span, message));
            }
        }
        let libraries = require.libraries.iter();
        libraries.for_each(|library| collect_requirements(library, classes, into, diagnostics));
    }
}
