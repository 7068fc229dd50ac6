//! Looking names up: what each statement of a file or compound body declares and connects.

use std::collections::HashMap;

use super::connect::{Item, connect_all};
use super::{ClassInfo, unknown};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::tree::{
    Body, Chain, ClassExpr, Compound, ConfigText, ElementExpr, Head, LinkKind, List, Ports, Stmt,
    Tree,
};

/// Index of a class in [`Scopes::classes`].
pub(super) type ClassId = usize;

/// Connections that the statements of a configuration may make.
const MAX_LINKS: usize = 1_000_000;
/// Names that a suggestion may choose from.
const MAX_CANDIDATES: usize = 10_000;

/// What a class name stands for.
#[derive(Clone, Debug)]
pub(super) enum Class {
    /// A class of the library.
    Primitive(String),
    /// A compound: an index in [`Scopes::done`].
    Compound(usize),
    /// Nothing; that has been reported.
    Error,
}

/// A file or a compound body with its names looked up.
#[derive(Debug)]
pub(super) struct Scope {
    /// Name of the class; empty if it has none.
    pub(super) name: String,
    pub(super) span: Span,
    /// Number of scopes around it.
    pub(super) depth: usize,
    /// Names and keywords.
    pub(super) formals: Vec<(String, String)>,
    pub(super) defines: Vec<(String, String)>,
    pub(super) elements: Vec<Decl>,
    pub(super) by_name: HashMap<String, usize>,
    pub(super) links: Vec<LinkDecl>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// The class to try if ports or arguments do not fit this one.
    pub(super) next: Option<ClassId>,
    /// Elements that an instance has at least, compounds expanded.
    pub(super) size: u64,
}

/// An element of a scope.
#[derive(Clone, Debug)]
pub(super) struct Decl {
    /// Begins with a semicolon while it is a generated one that may still change.
    pub(super) name: String,
    pub(super) kind: DeclKind,
    pub(super) config: Option<ConfigText>,
    pub(super) span: Span,
    /// One more than the highest port that is connected: inputs, outputs.
    pub(super) ports: [usize; 2],
}

/// What an element of a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclKind {
    /// An element of a class.
    Class(ClassId),
    /// A group as seen from outside; its inside ends are the next two elements.
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

/// Everything that is known while the tree is walked.
pub(super) struct Scopes<'a> {
    tree: &'a Tree,
    info: &'a dyn ClassInfo,
    pub(super) diagnostics: Diagnostics,
    pub(super) classes: Vec<Class>,
    /// Finished scopes; the file itself comes last.
    pub(super) done: Vec<Scope>,
    /// Class names, outermost scope first.
    names: Vec<HashMap<String, ClassId>>,
    /// The scope under way.
    current: Scope,
    /// Names of the classes under way, outermost first.
    stack: Vec<&'a str>,
    /// Connections that may still be made.
    pub(super) links_left: usize,
    /// All `elementclass` statements, once they are needed.
    index: Option<unknown::Index<'a>>,
}

