//! A configuration as it is written, compounds not expanded: what it declares where.

use crate::flat::{Flat, Port};
use crate::source::Span;

/// What a class name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassOf {
    /// A class of the library.
    Primitive(String),
    /// A compound: an index in [`Outline::scopes`].
    Compound(usize),
    /// `input` or `output` of a compound.
    Port,
    /// Nothing; that has been reported.
    Unknown,
}

/// A configuration with its compounds.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The bodies of compounds, those within others first; the file itself is the last.
    pub scopes: Vec<OutlineScope>,
}

/// A file or the body of a compound.
#[derive(Clone, Debug)]
pub struct OutlineScope {
    /// The compound's name; empty if it has none.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Parameters with their keywords.
    pub formals: Vec<(String, String)>,
    /// How many inputs a compound has.
    pub inputs: usize,
    /// How many outputs.
    pub outputs: usize,
    /// Elements and connections; configuration strings are as written.
    pub graph: Flat,
    /// The class of each element.
    pub classes: Vec<ClassOf>,
    /// The classes that it declares, in its order; a name is empty for a compound without.
    pub declares: Vec<(String, ClassOf)>,
    /// The class to try if ports or arguments do not fit this one.
    pub next: Option<ClassOf>,
}

/// Whether packets are pushed or pulled through the ports of an element: a letter each, `h`, `l` or
/// `a` where neither is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processing {
    /// By input.
    pub inputs: Vec<char>,
    /// By output.
    pub outputs: Vec<char>,
}

impl Processing {
    /// The letters as Click writes them: inputs, a slash, outputs.
    pub fn code(&self) -> String {
        self.inputs.iter().chain(&['/']).chain(&self.outputs).collect()
    }
}

impl Outline {
    /// A graph without compounds, which stands at `span`.
    pub fn of(graph: Flat, span: Span) -> Self {
        let primitive = |it: &crate::FlatElement| ClassOf::Primitive(it.class.clone());
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

    /// The file itself.
    pub fn file(&self) -> Option<&OutlineScope> {
        self.scopes.last()
    }

    /// Push and pull for each element of each scope. `code` is what is known of a class, such as
    /// `a/ah`; ports that neither it nor a neighbour decides push.
    pub fn processing(&self, code: &dyn Fn(&str) -> Option<String>) -> Vec<Vec<Processing>> {
        let mut codes: Vec<String> = Vec::new();
        let mut all = Vec::new();
        for scope in &self.scopes {
            let of = |class: &ClassOf| match class {
                ClassOf::Primitive(name) => code(name),
                ClassOf::Compound(at) => codes.get(*at).cloned(),
                ClassOf::Port | ClassOf::Unknown => None,
            };
            let mut work = Settling::new(scope, &of);
            work.settle();
            codes.push(work.compound_code());
            all.push(work.finish());
        }
        all
    }
}

/// The ports of one scope while push and pull spread along its connections.
struct Settling<'a> {
    scope: &'a OutlineScope,
    ports: Vec<Processing>,
}

impl<'a> Settling<'a> {
    fn new(scope: &'a OutlineScope, code: &dyn Fn(&ClassOf) -> Option<String>) -> Self {
        let counts = scope.graph.ports();
        let element = |(class, (inputs, outputs)): (&ClassOf, (usize, usize))| {
            let code = code(class).unwrap_or_else(|| "a/a".to_owned());
            let (left, right) = code.split_once('/').unwrap_or((&code, &code));
            Processing { inputs: letters(left, inputs), outputs: letters(right, outputs) }
        };
        Settling { scope, ports: scope.classes.iter().zip(counts).map(element).collect() }
    }

    /// Carries letters along connections and through agnostic elements until nothing changes.
    fn settle(&mut self) {
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

    /// Decides one port, and with it the agnostic ports of the element's other side.
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
        if self.scope.classes[element] == ClassOf::Port {
            return;
        }
        let open = ports.inputs.iter_mut().chain(&mut ports.outputs);
        open.filter(|port| **port == 'a').for_each(|port| *port = letter);
    }

    /// The code of the compound whose body this is.
    fn compound_code(&self) -> String {
        let side = |letters: &[char]| match letters {
            [] => "a".to_owned(),
            letters => letters.iter().collect(),
        };
        let ends: Vec<_> = self.ports.iter().zip(&self.scope.classes).collect();
        match &ends[..] {
            [(input, ClassOf::Port), (output, ClassOf::Port), ..] => {
                format!("{}/{}", side(&input.outputs), side(&output.inputs))
            }
            _ => "a/a".to_owned(),
        }
    }

    fn finish(mut self) -> Vec<Processing> {
        for ports in &mut self.ports {
            let open = ports.inputs.iter_mut().chain(&mut ports.outputs);
            open.filter(|port| **port == 'a').for_each(|port| *port = 'h');
        }
        self.ports
    }
}

/// The letters of one side of a code for so many ports; the last goes for all further ones.
fn letters(code: &str, count: usize) -> Vec<char> {
    let all: Vec<char> = code.chars().collect();
    let letter = |port: usize| match all.get(port).or(all.last()) {
        Some('h' | 'H') => 'h',
        Some('l' | 'L') => 'l',
        _ => 'a',
    };
    (0..count).map(letter).collect()
}
