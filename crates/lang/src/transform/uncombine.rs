//! `click-uncombine`: extracts one router from a combination.

use std::collections::HashSet;

use super::combine::{COMPONENTS, LINK};
use super::editor::GraphEditor;
use crate::archive::Member;
use crate::args;
use crate::flat::{FlatGraph, Port};

/// Returns the names of the components of a combination; `None` if the archive is no combination.
pub fn components(members: &[Member]) -> Option<Vec<String>> {
    let map = members.iter().find(|member| member.name == COMPONENTS)?;
    let text = String::from_utf8_lossy(&map.data);
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// Extracts one router from a combination; a name with slashes extracts it from a combination
/// inside the combination. Its elements get back their names, and its devices replace the links.
/// `members` becomes the members of its archive.
///
/// # Errors
/// The component does not exist, or a link is not as `combine` makes it.
pub fn uncombine(
    graph: &FlatGraph,
    members: &mut Vec<Member>,
    component: &str,
) -> Result<FlatGraph, Vec<String>> {
    let mut graph = graph.clone();
    let mut prefix = String::new();
    let mut rest = component;
    while !rest.is_empty() {
        let (name, inner) = rest.split_once('/').unwrap_or((rest, ""));
        let known = components(members).unwrap_or_default();
        if !known.iter().any(|known| known == name) {
            return Err(vec![format!("no '{prefix}{name}' component")]);
        }
        graph = extract(&graph, name)?;
        narrow_components(members, &known, name);
        prefix = format!("{prefix}{name}/");
        rest = inner;
    }
    Ok(graph)
}

/// Replaces the list of components by that of the component `name`, if it is a combination.
fn narrow_components(members: &mut Vec<Member>, known: &[String], name: &str) {
    let prefix = format!("{name}/");
    let inner = known.iter().filter_map(|known| known.strip_prefix(&prefix));
    let map: String = inner.map(|name| format!("{name}\n")).collect();
    members.retain(|member| member.name != COMPONENTS);
    if map.is_empty() {
        members.retain(|member| member.name != "elementmap.xml");
    } else {
        members.push(Member { name: COMPONENTS.into(), data: map.into_bytes() });
    }
}

/// One element that a link replaces, from the link's configuration.
struct LinkEndpoint {
    router: String,
    name: String,
    class: String,
    config: String,
}

/// Extracts the component `name` of the outermost combination.
fn extract(graph: &FlatGraph, name: &str) -> Result<FlatGraph, Vec<String>> {
    let mut editor = GraphEditor::new(graph);
    let mut errors = Vec::new();
    let prefix = format!("{name}/");
    let mut own: Vec<usize> =
        editor.live().filter(|&at| editor.elements[at].name.starts_with(&prefix)).collect();
    for link in editor.with_class(LINK) {
        let Some(ends) = endpoints(&editor, link) else {
            let link = &editor.elements[link].name;
            errors.push(format!("{LINK} '{link}' has strange configuration"));
            continue;
        };
        if ends.iter().any(|end| end.router == name) {
            own.extend(restore(&mut editor, link, &ends, name));
        } else if ends.iter().any(|end| end.router.starts_with(&prefix)) {
            own.push(link);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    keep(&mut editor, own);
    rename(&mut editor, &prefix);
    Ok(editor.finish())
}

/// Parses a link's configuration; `None` if it is not as `combine` writes it.
fn endpoints(editor: &GraphEditor, link: usize) -> Option<Vec<LinkEndpoint>> {
    let (inputs, outputs) = editor.ports(link);
    let args = args::split(&editor.elements[link].config);
    if inputs == 0 || outputs == 0 || args.len() != 2 * (inputs + outputs) {
        return None;
    }
    let end = |pair: &[args::ArgText]| {
        let [router, name, class] = args::split_words(&pair[0].text)[..] else { return None };
        let config = match pair[1].text.starts_with('"') {
            true => args::unquote(&pair[1].text),
            false => pair[1].text.clone(),
        };
        let (router, name, class) = (router.to_owned(), name.to_owned(), class.to_owned());
        Some(LinkEndpoint { router, name, class, config })
    };
    args.chunks(2).map(end).collect()
}

/// Replaces a link by the component's devices.
fn restore(editor: &mut GraphEditor, link: usize, ends: &[LinkEndpoint], name: &str) -> Vec<usize> {
    let inputs = editor.ports(link).0;
    let span = editor.elements[link].span;
    let mut made = Vec::new();
    for (i, end) in ends.iter().enumerate().filter(|(_, end)| end.router == name) {
        let device = editor.add(&format!("{name}/{}", end.name), &end.class, &end.config, span);
        let port = Port { element: device, port: 0 };
        match i.checked_sub(inputs) {
            None => editor.redirect_input(Port { element: link, port: i }, port),
            Some(output) => editor.redirect_output(Port { element: link, port: output }, port),
        }
        made.push(device);
    }
    editor.remove(link);
    made
}

/// Removes all elements that are not connected to the elements `own`.
fn keep(editor: &mut GraphEditor, own: Vec<usize>) {
    let mut kept = vec![false; editor.elements.len()];
    let mut work = own;
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut kept[at], true) {
            continue;
        }
        work.extend(editor.outgoing(at).iter().map(|(_, to)| to.element));
        work.extend(editor.incoming(at).iter().map(|(from, _)| from.element));
    }
    for at in editor.live().filter(|&at| !kept[at]) {
        editor.remove(at);
    }
}

/// Removes the component's prefix from element names, and from the routers that links name.
fn rename(editor: &mut GraphEditor, prefix: &str) {
    let mut taken: HashSet<String> =
        editor.live().map(|at| editor.elements[at].name.clone()).collect();
    for at in editor.live() {
        let Some(short) = editor.elements[at].name.strip_prefix(prefix) else { continue };
        let short = short.to_owned();
        if taken.insert(short.clone()) {
            editor.elements[at].name = short;
        }
    }
    for link in editor.with_class(LINK) {
        let args = args::split(&editor.elements[link].config).into_iter().enumerate();
        let short = |(i, arg): (usize, args::ArgText)| match arg.text.strip_prefix(prefix) {
            Some(short) if i % 2 == 0 => short.to_owned(),
            _ => arg.text,
        };
        editor.elements[link].config = args::join(args.map(short));
    }
}
