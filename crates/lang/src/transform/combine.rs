//! `click-combine`: combines several routers to one configuration, with links between their
//! devices.

use std::collections::{HashMap, HashSet};

use super::editor::GraphEditor;
use crate::archive::Member;
use crate::args;
use crate::flat::{FlatGraph, Port};
use crate::source::Span;

/// The class of a link between routers.
pub(super) const LINK: &str = "RouterLink";
/// The archive member that lists the components.
pub(super) const COMPONENTS: &str = "componentmap";
/// The archive member that describes `RouterLink` to Click's tools.
const ELEMENTS: &str = "elementmap.xml";
const LINK_ENTRY: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<elementmap xmlns=\"http://www.lcdf.org/click/xml/\">
  <entry name=\"RouterLink\" processing=\"l/h\" flowcode=\"x/x\" flags=\"S3\" />
</elementmap>
";

/// A router that becomes a component of a combination.
#[derive(Debug)]
pub struct RouterComponent {
    /// Name of the component; it and a slash precede the names of the router's elements.
    pub name: String,
    /// The router.
    pub graph: FlatGraph,
    /// The other members of its archive.
    pub members: Vec<Member>,
}

/// Result of [`combine`].
#[derive(Debug, Default)]
pub struct CombineOutput {
    /// The combination.
    pub graph: FlatGraph,
    /// The other members of its archive.
    pub members: Vec<Member>,
    /// Oddities that do not prevent the combination.
    pub warnings: Vec<String>,
}

/// An element of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ElementRef {
    component: usize,
    element: usize,
}

/// Combines routers by links `NAME1.ELEMENT1=NAME2.ELEMENT2`: packets that leave router NAME1 by
/// ELEMENT1, a `ToDevice`, enter router NAME2 by ELEMENT2, a `FromDevice` or `PollDevice`. A device
/// name may replace the element's. `link_span` is the source text of the links.
///
/// # Errors
/// All errors in names and links.
pub fn combine(
    components: &[RouterComponent],
    links: &[String],
    link_span: Span,
) -> Result<CombineOutput, Vec<String>> {
    let mut errors = check_names(components);
    let mut combined = CombineOutput::default();
    let mut ends = Vec::new();
    for text in links {
        match link(components, text, &mut combined.warnings) {
            Ok(link) => ends.push(link),
            Err(more) => errors.extend(more),
        }
    }
    errors.extend(check_directions(components, &ends));
    combined.members = members(components, !ends.is_empty(), &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    if ends.is_empty() {
        combined.warnings.push("no links between routers".to_owned());
    }
    let (graph, firsts) = merge_graphs(components);
    let mut editor = GraphEditor::new(&graph);
    for (number, (from, to)) in groups(&ends).into_iter().enumerate() {
        let at = |end: &ElementRef| firsts[end.component] + end.element;
        let all: Vec<ElementRef> = from.iter().chain(&to).copied().collect();
        let name = editor.free_name("link", number + 1);
        let link = editor.add(&name, LINK, &endpoints(components, &all), link_span);
        for (port, end) in from.iter().enumerate() {
            editor.redirect_input(Port { element: at(end), port: 0 }, Port { element: link, port });
        }
        for (port, end) in to.iter().enumerate() {
            editor
                .redirect_output(Port { element: at(end), port: 0 }, Port { element: link, port });
        }
        all.iter().for_each(|end| editor.remove(at(end)));
    }
    combined.graph = editor.finish();
    Ok(combined)
}

/// Whether a name is a valid prefix of element names.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@/".contains(c);
    let digits = |component: &str| component.bytes().all(|b| b.is_ascii_digit());
    name.chars().all(plain)
        && name.split('/').all(|component| !component.is_empty() && !digits(component))
}

/// Checks the names of the components.
fn check_names(components: &[RouterComponent]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    if components.is_empty() {
        errors.push("no routers specified".to_owned());
    }
    for RouterComponent { name, .. } in components {
        if !is_name(name) {
            errors.push(format!("router name '{name}' is not a legal Click identifier"));
        } else if !seen.insert(name) {
            errors.push(format!("two routers named '{name}'"));
        }
    }
    errors
}

