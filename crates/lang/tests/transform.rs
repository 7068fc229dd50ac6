//! Tests of the transformations: examples, and properties of any graph.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use castanet_lang::transform::{
    Pattern, RouterComponent, align, assert_alignment, combine, components,
    expand_keeping_variables, patterns, transform, uncombine, undead,
};
use castanet_lang::{
    AnyClass, FlatGraph, Member, SourceMap, Span, Tree, archive, expand, parse, print,
};
use proptest::prelude::*;

fn tree(text: &str) -> (Tree, Span) {
    let mut sources = SourceMap::new();
    let file = sources.add("config", text);
    let (tree, errors) = parse(&mut sources, file);
    assert!(errors.is_empty(), "{}\n{text}", errors.render_click(&sources));
    (tree, Span { file, start: 0, end: 0 })
}

fn flat(text: &str) -> FlatGraph {
    let (graph, errors) = expand(&tree(text).0, &AnyClass, &[]);
    assert!(!errors.has_errors(), "{errors:?}\n{text}");
    graph
}

fn show(graph: &FlatGraph) -> String {
    print::flat(graph)
}

/// Returns declarations and connections without their order.
fn unordered(graph: &FlatGraph) -> BTreeSet<String> {
    let name = |at: usize| &graph.elements[at].name;
    let elements =
        graph.elements.iter().map(|e| format!("{} :: {}({})", e.name, e.class, e.config));
    let links = graph.connections.iter().map(|c| {
        format!(
            "{}[{}] -> [{}]{}",
            name(c.from.element),
            c.from.port,
            c.to.port,
            name(c.to.element)
        )
    });
    elements.chain(links).collect()
}

#[test]
fn archives_are_read_back() {
    let long = "a-name-of-more-than-sixteen-characters";
    let member = |name: &str, data: &[u8]| Member { name: name.into(), data: data.into() };
    let members = [
        member("config", b"a :: A"),
        member(long, b"odd"),
        member("with space", b""),
        member("componentmap", b"x\n"),
    ];
    let mut sources = SourceMap::new();
    let file = sources.add("config", archive(&members));
    assert_eq!(&*sources.text(file), "a :: A");
    assert_eq!(sources.members(file), &members[1..]);
}

#[test]
fn variables_of_the_file_stay() {
    let keep = |text: &str, vars: &[(&str, &str)]| {
        let vars: Vec<_> = vars.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let (graph, errors) = expand_keeping_variables(&tree(text).0, &AnyClass, &vars);
        assert!(errors.is_empty(), "{errors:?}");
        show(&graph)
    };
    let text = "define($n 5, $m 6) elementclass C { $x, $n | input -> A($x, $n, ${m}k, \"$m\") \
                -> output } i :: I -> C($n, 7) -> j :: J(${n-3}, $o)";
    assert_eq!(
        keep(text, &[("m", "9"), ("o", "8")]),
        "define($n 5, $m 9);\n\ni :: I;\nj :: J($n, 8);\nC@2/A@1 :: A($n, 7, ${m}k, \"$m\");\n\n\
         i -> C@2/A@1\n    -> j;\n"
    );
    assert_eq!(keep("a :: A($n) // kept0_", &[]), "a :: A($n);\n\n");
}

const MANUAL: &str = "Idle -> Counter -> td1 :: ToDump(a);
InfiniteSource -> ss :: StaticSwitch(1);
ss[0] -> ToDump(c);
ss[1] -> Queue -> rr :: RoundRobinSched;
Idle -> [1]rr;
rr -> td2 :: ToDump(b);";

fn print_undead(text: &str) -> String {
    let done = undead(&flat(text));
    assert!(!done.diagnostics.has_errors(), "{:?}", done.diagnostics);
    done.graph.as_ref().map_or("dead".to_owned(), show)
}

