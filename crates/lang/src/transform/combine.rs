//! Several routers as one configuration, joined where a link joins their devices.

use std::collections::{HashMap, HashSet};

use super::edit::Edit;
use crate::archive::Member;
use crate::args;
use crate::flat::{Flat, Port};
use crate::source::Span;

/// The class that stands for a link between routers.
pub(super) const LINK: &str = "RouterLink";
/// The archive member that lists the components.
pub(super) const COMPONENTS: &str = "componentmap";
/// The archive member that says how Click's tools are to take `RouterLink`.
const ELEMENTS: &str = "elementmap.xml";
const LINK_ENTRY: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<elementmap xmlns=\"http://www.lcdf.org/click/xml/\">
  <entry name=\"RouterLink\" processing=\"l/h\" flowcode=\"x/x\" flags=\"S3\" />
</elementmap>
";

/// A router that is to become a part of another.
#[derive(Debug)]
pub struct Part {
    /// What it will be called; its elements get this name and a slash before theirs.
    pub name: String,
    /// The router.
    pub graph: Flat,
    /// What else its archive held.
    pub members: Vec<Member>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Combined {
    /// The routers as one.
    pub graph: Flat,
    /// What goes into the archive beside it.
    pub members: Vec<Member>,
    /// What is odd, but no reason to stop.
    pub warnings: Vec<String>,
}

/// An element of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct End {
    part: usize,
    element: usize,
}

/// Joins routers by links `NAME1.ELEMENT1=NAME2.ELEMENT2`: packets that leave the one by the first
/// element, a `ToDevice`, come to the other from the second, a `FromDevice` or `PollDevice`. Elements
/// may be named by their devices. `made` is where the links themselves come from.
///
/// # Errors
/// Everything that is wrong with names and links.
pub fn combine(parts: &[Part], links: &[String], made: Span) -> Result<Combined, Vec<String>> {
    let mut errors = names(parts);
    let mut combined = Combined::default();
    let mut ends = Vec::new();
    for text in links {
        match link(parts, text, &mut combined.warnings) {
            Ok(link) => ends.push(link),
            Err(more) => errors.extend(more),
        }
    }
    errors.extend(both_ways(parts, &ends));
    combined.members = members(parts, !ends.is_empty(), &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    if ends.is_empty() {
        combined.warnings.push("no links between routers".to_owned());
    }
    let (graph, firsts) = side_by_side(parts);
    let mut edit = Edit::new(&graph);
    for (number, (from, to)) in groups(&ends).into_iter().enumerate() {
        let at = |end: &End| firsts[end.part] + end.element;
        let all: Vec<End> = from.iter().chain(&to).copied().collect();
        let name = edit.free_name("link", number + 1);
        let link = edit.add(&name, LINK, &endpoints(parts, &all), made);
        for (port, end) in from.iter().enumerate() {
            edit.redirect(Port { element: at(end), port: 0 }, Port { element: link, port });
        }
        for (port, end) in to.iter().enumerate() {
            edit.resource(Port { element: at(end), port: 0 }, Port { element: link, port });
        }
        all.iter().for_each(|end| edit.remove(at(end)));
    }
    combined.graph = edit.finish();
    Ok(combined)
}

/// Whether a name can stand before a slash in element names.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@/".contains(c);
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    name.chars().all(plain) && name.split('/').all(|part| !part.is_empty() && !digits(part))
}

fn names(parts: &[Part]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    if parts.is_empty() {
        errors.push("no routers specified".to_owned());
    }
    for Part { name, .. } in parts {
        if !is_name(name) {
            errors.push(format!("router name '{name}' is not a legal Click identifier"));
        } else if !seen.insert(name) {
            errors.push(format!("two routers named '{name}'"));
        }
    }
    errors
}

/// Finds what a link joins.
fn link(parts: &[Part], text: &str, warnings: &mut Vec<String>) -> Result<(End, End), Vec<String>> {
    let bad = || vec![format!("bad link definition '{text}'")];
    let (left, right) = text.split_once('=').ok_or_else(bad)?;
    let split = |side: &str| {
        let (router, element) = side.split_once('.')?;
        let (router, element) = (router.trim(), element.trim());
        let whole = !router.is_empty() && !element.is_empty() && !element.contains('=');
        whole.then(|| (router.to_owned(), element.to_owned()))
    };
    let (left, right) = (split(left).ok_or_else(bad)?, split(right).ok_or_else(bad)?);
    let sides = [
        (left, &["ToDevice", "ToDPDKDevice"][..], "ToDevice"),
        (right, &["FromDevice", "PollDevice", "FromDPDKDevice"][..], "FromDevice or PollDevice"),
    ];
    let mut errors = Vec::new();
    let mut found = Vec::new();
    for ((router, element), classes, expected) in sides {
        let Some(part) = parts.iter().position(|part| part.name == router) else {
            errors.push(format!("no router named '{router}'"));
            continue;
        };
        match end(&parts[part], &element, classes) {
            Ok(element) => found.push(End { part, element }),
            Err(why) => {
                errors.push(why);
                continue;
            }
        }
        let Some(end) = found.last() else { continue };
        let class = &parts[part].graph.elements[end.element].class;
        if !classes.contains(&class.as_str()) {
            warnings.push(format!("router '{router}' element '{element}' has unexpected class"));
            warnings.push(format!("  expected {expected}, got {class}"));
        }
    }
    match found[..] {
        [from, to] if errors.is_empty() => Ok((from, to)),
        _ => Err(errors),
    }
}

