//! `Align` elements where packets have to lie otherwise in memory than they come.

use std::collections::VecDeque;

use super::alignment::Alignment;
use super::edit::Edit;
use super::facts;
use crate::args;
use crate::flat::{Flat, FlatElement, Port};

/// An aligned graph.
#[derive(Debug)]
pub struct Aligned {
    /// The graph.
    pub graph: Flat,
    /// How many `Align` elements were added.
    pub added: usize,
    /// What was added, where and why, for those who ask.
    pub notes: Vec<String>,
}

/// What an element does to alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Packets lie at outputs as at inputs.
    Passes,
    /// Packets begin so many bytes later.
    Shifts(i64),
    /// Packets at outputs lie so, however they came.
    Makes(Alignment),
    /// Packets at inputs must lie so; they go on as they came.
    Wants(Alignment),
    /// `Classifier`: any alignment is good, but it must be known modulo 4.
    Adjusts,
    /// `ARPQuerier`: 14 bytes longer at output 0, of its own making at the others.
    Querier,
    /// `IPInputCombo`: asks for Ethernet, and strips it.
    InputCombo,
    /// Takes anything, gives nothing.
    Ignores,
}

/// The rule for an element.
fn rule(it: &FlatElement) -> Rule {
    let four = |remainder| Alignment::new(4, remainder);
    let number = |at, name| argument(&it.config, at, name).and_then(|n| n.parse::<u16>().ok());
    let length = || number(0, "LENGTH").map_or(0, i64::from);
    match it.class.as_str() {
        "Align" => of_align(it).map_or(Rule::Passes, Rule::Makes),
        "Strip" => Rule::Shifts(length()),
        "Unstrip" => Rule::Shifts(-length()),
        "EtherEncap" => Rule::Shifts(-14),
        "CheckIPHeader" | "CheckIPHeader2" | "MarkIPHeader" => {
            // An old form has a list of addresses before the offset.
            let offset = number(0, "OFFSET").or(number(1, "OFFSET")).unwrap_or(0);
            Rule::Wants(four(0).shift(-i64::from(offset)))
        }
        "Classifier" => Rule::Adjusts,
        "FromHost" | "FromDevice" | "PollDevice" => Rule::Makes(of_device(it)),
        "ToHost" => Rule::Wants(of_device(it)),
        "ICMPError" if argument(&it.config, usize::MAX, "ETHER").as_deref() == Some("true") => {
            Rule::Passes
        }
        "ICMPError" | "InfiniteSource" | "RatedSource" => Rule::Makes(four(0)),
        "Idle" => Rule::Makes(Alignment::Vacuous),
        "IPEncap"
        | "UDPIPEncap"
        | "ICMPPingEncap"
        | "RandomUDPIPEncap"
        | "RoundRobinUDPIPEncap"
        | "RoundRobinTCPIPEncap" => Rule::Wants(four(0)),
        "ARPResponder" => Rule::Wants(Alignment::new(2, 0)),
        "ARPQuerier" => Rule::Querier,
        "IPInputCombo" => Rule::InputCombo,
        "Discard" => Rule::Ignores,
        _ => Rule::Passes,
    }
}

/// An argument by place, if it is there without a keyword, or by keyword.
fn argument(config: &str, at: usize, keyword: &str) -> Option<String> {
    let args = args::split(config);
    let word = |arg: &args::ArgText| {
        let (first, rest) = args::shift_word(&arg.text);
        (first == keyword && !rest.is_empty()).then(|| rest.to_owned())
    };
    args.iter().find_map(word).or_else(|| args.get(at).map(|arg| arg.text.clone()))
}

fn of_align(it: &FlatElement) -> Option<Alignment> {
    let number = |at, name| argument(&it.config, at, name)?.parse().ok();
    let (modulus, offset): (u32, u32) = (number(0, "MODULUS")?, number(1, "OFFSET")?);
    (modulus > 0 && offset < modulus).then(|| Alignment::new(modulus, offset))
}

