//! Hot swaps of examples: other configurations, and configurations that are refused at the last
//! moment, which must change nothing.

use super::bench::{Bench, flatten};
use super::ports::REFUSED;
use castanet_element::class::{Class, Library, Role};
use castanet_element::example::Script;
use castanet_element::example::{blocks, is_script};
use castanet_lang::{FlatGraph, print};
use castanet_runtime::router::Router;
use std::collections::BTreeMap;

/// Runs every example in the documentation of `class`, and then has similar configurations refused
/// ([`refuse`]); returns how many were.
pub fn refuse_all(class: &Class, library: &Library) -> Result<usize, String> {
    let examples: Vec<String> = blocks(class.spec.doc).collect();
    let refused = examples.iter().enumerate().map(|(n, text)| {
        refuse(text, library)
            .map_err(|e| format!("{}, example {}, refused: {e}", class.spec.file, n + 1))
    });
    refused.sum()
}

/// Runs an example's script. Then tries to replace its configuration by others in which elements of
/// the same names have other arguments, other names, or another class, beside an element that
/// cannot be initialised: all that handlers read must stay the same. Returns how many of them came
/// as far as that element.
pub fn refuse(text: &str, library: &Library) -> Result<usize, String> {
    let script = Script::new(text);
    let mut bench = Bench::new(&script, library, 1, 64)?;
    // Other tests check the results of the script.
    script.lines.iter().for_each(|(_, line)| _ = bench.obey(line));
    bench.flush();
    let (declarations, _) = script.ports(bench.library())?;
    let (flat, ..) = flatten(&declarations, &script.config, bench.library());
    let before = steady(&mut bench.router);
    let mut refused = 0;
    for changed in changes(&flat) {
        let text = print::flat(&changed) + "refusal :: ExampleRefusal;";
        let Err(error) = bench.router.write("hotconfig", &format!("\0{text}")) else {
            return Err(format!("not refused:\n{text}"));
        };
        refused += usize::from(error.message().contains(REFUSED));
        let after = snapshot(&mut bench.router);
        if let Some((what, was)) = before.iter().find(|(what, was)| after.get(*what) != Some(*was))
        {
            let is = after.get(what).map_or("gone", String::as_str);
            return Err(format!("{what} was\n{was}\nand is\n{is}\nafter\n{text}"));
        }
    }
    bench.audit()?;
    Ok(refused)
}

/// State of a router: handlers, and the counters of each element.
type Snapshot = BTreeMap<String, String>;

fn snapshot(router: &mut Router) -> Snapshot {
    let mut all = Snapshot::new();
    for it in 0..router.graph().elements.len() {
        let element = &router.graph().elements[it];
        let (name, role) = (element.name.clone(), element.class.role);
        all.insert(format!("{name}: packets"), format!("{:?}", router.counters(it)));
        all.insert(format!("{name}: kept"), router.held(it).to_string());
        let listed = router.read(&format!("{name}.handlers")).unwrap_or_default();
        for (handler, kind) in listed.lines().filter_map(|line| line.split_once('\t')) {
            // Reading a program's handler may run the program.
            if kind.contains('r') && (role != Role::Control || handler == "config") {
                let path = format!("{name}.{handler}");
                let text = router.read(&path).unwrap_or_else(|error| error.to_string());
                all.insert(path, text);
            }
        }
    }
    all
}

/// The state without handlers that change when they are read.
fn steady(router: &mut Router) -> Snapshot {
    let first = snapshot(router);
    let second = snapshot(router);
    first.into_iter().filter(|(what, text)| second.get(what) == Some(text)).collect()
}

/// Classes that keep the same things under their element's name.
const KIN: &[&[&str]] = &[
    &[
        "IPRewriter",
        "TCPRewriter",
        "UDPRewriter",
        "IPAddrRewriter",
        "IPAddrPairRewriter",
        "ICMPPingRewriter",
    ],
    &["ARPTable", "ARPQuerier"],
];

