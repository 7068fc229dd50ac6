//! What holds of the tools that take several texts: routers that are joined and taken apart again,
//! patterns from another file, one tool after the other.

use super::{DRAWN, check, round_trip, transforms};
use crate::transform::{self, Part, Pattern};
use crate::{AnyClass, Flat, Member, SourceMap, Span, Tree, archive, expand, parse};

/// The most links between two routers, and the most patterns.
const MOST: usize = 20;

/// Takes bytes for four texts with zero bytes between them: two configurations, patterns, and links
/// from the first to the second; does with them what Click's tools do.
///
/// # Panics
/// If an invariant does not hold: that is a defect of this crate.
pub fn fuzz_tools(bytes: &[u8]) {
    let mut texts = bytes.splitn(4, |&byte| byte == 0);
    let mut next = || texts.next().unwrap_or_default();
    let (one, other, patterns, links) = (next(), next(), next(), next());
    let Some((_, one)) = read(one) else { return };
    filtered(&one, patterns);
    let Some((_, other)) = read(other) else { return };
    let links = String::from_utf8_lossy(links);
    let links: Vec<String> = links.lines().take(MOST).map(str::to_owned).collect();
    joined(&one, &other, &links);
}

/// A text that the tools would go on with.
fn read(text: &[u8]) -> Option<(Tree, Flat)> {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", text);
    let (tree, found) = parse(&mut sources, file);
    let (flat, errors) = expand(&tree, &AnyClass, &[]);
    let right = !found.has_errors() && !errors.has_errors();
    let small = flat.elements.len() <= DRAWN && flat.connections.len() <= 2 * DRAWN;
    (right && small).then_some((tree, flat))
}

/// `click-xform`, `click-undead` and `click-align`, each with what the one before it wrote.
fn filtered(graph: &Flat, patterns: &[u8]) {
    let mut patterns = match read(patterns) {
        Some((tree, _)) => transform::patterns(&tree, &AnyClass).0,
        None => Vec::new(),
    };
    patterns.truncate(MOST);
    let changed = transform::transform(graph, &patterns).graph;
    check(&changed);
    round_trip(&changed);
    let back: Vec<_> = patterns.into_iter().map(Pattern::reversed).collect();
    check(&transform::transform(&changed, &back).graph);
    let live = transform::undead(&changed).graph.unwrap_or(changed);
    check(&live);
    round_trip(&live);
    let again = transform::undead(&live).graph.map_or(0, |graph| graph.elements.len());
    assert!(again <= live.elements.len() + 1, "nothing comes to life");
    let aligned = transform::align(&live).graph;
    check(&aligned);
    round_trip(&aligned);
    check(&transform::assert_alignment(&aligned));
}

/// `click-combine`, its archive, and `click-uncombine`.
fn joined(one: &Flat, other: &Flat, links: &[String]) {
    let part = |name: &str, graph: &Flat| Part {
        name: name.into(),
        graph: graph.clone(),
        members: Vec::new(),
    };
    let made = Span { file: SourceMap::new().add("links", ""), start: 0, end: 0 };
    let Ok(joined) = transform::combine(&[part("a", one), part("b", other)], links, made) else {
        return;
    };
    check(&joined.graph);
    check(&transform::align(&joined.graph).graph);
    if let Some(live) = transform::undead(&joined.graph).graph {
        check(&live);
    }
    archived(&joined.members);
    for (name, graph) in [("a", one), ("b", other)] {
        let mut members = joined.members.clone();
        let back = transform::uncombine(&joined.graph, &mut members, name);
        if transforms::is_simple(graph) {
            let facts = back.as_ref().map(transforms::facts);
            assert_eq!(facts, Ok(transforms::facts(graph)), "{name} of {links:?}");
        }
    }
}

/// What is archived beside a configuration is found in the archive.
fn archived(members: &[Member]) {
    let config = Member { name: "config".into(), data: b"a :: A".to_vec() };
    let all: Vec<Member> = std::iter::once(config).chain(members.iter().cloned()).collect();
    let mut sources = SourceMap::new();
    let file = sources.add("archive", archive(&all));
    assert_eq!(&*sources.text(file), "a :: A");
    assert_eq!(sources.members(file), members);
}
