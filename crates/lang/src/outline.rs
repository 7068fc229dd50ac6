//! The outline of a configuration: its scopes with their declarations, compounds not expanded.

use crate::flat::{FlatGraph, Port};
use crate::source::Span;

/// The class that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassRef {
    /// A class of the library.
    Primitive(String),
    /// A compound: an index in [`Outline::scopes`].
    Compound(usize),
    /// `input` or `output` of a compound.
    Port,
    /// No known class; the error has been reported.
    Unknown,
}

/// A configuration with its compounds.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The bodies of compounds, inner ones first; the file itself is the last.
    pub scopes: Vec<OutlineScope>,
}

/// A file or the body of a compound.
#[derive(Clone, Debug)]
pub struct OutlineScope {
    /// The compound's name; empty if it has none.
    pub name: String,
    /// Its source text.
    pub span: Span,
    /// Parameters with their keywords.
    pub formals: Vec<(String, String)>,
    /// Number of inputs of a compound.
    pub inputs: usize,
    /// Number of outputs of a compound.
    pub outputs: usize,
    /// Elements and connections; configuration strings are as written.
    pub graph: FlatGraph,
    /// The class of each element.
    pub classes: Vec<ClassRef>,
    /// The classes that it declares, in source order; the name of an anonymous compound is empty.
    pub declares: Vec<(String, ClassRef)>,
    /// The class to try if ports or arguments do not fit this one.
    pub next: Option<ClassRef>,
}

/// Whether packets are pushed or pulled through the ports of an element: a letter each, `h`, `l` or
/// `a` where neither is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processing {
    /// One letter for each input.
    pub inputs: Vec<char>,
    /// One letter for each output.
    pub outputs: Vec<char>,
}

impl Processing {
    /// Returns the processing code as Click writes it: inputs, a slash, outputs.
    pub fn code(&self) -> String {
        self.inputs.iter().chain(&['/']).chain(&self.outputs).collect()
    }
}

impl Outline {
    /// Makes an outline of a graph without compounds, whose source text is `span`.
    pub fn from_graph(graph: FlatGraph, span: Span) -> Self {
        let primitive = |it: &crate::FlatElement| ClassRef::Primitive(it.class.clone());
        let file = OutlineScope {
            name: String::new(),
            span,
            formals: Vec::new(),
            inputs: 0,
            outputs: 0,
            classes: graph.elements.iter().map(primitive).collect(),
            graph,
            declares: Vec::new(),
            next: None,
        };
        Outline { scopes: vec![file] }
    }

    /// Returns the scope of the file itself.
    pub fn file(&self) -> Option<&OutlineScope> {
        self.scopes.last()
    }

    /// Resolves push and pull for each element of each scope. `code` returns the processing code of
    /// a class, such as `a/ah`, if it is known. A port that neither its class nor a neighbour
    /// decides is push.
    pub fn processing(&self, code: &dyn Fn(&str) -> Option<String>) -> Vec<Vec<Processing>> {
        let mut codes: Vec<String> = Vec::new();
        let mut all = Vec::new();
        for scope in &self.scopes {
            let code_of = |class: &ClassRef| match class {
                ClassRef::Primitive(name) => code(name),
                ClassRef::Compound(at) => codes.get(*at).cloned(),
                ClassRef::Port | ClassRef::Unknown => None,
            };
            let mut resolver = ProcessingResolver::new(scope, &code_of);
            resolver.propagate();
            codes.push(resolver.compound_code());
            all.push(resolver.finish());
        }
        all
    }
}

/// Propagates push and pull along the connections of one scope.
struct ProcessingResolver<'a> {
    scope: &'a OutlineScope,
    ports: Vec<Processing>,
}

impl<'a> ProcessingResolver<'a> {
    fn new(scope: &'a OutlineScope, code: &dyn Fn(&ClassRef) -> Option<String>) -> Self {
        let counts = scope.graph.ports();
        let element = |(class, (inputs, outputs)): (&ClassRef, (usize, usize))| {
            let code = code(class).unwrap_or_else(|| "a/a".to_owned());
            let (left, right) = code.split_once('/').unwrap_or((&code, &code));
            Processing { inputs: letters(left, inputs), outputs: letters(right, outputs) }
        };
        ProcessingResolver { scope, ports: scope.classes.iter().zip(counts).map(element).collect() }
    }

    /// Propagates letters along connections and through agnostic elements until nothing changes.
    fn propagate(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for c in &self.scope.graph.connections {
                let (from, to) = (self.output(c.from), self.input(c.to));
                match (from, to) {
                    ('a', 'h' | 'l') => self.decide(c.from.element, None, Some(c.from.port), to),
                    ('h' | 'l', 'a') => self.decide(c.to.element, Some(c.to.port), None, from),
                    _ => continue,
                }
                changed = true;
            }
        }
    }

    fn output(&self, port: Port) -> char {
        self.ports[port.element].outputs[port.port]
    }

    fn input(&self, port: Port) -> char {
        self.ports[port.element].inputs[port.port]
    }

    /// Sets the letter of one port, and with it that of the element's agnostic ports.
    fn decide(
        &mut self,
        element: usize,
        input: Option<usize>,
        output: Option<usize>,
        letter: char,
    ) {
        let ports = &mut self.ports[element];
        input.into_iter().for_each(|port| ports.inputs[port] = letter);
        output.into_iter().for_each(|port| ports.outputs[port] = letter);
        if self.scope.classes[element] == ClassRef::Port {
            return;
        }
        let open = ports.inputs.iter_mut().chain(&mut ports.outputs);
        open.filter(|port| **port == 'a').for_each(|port| *port = letter);
    }

    /// Returns the processing code of the compound whose body this scope is.
    fn compound_code(&self) -> String {
        let side = |letters: &[char]| match letters {
            [] => "a".to_owned(),
            letters => letters.iter().collect(),
        };
        let ends: Vec<_> = self.ports.iter().zip(&self.scope.classes).collect();
        match &ends[..] {
            [(input, ClassRef::Port), (output, ClassRef::Port), ..] => {
                format!("{}/{}", side(&input.outputs), side(&output.inputs))
            }
            _ => "a/a".to_owned(),
        }
    }

    /// Returns the letters of all elements; ports still agnostic become push.
    fn finish(mut self) -> Vec<Processing> {
        for ports in &mut self.ports {
            let open = ports.inputs.iter_mut().chain(&mut ports.outputs);
            open.filter(|port| **port == 'a').for_each(|port| *port = 'h');
        }
        self.ports
    }
}

/// Returns the letters of one side of a processing code for `count` ports; the last letter counts
/// for all further ports.
fn letters(code: &str, count: usize) -> Vec<char> {
    let all: Vec<char> = code.chars().collect();
    let letter = |port: usize| match all.get(port).or(all.last()) {
        Some('h' | 'H') => 'h',
        Some('l' | 'L') => 'l',
        _ => 'a',
    };
    (0..count).map(letter).collect()
}