/// The same configuration, and others in which one element differs.
fn changes(flat: &FlatGraph) -> Vec<FlatGraph> {
    let mut all = vec![flat.clone()];
    for it in 0..flat.elements.len() {
        let mut change = |change: &dyn Fn(&mut String, &mut String, &mut String)| {
            let mut other = flat.clone();
            let element = &mut other.elements[it];
            change(&mut element.name, &mut element.class, &mut element.config);
            all.push(other);
        };
        let element = &flat.elements[it];
        change(&|name, _, _| *name = format!("another{it}"));
        for class in
            KIN.iter().filter(|kin| kin.contains(&element.class.as_str())).copied().flatten()
        {
            change(&|_, of, _| *of = (*class).to_owned());
            change(&|_, of, config| {
                *of = (*class).to_owned();
                config.push_str(", MAPPING_CAPACITY 1");
            });
        }
        if element.config.is_empty() {
            continue;
        }
        change(&|_, _, config| *config = increased(config));
        change(&|name, _, config| {
            *name = format!("another{it}");
            *config = increased(config);
        });
        if let Some((fewer, _)) = element.config.rsplit_once(',') {
            change(&|_, _, config| *config = fewer.to_owned());
        }
    }
    all
}

/// An example in which its configuration is replaced after its script: by itself, by one that is
/// refused, and by one whose numbers are one larger; the script is run again each time.
pub fn with_swaps(text: &str) -> String {
    let first = text.split("\n%\n").next().unwrap_or_default();
    let varied: Vec<String> = first
        .lines()
        .map(|line| if is_script(line.trim()) { line.to_owned() } else { increased(line) })
        .collect();
    let varied = varied.join("\n");
    format!("{text}\n%\n{first}\n%\n{varied}\nrefusal :: ExampleRefusal\n%\n{varied}")
}

/// An example with fragments of each packet that it feeds before the packet itself: a later one,
/// then a first one that overlaps it.
pub fn with_fragments(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        if let Some(packet) = line.trim().strip_prefix('>') {
            let (sketch, annotations) = packet.split_once(" ; ").unwrap_or((packet, ""));
            let annotations = if annotations.is_empty() { "" } else { &packet[sketch.len()..] };
            all += &format!("> {} id 7 frag 24 len 60{annotations}\n", sketch.trim());
            all += &format!("> {} id 7 frag 0+ len 52{annotations}\n", sketch.trim());
        }
        all += line;
        all.push('\n');
    }
    all
}

/// A text with each number one larger.
fn increased(config: &str) -> String {
    let mut text = String::new();
    let mut rest = config;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        let larger = number.parse::<u64>().ok().and_then(|number| number.checked_add(1));
        text += before;
        text += &larger.map_or_else(|| number.to_owned(), |number| number.to_string());
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::class::per_batch;
    use castanet_element::prelude::*;

    /// Its arguments.
    #[derive(Args)]
    struct NumberArgs {
        /// A number.
        #[arg]
        n: u32,
    }

    /// Keeps a number under its name, and sets it before the configuration is sure to run.
    #[derive(Element)]
    #[element(args = NumberArgs, ports = "0/0")]
    struct EarlyWriter {
        n: u32,
        kept: Shared<u32>,
    }

    #[derive(Default, Local)]
    #[local(methods)]
    struct NumberState {
        kept: Shared<u32>,
    }

    #[handlers]
    impl NumberState {
        /// The number.
        #[read]
        fn number(&self) -> u32 {
            self.kept.with(|n| *n)
        }
    }

    impl Build for EarlyWriter {
        type Args = NumberArgs;
        fn build(told: NumberArgs, setup: &Setup) -> Result<Self, ArgError> {
            Ok(EarlyWriter { n: told.n, kept: setup.own_shared() })
        }
    }

    impl PerBatch for EarlyWriter {
        type On = on::Any;
        type Local = NumberState;
        type Fate = Never;
        const SHARED: bool = true;
        fn can_take_state(&self, _: &EarlyWriter) -> bool {
            false
        }
        fn init(&self, shown: &mut NumberState, _: &mut Cx) -> Result<(), ArgError> {
            shown.kept = self.kept.clone();
            self.kept.with(|n| *n = self.n);
            Ok(())
        }
        fn batch(&self, _: &mut NumberState, _: usize, batch: Batch, cx: &mut Cx) {
            cx.consume(batch);
        }
    }

    static HASTY: Class = per_batch::<EarlyWriter>();

    #[test]
    fn an_element_that_begins_to_change_what_others_have_is_found() {
        let mut library = Library::default();
        library.add(&HASTY);
        let said = refuse("h :: EarlyWriter(1)\n= h.number 1", &library).expect_err("touches it");
        assert!(said.starts_with("h.number was\n1\nand is\n2\nafter\n"), "{said}");
    }

    #[test]
    fn numbers_grow_and_words_stay() {
        assert_eq!(
            increased("a 9, b/24, 18446744073709551615 x"),
            "a 10, b/25, 18446744073709551615 x"
        );
    }
}