/// The element of a name, or the only one for a device.
fn end(part: &Part, name: &str, classes: &[&str]) -> Result<usize, String> {
    if let Some(at) = part.graph.find(name) {
        return Ok(at);
    }
    let device = |config: &str| args::split(config).first().map(|arg| args::unquote(&arg.text));
    let of = part.graph.elements.iter().enumerate().filter(|(_, it)| {
        classes.contains(&it.class.as_str()) && device(&it.config).as_deref() == Some(name)
    });
    match of.map(|(at, _)| at).collect::<Vec<_>>()[..] {
        [at] => Ok(at),
        [] => Err(format!("router '{}' has no element or device named '{name}'", part.name)),
        _ => {
            let class = classes[0];
            Err(format!("more than one '{class}({name})' element in router '{}'", part.name))
        }
    }
}

/// Elements that links both end and begin at.
fn both_ways(parts: &[Part], ends: &[(End, End)]) -> Vec<String> {
    let begins: HashSet<End> = ends.iter().map(|&(from, _)| from).collect();
    let mut both: Vec<End> = Vec::new();
    for &(_, to) in ends.iter().filter(|(_, to)| begins.contains(to)) {
        if !both.contains(&to) {
            both.push(to);
        }
    }
    let words = |end: End| {
        let part = &parts[end.part];
        let element = &part.graph.elements[end.element].name;
        format!("router '{}' element '{element}' used as both source and destination", part.name)
    };
    both.into_iter().map(words).collect()
}

/// Links that share an end are one: where packets go in, and where they come out.
fn groups(ends: &[(End, End)]) -> Vec<(Vec<End>, Vec<End>)> {
    let mut group: Vec<usize> = (0..ends.len()).collect();
    let mut first: HashMap<End, usize> = HashMap::new();
    for (i, &(from, to)) in ends.iter().enumerate() {
        for end in [from, to] {
            let other = *first.entry(end).or_insert(i);
            let (a, b) = (group[i], group[other]);
            group.iter_mut().filter(|g| **g == a.max(b)).for_each(|g| *g = a.min(b));
        }
    }
    let mut all: Vec<(usize, Vec<End>, Vec<End>)> = Vec::new();
    for (&(from, to), id) in ends.iter().zip(group) {
        let at = all.iter().position(|(known, ..)| *known == id).unwrap_or(all.len());
        if at == all.len() {
            all.push((id, Vec::new(), Vec::new()));
        }
        let (_, froms, tos) = &mut all[at];
        if !froms.contains(&from) {
            froms.push(from);
        }
        if !tos.contains(&to) {
            tos.push(to);
        }
    }
    all.into_iter().map(|(_, from, to)| (from, to)).collect()
}

/// What a `RouterLink` says of the elements whose place it has: `ROUTER NAME CLASS, CONFIG` each.
fn endpoints(parts: &[Part], ends: &[End]) -> String {
    let words = ends.iter().flat_map(|end| {
        let part = &parts[end.part];
        let it = &part.graph.elements[end.element];
        [format!("{} {} {}", part.name, it.name, it.class), one_argument(&it.config)]
    });
    args::join(words.collect::<Vec<_>>())
}

/// A configuration string as one argument: as it is, if it is one, else in quotes.
fn one_argument(config: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'\\,$()".contains(c);
    let is_plain = |config: &str| !config.contains("//") && !config.contains("/*");
    match !config.is_empty() && config.chars().all(plain) && is_plain(config) {
        true => config.to_owned(),
        false => args::quote(config),
    }
}

/// All parts in one graph; and where each begins.
fn side_by_side(parts: &[Part]) -> (Flat, Vec<usize>) {
    let mut graph = Flat::default();
    let mut firsts = Vec::new();
    for Part { name, graph: part, .. } in parts {
        let first = graph.elements.len();
        firsts.push(first);
        for it in &part.elements {
            let mut it = it.clone();
            if it.class == LINK {
                it.config = nested(name, &it.config);
            }
            it.name = format!("{name}/{}", it.name);
            graph.elements.push(it);
        }
        for connection in &part.connections {
            let mut connection = *connection;
            connection.from.element += first;
            connection.to.element += first;
            graph.connections.push(connection);
        }
        for requirement in &part.requirements {
            if !graph.requirements.contains(requirement) {
                graph.requirements.push(requirement.clone());
            }
        }
    }
    (graph, firsts)
}

/// The configuration of a link within a part, whose own parts now have longer names.
fn nested(part: &str, config: &str) -> String {
    let args = args::split(config).into_iter().enumerate();
    args::join(args.map(|(i, arg)| match i % 2 {
        0 => format!("{part}/{}", arg.text),
        _ => arg.text,
    }))
}

/// What the archive holds beside the configuration.
fn members(parts: &[Part], linked: bool, errors: &mut Vec<String>) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    let mut map = String::new();
    for part in parts {
        map.push_str(&format!("{}\n", part.name));
        for member in &part.members {
            match member.name.as_str() {
                COMPONENTS => {
                    let inner = String::from_utf8_lossy(&member.data);
                    inner.split_whitespace().for_each(|name| {
                        map.push_str(&format!("{}/{name}\n", part.name));
                    });
                }
                ELEMENTS => {}
                name if all.iter().any(|known| known.name == name) => {
                    errors.push(format!("expansion conflict: two archive elements named '{name}'"))
                }
                _ => all.push(member.clone()),
            }
        }
    }
    if linked || parts.iter().any(|part| part.members.iter().any(|m| m.name == ELEMENTS)) {
        all.push(Member { name: ELEMENTS.into(), data: LINK_ENTRY.into() });
    }
    all.push(Member { name: COMPONENTS.into(), data: map.into_bytes() });
    all
}
