//! One router out of a combination.

use std::collections::HashSet;

use super::combine::{COMPONENTS, LINK};
use super::edit::Edit;
use crate::archive::Member;
use crate::args;
use crate::flat::{Flat, Port};

/// The names of the routers in a combination; `None` if it is none.
pub fn components(members: &[Member]) -> Option<Vec<String>> {
    let map = members.iter().find(|member| member.name == COMPONENTS)?;
    let text = String::from_utf8_lossy(&map.data);
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// Takes one router out of a combination; with slashes, out of a combination in a combination. Its
/// elements have the names they had, its devices are in the places of the links. `members` becomes
/// what its archive holds.
///
/// # Errors
/// The component that is not there, or the links that are not as `combine` makes them.
pub fn uncombine(
    graph: &Flat,
    members: &mut Vec<Member>,
    component: &str,
) -> Result<Flat, Vec<String>> {
    let mut graph = graph.clone();
    let mut prefix = String::new();
    let mut rest = component;
    while !rest.is_empty() {
        let (name, inner) = rest.split_once('/').unwrap_or((rest, ""));
        let known = components(members).unwrap_or_default();
        if !known.iter().any(|known| known == name) {
            return Err(vec![format!("no '{prefix}{name}' component")]);
        }
        graph = one(&graph, name)?;
        narrow(members, &known, name);
        prefix = format!("{prefix}{name}/");
        rest = inner;
    }
    Ok(graph)
}

/// The list of components becomes that of the parts of one of them, if it has any.
fn narrow(members: &mut Vec<Member>, known: &[String], name: &str) {
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

/// What a link says of one of its ends.
struct Endpoint {
    router: String,
    name: String,
    class: String,
    config: String,
}

fn one(graph: &Flat, name: &str) -> Result<Flat, Vec<String>> {
    let mut edit = Edit::new(graph);
    let mut errors = Vec::new();
    let prefix = format!("{name}/");
    let mut own: Vec<usize> =
        edit.live().filter(|&at| edit.elements[at].name.starts_with(&prefix)).collect();
    for link in edit.of_class(LINK) {
        let Some(ends) = endpoints(&edit, link) else {
            let link = &edit.elements[link].name;
            errors.push(format!("{LINK} '{link}' has strange configuration"));
            continue;
        };
        if ends.iter().any(|end| end.router == name) {
            own.extend(restore(&mut edit, link, &ends, name));
        } else if ends.iter().any(|end| end.router.starts_with(&prefix)) {
            own.push(link);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    keep(&mut edit, own);
    rename(&mut edit, &prefix);
    Ok(edit.finish())
}

/// Reads what stands in a link's configuration.
fn endpoints(edit: &Edit, link: usize) -> Option<Vec<Endpoint>> {
    let (inputs, outputs) = edit.ports(link);
    let args = args::split(&edit.elements[link].config);
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
        Some(Endpoint { router, name, class, config })
    };
    args.chunks(2).map(end).collect()
}

/// Puts a component's devices back in the place of a link.
fn restore(edit: &mut Edit, link: usize, ends: &[Endpoint], name: &str) -> Vec<usize> {
    let inputs = edit.ports(link).0;
    let span = edit.elements[link].span;
    let mut made = Vec::new();
    for (i, end) in ends.iter().enumerate().filter(|(_, end)| end.router == name) {
        let device = edit.add(&format!("{name}/{}", end.name), &end.class, &end.config, span);
        let port = Port { element: device, port: 0 };
        match i.checked_sub(inputs) {
            None => edit.redirect(Port { element: link, port: i }, port),
            Some(output) => edit.resource(Port { element: link, port: output }, port),
        }
        made.push(device);
    }
    edit.remove(link);
    made
}

/// Removes what is not connected to these elements.
fn keep(edit: &mut Edit, own: Vec<usize>) {
    let mut kept = vec![false; edit.elements.len()];
    let mut work = own;
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut kept[at], true) {
            continue;
        }
        work.extend(edit.leaving(at).iter().map(|(_, to)| to.element));
        work.extend(edit.entering(at).iter().map(|(from, _)| from.element));
    }
    for at in edit.live().filter(|&at| !kept[at]) {
        edit.remove(at);
    }
}

/// Gives elements their names back, and links their ends'.
fn rename(edit: &mut Edit, prefix: &str) {
    let mut taken: HashSet<String> = edit.live().map(|at| edit.elements[at].name.clone()).collect();
    for at in edit.live() {
        let Some(short) = edit.elements[at].name.strip_prefix(prefix) else { continue };
        let short = short.to_owned();
        if taken.insert(short.clone()) {
            edit.elements[at].name = short;
        }
    }
    for link in edit.of_class(LINK) {
        let args = args::split(&edit.elements[link].config).into_iter().enumerate();
        let short = |(i, arg): (usize, args::ArgText)| match arg.text.strip_prefix(prefix) {
            Some(short) if i % 2 == 0 => short.to_owned(),
            _ => arg.text,
        };
        edit.elements[link].config = args::join(args.map(short));
    }
}
