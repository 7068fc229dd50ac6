//! What holds of the transformations and of what shows a configuration, whatever the text is.

use std::collections::BTreeSet;

use super::DRAWN;
use crate::print::{self, Links};
use crate::transform::{self, Part, Pattern};
use crate::tree::Tree;
use crate::{AnyClass, Diagnostics, Flat, SourceMap, Span, expand, outline, parse};

/// Checks them all, on graphs that are not too large.
pub(super) fn hold(tree: &Tree, found: &Diagnostics, flat: &Flat, sources: &SourceMap) {
    shown(tree, found, sources);
    if flat.elements.len() > DRAWN || flat.connections.len() > 2 * DRAWN {
        return;
    }
    if let Some(left) = transform::undead(flat).graph {
        super::check(&left);
        assert!(left.elements.len() <= flat.elements.len() + 1, "only an Idle is added");
    }
    let aligned = transform::align(flat);
    super::check(&aligned.graph);
    let again = transform::align(&aligned.graph);
    let shown = print::flat(&aligned.graph);
    assert_eq!(again.added, 0, "aligned once and for all:\n{shown}");
    super::check(&transform::assert_alignment(flat));
    patterns(tree, flat);
    if found.is_empty() {
        parts_come_back(flat, tree);
        keeping(tree);
    }
}

/// Where the file's variables are kept, putting their values in later comes to the same.
fn keeping(tree: &Tree) {
    let (kept, _) = transform::expand_keeping(tree, &AnyClass, &[]);
    let (flat, errors) = expand(tree, &AnyClass, &[]);
    if !errors.is_empty() || !super::sayable(&flat) || !plain(&kept) {
        return;
    }
    let mut sources = SourceMap::new();
    let text = print::flat(&kept);
    let file = sources.add("kept", &text);
    let (again, errors) = parse(&mut sources, file);
    assert!(!errors.has_errors(), "{}\n{text}", errors.render_click(&sources));
    let (again, errors) = expand(&again, &AnyClass, &[]);
    assert!(!errors.has_errors(), "{}\n{text}", errors.render_click(&sources));
    assert_eq!(facts(&again), facts(&flat), "{text}");
}

/// Whether values stand for themselves wherever they are put: one word without quotes, and nothing
/// asks for a part of them.
fn plain(kept: &Flat) -> bool {
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric()) && !text.is_empty();
    kept.defines.iter().all(|(_, value)| word(value))
}

/// Declarations and connections, in no order.
pub(super) fn facts(graph: &Flat) -> BTreeSet<String> {
    let name = |at: usize| &graph.elements[at].name;
    let elements =
        graph.elements.iter().map(|it| format!("{} :: {}({})", it.name, it.class, it.config));
    let links = graph.connections.iter().map(|c| {
        let (from, to) = (name(c.from.element), name(c.to.element));
        format!("{from} [{}] -> [{}] {to}", c.from.port, c.to.port)
    });
    elements.chain(links).collect()
}

/// Whether a graph must come back from a combination: no link of it is one, and names are such as
/// people give.
pub(super) fn is_simple(flat: &Flat) -> bool {
    !flat.elements.iter().any(|it| it.class == "RouterLink" || it.name.contains(['/', ' ']))
}

/// A graph comes back from a combination with itself.
fn parts_come_back(flat: &Flat, tree: &Tree) {
    if !is_simple(flat) {
        return;
    }
    let part = |name: &str| Part { name: name.into(), graph: flat.clone(), members: Vec::new() };
    let span = Span { file: tree.file, start: 0, end: 0 };
    let parts = [part("a"), part("b")];
    let Ok(joined) = transform::combine(&parts, &[], span) else { return };
    super::check(&joined.graph);
    let mut members = joined.members.clone();
    let back = transform::uncombine(&joined.graph, &mut members, "b");
    assert_eq!(back.as_ref().map(facts), Ok(facts(flat)));
}

/// Patterns of a file in its own graph, and in their own replacements.
fn patterns(tree: &Tree, flat: &Flat) {
    let (patterns, _) = transform::patterns(tree, &AnyClass);
    let done = transform::transform(flat, &patterns);
    super::check(&done.graph);
    if done.replaced == 0 {
        assert_eq!(print::flat(&done.graph), print::flat(flat), "no match, no change");
    }
    let back: Vec<_> = patterns.into_iter().map(Pattern::reversed).collect();
    super::check(&transform::transform(&done.graph, &back).graph);
}

/// Pages and XML of any text.
fn shown(tree: &Tree, found: &Diagnostics, sources: &SourceMap) {
    let (outline, _) = outline(tree, &AnyClass);
    let size: usize = outline.scopes.iter().map(|scope| scope.graph.elements.len()).sum();
    if size > 10 * DRAWN {
        return;
    }
    let processing = outline.processing(&|class| (class == "Queue").then(|| "h/l".to_owned()));
    let xml = print::xml(&outline, &processing, sources);
    assert_eq!(xml.matches("<elementclass").count(), xml.matches("</elementclass>").count());
    let links = Links { outline: &outline, docs: &|class| Some(format!("http://x/{class}")) };
    let page = print::html(tree, found, &links);
    assert_eq!(page.matches("<span").count(), page.matches("</span>").count(), "{page}");
    assert_eq!(page.matches("<a ").count(), page.matches("</a>").count(), "{page}");
    let mut text = String::new();
    let mut rest = page.trim_start_matches("<pre>").trim_end_matches("</pre>\n");
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    assert_eq!(text, print::escape(&tree.text.replace("\r\n", "\n").replace('\r', "\n")));
}
