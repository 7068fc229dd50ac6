//! The source of a program: the configuration as constants, and the chains that are compiled for it.

use crate::load::{LoadedConfiguration, environment_path};
use castanet_runtime::graph::Graph;
use castanet_runtime::graph::compilable::{self, reason_against};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How often a sequence of classes is compiled for different arguments. Further chains of these classes
/// have no code for their arguments: a configuration may have thousands, and each takes a second.
const MOST_FORMS: usize = 16;

/// A generated program.
pub(crate) struct GeneratedProgram {
    /// Its source, which `castanet-built` includes.
    pub(super) text: String,
    /// The hash of its configuration.
    pub(super) hash: String,
    /// The names of the elements of each chain.
    pub(super) chains: Vec<Vec<String>>,
    /// The classes of elements that are in no chain because of what they are, each with the reason.
    pub(super) unchanged: BTreeMap<&'static str, &'static str>,
    /// The chains that are in the text.
    known: BTreeSet<String>,
    /// How often each sequence of classes is compiled.
    forms: BTreeMap<String, usize>,
    /// The code for arguments, each with its number.
    codes: BTreeMap<String, usize>,
}

impl GeneratedProgram {
    /// The program of a configuration that was read and found right.
    pub(super) fn of(
        loaded: &LoadedConfiguration,
        settings: &[(String, String)],
        graph: &Graph,
        natives: &[Option<String>],
    ) -> GeneratedProgram {
        let mut program = GeneratedProgram::new(CONFIGURED);
        program.add(graph, natives);
        program.close();
        program.text += "\n";
        let library_path = environment_path();
        let mut hasher = DefaultHasher::new();
        let texts: Vec<_> = loaded.sources.named_texts().collect();
        (&texts, settings, &library_path).hash(&mut hasher);
        program.hash = format!("{:016x}", hasher.finish());
        configuration(&mut program.text, &texts, settings, &library_path, &program.hash);
        program
    }

    /// A program that is `click`, with the chains of several graphs and without a configuration.
    pub(crate) fn driver<'a>(graphs: impl Iterator<Item = &'a Graph>) -> GeneratedProgram {
        let mut program = GeneratedProgram::new(DRIVER);
        graphs.for_each(|graph| program.add(graph, &[]));
        program.close();
        program
    }

    /// With this head, and without chains.
    fn new(head: &str) -> GeneratedProgram {
        let text = format!("{HEAD}{head}\nstatic FUSIONS: &[castanet::Fusion] = &[\n");
        let (hash, chains, unchanged) = (String::new(), Vec::new(), BTreeMap::new());
        let (known, forms, codes) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        GeneratedProgram { text, hash, chains, unchanged, known, forms, codes }
    }

    /// Adds the chains of a graph; each sequence of classes with the same code is compiled once.
    /// `natives` has the code for the arguments of each element, where there is any.
    fn add(&mut self, graph: &Graph, natives: &[Option<String>]) {
        let has_code = |it: usize| natives.get(it).is_some_and(Option::is_some);
        for chain in compilable::find(graph, has_code) {
            let name = |member: usize| graph.elements[member].name.clone();
            let names: Vec<String> = chain.all().map(name).collect();
            let plain = chain.stages(graph, |_| None);
            let forms = self.forms.entry(plain.clone()).or_default();
            let stages = match *forms < MOST_FORMS {
                true => chain.stages(graph, |members| self.native(graph, members, natives)),
                false => plain.clone(),
            };
            // An element alone gains by its code only.
            if chain.all().nth(1).is_none() && stages == plain {
                continue;
            }
            if self.known.insert(stages.clone()) {
                *self.forms.entry(plain).or_default() += 1;
                let names = names.join(" -> ");
                // Writing to a string cannot fail.
                _ = writeln!(self.text, "    // {names}\n    castanet::fuse!({stages}),");
            }
            self.chains.push(names);
        }
        let classes = graph.elements.iter().map(|it| it.class);
        let unchanged =
            classes.filter_map(|class| Some((class.spec.class, reason_against(class)?)));
        self.unchanged.extend(unchanged);
    }

    /// The name of the code for elements of one class, if it is the same for all.
    fn native(
        &mut self,
        graph: &Graph,
        members: &[usize],
        natives: &[Option<String>],
    ) -> Option<String> {
        let code = natives.get(members[0])?.as_ref()?;
        if members.iter().any(|&member| natives[member].as_ref() != Some(code)) {
            return None;
        }
        let stage = graph.elements[members[0]].class.stage?;
        let (kind, class) = (compilable::kind_word(stage.kind), (stage.path)());
        let fits = format!("element.native().as_deref() == Some({code:?})");
        let form = format!("{kind} {class}, |element| {fits}, |element, local, packet| {code}");
        let next = self.codes.len();
        Some(format!("Code{}", self.codes.entry(form).or_insert(next)))
    }

    /// Ends the list of chains, and adds the code for arguments.
    fn close(&mut self) {
        self.text += "];\n";
        for (form, number) in &self.codes {
            _ = writeln!(self.text, "castanet::native!(Code{number}: {form});");
        }
    }
}

