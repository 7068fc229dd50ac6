//! Expands compounds: replaces each element of a compound class by the contents of its body.

use std::collections::{HashMap, HashSet};

use super::MAX_ELEMENTS;
use super::overload::{Resolution, Usage, resolve};
use super::scope::{Class, DeclKind, Scope};
use super::variables::{Env, Envs, TextTooLong};
use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flat::{ConfigOrigin, FlatElement};
use crate::source::Span;
use crate::tree::{ConfigText, LinkKind};

/// Greatest depth to which compounds may expand to compounds.
const MAX_DEPTH: usize = 500;
/// Most bytes of all names and configuration strings together.
const MAX_TEXT: usize = 1 << 28;

/// The class of `input` and `output` in a body that is expanded by itself.
pub(crate) const PORT_CLASS: &str = "<port>";

/// The class in a flat graph of elements whose class is not known; the error has been reported.
pub const UNDECLARED_CLASS: &str = "<undeclared>";

/// The graph before its pseudo elements are removed.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
}

/// An element, or an end of a tunnel.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) kind: NodeKind,
}

/// Kind of a node.
#[derive(Debug)]
pub(super) enum NodeKind {
    /// An element of the flat graph.
    Element(Box<FlatElement>),
    /// A compound or group as seen from outside; the index is that of its inside end `input`, which
    /// `output` follows.
    Outer(usize),
    /// Inside end `input` of the compound or group at this index.
    Input(usize),
    /// Inside end `output` of the compound or group at this index.
    Output(usize),
    /// An element without a class; the error has been reported.
    Error,
}

/// A connection between nodes: index and port.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) kind: LinkKind,
    pub(super) span: Span,
}

/// An element that is not yet expanded.
#[derive(Clone, Copy)]
struct Task {
    node: usize,
    /// Its declaration: scope and index in it.
    decl: (usize, usize),
    env: usize,
    depth: usize,
}

/// Expands compounds to a graph; elements that are not yet expanded are [`Task`]s.
struct Expansion<'a> {
    scopes: &'a [Scope],
    classes: &'a [Class],
    graph: Graph,
    envs: Envs,
    names: HashSet<String>,
    text: usize,
    diagnostics: &'a mut Diagnostics,
}

/// Expands the last of `scopes`, which is the file.
pub(super) fn expand(
    scopes: &[Scope],
    classes: &[Class],
    vars: &[(String, String)],
    diagnostics: &mut Diagnostics,
) -> Graph {
    let Some((file, top)) = scopes.len().checked_sub(1).map(|at| (at, &scopes[at])) else {
        return Graph::default();
    };
    if top.size > MAX_ELEMENTS {
        too_large(top, scopes, classes, diagnostics);
        return Graph::default();
    }
    let mut values: HashMap<_, _> = top.defines.iter().cloned().collect();
    values.extend(vars.iter().cloned());
    let mut expansion = Expansion {
        scopes,
        classes,
        graph: Graph::default(),
        envs: Envs::new(Env { values, parent: None, depth: 0 }),
        names: HashSet::new(),
        text: 0,
        diagnostics,
    };
    expansion.run(file);
    expansion.graph
}

/// Expands the body of a compound by itself: `input` and `output` are elements of the class
/// [`PORT_CLASS`], and its variables are not substituted.
pub(super) fn expand_body(
    scopes: &[Scope],
    classes: &[Class],
    body: usize,
    diagnostics: &mut Diagnostics,
) -> Graph {
    if scopes[body].size > MAX_ELEMENTS {
        too_large(&scopes[body], scopes, classes, diagnostics);
        return Graph::default();
    }
    let mut expansion = Expansion {
        scopes,
        classes,
        graph: Graph::default(),
        envs: Envs::new(Env::default()),
        names: HashSet::new(),
        text: 0,
        diagnostics,
    };
    expansion.run(body);
    expansion.graph
}