/// An element of a list, before its names are known to be good.
struct Draft<'a> {
    expr: &'a ElementExpr,
    name: String,
    /// The class that the name is of.
    class: Option<ClassId>,
    /// The class after `::`.
    declared: Option<ClassId>,
    config: Option<ConfigText>,
    inputs: Option<Ports>,
    outputs: Option<Ports>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new(tree: &'a Tree, info: &'a dyn ClassInfo) -> Self {
        Scopes {
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

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        let mut ends_output = true;
        for stmt in stmts {
            match stmt {
                Stmt::Chain(chain) => ends_output = self.chain(chain, ends_output),
                Stmt::ElementClass(class) => {
                    let id = self.class(&class.class, &class.name.text);
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

    fn define(&mut self, name: &str, value: &str, span: Span) {
        if self.current.has_variable(name) {
            let message = format!("parameter '${name}' multiply defined");
            self.diagnostics.error(span, message);
        } else {
            self.current.defines.push((name.to_string(), value.to_string()));
        }
    }

    // Classes

    fn bind(&mut self, name: &str, class: ClassId) {
        if let Some(names) = self.names.last_mut() {
            names.insert(name.to_string(), class);
        }
    }

    fn lookup(&mut self, name: &str) -> Option<ClassId> {
        if let Some(&id) = self.names.iter().rev().find_map(|names| names.get(name)) {
            return Some(id);
        }
        if !self.info.knows(name) {
            return None;
        }
        let id = self.new_class(Class::Primitive(name.to_string()));
        self.names[0].insert(name.to_string(), id);
        Some(id)
    }

    fn new_class(&mut self, class: Class) -> ClassId {
        self.classes.push(class);
        self.classes.len() - 1
    }

    /// A class for a name that is none, so that it is reported once only.
    fn error_class(&mut self, name: &str) -> ClassId {
        let id = self.new_class(Class::Error);
        self.bind(name, id);
        id
    }

    /// The class of an expression; `name` is what a compound will be called.
    fn class(&mut self, class: &'a ClassExpr, name: &'a str) -> ClassId {
        match class {
            ClassExpr::Compound(compound) => self.compound(compound, name),
            ClassExpr::Missing => self.new_class(Class::Error),
            ClassExpr::Name(wanted) => match self.lookup(&wanted.text) {
                Some(id) => id,
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

    fn suggest(&mut self, name: &str, span: Span, elements: bool) -> Option<String> {
        if self.diagnostics.is_full() {
            return None;
        }
        let index = self.index.get_or_insert_with(|| unknown::Index::new(self.tree));
        if let Some(help) = index.misplaced(name, span, &self.stack) {
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

    fn compound(&mut self, compound: &'a Compound, name: &'a str) -> ClassId {
        let extended = compound.extends.and_then(|span| {
            let known = self.lookup(name);
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
        next.unwrap_or_else(|| self.new_class(Class::Error))
    }

    /// Walks one body and returns its index in `done`.
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

    /// Gives anonymous elements their names and adds the sizes up.
    fn finish(&mut self, mut scope: Scope) -> usize {
        scope.name_anonymous();
        let size = |decl: &Decl| match decl.kind {
            DeclKind::Class(class) => self.size(class),
            _ => 0,
        };
        scope.size = scope.elements.iter().map(size).fold(0, u64::saturating_add);
        self.done.push(scope);
        self.done.len() - 1
    }

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

    // Chains

    /// Walks a chain; whether it ends with `output` alone, for a warning at the next one.
    fn chain(&mut self, chain: &'a Chain, ends_output: bool) -> bool {
        let mut before: Vec<Item> = Vec::new();
        for (i, list) in chain.lists.iter().enumerate() {
            let after = chain.links.get(i);
            if i == 0
                && let Some(link) = after
                && !ends_output
                && matches!(
                    &list.elements[..],
                    [ElementExpr { head: Head::Implicit, outputs: None, .. }]
                )
            {
                let arrow = if link.kind == LinkKind::Wide { "=>" } else { "->" };
                let message =
                    format!("suggest 'input {arrow}' or '[0] {arrow}' to start connection");
                self.diagnostics.warning(link.span, message);
            }
            let items = self.list(list, i == 0, after.is_some());
            match i.checked_sub(1).map(|i| &chain.links[i]) {
                None => self.useless(items.iter().map(|item| &item.inputs), true),
                Some(link) => {
                    let (scope, left) = (&mut self.current, &mut self.links_left);
                    connect_all(scope, &before, &items, link, left, &mut self.diagnostics);
                }
            }
            before = items;
        }
        self.useless(before.iter().map(|item| &item.outputs), false);
        let output = self.current.by_name.get("output").copied();
        matches!(&before[..], [Item { inputs: None, outputs: None, element }] if Some(*element) == output)
    }

    fn useless<'p>(&mut self, ports: impl Iterator<Item = &'p Option<Ports>>, start: bool) {
        if let Some(ports) = ports.flatten().next() {
            let message = if start {
                "input ports ignored at start of chain"
            } else {
                "output ports ignored at end of chain"
            };
            self.diagnostics.error(ports.span, message);
        }
    }

    fn list(&mut self, list: &'a List, first: bool, linked: bool) -> Vec<Item> {
        let mut drafts: Vec<_> = list.elements.iter().map(|expr| self.draft(expr, first)).collect();
        let implicit = list.elements.iter().any(|e| matches!(e.head, Head::Implicit));
        if implicit && !first && linked {
            self.diagnostics.error(list.span, "implicit ports used in the middle of a chain");
        }
        let ported = drafts.iter().any(|d| d.inputs.is_some() || d.outputs.is_some());
        if first && !linked && !ported && !implicit {
            spread(&mut drafts);
        }
        drafts.into_iter().map(|draft| self.place(draft)).collect()
    }

    /// Looks classes up and walks compounds and groups.
    fn draft(&mut self, expr: &'a ElementExpr, first: bool) -> Draft<'a> {
        let (mut inputs, mut outputs) = (expr.inputs.clone(), expr.outputs.clone());
        let mut class = None;
        let name = match &expr.head {
            Head::Name(name) => {
                class = self.lookup(&name.text);
                name.text.clone()
            }
            Head::Compound(compound) => {
                class = Some(self.compound(compound, ""));
                String::new()
            }
            Head::Group(body) => {
                let (name, counts) = self.group(body);
                let all = |count: usize| {
                    let list = (0..count as u32).collect();
                    (count > 0).then_some(Ports { list, open: false, span: expr.span })
                };
                inputs = inputs.or_else(|| all(counts[0]));
                outputs = outputs.or_else(|| all(counts[1]));
                name
            }
            Head::Implicit => (if first { "input" } else { "output" }).to_string(),
        };
        let declared = expr.class.as_ref().map(|class| self.class(class, ""));
        if let Some(config) = &expr.config
            && class.is_none()
            && self.current.by_name.contains_key(&name)
        {
            let message = "configuration string ignored on element reference";
            self.diagnostics.error(config.span, message);
        }
        Draft { expr, name, class, declared, config: expr.config.clone(), inputs, outputs }
    }

    /// Walks a group: its elements belong to this scope, but `input` and `output` are its own.
    fn group(&mut self, body: &'a Body) -> (String, [usize; 2]) {
        let scope = &mut self.current;
        let name = scope.anonymous_name("");
        let outer = scope.add(&name, DeclKind::Group, None, body.span);
        scope.add(&format!("{name}/input"), DeclKind::Pseudo, None, body.span);
        scope.add(&format!("{name}/output"), DeclKind::Pseudo, None, body.span);
        let input = scope.by_name.insert("input".to_string(), outer + 1);
        let output = scope.by_name.insert("output".to_string(), outer + 2);
        let since = scope.links.len();
        self.stmts(&body.stmts);
        let (shown, diagnostics) = ("<anonymous group>", &mut self.diagnostics);
        let counts = [
            self.current.pseudo(outer + 1, since, false, shown, diagnostics),
            self.current.pseudo(outer + 2, since, true, shown, diagnostics),
        ];
        for (word, before) in [("input", input), ("output", output)] {
            let names = &mut self.current.by_name;
            match before {
                Some(before) => names.insert(word.to_string(), before),
                None => names.remove(word),
            };
        }
        (name, counts)
    }

    /// Finds the element, or adds it to the scope.
    fn place(&mut self, draft: Draft) -> Item {
        let Draft { expr, mut name, mut class, declared, config, inputs, outputs } = draft;
        let item = |element| Item { element, inputs, outputs };
        if class.is_none()
            && let Some(&known) = self.current.by_name.get(&name)
        {
            if declared.is_some() {
                self.redeclared(&name, expr.span, known);
            }
            return item(known);
        }
        match (class, declared) {
            (Some(_), Some(_)) => {
                let message = format!("class '{name}' used as element name");
                let help =
                    format!("pick another name, or write '{name}' alone for an anonymous one");
                self.diagnostics.push(Diagnostic::error(expr.span, message).with_help(help));
            }
            (None, None) => {
                let message = format!("undeclared element '{name}'");
                let help = self.suggest(&name, expr.span, true);
                let span = head_span(expr);
                self.diagnostics.push(Diagnostic::error(span, message).with_maybe_help(help));
                class = Some(self.error_class(&name));
            }
            _ => {}
        }
        if class.is_some() {
            name = self.current.anonymous_name(&name);
        }
        let kind = DeclKind::Class(class.or(declared).unwrap_or_default());
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if name.split('/').any(digits) {
            let message = format!("element name '{name}' has all-digit component");
            self.diagnostics.error(expr.span, message);
        }
        let at = self.current.add(&name, kind, config, expr.span);
        item(at)
    }

    fn redeclared(&mut self, name: &str, span: Span, known: usize) {
        let message = format!("redeclaration of element '{name}'");
        let mut error = Diagnostic::error(span, message);
        let known = &self.current.elements[known];
        if matches!(known.kind, DeclKind::Class(_)) {
            let note = format!("element '{name}' previously declared here");
            error = error.with_note(known.span, note);
        }
        self.diagnostics.push(error);
    }
}

fn head_span(expr: &ElementExpr) -> Span {
    match &expr.head {
        Head::Name(name) => name.span,
        _ => expr.span,
    }
}

/// `a, b, c :: Class(config)` declares them all.
fn spread(drafts: &mut [Draft]) {
    let bare = |draft: &Draft| {
        matches!(draft.expr.head, Head::Name(_))
            && draft.expr.class.is_none()
            && draft.expr.config.is_none()
    };
    if let Some((last, others)) = drafts.split_last_mut()
        && others.iter().all(bare)
    {
        for other in others {
            other.declared = last.declared;
            other.config = last.config.clone();
        }
    }
}

impl Scope {
    fn new(name: String, span: Span, depth: usize) -> Self {
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
            next: None,
            size: 0,
        }
    }

    /// Checks the use of the `input` (or `output`) at `at` in the links from `since` on, and returns
    /// how many ports it stands for.
    fn pseudo(
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

    fn has_variable(&self, name: &str) -> bool {
        self.formals.iter().chain(&self.defines).any(|(known, _)| known == name)
    }

    fn add(&mut self, name: &str, kind: DeclKind, config: Option<ConfigText>, span: Span) -> usize {
        let at = self.elements.len();
        self.by_name.insert(name.to_string(), at);
        let name = name.to_string();
        self.elements.push(Decl { name, kind, config, span, ports: [0, 0] });
        at
    }

    /// `;Class@N`, N counting the elements of the scope, but not `input` and `output`.
    fn anonymous_name(&self, class: &str) -> String {
        let pseudo = if self.depth > 0 { 2 } else { 0 };
        format!(";{class}@{}", self.elements.len() - pseudo + 1)
    }

    /// Where a declared element has the name of an anonymous one, the latter takes the next number.
    fn name_anonymous(&mut self) {
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
