//! Checks of the transformations and printers that hold for any text.

use std::collections::BTreeSet;

use super::{MAX_ELEMENTS, check_graph, is_printable, is_small};
use crate::print::{self, HtmlLinks};
use crate::transform::{self, Pattern, RouterComponent};
use crate::tree::Tree;
use crate::{AnyClass, Diagnostics, FlatGraph, SourceMap, Span, expand, outline, parse};

/// Runs all checks, on graphs that are not too large.
pub(super) fn check(tree: &Tree, diagnostics: &Diagnostics, flat: &FlatGraph, sources: &SourceMap) {
    check_printers(tree, diagnostics, sources);
    if !is_small(flat) {
        return;
    }
    if let Some(left) = transform::undead(flat).graph {
        check_graph(&left);
        assert!(left.elements.len() <= flat.elements.len() + 1, "only an Idle is added");
    }
    let aligned = transform::align(flat);
    check_graph(&aligned.graph);
    let again = transform::align(&aligned.graph);
    let printed = print::flat(&aligned.graph);
    assert_eq!(again.added, 0, "aligned once and for all:\n{printed}");
    check_graph(&transform::assert_alignment(flat));
    check_patterns(tree, flat);
    if diagnostics.is_empty() {
        check_uncombine(flat, tree);
        check_kept_variables(tree);
    }
}

/// Checks that keeping the file's variables and substituting them later gives the same graph.
fn check_kept_variables(tree: &Tree) {
    let (kept, _) = transform::expand_keeping_variables(tree, &AnyClass, &[]);
    let (flat, errors) = expand(tree, &AnyClass, &[]);
    if !errors.is_empty() || !is_printable(&flat) || !has_plain_values(&kept) {
        return;
    }
    let mut sources = SourceMap::new();
    let text = print::flat(&kept);
    let file = sources.add("kept", &text);
    let (again, errors) = parse(&mut sources, file);
    assert!(!errors.has_errors(), "{}\n{text}", errors.render_click(&sources));
    let (again, errors) = expand(&again, &AnyClass, &[]);
    assert!(!errors.has_errors(), "{}\n{text}", errors.render_click(&sources));
    assert_eq!(unordered(&again), unordered(&flat), "{text}");
}

/// Whether the value of every variable is one word without quotes, which substitution does not
/// change.
fn has_plain_values(kept: &FlatGraph) -> bool {
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric()) && !text.is_empty();
    kept.defines.iter().all(|(_, value)| word(value))
}

/// Returns declarations and connections without their order.
pub(super) fn unordered(graph: &FlatGraph) -> BTreeSet<String> {
    let name = |at: usize| &graph.elements[at].name;
    let elements =
        graph.elements.iter().map(|it| format!("{} :: {}({})", it.name, it.class, it.config));
    let links = graph.connections.iter().map(|c| {
        let (from, to) = (name(c.from.element), name(c.to.element));
        format!("{from} [{}] -> [{}] {to}", c.from.port, c.to.port)
    });
    elements.chain(links).collect()
}

/// Whether `uncombine` must give a graph back: it has no `RouterLink`, and its names have no slash
/// or space.
pub(super) fn is_simple(flat: &FlatGraph) -> bool {
    !flat.elements.iter().any(|it| it.class == "RouterLink" || it.name.contains(['/', ' ']))
}

/// Checks that a graph comes back from a combination with itself.
fn check_uncombine(flat: &FlatGraph, tree: &Tree) {
    if !is_simple(flat) {
        return;
    }
    let component = |name: &str| RouterComponent {
        name: name.into(),
        graph: flat.clone(),
        members: Vec::new(),
    };
    let span = Span { file: tree.file, start: 0, end: 0 };
    let components = [component("a"), component("b")];
    let Ok(combined) = transform::combine(&components, &[], span) else { return };
    check_graph(&combined.graph);
    let mut members = combined.members.clone();
    let back = transform::uncombine(&combined.graph, &mut members, "b");
    assert_eq!(back.as_ref().map(unordered), Ok(unordered(flat)));
}

/// Replaces the patterns of a file in its own graph, and reverses the replacement.
fn check_patterns(tree: &Tree, flat: &FlatGraph) {
    let (patterns, _) = transform::patterns(tree, &AnyClass);
    let done = transform::transform(flat, &patterns);
    check_graph(&done.graph);
    if done.replaced == 0 {
        assert_eq!(print::flat(&done.graph), print::flat(flat), "no match, no change");
    }
    let back: Vec<_> = patterns.into_iter().map(Pattern::reversed).collect();
    check_graph(&transform::transform(&done.graph, &back).graph);
}

/// Checks the HTML and XML of any text.
fn check_printers(tree: &Tree, diagnostics: &Diagnostics, sources: &SourceMap) {
    let (outline, _) = outline(tree, &AnyClass);
    let size: usize = outline.scopes.iter().map(|scope| scope.graph.elements.len()).sum();
    if size > 10 * MAX_ELEMENTS {
        return;
    }
    let processing = outline.processing(&|class| (class == "Queue").then(|| "h/l".to_owned()));
    let xml = print::xml(&outline, &processing, sources);
    assert_eq!(xml.matches("<elementclass").count(), xml.matches("</elementclass>").count());
    let links = HtmlLinks { outline: &outline, docs: &|class| Some(format!("http://x/{class}")) };
    let page = print::html(tree, diagnostics, &links);
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
