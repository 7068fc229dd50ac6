//! From syntax tree to flat graph: names and classes looked up, compounds expanded, variables
//! substituted.

mod chain;
mod class;
mod connect;
mod context;
mod instance;
mod outline;
mod overload;
mod scope;
mod tunnel;
mod unknown;
mod variables;

pub(crate) use instance::OPEN;
pub use outline::outline;
pub use variables::variables;

use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::Flat;
use crate::source::Span;
use crate::tree::{Stmt, Tree};

/// What classes there are.
pub trait ClassInfo {
    /// Whether this is a class.
    fn knows(&self, class: &str) -> bool;

    /// All classes, for suggestions.
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether what `require(package NAME)` asks for is there.
    fn provides(&self, _package: &str) -> bool {
        true
    }
}

impl<F: Fn(&str) -> bool> ClassInfo for F {
    fn knows(&self, class: &str) -> bool {
        self(class)
    }
}

/// For tools that have no list of classes: every name with a capital letter first is a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass;

impl ClassInfo for AnyClass {
    fn knows(&self, class: &str) -> bool {
        class.starts_with(|c: char| c.is_ascii_uppercase()) && !class.contains(['/', '@'])
    }
}

/// More elements than this are taken for a mistake.
const MAX_ELEMENTS: u64 = 1_000_000;

/// Expands a configuration. `vars` are variables from the command line; they override those that
/// the file defines.
///
/// Where there are errors, the graph holds what could be understood.
pub fn expand(
    tree: &Tree,
    classes: &dyn ClassInfo,
    vars: &[(String, String)],
) -> (Flat, Diagnostics) {
    let mut scopes = scope::Scopes::new(tree, classes);
    scopes.file();
    let scope::Scopes { mut diagnostics, done, classes: found, .. } = scopes;
    if diagnostics.is_full() {
        // Garbage: a graph of it would help nobody.
        return (Flat::default(), diagnostics);
    }
    let mut requirements = Vec::new();
    collect_requirements(tree, classes, &mut requirements, &mut diagnostics);
    let graph = instance::expand(&done, &found, vars, &mut diagnostics);
    let mut flat = tunnel::connect(graph, classes.knows(context::DISPATCHER), &mut diagnostics);
    flat.requirements = requirements;
    (flat, diagnostics)
}

/// A compound class of a file with its body, in which `input` and `output` are elements.
#[derive(Debug)]
pub(crate) struct Compound {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) body: Flat,
}

/// The compound classes that a file itself defines, in its order, their bodies expanded; of several
/// of one name the last.
pub(crate) fn compounds(tree: &Tree, classes: &dyn ClassInfo) -> (Vec<Compound>, Diagnostics) {
    let mut scopes = scope::Scopes::new(tree, classes);
    scopes.file();
    let scope::Scopes { mut diagnostics, done, classes: found, names, .. } = scopes;
    let mut compounds: Vec<Compound> = Vec::new();
    for stmt in &tree.body {
        let Stmt::ElementClass(class) = stmt else { continue };
        let name = &class.name.text;
        let id = names.first().and_then(|names| names.get(name));
        let Some(scope::Class::Compound(body)) = id.map(|&id| &found[id]) else { continue };
        if compounds.iter().any(|known| known.name == *name) {
            continue;
        }
        let graph = instance::expand_body(&done, &found, *body, &mut diagnostics);
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