/// The first line of each program.
const HEAD: &str = "// Generated by `castanet build`; docs/design/build.md says how.\n";

/// The head of a program with a configuration.
const CONFIGURED: &str = "const PROGRAM: castanet::Program = castanet::Program {\n    \
    configuration: Some(&CONFIGURATION),\n    fusions: FUSIONS,\n    is_driver: false,\n};\n";

/// The head of a program that is `click`.
const DRIVER: &str = "const PROGRAM: castanet::Program = castanet::Program {\n    \
    configuration: None,\n    fusions: FUSIONS,\n    is_driver: true,\n};\n";

/// Adds the configuration.
fn configuration(
    text: &mut String,
    texts: &[(&str, &str)],
    settings: &[(String, String)],
    library_path: &str,
    hash: &str,
) {
    *text +=
        "static CONFIGURATION: castanet::BuiltConfiguration = castanet::BuiltConfiguration {\n";
    *text += "    texts: &[\n";
    for (name, contents) in texts {
        let contents = contents.as_bytes().escape_ascii();
        _ = writeln!(text, "        ({name:?}, b\"{contents}\"),");
    }
    *text += "    ],\n    settings: &[\n";
    for (name, value) in settings {
        _ = writeln!(text, "        ({name:?}, {value:?}),");
    }
    _ = writeln!(text, "    ],\n    library_path: {library_path:?},\n    hash: {hash:?},\n}};");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Origin, load};
    use castanet_lang::Diagnostics;
    use castanet_runtime::console::SilentConsole;
    use castanet_runtime::cores::Cores;
    use castanet_runtime::router::{ErrorStyle, Options, Router, plan};
    use std::sync::Arc;

    fn program(text: &str) -> GeneratedProgram {
        let library = crate::library::library();
        let loaded = load(&Origin::Expression(text.to_owned()), &[], &library, Some(""));
        let (cores, mut found) = (Cores::here(1, &[]), Diagnostics::new());
        let planned = plan(&loaded.flat, &library, &cores, ErrorStyle::Castanet, &mut found);
        assert!(!loaded.found.has_errors() && !found.has_errors(), "{text}");
        let natives = Router::natives(&planned, &Options::new(Arc::new(SilentConsole)));
        GeneratedProgram::of(&loaded, &[], &planned.graph, &natives)
    }

    /// The elements of each chain, in words.
    fn chains(text: &str) -> Vec<String> {
        program(text).chains.iter().map(|chain| chain.join(" ")).collect()
    }

    const LOOKUP: &str = "Idle -> a :: Strip(14) -> b :: CheckIPHeader -> c :: GetIPAddress(16)
        -> r :: RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 1);
        r[0] -> x :: DecIPTTL -> y :: Strip(1) -> Discard;\n";

    #[test]
    fn a_path_goes_on_by_the_output_with_the_longest_path_behind_it() {
        let one = format!("{LOOKUP} r[1] -> Paint(1) -> Discard");
        assert_eq!(chains(&one), ["a b c r x y"]);
        let two = format!("{LOOKUP} r[1] -> z :: DecIPTTL -> w :: Paint(1) -> Discard");
        assert_eq!(chains(&two), ["a b c r", "x y", "z w"]);
        let equal = format!("{LOOKUP} r[1] -> z :: DecIPTTL -> w :: Strip(2) -> Discard");
        assert_eq!(chains(&equal), ["a b c r x y z w"]);
        // Branches that are longer than the path before them, and an element that begins with branches.
        let side = |n: usize| format!("r[{n}] -> a{n} :: Strip(1) -> b{n} :: Paint(1) -> Discard;");
        let sides: String = (0..2).map(side).collect();
        let text = format!("Idle -> s :: Strip(1) -> r :: Classifier(0/00, -); {sides}");
        assert_eq!(chains(&text), ["s r a0 b0 a1 b1"]);
        let text = format!("Idle -> r :: Classifier(0/00, -); {sides}");
        assert_eq!(chains(&text), ["r a0 b0 a1 b1"]);
        assert!(program(&text).text.contains("fuse!(; castanet_"), "{}", program(&text).text);
        assert!(program(&two).text.contains("; castanet_elements::lookup::radix_ip_lookup::"));
    }

    #[test]
    fn chains_have_no_elements_that_others_lead_to_or_that_are_pulled() {
        let text = "Idle -> a :: Strip(1) -> b :: Strip(1) -> Discard; Idle -> b";
        assert_eq!(chains(text), [""; 0]);
        let text = "Idle -> Queue -> Strip(1) -> Strip(1) -> Discard";
        assert_eq!(chains(text), [""; 0]);
        let text = "Idle -> s :: Strip(1) -> u :: Unstrip(1) -> s";
        assert_eq!(chains(text), ["s u"]);
    }

    #[test]
    fn an_element_that_decides_is_a_chain_alone_if_it_has_code() {
        let text = "Idle -> c :: Classifier(12/0800, -) -> Queue -> Discard; c[1] -> Discard";
        assert_eq!(chains(text), ["c"]);
        assert!(program(text).text.contains("fuse!(; castanet_"), "{}", program(text).text);
        let filter = "IPFilter(deny src host 1.0.0.1 && udp dst port 53, allow all)";
        let text = format!("Idle -> MarkIPHeader -> Queue -> Unqueue -> f :: {filter} -> Discard");
        assert_eq!(chains(&text), ["f"]);
        let code = "element.output(packet, 16, 4, |network, transport| if network(12)";
        assert!(program(&text).text.contains(code), "{}", program(&text).text);
        let alone = |n: usize| format!("Idle -> Classifier({n}/08) -> Queue -> Discard; ");
        let many: String = (0..MOST_FORMS + 4).map(alone).collect();
        assert_eq!(chains(&many).len(), MOST_FORMS);
        let text = "Idle -> s :: RoundRobinSwitch -> Queue -> Discard; s[1] -> Discard";
        assert_eq!(chains(text), [""; 0]);
    }

    #[test]
    fn long_paths_are_divided() {
        let names: Vec<String> = (0..23).map(|n| format!("s{n} :: Strip(1)")).collect();
        let text = format!("Idle -> {} -> Discard", names.join(" -> "));
        let lengths: Vec<usize> = program(&text).chains.iter().map(Vec::len).collect();
        assert_eq!(lengths, [10, 10, 3]);
    }

    #[test]
    fn the_rest_of_a_long_path_is_a_branch_where_it_is_divided_at_several_outputs() {
        let names: Vec<String> = (0..8).map(|n| format!("s{n} :: Strip(1)")).collect();
        let path = |rest: &str| {
            program(&format!(
                "Idle -> a :: CheckIPHeader -> r :: StaticIPLookup(0/0 0, 1/8 1) -> {} {rest};
                 r[1] -> Discard",
                names.join(" -> ")
            ))
        };
        let one = path("-> x :: Strip(1) -> Discard");
        assert_eq!(one.chains.iter().map(Vec::len).collect::<Vec<_>>(), [11]);
        let (trunk, branch) = one.text.split_once(" => ").unwrap_or_default();
        assert!(trunk.contains("CheckIPHeader") && trunk.contains("; "), "{trunk}");
        assert_eq!(branch.matches("strip::Strip = ").count(), 9, "{branch}");
        // Another element with several outputs cannot be in a branch.
        let open = path("-> x :: HashSwitch(0, 4) -> Strip(2) -> Discard; x[1] -> Discard");
        assert!(!open.text.contains(" => "), "{}", open.text);
    }

    #[test]
    fn each_sequence_of_classes_is_compiled_once() {
        let text = |color: usize| format!("Idle -> Strip(2) -> Paint({color}) -> Discard;");
        for (others, compiled) in [(0, 1), (1, 2), (40, MOST_FORMS + 1)] {
            let others: String = (0..others).map(text).collect();
            let program = program(&format!("{}{}{others}", text(99), text(99)));
            assert_eq!(program.text.matches("fuse!(").count(), compiled, "{}", program.text);
        }
    }

    #[test]
    fn arguments_become_constants_where_they_are_the_same_in_all_branches() {
        let text = |length: u8| {
            program(&format!("{LOOKUP} r[1] -> DecIPTTL -> Strip({length}) -> Discard")).text
        };
        let branch = |text: String| text.split_once("=> ").unwrap_or_default().1.to_owned();
        assert!(branch(text(1)).contains("strip::Strip = Code"), "{}", text(1));
        assert!(!branch(text(2)).contains("strip::Strip = Code"), "{}", text(2));
        let code = "packet castanet_elements::edit::strip::Strip, |element| \
                    element.native().as_deref() == Some(\"Element::strip(packet, 14)\"), \
                    |element, local, packet| Element::strip(packet, 14)";
        assert!(text(1).contains(code), "{}", text(1));
    }

    #[test]
    fn names_and_texts_are_quoted() {
        let text = program("// \"a\\b\u{e9}\n Idle -> Discard").text;
        assert!(text.contains(r#"b"// \"a\\b\xc3\xa9\n Idle -> Discard""#), "{text}");
    }
}
