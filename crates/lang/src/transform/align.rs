//! `click-align`: inserts `Align` elements where packets need another alignment than they have.

use std::collections::VecDeque;

use super::alignment::Alignment;
use super::classes;
use super::editor::GraphEditor;
use crate::args;
use crate::flat::{FlatElement, FlatGraph, Port};

/// Result of [`align`].
#[derive(Debug)]
pub struct AlignOutput {
    /// The graph.
    pub graph: FlatGraph,
    /// Number of `Align` elements added.
    pub added: usize,
    /// One line for each element added, with its position and reason, for verbose output.
    pub notes: Vec<String>,
}

/// Effect of an element on the alignment of packets, and its requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AlignmentRule {
    /// Outputs have the alignment of inputs.
    Preserve,
    /// Packets at outputs begin so many bytes later than at inputs.
    Shift(i64),
    /// Packets at outputs have this alignment, whatever that of the inputs is.
    Output(Alignment),
    /// Packets at inputs must have this alignment, and keep it.
    Input(Alignment),
    /// `Classifier`: packets may have any alignment, but it must be known modulo 4.
    AnyKnown,
    /// `ARPQuerier`: packets are 14 bytes longer at output 0; the element creates those at the
    /// other outputs.
    ArpQuerier,
    /// `IPInputCombo`: requires an Ethernet header, and strips it.
    IpInputCombo,
    /// The element accepts any alignment, and has no outputs.
    Unconstrained,
}

/// Returns the rule for an element.
fn rule(it: &FlatElement) -> AlignmentRule {
    let four = |remainder| Alignment::new(4, remainder);
    let number = |at, name| argument(&it.config, at, name).and_then(|n| n.parse::<u16>().ok());
    let length = || number(0, "LENGTH").map_or(0, i64::from);
    match it.class.as_str() {
        "Align" => align_output(it).map_or(AlignmentRule::Preserve, AlignmentRule::Output),
        "Strip" => AlignmentRule::Shift(length()),
        "Unstrip" => AlignmentRule::Shift(-length()),
        "EtherEncap" => AlignmentRule::Shift(-14),
        "CheckIPHeader" | "CheckIPHeader2" | "MarkIPHeader" => {
            // Click's old syntax has a list of addresses before the offset.
            let offset = number(0, "OFFSET").or(number(1, "OFFSET")).unwrap_or(0);
            AlignmentRule::Input(four(0).shift(-i64::from(offset)))
        }
        "Classifier" => AlignmentRule::AnyKnown,
        "FromHost" | "FromDevice" | "PollDevice" => AlignmentRule::Output(device_alignment(it)),
        "ToHost" => AlignmentRule::Input(device_alignment(it)),
        "ICMPError" if argument(&it.config, usize::MAX, "ETHER").as_deref() == Some("true") => {
            AlignmentRule::Preserve
        }
        "ICMPError" | "InfiniteSource" | "RatedSource" => AlignmentRule::Output(four(0)),
        "Idle" => AlignmentRule::Output(Alignment::Vacuous),
        "IPEncap"
        | "UDPIPEncap"
        | "ICMPPingEncap"
        | "RandomUDPIPEncap"
        | "RoundRobinUDPIPEncap"
        | "RoundRobinTCPIPEncap" => AlignmentRule::Input(four(0)),
        "ARPResponder" => AlignmentRule::Input(Alignment::new(2, 0)),
        "ARPQuerier" => AlignmentRule::ArpQuerier,
        "IPInputCombo" => AlignmentRule::IpInputCombo,
        "Discard" => AlignmentRule::Unconstrained,
        _ => AlignmentRule::Preserve,
    }
}

/// Returns an argument by its keyword, or else by its position.
fn argument(config: &str, at: usize, keyword: &str) -> Option<String> {
    let args = args::split(config);
    let word = |arg: &args::ArgText| {
        let (first, rest) = args::shift_word(&arg.text);
        (first == keyword && !rest.is_empty()).then(|| rest.to_owned())
    };
    args.iter().find_map(word).or_else(|| args.get(at).map(|arg| arg.text.clone()))
}

/// Returns the alignment that an `Align` element makes.
fn align_output(it: &FlatElement) -> Option<Alignment> {
    let number = |at, name| argument(&it.config, at, name)?.parse().ok();
    let (modulus, offset): (u32, u32) = (number(0, "MODULUS")?, number(1, "OFFSET")?);
    (modulus > 0 && offset < modulus).then(|| Alignment::new(modulus, offset))
}

