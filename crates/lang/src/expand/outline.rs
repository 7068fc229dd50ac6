//! Builds the outline of a configuration: each scope with its elements and connections.

use super::instance::{Graph, Link, Node, NodeKind, PORT_CLASS};
use super::scope::{Class, ClassId, DeclKind, Resolver, Scope};
use super::{ClassInfo, tunnel};
use crate::args;
use crate::diagnostic::Diagnostics;
use crate::flat::{ConfigOrigin, FlatElement};
use crate::outline::{ClassRef, Outline, OutlineScope};
use crate::tree::Tree;

/// Looks up names but expands nothing: compounds stay elements, and groups are dissolved.
pub fn outline(tree: &Tree, classes: &dyn ClassInfo) -> (Outline, Diagnostics) {
    let mut resolver = Resolver::new(tree, classes);
    resolver.file();
    let Resolver { mut diagnostics, done, classes: resolved, .. } = resolver;
    let all = done.iter().map(|scope| {
        let graph = graph(scope, &resolved, &done);
        let declared = |(name, id): &(String, ClassId)| (name.clone(), class(&resolved, *id));
        OutlineScope {
            name: scope.name.clone(),
            span: scope.span,
            formals: scope.formals.clone(),
            inputs: scope.inputs,
            outputs: scope.outputs,
            classes: element_classes(scope, &resolved),
            graph: tunnel::connect(graph, false, &mut diagnostics),
            declares: scope.declares.iter().map(declared).collect(),
            next: scope.next.map(|id| class(&resolved, id)),
        }
    });
    let scopes = all.collect();
    (Outline { scopes }, diagnostics)
}

fn class(classes: &[Class], id: ClassId) -> ClassRef {
    match &classes[id] {
        Class::Primitive(name) => ClassRef::Primitive(name.clone()),
        Class::Compound(scope) => ClassRef::Compound(*scope),
        Class::Error => ClassRef::Unknown,
    }
}

/// Returns the classes of a scope's elements, in the order of its graph.
fn element_classes(scope: &Scope, classes: &[Class]) -> Vec<ClassRef> {
    let class_of = |(at, decl): (usize, &super::scope::Decl)| match decl.kind {
        DeclKind::Class(id) => Some(class(classes, id)),
        DeclKind::Pseudo if is_end(scope, at) => Some(ClassRef::Port),
        DeclKind::Group | DeclKind::Pseudo => None,
    };
    scope.elements.iter().enumerate().filter_map(class_of).collect()
}

/// Whether the element at `at` is `input` or `output` of a compound's body.
fn is_end(scope: &Scope, at: usize) -> bool {
    scope.depth > 0 && at < 2
}

fn graph(scope: &Scope, classes: &[Class], scopes: &[Scope]) -> Graph {
    let name = |id: ClassId| match &classes[id] {
        Class::Primitive(name) => name.clone(),
        Class::Compound(at) if scopes[*at].name.is_empty() => "<anonymous>".to_owned(),
        Class::Compound(at) => scopes[*at].name.clone(),
        Class::Error => "<error>".to_owned(),
    };
    let node = |(at, decl): (usize, &super::scope::Decl)| {
        let element = |class: String| {
            let config = decl.config.as_ref();
            NodeKind::Element(Box::new(FlatElement {
                name: decl.name.clone(),
                class,
                config: config.map_or(String::new(), |config| args::uncomment(&config.text)),
                config_span: config.map(|config| config.span),
                span: decl.span,
                origin: ConfigOrigin::default(),
            }))
        };
        let kind = match decl.kind {
            DeclKind::Class(id) => element(name(id)),
            DeclKind::Pseudo if is_end(scope, at) => element(PORT_CLASS.to_owned()),
            DeclKind::Group => NodeKind::Outer(at + 1),
            DeclKind::Pseudo if matches!(scope.elements[at - 1].kind, DeclKind::Group) => {
                NodeKind::Input(at - 1)
            }
            DeclKind::Pseudo => NodeKind::Output(at - 2),
        };
        Node { name: decl.name.clone(), span: decl.span, kind }
    };
    let link = |link: &super::scope::LinkDecl| Link {
        from: link.from,
        to: link.to,
        kind: link.kind.clone(),
        span: link.span,
    };
    Graph {
        nodes: scope.elements.iter().enumerate().map(node).collect(),
        links: scope.links.iter().map(link).collect(),
    }
}