/// Devices give and take packets whose IP header is aligned, behind Ethernet unless they say IP.
fn of_device(it: &FlatElement) -> Alignment {
    let keyword = |name| argument(&it.config, usize::MAX, name);
    let given = keyword("ALIGNMENT").and_then(|text| {
        let numbers: Vec<u32> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [modulus, offset] if modulus > 0 => Some(Alignment::new(modulus, offset)),
            _ => None,
        }
    });
    let ip = keyword("TYPE").as_deref() == Some("IP");
    given.unwrap_or(Alignment::new(4, if ip { 0 } else { 2 }))
}

/// Elements that are to be looked at, each once at a time.
struct Pending {
    queue: VecDeque<usize>,
    waits: Vec<bool>,
}

impl Pending {
    fn all(edit: &Edit) -> Self {
        let mut pending =
            Pending { queue: VecDeque::new(), waits: vec![false; edit.elements.len()] };
        edit.live().for_each(|at| pending.add(at));
        pending
    }

    fn add(&mut self, at: usize) {
        if !std::mem::replace(&mut self.waits[at], true) {
            self.queue.push_back(at);
        }
    }

    fn next(&mut self) -> Option<usize> {
        let at = self.queue.pop_front()?;
        self.waits[at] = false;
        Some(at)
    }
}

/// What is known, or asked, at the ports of a graph.
struct Ports<'a> {
    edit: &'a Edit,
    rules: Vec<Rule>,
    inputs: Vec<Vec<Alignment>>,
    outputs: Vec<Vec<Alignment>>,
}

impl<'a> Ports<'a> {
    fn new(edit: &'a Edit) -> Self {
        let counts: Vec<_> = (0..edit.elements.len()).map(|at| edit.ports(at)).collect();
        let open = |count: usize| vec![Alignment::Open; count];
        Ports {
            edit,
            rules: edit.elements.iter().map(rule).collect(),
            inputs: counts.iter().map(|&(inputs, _)| open(inputs)).collect(),
            outputs: counts.iter().map(|&(_, outputs)| open(outputs)).collect(),
        }
    }

    /// How packets lie at each port.
    fn have(edit: &'a Edit) -> Self {
        let mut ports = Ports::new(edit);
        let mut work = Pending::all(edit);
        while let Some(at) = work.next() {
            let outputs = ports.give(at);
            let before = std::mem::replace(&mut ports.outputs[at], outputs);
            for (from, to) in edit.leaving(at) {
                if before[from.port] == ports.outputs[at][from.port] {
                    continue;
                }
                let sources = edit.before(to).into_iter();
                let lies = sources.map(|from| ports.outputs[from.element][from.port]);
                ports.inputs[to.element][to.port] = lies.fold(Alignment::Open, Alignment::either);
                work.add(to.element);
            }
        }
        ports
    }

    /// How packets are wanted at each port.
    fn want(edit: &'a Edit) -> Self {
        let mut ports = Ports::new(edit);
        let mut work = Pending::all(edit);
        while let Some(at) = work.next() {
            let inputs = ports.ask(at);
            let before = std::mem::replace(&mut ports.inputs[at], inputs);
            for (from, to) in edit.entering(at) {
                if before[to.port] == ports.inputs[at][to.port] {
                    continue;
                }
                let ends = edit.after(from).into_iter();
                let wanted = ends.map(|to| ports.inputs[to.element][to.port]);
                ports.outputs[from.element][from.port] =
                    wanted.fold(Alignment::Open, Alignment::both);
                work.add(from.element);
            }
        }
        ports
    }

    fn any_input(&self, at: usize) -> Alignment {
        self.inputs[at].iter().fold(Alignment::Open, |all, &one| all.either(one))
    }

    /// How packets leave an element.
    fn give(&self, at: usize) -> Vec<Alignment> {
        let shifted = |by| self.any_input(at).shift(by);
        let begins = self.inputs[at].is_empty();
        let output = |port| match self.rules[at] {
            // Where packets come from nowhere that is known, they may lie anyhow.
            Rule::Passes | Rule::Wants(_) | Rule::Shifts(_) if begins => Alignment::Any,
            Rule::Passes | Rule::Wants(_) | Rule::Adjusts => self.through(at, port),
            Rule::Shifts(by) => shifted(by),
            Rule::InputCombo => shifted(14),
            Rule::Makes(made) => made,
            Rule::Querier if port > 0 => Alignment::new(4, 2),
            Rule::Querier => {
                self.inputs[at].first().map_or(Alignment::Vacuous, |input| input.shift(-14))
            }
            Rule::Ignores => Alignment::Open,
        };
        (0..self.outputs[at].len()).map(output).collect()
    }