#[test]
fn dead_elements_are_removed() {
    assert_eq!(
        print_undead(MANUAL),
        "InfiniteSource@4 :: InfiniteSource;\nQueue@7 :: Queue;\ntd2 :: ToDump(b);\n\n\
         InfiniteSource@4 -> Queue@7\n    -> td2;\n"
    );
    for (text, want) in [
        ("i :: I -> Null -> Null -> d :: D", "i -> d;\n"),
        ("i :: I -> d :: D; Idle -> A -> Idle", "i -> d;\n"),
        (
            "i :: I -> t :: Tee -> d :: D; t[1] -> Idle; t[2] -> e :: E",
            "i -> t\n    -> d;\nt [1] -> e;\n",
        ),
        ("i :: I -> t :: Tee -> d :: D; t[1] -> Idle", "i -> d;\n"),
        ("i :: I -> [1]s :: StaticPullSwitch(1) -> d :: D; j :: I -> s", "i -> d;\n"),
        ("i :: I -> s :: StaticSwitch(-1); s -> d :: D; j :: J -> e :: E", "j -> e;\n"),
        // A port that has lost its neighbour gets an Idle.
        (
            "i :: I -> c :: C -> d :: D; c[1] -> Queue -> Idle",
            "i -> c\n    -> d;\nc [1] -> Idle@4;\n",
        ),
        // A loop alone has no source.
        ("i :: I -> d :: D; a :: A -> b :: B -> a", "i -> d;\n"),
        ("Idle -> Discard", "dead"),
        ("AddressInfo(x 1.0.0.1); i :: I -> d :: D", "i -> d;\n"),
    ] {
        let done = print_undead(text);
        let links = done.rsplit_once("\n\n").map_or(done.as_str(), |(_, links)| links);
        assert_eq!(links, want, "{text}\n{done}");
    }
    assert!(print_undead("AddressInfo(x 1.0.0.1)").contains("AddressInfo@1"));
    assert!(print_undead("i :: I -> t :: Tee -> d :: D; t[1] -> e :: E").contains("t :: Tee(2)"));
}

#[test]
fn schedulers_lose_shares_with_their_inputs() {
    let done = print_undead(
        "i :: I -> q :: Queue -> s :: StrideSched(1, 2, 3) -> d :: D; Idle -> [1]s; \
         j :: J -> r :: Queue -> [2]s",
    );
    assert!(done.contains("s :: StrideSched(1, 3);"), "{done}");
    assert!(done.contains("r\n    -> [1] s;"), "{done}");
}

#[test]
fn switches_without_a_number_are_errors() {
    let done = undead(&flat("i :: I -> s :: StaticSwitch(x) -> d :: D; j :: J -> e :: E"));
    let words: Vec<_> = done.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(words, ["s: bad configuration 'StaticSwitch(x)'"]);
    let notes: Vec<_> = done.notes.iter().map(|(_, text)| text.as_str()).collect();
    assert!(notes.contains(&"assuming 'i :: I' is source"), "{notes:?}");
    assert!(notes.contains(&"removing 'd :: D'"), "{notes:?}");
}

fn component(name: &str, text: &str) -> RouterComponent {
    RouterComponent { name: name.into(), graph: flat(text), members: Vec::new() }
}