/// Parses a link and finds its two elements.
fn link(
    components: &[RouterComponent],
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<(ElementRef, ElementRef), Vec<String>> {
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
    let mut ends = Vec::new();
    for ((router, element), classes, expected) in sides {
        let Some(component) = components.iter().position(|component| component.name == router)
        else {
            errors.push(format!("no router named '{router}'"));
            continue;
        };
        match end(&components[component], &element, classes) {
            Ok(element) => ends.push(ElementRef { component, element }),
            Err(why) => {
                errors.push(why);
                continue;
            }
        }
        let Some(end) = ends.last() else { continue };
        let class = &components[component].graph.elements[end.element].class;
        if !classes.contains(&class.as_str()) {
            warnings.push(format!("router '{router}' element '{element}' has unexpected class"));
            warnings.push(format!("  expected {expected}, got {class}"));
        }
    }
    match ends[..] {
        [from, to] if errors.is_empty() => Ok((from, to)),
        _ => Err(errors),
    }
}

/// Finds the element with a name, or the only one for a device with that name.
fn end(component: &RouterComponent, name: &str, classes: &[&str]) -> Result<usize, String> {
    if let Some(at) = component.graph.find(name) {
        return Ok(at);
    }
    let device = |config: &str| args::split(config).first().map(|arg| args::unquote(&arg.text));
    let matches = component.graph.elements.iter().enumerate().filter(|(_, it)| {
        classes.contains(&it.class.as_str()) && device(&it.config).as_deref() == Some(name)
    });
    match matches.map(|(at, _)| at).collect::<Vec<_>>()[..] {
        [at] => Ok(at),
        [] => Err(format!("router '{}' has no element or device named '{name}'", component.name)),
        _ => {
            let class = classes[0];
            Err(format!("more than one '{class}({name})' element in router '{}'", component.name))
        }
    }
}

/// Returns an error for each element that is both source and destination of links.
fn check_directions(
    components: &[RouterComponent],
    ends: &[(ElementRef, ElementRef)],
) -> Vec<String> {
    let sources: HashSet<ElementRef> = ends.iter().map(|&(from, _)| from).collect();
    let mut in_both: Vec<ElementRef> = Vec::new();
    for &(_, to) in ends.iter().filter(|(_, to)| sources.contains(to)) {
        if !in_both.contains(&to) {
            in_both.push(to);
        }
    }
    let message = |end: ElementRef| {
        let component = &components[end.component];
        let element = &component.graph.elements[end.element].name;
        format!(
            "router '{}' element '{element}' used as both source and destination",
            component.name
        )
    };
    in_both.into_iter().map(message).collect()
}

/// Merges links that share an element; returns for each its sources and destinations.
fn groups(ends: &[(ElementRef, ElementRef)]) -> Vec<(Vec<ElementRef>, Vec<ElementRef>)> {
    let mut group: Vec<usize> = (0..ends.len()).collect();
    let mut first: HashMap<ElementRef, usize> = HashMap::new();
    for (i, &(from, to)) in ends.iter().enumerate() {
        for end in [from, to] {
            let other = *first.entry(end).or_insert(i);
            let (a, b) = (group[i], group[other]);
            group.iter_mut().filter(|g| **g == a.max(b)).for_each(|g| *g = a.min(b));
        }
    }
    let mut all: Vec<(usize, Vec<ElementRef>, Vec<ElementRef>)> = Vec::new();
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

/// Returns the configuration of a `RouterLink`: `ROUTER NAME CLASS, CONFIG` for each element that
/// it replaces.
fn endpoints(components: &[RouterComponent], ends: &[ElementRef]) -> String {
    let args = ends.iter().flat_map(|end| {
        let component = &components[end.component];
        let it = &component.graph.elements[end.element];
        [format!("{} {} {}", component.name, it.name, it.class), one_argument(&it.config)]
    });
    args::join(args.collect::<Vec<_>>())
}

/// Returns a configuration string as one argument, in quotes if necessary.
fn one_argument(config: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'\\,$()".contains(c);
    let is_plain = |config: &str| !config.contains("//") && !config.contains("/*");
    match !config.is_empty() && config.chars().all(plain) && is_plain(config) {
        true => config.to_owned(),
        false => args::quote(config),
    }
}

/// Copies all components to one graph, and returns it with the index of each component's first
/// element.
fn merge_graphs(components: &[RouterComponent]) -> (FlatGraph, Vec<usize>) {
    let mut graph = FlatGraph::default();
    let mut firsts = Vec::new();
    for RouterComponent { name, graph: component, .. } in components {
        let first = graph.elements.len();
        firsts.push(first);
        for it in &component.elements {
            let mut it = it.clone();
            if it.class == LINK {
                it.config = nested_link_config(name, &it.config);
            }
            it.name = format!("{name}/{}", it.name);
            graph.elements.push(it);
        }
        let age = graph.connections.iter().map(|c| c.age + 1).max().unwrap_or(0);
        for connection in &component.connections {
            let mut connection = *connection;
            connection.age += age;
            connection.from.element += first;
            connection.to.element += first;
            graph.connections.push(connection);
        }
        for requirement in &component.requirements {
            if !graph.requirements.contains(requirement) {
                graph.requirements.push(requirement.clone());
            }
        }
    }
    (graph, firsts)
}

/// Returns the configuration of a link inside a component, with longer names of its components.
fn nested_link_config(component: &str, config: &str) -> String {
    let args = args::split(config).into_iter().enumerate();
    args::join(args.map(|(i, arg)| match i % 2 {
        0 => format!("{component}/{}", arg.text),
        _ => arg.text,
    }))
}

/// Returns the members of the archive other than the configuration.
fn members(components: &[RouterComponent], linked: bool, errors: &mut Vec<String>) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    let mut map = String::new();
    for component in components {
        map.push_str(&format!("{}\n", component.name));
        for member in &component.members {
            match member.name.as_str() {
                COMPONENTS => {
                    let inner = String::from_utf8_lossy(&member.data);
                    inner.split_whitespace().for_each(|name| {
                        map.push_str(&format!("{}/{name}\n", component.name));
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
    if linked
        || components.iter().any(|component| component.members.iter().any(|m| m.name == ELEMENTS))
    {
        all.push(Member { name: ELEMENTS.into(), data: LINK_ENTRY.into() });
    }
    all.push(Member { name: COMPONENTS.into(), data: map.into_bytes() });
    all
}