    fn through(&self, at: usize, output: usize) -> Alignment {
        let class = &self.edit.elements[at].class;
        let ways = self.inputs[at].iter().enumerate();
        let ways = ways.filter(|(input, _)| facts::passes(class, *input, output));
        ways.fold(Alignment::Open, |all, (_, &one)| all.either(one))
    }

    /// How an element wants packets to come.
    fn ask(&self, at: usize) -> Vec<Alignment> {
        let class = &self.edit.elements[at].class;
        let all = |input: Option<usize>| {
            let ways = self.outputs[at].iter().enumerate();
            let ways =
                ways.filter(|(output, _)| input.is_none_or(|i| facts::passes(class, i, *output)));
            ways.fold(Alignment::Open, |all, (_, &one)| all.both(one))
        };
        let input = |port| match self.rules[at] {
            Rule::Passes | Rule::Adjusts => all(Some(port)),
            Rule::Shifts(by) => all(None).shift(-by),
            Rule::Wants(wanted) => wanted,
            Rule::InputCombo => Alignment::new(4, 2),
            Rule::Querier if port > 0 => Alignment::new(2, 0),
            Rule::Querier => {
                self.outputs[at].first().map_or(Alignment::Open, |output| output.shift(14))
            }
            Rule::Makes(_) | Rule::Ignores => Alignment::Open,
        };
        (0..self.inputs[at].len()).map(input).collect()
    }
}

/// Adds the `Align` elements that a graph needs, removes those that it does not need, and says in an
/// `AlignmentInfo` what elements that care can rely on.
pub fn align(graph: &Flat) -> Aligned {
    let mut work = Work::new(graph);
    let original: Vec<usize> = work.edit.live().collect();
    let wanted = Ports::want(&work.edit).inputs;
    // What one Align puts right may be wrong for who comes behind.
    while work.add(&original, |at, port, _| wanted[at][port]) {}
    work.shorten();
    while work.adjust(&original) {}
    work.drop_redundant();
    work.drop_unused();
    work.inform();
    let added = work.made.iter().filter(|&&at| work.edit.is_alive(at)).count();
    Aligned { added, notes: work.notes, graph: work.edit.finish() }
}

/// How packets are wanted by an element that takes any known alignment.
fn adjusted(rule: Rule, have: Alignment) -> Alignment {
    match (rule, have) {
        (Rule::Adjusts, Alignment::Modulo(modulus, remainder)) if modulus < 4 => {
            Alignment::new(4, remainder)
        }
        (Rule::Adjusts, Alignment::Open | Alignment::Any) => Alignment::new(4, 0),
        _ => Alignment::Open,
    }
}

/// Puts a `CheckAlign` before every input that wants an alignment of its own accord.
pub fn assert_alignment(graph: &Flat) -> Flat {
    let mut work = Work::new(graph);
    let original: Vec<usize> = work.edit.live().collect();
    let wanted: Vec<_> = {
        let ports = Ports::new(&work.edit);
        original.iter().map(|&at| ports.ask(at)).collect()
    };
    for (&at, wanted) in original.iter().zip(&wanted) {
        for (port, &want) in wanted.iter().enumerate() {
            let (modulus, offset) = want.numbers();
            if modulus > 1 {
                let config = format!("{modulus}, {offset}, ASSERT true");
                work.insert("CheckAlign", &config, Port { element: at, port });
            }
        }
    }
    work.edit.finish()
}

struct Work {
    edit: Edit,
    /// Number for the next name.
    number: usize,
    /// The elements that were added.
    made: Vec<usize>,
    notes: Vec<String>,
}

impl Work {
    fn new(graph: &Flat) -> Self {
        let edit = Edit::new(graph);
        Work { number: graph.elements.len() + 1, edit, made: Vec::new(), notes: Vec::new() }
    }

    fn insert(&mut self, class: &str, config: &str, before: Port) -> usize {
        let name = self.edit.free_name(&format!("{class}@click_align@"), self.number);
        self.number += 1;
        let span = self.edit.elements[before.element].span;
        let made = self.edit.add(&name, class, config, span);
        self.edit.insert_before(made, before);
        made
    }

