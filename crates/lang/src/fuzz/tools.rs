//! Checks of transformations of several texts: combining routers and extracting them again,
//! patterns from another file, several tools in sequence.

use super::{check_graph, check_round_trip, is_small, transforms};
use crate::transform::{self, Pattern, RouterComponent};
use crate::{AnyClass, FlatGraph, Member, SourceMap, Span, Tree, archive, expand, parse};

/// Most links between two routers, and most patterns.
const MAX_LINKS: usize = 20;

/// Runs the transformations of Click's tools. The bytes are four texts with zero bytes between
/// them: two configurations, patterns, and links from the first configuration to the second.
///
/// # Panics
/// If an invariant does not hold, which is a defect of this crate.
pub fn fuzz_tools(bytes: &[u8]) {
    let mut texts = bytes.splitn(4, |&byte| byte == 0);
    let mut next = || texts.next().unwrap_or_default();
    let (one, other, patterns, links) = (next(), next(), next(), next());
    let Some((_, one)) = read(one) else { return };
    check_filters(&one, patterns);
    let Some((_, other)) = read(other) else { return };
    let links = String::from_utf8_lossy(links);
    let links: Vec<String> = links.lines().take(MAX_LINKS).map(str::to_owned).collect();
    check_combination(&one, &other, &links);
}

/// Parses and expands a text; `None` if it has errors or the graph is too large.
fn read(text: &[u8]) -> Option<(Tree, FlatGraph)> {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", text);
    let (tree, diagnostics) = parse(&mut sources, file);
    let (flat, errors) = expand(&tree, &AnyClass, &[]);
    let is_correct = !diagnostics.has_errors() && !errors.has_errors();
    (is_correct && is_small(&flat)).then_some((tree, flat))
}

/// Runs `click-xform`, `click-undead` and `click-align` in sequence.
fn check_filters(graph: &FlatGraph, patterns: &[u8]) {
    let mut patterns = match read(patterns) {
        Some((tree, _)) => transform::patterns(&tree, &AnyClass).0,
        None => Vec::new(),
    };
    patterns.truncate(MAX_LINKS);
    let changed = transform::transform(graph, &patterns).graph;
    check_graph(&changed);
    check_round_trip(&changed);
    let back: Vec<_> = patterns.into_iter().map(Pattern::reversed).collect();
    check_graph(&transform::transform(&changed, &back).graph);
    let live = transform::undead(&changed).graph.unwrap_or(changed);
    check_graph(&live);
    check_round_trip(&live);
    let again = transform::undead(&live).graph.map_or(0, |graph| graph.elements.len());
    assert!(again <= live.elements.len() + 1, "nothing comes to life");
    let aligned = transform::align(&live).graph;
    check_graph(&aligned);
    check_round_trip(&aligned);
    check_graph(&transform::assert_alignment(&aligned));
}

/// Runs `click-combine`, reads its archive, and runs `click-uncombine`.
fn check_combination(one: &FlatGraph, other: &FlatGraph, links: &[String]) {
    let component = |name: &str, graph: &FlatGraph| RouterComponent {
        name: name.into(),
        graph: graph.clone(),
        members: Vec::new(),
    };
    let span = Span { file: SourceMap::new().add("links", ""), start: 0, end: 0 };
    let components = [component("a", one), component("b", other)];
    let Ok(combined) = transform::combine(&components, links, span) else { return };
    check_graph(&combined.graph);
    check_graph(&transform::align(&combined.graph).graph);
    if let Some(live) = transform::undead(&combined.graph).graph {
        check_graph(&live);
    }
    check_archive(&combined.members);
    for (name, graph) in [("a", one), ("b", other)] {
        let mut members = combined.members.clone();
        let back = transform::uncombine(&combined.graph, &mut members, name);
        if transforms::is_simple(graph) {
            let lines = back.as_ref().map(transforms::unordered);
            assert_eq!(lines, Ok(transforms::unordered(graph)), "{name} of {links:?}");
        }
    }
}

/// Checks that an archive contains the members that were written to it.
fn check_archive(members: &[Member]) {
    let config = Member { name: "config".into(), data: b"a :: A".to_vec() };
    let all: Vec<Member> = std::iter::once(config).chain(members.iter().cloned()).collect();
    let mut sources = SourceMap::new();
    let file = sources.add("archive", archive(&all));
    assert_eq!(&*sources.text(file), "a :: A");
    assert_eq!(sources.members(file), members);
}