fn links(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

const A: &str =
    "f :: FromDevice(eth0) -> c :: Counter -> q :: Queue -> t :: ToDevice(eth0, BURST 8);";
const B: &str = "FromDevice(eth1) -> Strip(14) -> Discard; Idle -> ToDevice(eth1);";

#[test]
fn routers_are_joined_at_their_devices() {
    let parts = [component("a", A), component("b", B)];
    let span = tree("").1;
    let combined = combine(&parts, &links(&["a.eth0=b.eth1", "b.eth1=a.f"]), span).expect("fits");
    assert!(combined.warnings.is_empty(), "{:?}", combined.warnings);
    let text = show(&combined.graph);
    for line in [
        "link1 :: RouterLink(a t ToDevice, \"eth0, BURST 8\", b FromDevice@1 FromDevice, eth1);",
        "link2 :: RouterLink(b ToDevice@5 ToDevice, eth1, a f FromDevice, eth0);",
        "a/c :: Counter;",
        "a/c\n    -> a/q\n    -> link1\n    -> b/Strip@2",
        "b/Idle@4 -> link2",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(components(&combined.members), Some(vec!["a".to_owned(), "b".to_owned()]));
    for one in &parts {
        let mut members = combined.members.clone();
        let back = uncombine(&combined.graph, &mut members, &one.name).expect("is in it");
        assert_eq!(unordered(&back), unordered(&one.graph));
        assert!(members.is_empty(), "{members:?}");
    }
}

#[test]
fn links_have_several_ends_and_combinations_nest() {
    let span = tree("").1;
    let parts = [component("a", A), component("b", B), component("c", B)];
    let inner = combine(&parts, &links(&["a.eth0=b.eth1", "a.t=c.eth1"]), span).expect("fits");
    assert!(show(&inner.graph).contains("link1 [1] -> c/Strip@2"), "{}", show(&inner.graph));
    let outer = [
        RouterComponent { name: "net".into(), graph: inner.graph, members: inner.members },
        component("host", "FromDevice(eth9) -> Discard"),
    ];
    let all = combine(&outer, &links(&["net.b/ToDevice@5=host.eth9"]), span).expect("fits");
    let names = ["net", "net/a", "net/b", "net/c", "host"];
    assert_eq!(components(&all.members), Some(names.map(str::to_owned).to_vec()));
    for (name, one) in [("net/a", &parts[0]), ("net/b", &parts[1]), ("net/c", &parts[2])] {
        let mut members = all.members.clone();
        let back = uncombine(&all.graph, &mut members, name).expect("is in it");
        assert_eq!(unordered(&back), unordered(&one.graph), "{name}");
    }
    let mut members = all.members.clone();
    let net = uncombine(&all.graph, &mut members, "net").expect("is in it");
    assert_eq!(unordered(&net), unordered(&outer[0].graph));
    assert_eq!(components(&members), components(&outer[0].members));
}

#[test]
fn wrong_combinations_are_errors() {
    let span = tree("").1;
    let parts = [component("a", A), component("b", B)];
    for (all, want) in [
        (&["x"][..], &["bad link definition 'x'"][..]),
        (&["a.eth0=b"], &["bad link definition 'a.eth0=b'"]),
        (&["x.eth0=y.eth0"], &["no router named 'x'", "no router named 'y'"]),
        (&["a.eth0=b.eth0"], &["router 'b' has no element or device named 'eth0'"]),
        (
            &["a.eth0=b.FromDevice@1", "b.FromDevice@1=a.f"],
            &["router 'b' element 'FromDevice@1' used as both source and destination"],
        ),
    ] {
        assert_eq!(combine(&parts, &links(all), span).expect_err("is wrong"), want);
    }
    let twice =
        component("d", "FromDevice(e) -> Discard; Idle -> ToDevice(e); Idle -> ToDevice(e)");
    let errors = combine(&[twice], &links(&["d.e=d.e"]), span).expect_err("is wrong");
    assert_eq!(errors, ["more than one 'ToDevice(e)' element in router 'd'"]);
    let errors = combine(&[component("1", A), component("b", A), component("b", B)], &[], span);
    let want = ["router name '1' is not a legal Click identifier", "two routers named 'b'"];
    assert_eq!(errors.expect_err("is wrong"), want);
    let odd = combine(&parts, &links(&["a.c=b.eth1"]), span).expect("only odd");
    let want = ["router 'a' element 'c' has unexpected class", "  expected ToDevice, got Counter"];
    assert_eq!(odd.warnings, want);
    assert_eq!(
        combine(&parts, &[], span).expect("only odd").warnings,
        ["no links between routers"]
    );
    let mut members = odd.members.clone();
    let none = uncombine(&odd.graph, &mut members, "x").expect_err("is not there");
    assert_eq!(none, ["no 'x' component"]);
}

fn aligned(text: &str) -> (String, usize) {
    let done = align(&flat(text));
    (show(&done.graph), done.added)
}

#[test]
fn packets_are_aligned_where_elements_require_it() {
    for (text, added, lines) in [
        // The Ethernet header before the IP header gives the right alignment.
        ("FromDevice(e) -> Strip(14) -> CheckIPHeader -> Discard", 0, &[][..]),
        ("FromDevice(e) -> CheckIPHeader(14) -> Discard", 0, &[]),
        ("FromDevice(e) -> CheckIPHeader(OFFSET 14) -> Discard", 0, &[]),
        (
            "f :: FromDevice(e) -> c :: CheckIPHeader -> Discard",
            1,
            &["Align@click_align@4 :: Align(4, 0);", "f -> Align@click_align@4\n    -> c\n"],
        ),
        // CheckIPHeader after Strip requires an alignment; the Align is inserted before Strip.
        (
            "FromDump(f) -> s :: Strip(14) -> c :: CheckIPHeader -> Discard",
            1,
            &["Align(4, 2)", "-> Align@click_align@5\n    -> s\n"],
        ),
        ("Idle -> CheckIPHeader -> Discard", 0, &[]),
        (
            "InfiniteSource -> Strip(1) -> IPEncap(4, 1.0.0.1, 2.0.0.2) -> Discard",
            1,
            &["Align(4, 3)"],
        ),
        // A Classifier accepts any known alignment.
        (
            "FromDevice(e) -> c :: Classifier(-) -> Discard",
            0,
            &["AlignmentInfo@click_align@4 :: AlignmentInfo(c  4 2);"],
        ),
        (
            "a :: FromDevice(e), b :: FromDevice(f, TYPE IP) -> c :: Classifier(-) -> Discard",
            1,
            &["Align(4, 0)", "b -> c", "AlignmentInfo(c  4 0)"],
        ),
        ("FromDump(f) -> c :: Classifier(-) -> Discard", 1, &["AlignmentInfo(c  4 0)"]),
        // A needed Align is not added again, and an unnecessary one is removed.
        ("FromDevice(e) -> Align(4, 0) -> CheckIPHeader -> Discard", 0, &["Align(4, 0)"]),
        ("FromDevice(e) -> Align(4, 2) -> Strip(14) -> CheckIPHeader -> Discard", 0, &[]),
        ("AlignmentInfo(x 4 2); Idle -> Discard", 0, &[]),
    ] {
        let (done, count) = aligned(text);
        lines.iter().for_each(|line| assert!(done.contains(line), "{text}: {line}\n{done}"));
        assert_eq!(count, done.matches(" :: Align(").count().min(count), "{text}\n{done}");
        assert_eq!(count, added, "{text}\n{done}");
        if lines.is_empty() {
            assert!(!done.contains(":: Align("), "{text}\n{done}");
        }
        let (again, added) = aligned(&done);
        assert_eq!(
            (again.matches(" :: ").count(), added),
            (done.matches(" :: ").count(), 0),
            "twice is once: {text}\n{again}"
        );
    }
}

#[test]
fn an_alignment_that_was_unknown_may_be_wrong_further_on() {
    // Nothing says how packets of this circle lie.
    let text = "i :: CheckIPHeader; c :: Classifier(-); s :: Strip(14);
                Idle -> i; s -> c -> s -> i";
    let (done, added) = aligned(text);
    assert_eq!((added, done.matches(":: Align(4, 0)").count()), (2, 2), "{done}");
    assert_eq!(aligned(&done).1, 0, "{done}");
}

#[test]
fn check_align_is_inserted_for_assertions() {
    let graph = assert_alignment(&flat(
        "f :: FromDevice(e) -> s :: Strip(14) -> c :: CheckIPHeader -> Discard",
    ));
    let text = show(&graph);
    assert!(text.contains("CheckAlign@click_align@5 :: CheckAlign(4, 0, ASSERT true);"), "{text}");
    assert!(text.contains("f -> s\n    -> CheckAlign@click_align@5\n    -> c\n"), "{text}");
}

fn rules(text: &str) -> Vec<Pattern> {
    let (patterns, errors) = patterns(&tree(text).0, &AnyClass);
    assert!(!errors.has_errors(), "{errors:?}");
    patterns
}

fn pair(pattern: &str, replacement: &str) -> String {
    format!("elementclass P {{ {pattern} }} elementclass P_Replacement {{ {replacement} }}")
}

fn replaced(pattern: &str, replacement: &str, text: &str) -> (usize, String) {
    let done = transform(&flat(text), &rules(&pair(pattern, replacement)));
    assert!(!done.diagnostics.has_errors(), "{:?}", done.diagnostics);
    (done.replaced, show(&done.graph))
}

#[test]
fn patterns_are_replaced() {
    let (count, text) = replaced(
        "input -> Queue -> output",
        "input -> Queue -> Shaper(200) -> output",
        "i :: I -> q :: Queue -> d :: D",
    );
    assert_eq!(count, 1, "not what the pattern itself has put in");
    assert_eq!(
        text,
        "i :: I;\nd :: D;\nq :: Queue;\nP@1/Shaper@2 :: Shaper(200);\n\n\
         i -> q\n    -> P@1/Shaper@2\n    -> d;\n"
    );
    let (count, text) = replaced(
        "input -> Meter($a) -> Shaper($b) -> output",
        "input -> Meter($b) -> SlowShaper($a) -> output",
        "i :: I -> Meter(1000) -> Shaper(2000) -> d :: D; j :: I -> Meter(1) -> Shaper(2) -> e :: D",
    );
    assert_eq!(count, 2);
    for line in ["Meter(2000)", "SlowShaper(1000)", "Meter(2)", "SlowShaper(1)"] {
        assert!(text.contains(line), "{text}");
    }
    // A replacement may be empty.
    let (_, text) =
        replaced("input -> Null -> output", "input -> output", "I -> Null -> Null -> D");
    assert_eq!(text, "I@1 :: I;\nD@4 :: D;\n\nI@1 -> D@4;\n");
    // A pattern may have no inputs.
    let (_, text) = replaced("I(5) -> output", "J -> output", "I(5) -> d :: D; I(6) -> e :: D");
    assert!(text.contains("P@1/J@1 -> d;") && text.contains("I@3 -> e;"), "{text}");
}

#[test]
fn matches_are_exact() {
    for (pattern, text) in [
        ("input -> A -> B -> output", "i :: I -> A -> C -> d :: D"),
        // A connection inside the match that the pattern does not have, and one missing in it.
        (
            "input -> a :: A -> b :: B -> output",
            "i :: I -> a :: A -> b :: B -> d :: D; b[1] -> [1]a",
        ),
        ("input -> a :: A -> b :: B -> output; a[1] -> [1]b", "i :: I -> A -> B -> d :: D"),
        // A connection that leaves the match where the pattern has no port.
        ("input -> A -> B -> output", "i :: I -> a :: A -> B -> d :: D; a[1] -> d"),
        ("input -> A -> B -> output", "i :: I -> a :: A -> b :: B -> d :: D; i[1] -> b"),
        // A port of the pattern without a connection.
        ("input -> A -> output", "A -> d :: D"),
        // An input of the pattern with two targets needs connections to both.
        ("input -> a :: A -> output; input -> b :: A -> [1]output", "I -> A -> D; I -> A -> D"),
        // Arguments.
        ("input -> A($x) -> B($x) -> output", "i :: I -> A(1) -> B(2) -> d :: D"),
        ("input -> A($x, $x) -> output", "i :: I -> A(1, 2) -> d :: D"),
        ("input -> A($x) -> output", "i :: I -> A -> d :: D"),
        ("input -> A(1) -> output", "i :: I -> A(2) -> d :: D"),
        ("input -> A -> output; input[1] -> A -> [1]output", "i :: I -> A -> d :: D"),
    ] {
        let graph = flat(text);
        let (count, done) =
            replaced(pattern, "input -> Z -> output; input [1] -> Y -> [1]output", text);
        assert_eq!((count, done), (0, show(&graph)), "{pattern}");
    }
    // The search finds a diamond, whichever branch it tries first.
    let (count, _) = replaced(
        "input -> t :: T -> a :: A(1) -> u :: U -> output; t[1] -> b :: A(2) -> [1]u",
        "input -> Z -> output",
        "I -> t :: T -> A(1) -> u :: U -> D; t[1] -> A(2) -> [1]u",
    );
    assert_eq!(count, 1);
}

#[test]
fn compounds_in_patterns_are_expanded() {
    let rules = rules(
        "elementclass Two { $x | input -> A($x) -> A($x) -> output }
         elementclass P { input -> Two($n) -> output }
         elementclass P_Replacement { input -> Two2($n) -> output }",
    );
    let done = transform(&flat("i :: I -> A(3) -> A(3) -> d :: D"), &rules);
    assert!(show(&done.graph).contains("P@1/Two2@1 :: Two2(3);"), "{}", show(&done.graph));
}

#[test]
fn reversed_patterns_match_replacements() {
    let rules: Vec<_> = rules(&pair("input -> A($x) -> output", "input -> B($x) -> C -> output"))
        .into_iter()
        .map(Pattern::reversed)
        .collect();
    let done = transform(&flat("i :: I -> B(7) -> C -> d :: D"), &rules);
    assert!(show(&done.graph).contains(":: A(7);"), "{}", show(&done.graph));
}

#[test]
fn patterns_without_end_are_errors() {
    let both = "elementclass P { input -> A -> output } \
                elementclass P_Replacement { input -> A -> output } \
                elementclass Q { input -> A -> output } \
                elementclass Q_Replacement { input -> A -> output }";
    let done = transform(&flat("I -> A -> D"), &rules(both));
    let words: Vec<_> = done.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(words, ["replacements never end: 'P', 'Q'"]);
    let lost = transform(
        &flat("I -> A -> D"),
        &rules(&pair("input -> A -> output", "input -> B; C -> [1]output; D -> output")),
    );
    assert!(!lost.diagnostics.has_errors());
    let lost = transform(&flat("I -> A -> D"), &rules(&pair("input -> A -> output", "input -> B")));
    let words: Vec<_> = lost.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(words, ["output 0 of pattern 'P' is missing in its replacement"]);
}

/// Generates graphs of a few classes with any connections.
fn graphs() -> impl Strategy<Value = String> {
    let classes = vec![
        "I",
        "D",
        "A",
        "A(1)",
        "B",
        "Null",
        "Tee",
        "Queue",
        "StaticSwitch(1)",
        "StaticSwitch(0)",
        "RoundRobinSched",
        "Idle",
        "Strip(14)",
        "CheckIPHeader",
        "Classifier(-)",
        "FromDevice(e)",
    ];
    let elements = prop::collection::vec(prop::sample::select(classes), 1..10);
    let links = prop::collection::vec((0usize..10, 0u32..3, 0u32..3, 0usize..10), 0..16);
    (elements, links).prop_map(|(elements, links)| {
        let count = elements.len();
        let mut text = String::new();
        for (i, class) in elements.iter().enumerate() {
            text += &format!("e{i} :: {class}; ");
        }
        for (from, output, input, to) in links {
            text += &format!("e{} [{output}] -> [{input}] e{}; ", from % count, to % count);
        }
        text
    })
}

/// Returns the pairs of a source and a sink that its packets reach; a `StaticSwitch` passes packets
/// to its selected output only.
fn reachable_sinks(graph: &FlatGraph) -> BTreeSet<(String, String)> {
    let ports = graph.ports();
    let mut all = BTreeSet::new();
    for (start, it) in graph.elements.iter().enumerate() {
        if ports[start].0 > 0 || it.class == "Idle" || it.class == "StaticSwitch" {
            continue;
        }
        let mut seen = HashSet::new();
        let mut work = vec![start];
        while let Some(at) = work.pop() {
            let here = &graph.elements[at];
            if !seen.insert(at) || here.class == "Idle" {
                continue;
            }
            if ports[at].1 == 0 && at != start && here.class != "StaticSwitch" {
                all.insert((it.name.clone(), here.name.clone()));
            }
            let open =
                |port: usize| here.class != "StaticSwitch" || here.config == port.to_string();
            let out =
                graph.connections.iter().filter(|c| c.from.element == at && open(c.from.port));
            work.extend(out.map(|c| c.to.element));
        }
    }
    all
}

/// Whether each `StaticSwitch`, `Null` and `Tee` has at most one connection from each output, as
/// push requires, and uses input 0 only; and no switch leads to a switch.
fn is_valid_push(graph: &FlatGraph) -> bool {
    let mut used: BTreeMap<_, u32> = BTreeMap::new();
    graph.connections.iter().for_each(|c| *used.entry(c.from).or_default() += 1);
    let switch = |at: usize| graph.elements[at].class == "StaticSwitch";
    let narrow = |at: usize| ["StaticSwitch", "Null", "Tee"].contains(&&*graph.elements[at].class);
    used.iter().all(|(from, count)| !narrow(from.element) || *count == 1)
        && !graph.connections.iter().any(|c| {
            let (from, to) = (c.from.element, c.to.element);
            (narrow(to) && c.to.port > 0) || (switch(from) && switch(to))
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        max_global_rejects: 100_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn live_elements_stay(text in graphs()) {
        let graph = flat(&text);
        prop_assume!(is_valid_push(&graph));
        let before = reachable_sinks(&graph);
        let done = undead(&graph);
        let after = done.graph.as_ref().map(reachable_sinks).unwrap_or_default();
        prop_assert_eq!(&after, &before, "{}\n{}", text, done.graph.as_ref().map(show).unwrap_or_default());
        if let Some(left) = &done.graph {
            // A second run removes nothing more, except Idle elements.
            let again = undead(left);
            let count = |g: &FlatGraph| g.elements.iter().filter(|e| e.class != "Idle").count();
            prop_assert_eq!(again.graph.as_ref().map_or(0, count), count(left), "{}", show(left));
        }
    }

    #[test]
    fn components_come_back(a in graphs(), b in graphs()) {
        let one = |name: &str, text: &str| component(name, &format!(
            "{text} x :: FromDevice(x1) -> e0; e0 [9] -> y :: ToDevice(y1);"
        ));
        let parts = [one("a", &a), one("b", &b)];
        let span = tree("").1;
        let combined = combine(&parts, &links(&["a.y1=b.x1", "b.y=a.x"]), span).expect("fits");
        let printed = show(&combined.graph);
        let again = flat(&printed);
        for part in &parts {
            let mut members = combined.members.clone();
            let back = uncombine(&again, &mut members, &part.name).expect("is in it");
            prop_assert_eq!(unordered(&back), unordered(&part.graph), "{}", printed);
        }
    }

    #[test]
    fn aligning_twice_adds_nothing(text in graphs()) {
        let (done, _) = aligned(&text);
        let (again, added) = aligned(&done);
        prop_assert_eq!(added, 0, "{}\n{}", done, again);
    }

    #[test]
    fn without_a_match_nothing_changes(text in graphs()) {
        let graph = flat(&text);
        let rules = rules(&pair("input -> A -> Absent -> output", "input -> B -> output"));
        let done = transform(&graph, &rules);
        prop_assert_eq!((done.replaced, show(&done.graph)), (0, show(&graph)));
    }

    #[test]
    fn reversed_replacements_restore_the_graph(text in graphs()) {
        let graph = flat(&text);
        let rules = rules(&pair("input -> a :: A -> output", "input -> a :: Z -> output"));
        let there = transform(&graph, &rules);
        let back: Vec<_> = rules.into_iter().map(Pattern::reversed).collect();
        let back = transform(&there.graph, &back);
        prop_assert_eq!(back.replaced, there.replaced);
        prop_assert_eq!(unordered(&back.graph), unordered(&graph), "{}", show(&there.graph));
    }
}