/// Returns the alignment of a device's packets: their IP header is aligned, after an Ethernet
/// header unless the type is IP.
fn device_alignment(it: &FlatElement) -> Alignment {
    let keyword = |name| argument(&it.config, usize::MAX, name);
    let explicit = keyword("ALIGNMENT").and_then(|text| {
        let numbers: Vec<u32> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [modulus, offset] if modulus > 0 => Some(Alignment::new(modulus, offset)),
            _ => None,
        }
    });
    let ip = keyword("TYPE").as_deref() == Some("IP");
    explicit.unwrap_or(Alignment::new(4, if ip { 0 } else { 2 }))
}

/// A queue of elements to process, in which each element is at most once.
struct WorkQueue {
    queue: VecDeque<usize>,
    is_queued: Vec<bool>,
}

impl WorkQueue {
    fn all(editor: &GraphEditor) -> Self {
        let mut pending =
            WorkQueue { queue: VecDeque::new(), is_queued: vec![false; editor.elements.len()] };
        editor.live().for_each(|at| pending.add(at));
        pending
    }

    fn add(&mut self, at: usize) {
        if !std::mem::replace(&mut self.is_queued[at], true) {
            self.queue.push_back(at);
        }
    }

    fn next(&mut self) -> Option<usize> {
        let at = self.queue.pop_front()?;
        self.is_queued[at] = false;
        Some(at)
    }
}

/// Actual or required alignments at the ports of a graph.
struct PortAlignments<'a> {
    editor: &'a GraphEditor,
    rules: Vec<AlignmentRule>,
    inputs: Vec<Vec<Alignment>>,
    outputs: Vec<Vec<Alignment>>,
}

impl<'a> PortAlignments<'a> {
    fn new(editor: &'a GraphEditor) -> Self {
        let counts: Vec<_> = (0..editor.elements.len()).map(|at| editor.ports(at)).collect();
        let open = |count: usize| vec![Alignment::Unspecified; count];
        PortAlignments {
            editor,
            rules: editor.elements.iter().map(rule).collect(),
            inputs: counts.iter().map(|&(inputs, _)| open(inputs)).collect(),
            outputs: counts.iter().map(|&(_, outputs)| open(outputs)).collect(),
        }
    }

    /// Computes the actual alignment at each port.
    fn actual(editor: &'a GraphEditor) -> Self {
        let mut ports = PortAlignments::new(editor);
        let mut work = WorkQueue::all(editor);
        while let Some(at) = work.next() {
            let outputs = ports.output_alignments(at);
            let before = std::mem::replace(&mut ports.outputs[at], outputs);
            for (from, to) in editor.outgoing(at) {
                if before[from.port] == ports.outputs[at][from.port] {
                    continue;
                }
                let sources = editor.sources(to).into_iter();
                let actual = sources.map(|from| ports.outputs[from.element][from.port]);
                ports.inputs[to.element][to.port] =
                    actual.fold(Alignment::Unspecified, Alignment::union);
                work.add(to.element);
            }
        }
        ports
    }

    /// Computes the required alignment at each port.
    fn required(editor: &'a GraphEditor) -> Self {
        let mut ports = PortAlignments::new(editor);
        let mut work = WorkQueue::all(editor);
        while let Some(at) = work.next() {
            let inputs = ports.input_requirements(at);
            let before = std::mem::replace(&mut ports.inputs[at], inputs);
            for (from, to) in editor.incoming(at) {
                if before[to.port] == ports.inputs[at][to.port] {
                    continue;
                }
                let ends = editor.targets(from).into_iter();
                let required = ends.map(|to| ports.inputs[to.element][to.port]);
                ports.outputs[from.element][from.port] =
                    required.fold(Alignment::Unspecified, Alignment::intersection);
                work.add(from.element);
            }
        }
        ports
    }

    fn any_input(&self, at: usize) -> Alignment {
        self.inputs[at].iter().fold(Alignment::Unspecified, |all, &one| all.union(one))
    }

    /// Returns the actual alignment at an element's outputs.
    fn output_alignments(&self, at: usize) -> Vec<Alignment> {
        let shifted = |by| self.any_input(at).shift(by);
        let is_source = self.inputs[at].is_empty();
        let output = |port| match self.rules[at] {
            // Packets of an unknown source may have any alignment.
            AlignmentRule::Preserve | AlignmentRule::Input(_) | AlignmentRule::Shift(_)
                if is_source =>
            {
                Alignment::Any
            }
            AlignmentRule::Preserve | AlignmentRule::Input(_) | AlignmentRule::AnyKnown => {
                self.through(at, port)
            }
            AlignmentRule::Shift(by) => shifted(by),
            AlignmentRule::IpInputCombo => shifted(14),
            AlignmentRule::Output(alignment) => alignment,
            AlignmentRule::ArpQuerier if port > 0 => Alignment::new(4, 2),
            AlignmentRule::ArpQuerier => {
                self.inputs[at].first().map_or(Alignment::Vacuous, |input| input.shift(-14))
            }
            AlignmentRule::Unconstrained => Alignment::Unspecified,
        };
        (0..self.outputs[at].len()).map(output).collect()
    }