    /// Adds an `Align` before inputs that take any alignment, if it is known, and where it is not.
    fn adjust(&mut self, to: &[usize]) -> bool {
        let rules: Vec<Rule> = self.edit.elements.iter().map(rule).collect();
        self.add(to, |at, _, have| adjusted(rules[at], have))
    }

    /// Adds an `Align` before each of these elements' inputs that gets packets otherwise than `want`
    /// says, which is told how they come; whether there was one.
    fn add(&mut self, to: &[usize], want: impl Fn(usize, usize, Alignment) -> Alignment) -> bool {
        let before = self.made.len();
        let have = Ports::have(&self.edit).inputs;
        for &at in to {
            for (port, &have) in have[at].iter().enumerate() {
                let want = want(at, port, have);
                if have.serves(want) || want == Alignment::Contradiction {
                    continue;
                }
                let (modulus, offset) = want.numbers();
                let name = &self.edit.elements[at].name;
                self.notes.push(format!(
                    "[{port}]{name}: adding Align({modulus}, {offset}) to fix {have}"
                ));
                let config = format!("{modulus}, {offset}");
                let made = self.insert("Align", &config, Port { element: at, port });
                self.made.push(made);
            }
        }
        self.made.len() > before
    }

    /// Of two `Align` elements in a row the first has nothing to do, unless it serves others too.
    fn shorten(&mut self) {
        for second in self.edit.of_class("Align") {
            let input = Port { element: second, port: 0 };
            for first in self.edit.before(input) {
                let is_align = self.edit.elements[first.element].class == "Align";
                if !is_align || first.element == second {
                    continue;
                }
                let of = |at: usize| of_align(&self.edit.elements[at]).unwrap_or_default();
                // That the second has nothing to do is found later.
                if !of(first.element).serves(of(second)) {
                    self.edit.unlink(first, input);
                    for from in self.edit.before(Port { element: first.element, port: 0 }) {
                        self.edit.link(from, input);
                    }
                }
            }
        }
    }

    /// Leads packets past every `Align` that finds them as it would make them.
    fn drop_redundant(&mut self) {
        loop {
            let have = Ports::have(&self.edit).outputs;
            let mut changed = false;
            for align in self.edit.of_class("Align") {
                let made = of_align(&self.edit.elements[align]).unwrap_or_default();
                for (from, to) in self.edit.entering(align) {
                    if from.element == align || !have[from.element][from.port].serves(made) {
                        continue;
                    }
                    changed = true;
                    self.edit.unlink(from, to);
                    for end in self.edit.after(Port { element: align, port: 0 }) {
                        self.edit.link(from, end);
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Removes `Align` elements that no packet comes to or goes on from, and old information.
    fn drop_unused(&mut self) {
        self.edit.of_class("AlignmentInfo").into_iter().for_each(|at| self.edit.remove(at));
        loop {
            let ports = |at: &usize| self.edit.ports(*at);
            let unused = |at: &usize| ports(at).0 == 0 || ports(at).1 == 0;
            let unused: Vec<_> = self.edit.of_class("Align").into_iter().filter(unused).collect();
            if unused.is_empty() {
                return;
            }
            unused.into_iter().for_each(|at| self.edit.remove(at));
        }
    }

    /// Adds an `AlignmentInfo` for the elements that want one.
    fn inform(&mut self) {
        let have = Ports::have(&self.edit).inputs;
        let line = |at: usize| {
            let it = &self.edit.elements[at];
            let wants = facts::wants_alignment(&it.class) && !have[at].is_empty();
            let numbers = have[at].iter().map(|have| have.numbers());
            let words: String = numbers.map(|(m, offset)| format!("  {m} {offset}")).collect();
            wants.then(|| (at, format!("{}{words}", it.name)))
        };
        let lines: Vec<_> = self.edit.live().filter_map(line).collect();
        let Some(&(first, _)) = lines.first() else { return };
        let span = self.edit.elements[first].span;
        let name = self.edit.free_name("AlignmentInfo@click_align@", self.number);
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        self.edit.add(&name, "AlignmentInfo", &lines.join(",\n  "), span);
    }
}