/// Reports a configuration that is too large, with its largest element.
fn too_large(top: &Scope, scopes: &[Scope], classes: &[Class], diagnostics: &mut Diagnostics) {
    let size = |kind| match kind {
        DeclKind::Class(class) => match classes[class] {
            Class::Compound(scope) => scopes[scope].size,
            _ => 1,
        },
        _ => 0,
    };
    let largest = top.elements.iter().max_by_key(|decl| size(decl.kind));
    let span = largest.map_or(top.span, |decl| decl.span);
    let message = format!(
        "configuration expands to at least {} elements, the limit is {MAX_ELEMENTS}",
        top.size
    );
    let mut error = Diagnostic::error(span, message);
    if let Some(decl) = largest {
        error = error.with_help(format!("'{}' alone has {}", decl.name, size(decl.kind)));
    }
    diagnostics.push(error);
}

impl Expansion<'_> {
    fn run(&mut self, file: usize) {
        let mut tasks = Vec::new();
        self.copy(file, None, 0, 0, &mut tasks);
        while let Some(task) = tasks.pop() {
            if self.graph.nodes.len() as u64 > 4 * MAX_ELEMENTS || self.text > MAX_TEXT {
                let span = self.graph.nodes[task.node].span;
                let message = format!("configuration expands to more than {MAX_ELEMENTS} elements");
                self.diagnostics.error(span, message);
                return;
            }
            self.element(task, &mut tasks);
        }
        self.keep_undeclared();
    }

    /// Makes elements of the nodes whose class is not known, so that their neighbours keep their
    /// connections.
    fn keep_undeclared(&mut self) {
        for node in &mut self.graph.nodes {
            if let NodeKind::Error = node.kind {
                let (name, span) = (node.name.clone(), node.span);
                node.kind = NodeKind::Element(Box::new(FlatElement {
                    name,
                    class: UNDECLARED_CLASS.to_owned(),
                    config: String::new(),
                    config_span: None,
                    span,
                    origin: ConfigOrigin::default(),
                }));
            }
        }
    }

    /// Adds the elements of a scope as nodes and tasks, and its links. `outer` is the node of the
    /// compound, whose inside ends have been added.
    fn copy(
        &mut self,
        scope: usize,
        outer: Option<usize>,
        env: usize,
        depth: usize,
        tasks: &mut Vec<Task>,
    ) {
        let body = &self.scopes[scope];
        let prefix = outer.map(|at| format!("{}/", self.graph.nodes[at].name));
        let first = self.graph.nodes.len();
        let skipped = if outer.is_some() { 2 } else { 0 };
        let at = |element: usize| match element.checked_sub(skipped) {
            Some(element) => first + element,
            // The caller has just added the inside ends.
            None => first - 2 + element,
        };
        let since = tasks.len();
        for (i, decl) in body.elements.iter().enumerate().skip(skipped) {
            let name = match &prefix {
                Some(prefix) => format!("{prefix}{}", decl.name),
                None => decl.name.clone(),
            };
            let node = at(i);
            let kind = match decl.kind {
                DeclKind::Class(_) => {
                    tasks.push(Task { node, decl: (scope, i), env, depth });
                    NodeKind::Error
                }
                DeclKind::Pseudo if outer.is_none() && body.depth > 0 && i < 2 => {
                    NodeKind::Element(Box::new(FlatElement {
                        name: name.clone(),
                        class: PORT_CLASS.to_owned(),
                        config: String::new(),
                        config_span: None,
                        span: decl.span,
                        origin: ConfigOrigin::default(),
                    }))
                }
                DeclKind::Group => NodeKind::Outer(node + 1),
                DeclKind::Pseudo if matches!(self.kind(i - 1, body), DeclKind::Group) => {
                    NodeKind::Input(node - 1)
                }
                DeclKind::Pseudo => NodeKind::Output(node - 2),
            };
            self.node(name, decl.span, kind);
        }
        tasks[since..].reverse();
        for link in &body.links {
            self.graph.links.push(Link {
                from: (at(link.from.0), link.from.1),
                to: (at(link.to.0), link.to.1),
                kind: link.kind.clone(),
                span: link.span,
            });
        }
    }

    fn kind(&self, element: usize, body: &Scope) -> DeclKind {
        body.elements[element].kind
    }

    fn node(&mut self, name: String, span: Span, kind: NodeKind) {
        self.text += name.len();
        if !self.names.insert(name.clone()) {
            let message = format!("redeclaration of element '{name}'");
            self.diagnostics.error(span, message);
        }
        self.graph.nodes.push(Node { name, span, kind });
    }

    /// Substitutes the variables of an element's configuration string, and expands the element if
    /// it is a compound.
    fn element(&mut self, task: Task, tasks: &mut Vec<Task>) {
        let decl = &self.scopes[task.decl.0].elements[task.decl.1];
        let DeclKind::Class(mut class) = decl.kind else { return };
        let (config, origin) = self.config(decl.config.as_ref(), task.env, decl.span);
        self.text += config.len();
        if let Class::Compound(first) = self.classes[class] {
            let args: Vec<_> = args::split(&config).into_iter().map(|arg| arg.text).collect();
            let [inputs, outputs] = decl.ports;
            let usage = Usage { inputs, outputs, args: &args, span: decl.span };
            match resolve(self.scopes, self.classes, first, &usage, self.diagnostics) {
                Resolution::None => return,
                Resolution::Class(found) => class = found,
                Resolution::Compound(scope, values) => {
                    return self.compound(task, scope, values, tasks);
                }
            }
        }
        if let Class::Primitive(class) = &self.classes[class] {
            let node = &mut self.graph.nodes[task.node];
            node.kind = NodeKind::Element(Box::new(FlatElement {
                name: node.name.clone(),
                class: class.clone(),
                config,
                config_span: decl.config.as_ref().map(|config| config.span),
                span: decl.span,
                origin,
            }));
        }
    }

    fn compound(&mut self, task: Task, scope: usize, values: Vec<String>, tasks: &mut Vec<Task>) {
        let body = &self.scopes[scope];
        let Node { name, span, .. } = &self.graph.nodes[task.node];
        let (name, span) = (name.clone(), *span);
        if task.depth >= MAX_DEPTH {
            let message = format!("compound elements expand more than {MAX_DEPTH} deep");
            return self.diagnostics.error(span, message);
        }
        let formals = body.formals.iter().map(|(name, _)| name.clone()).zip(values);
        let parent = self.envs.parent_of(task.env, body.depth);
        let env = self.envs.all.len();
        self.envs.all.push(Env { values: formals.collect(), parent, depth: body.depth });
        for (name, value) in &body.defines {
            match self.envs.expand(value, env) {
                Ok((value, _)) => {
                    self.envs.all[env].values.insert(name.clone(), value);
                }
                Err(TextTooLong) => self.too_long(span),
            }
        }
        let inside = self.graph.nodes.len();
        self.graph.nodes[task.node].kind = NodeKind::Outer(inside);
        self.node(format!("{name}/input"), span, NodeKind::Input(task.node));
        self.node(format!("{name}/output"), span, NodeKind::Output(task.node));
        self.copy(scope, Some(task.node), env, task.depth + 1, tasks);
    }

    /// Returns the configuration string that the element gets, and its mapping to the source text.
    fn config(
        &mut self,
        config: Option<&ConfigText>,
        env: usize,
        span: Span,
    ) -> (String, ConfigOrigin) {
        let mut origin = ConfigOrigin::default();
        let Some(config) = config else { return (String::new(), origin) };
        origin.push_directive_cuts(config);
        let expanded = match self.envs.expand(&config.text, env) {
            Ok((text, copied)) => {
                origin.push(copied, config.text.len());
                text
            }
            Err(TextTooLong) => {
                self.too_long(span);
                config.text.clone()
            }
        };
        let (text, copied, _) = args::strip(&expanded, 0, false);
        origin.push(copied, expanded.len());
        (text, origin)
    }

    fn too_long(&mut self, span: Span) {
        let error = Diagnostic::error(span, "configuration string too long after substitution");
        self.diagnostics.push(error.with_help("variables whose values name each other grow fast"));
    }
}