    /// Returns the union of the alignments of the inputs from which packets flow to an output.
    fn through(&self, at: usize, output: usize) -> Alignment {
        let class = &self.editor.elements[at].class;
        let flows = self.inputs[at].iter().enumerate();
        let flows = flows.filter(|(input, _)| classes::can_flow(class, *input, output));
        flows.fold(Alignment::Unspecified, |all, (_, &one)| all.union(one))
    }

    /// Returns the required alignment at an element's inputs.
    fn input_requirements(&self, at: usize) -> Vec<Alignment> {
        let class = &self.editor.elements[at].class;
        let all = |input: Option<usize>| {
            let flows = self.outputs[at].iter().enumerate();
            let flows = flows
                .filter(|(output, _)| input.is_none_or(|i| classes::can_flow(class, i, *output)));
            flows.fold(Alignment::Unspecified, |all, (_, &one)| all.intersection(one))
        };
        let input = |port| match self.rules[at] {
            AlignmentRule::Preserve | AlignmentRule::AnyKnown => all(Some(port)),
            AlignmentRule::Shift(by) => all(None).shift(-by),
            AlignmentRule::Input(alignment) => alignment,
            AlignmentRule::IpInputCombo => Alignment::new(4, 2),
            AlignmentRule::ArpQuerier if port > 0 => Alignment::new(2, 0),
            AlignmentRule::ArpQuerier => {
                self.outputs[at].first().map_or(Alignment::Unspecified, |output| output.shift(14))
            }
            AlignmentRule::Output(_) | AlignmentRule::Unconstrained => Alignment::Unspecified,
        };
        (0..self.inputs[at].len()).map(input).collect()
    }
}

/// Adds the `Align` elements that a graph needs, removes those that it does not need, and adds an
/// `AlignmentInfo` for the elements that use one.
pub fn align(graph: &FlatGraph) -> AlignOutput {
    let mut aligner = Aligner::new(graph);
    let original: Vec<usize> = aligner.editor.live().collect();
    let required = PortAlignments::required(&aligner.editor).inputs;
    // An Align that is right for one element may be wrong for an element further on; so may be one
    // before an element that only has to know.
    loop {
        while aligner.add(&original, |at, port, _| required[at][port]) {}
        aligner.merge_adjacent();
        if !aligner.add_before_any_known(&original) {
            break;
        }
    }
    aligner.bypass_redundant();
    aligner.remove_unused();
    aligner.add_alignment_info();
    let added = aligner.added.iter().filter(|&&at| aligner.editor.is_alive(at)).count();
    AlignOutput { added, notes: aligner.notes, graph: aligner.editor.finish() }
}

/// Returns the alignment that an element requires which accepts any known alignment.
fn known_alignment(rule: AlignmentRule, actual: Alignment) -> Alignment {
    match (rule, actual) {
        (AlignmentRule::AnyKnown, Alignment::Modulo(modulus, remainder)) if modulus < 4 => {
            Alignment::new(4, remainder)
        }
        (AlignmentRule::AnyKnown, Alignment::Unspecified | Alignment::Any) => Alignment::new(4, 0),
        _ => Alignment::Unspecified,
    }
}

/// Inserts a `CheckAlign` before every input whose element requires an alignment itself.
pub fn assert_alignment(graph: &FlatGraph) -> FlatGraph {
    let mut aligner = Aligner::new(graph);
    let original: Vec<usize> = aligner.editor.live().collect();
    let required: Vec<_> = {
        let ports = PortAlignments::new(&aligner.editor);
        original.iter().map(|&at| ports.input_requirements(at)).collect()
    };
    for (&at, required) in original.iter().zip(&required) {
        for (port, &required) in required.iter().enumerate() {
            let (modulus, offset) = required.numbers();
            if modulus > 1 {
                let config = format!("{modulus}, {offset}, ASSERT true");
                aligner.insert("CheckAlign", &config, Port { element: at, port });
            }
        }
    }
    aligner.editor.finish()
}

/// A graph that gets `Align` elements.
struct Aligner {
    editor: GraphEditor,
    /// Number for the next name.
    number: usize,
    /// The `Align` elements that were added.
    added: Vec<usize>,
    notes: Vec<String>,
}

impl Aligner {
    fn new(graph: &FlatGraph) -> Self {
        let editor = GraphEditor::new(graph);
        Aligner { number: graph.elements.len() + 1, editor, added: Vec::new(), notes: Vec::new() }
    }

    fn insert(&mut self, class: &str, config: &str, before: Port) -> usize {
        let name = self.editor.free_name(&format!("{class}@click_align@"), self.number);
        self.number += 1;
        let span = self.editor.elements[before.element].span;
        let added = self.editor.add(&name, class, config, span);
        self.editor.insert_before(added, before);
        added
    }

    /// Adds an `Align` before those inputs of [`AlignmentRule::AnyKnown`] whose alignment is not
    /// known modulo 4; returns whether it has added one.
    fn add_before_any_known(&mut self, to: &[usize]) -> bool {
        let rules: Vec<AlignmentRule> = self.editor.elements.iter().map(rule).collect();
        self.add(to, |at, _, actual| known_alignment(rules[at], actual))
    }

    /// Adds an `Align` before each input of the elements `to` whose actual alignment does not
    /// satisfy `required`, which gets element, port and actual alignment. Returns whether it has
    /// added one.
    fn add(
        &mut self,
        to: &[usize],
        required: impl Fn(usize, usize, Alignment) -> Alignment,
    ) -> bool {
        let before = self.added.len();
        let actual = PortAlignments::actual(&self.editor).inputs;
        for &at in to {
            for (port, &actual) in actual[at].iter().enumerate() {
                let required = required(at, port, actual);
                if actual.satisfies(required) || required == Alignment::Contradiction {
                    continue;
                }
                let (modulus, offset) = required.numbers();
                let name = &self.editor.elements[at].name;
                self.notes.push(format!(
                    "[{port}]{name}: adding Align({modulus}, {offset}) to fix {actual}"
                ));
                let config = format!("{modulus}, {offset}");
                let added = self.insert("Align", &config, Port { element: at, port });
                self.added.push(added);
            }
        }
        self.added.len() > before
    }

    /// Bypasses the first of two adjacent `Align` elements, whose work the second one undoes.
    fn merge_adjacent(&mut self) {
        for second in self.editor.with_class("Align") {
            let input = Port { element: second, port: 0 };
            for first in self.editor.sources(input) {
                let is_align = self.editor.elements[first.element].class == "Align";
                if !is_align || first.element == second {
                    continue;
                }
                let made = |at: usize| align_output(&self.editor.elements[at]).unwrap_or_default();
                // `bypass_redundant` finds a second element without effect.
                if !made(first.element).satisfies(made(second)) {
                    self.editor.unlink(first, input);
                    for from in self.editor.sources(Port { element: first.element, port: 0 }) {
                        self.editor.link(from, input);
                    }
                }
            }
        }
    }

    /// Bypasses every `Align` whose packets already have its alignment.
    fn bypass_redundant(&mut self) {
        loop {
            let actual = PortAlignments::actual(&self.editor).outputs;
            let mut changed = false;
            for align in self.editor.with_class("Align") {
                let made = align_output(&self.editor.elements[align]).unwrap_or_default();
                for (from, to) in self.editor.incoming(align) {
                    if from.element == align || !actual[from.element][from.port].satisfies(made) {
                        continue;
                    }
                    changed = true;
                    self.editor.unlink(from, to);
                    for end in self.editor.targets(Port { element: align, port: 0 }) {
                        self.editor.link(from, end);
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Removes `Align` elements without inputs or outputs, and old `AlignmentInfo` elements.
    fn remove_unused(&mut self) {
        self.editor.with_class("AlignmentInfo").into_iter().for_each(|at| self.editor.remove(at));
        loop {
            let ports = |at: &usize| self.editor.ports(*at);
            let unused = |at: &usize| ports(at).0 == 0 || ports(at).1 == 0;
            let unused: Vec<_> =
                self.editor.with_class("Align").into_iter().filter(unused).collect();
            if unused.is_empty() {
                return;
            }
            unused.into_iter().for_each(|at| self.editor.remove(at));
        }
    }

    /// Adds an `AlignmentInfo` for the elements that use one.
    fn add_alignment_info(&mut self) {
        let actual = PortAlignments::actual(&self.editor).inputs;
        let line = |at: usize| {
            let it = &self.editor.elements[at];
            let is_listed = classes::uses_alignment_info(&it.class) && !actual[at].is_empty();
            let numbers = actual[at].iter().map(|alignment| alignment.numbers());
            let words: String = numbers.map(|(m, offset)| format!("  {m} {offset}")).collect();
            is_listed.then(|| (at, format!("{}{words}", it.name)))
        };
        let lines: Vec<_> = self.editor.live().filter_map(line).collect();
        let Some(&(first, _)) = lines.first() else { return };
        let span = self.editor.elements[first].span;
        let name = self.editor.free_name("AlignmentInfo@click_align@", self.number);
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        self.editor.add(&name, "AlignmentInfo", &lines.join(",\n  "), span);
    }
}
