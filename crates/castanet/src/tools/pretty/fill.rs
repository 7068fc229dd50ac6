//! A template filled in: tags replaced by what they say of the configuration.

use super::TemplateSource;
use super::tags::{References, Tag, next, unquote};
use castanet_lang::print::escape;
use castanet_lang::{FlatGraph, OutlineScope};
use std::cmp::Ordering;

/// Tags may stand for templates with tags, this deep.
const DEEPEST: usize = 50;
/// Longer than any page needs to be.
const LONGEST: usize = 1 << 28;

/// Subject of a tag: an element or its class, perhaps one of its ports.
#[derive(Clone, Copy)]
struct TagSubject {
    element: usize,
    /// The element stands for its class.
    class: bool,
    port: Option<(usize, PortSide)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PortSide {
    Input,
    Output,
}

impl PortSide {
    /// The words that attributes begin with.
    fn word(self) -> &'static str {
        match self {
            PortSide::Input => "input",
            PortSide::Output => "output",
        }
    }
}

/// A template being filled in.
pub(super) struct TemplateFiller<'a> {
    subject: &'a TemplateSource<'a>,
    /// The `<~elements>` tag under way.
    main: Option<Tag>,
    out: String,
    /// Separator to write before the next text, if there is any.
    separator: String,
    depth: usize,
}

impl<'a> TemplateFiller<'a> {
    pub(super) fn new(subject: &'a TemplateSource<'a>) -> Self {
        TemplateFiller {
            subject,
            main: None,
            out: String::new(),
            separator: String::new(),
            depth: 0,
        }
    }

    /// A whole page.
    pub(super) fn page(mut self, template: &str) -> String {
        self.top(template);
        self.out
    }

    /// Fills in a template for one element.
    pub(super) fn entry(mut self, template: &str, element: usize) -> String {
        self.main = Some(Tag::default());
        self.run(template, TagSubject { element, class: false, port: None });
        self.out
    }

    fn file(&self) -> Option<&'a OutlineScope> {
        self.subject.links.outline.file()
    }

    fn graph(&self) -> Option<&'a FlatGraph> {
        self.file().map(|file| &file.graph)
    }

    /// Whether there is room for another template within this one.
    fn enter(&mut self) -> bool {
        self.depth += 1;
        self.depth <= DEEPEST && self.out.len() <= LONGEST
    }

    /// Tags outside any `<~elements>`.
    fn top(&mut self, template: &str) {
        let mut rest = if self.enter() { template } else { "" };
        loop {
            let (before, tag) = next(rest, References::Stay);
            self.out.push_str(before);
            let Some((tag, after)) = tag else { break };
            rest = after;
            match tag.name.as_str() {
                "config" => self.out.push_str(&self.subject.text),
                "elements" => self.elements(tag),
                name => {
                    if let Some(text) = self.subject.defined.get(name) {
                        self.top(text);
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// `<~elements>`: an entry for each element and class, by name, of one of several columns.
    fn elements(&mut self, tag: Tag) {
        let Some(graph) = self.graph() else { return };
        let mut all: Vec<(&str, TagSubject)> = Vec::new();
        let mut classes: Vec<&str> = Vec::new();
        for (element, it) in graph.elements.iter().enumerate() {
            if !tag.get("entry").is_empty() {
                all.push((&it.name, TagSubject { element, class: false, port: None }));
            }
            if !tag.get("typeentry").is_empty() && !classes.contains(&it.class.as_str()) {
                classes.push(&it.class);
                all.push((&it.class, TagSubject { element, class: true, port: None }));
            }
        }
        all.sort_by(|a, b| compare(a.0, b.0));
        let (which, count) = column(tag.get("column"));
        let each = all.len().div_ceil(count);
        let shown = all.chunks(each.max(1)).nth(which - 1).unwrap_or_default();
        let separator = tag.get("sep").to_owned();
        self.main = Some(tag);
        for &(_, about) in shown {
            let attribute = if about.class { "typeentry" } else { "entry" };
            let template = self.attribute(attribute);
            self.run(&template, about);
            self.separator.clone_from(&separator);
        }
        self.separator.clear();
        self.main = None;
    }

    /// An attribute of the `<~elements>` tag.
    fn attribute(&self, name: &str) -> String {
        self.main.as_ref().map_or("", |main| main.get(name)).to_owned()
    }

    /// A tag's own attribute, or else one of the `<~elements>` tag.
    fn either(&self, tag: &Tag, own: &str, general: &str) -> String {
        match tag.get(own) {
            "" => self.attribute(general),
            text => text.to_owned(),
        }
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(&std::mem::take(&mut self.separator));
            self.out.push_str(text);
        }
    }

    /// Tags that speak of an element.
    fn run(&mut self, template: &str, about: TagSubject) {
        let mut rest = if self.enter() { template } else { "" };
        loop {
            let (before, tag) = next(rest, References::Resolve);
            self.say(before);
            let Some((tag, after)) = tag else { break };
            rest = after;
            let length = self.out.len();
            let separator = self.tag(&tag, about);
            if self.out.len() != length {
                self.separator = separator;
            }
        }
        self.depth -= 1;
    }

    /// Fills one tag in; what to put before the next text is its answer.
    fn tag(&mut self, tag: &Tag, about: TagSubject) -> String {
        match tag.name.as_str() {
            "name" | "type" | "anonymous" | "config" | "ninputs" | "noutputs" | "port"
            | "processing" | "processingcode" => {
                let text = self.value(tag, about);
                self.say(&text);
            }
            "typerefs" => self.references(tag, about),
            "configlink" if !about.class => {
                let text = self.either(tag, "text", "configlink");
                if !text.is_empty() {
                    let anchor = escape(&self.anchor(about.element));
                    self.run(&format!("<a href='#{anchor}'>{text}</a>"), about);
                    return tag.get("sep").to_owned();
                }
            }
            "inputs" if !about.class => self.ports(tag, about, PortSide::Input),
            "outputs" if !about.class => self.ports(tag, about, PortSide::Output),
            "inputconnections" => self.connections(tag, about, PortSide::Input),
            "outputconnections" => self.connections(tag, about, PortSide::Output),
            "if" => {
                let chosen = if self.holds(tag, about) { "then" } else { "else" };
                self.run(tag.get(chosen), about);
            }
            name => {
                let own = self.attribute(name);
                let text = match own.as_str() {
                    "" => self.subject.defined.get(name).cloned().unwrap_or_default(),
                    _ => own,
                };
                self.run(&text, about);
            }
        }
        String::new()
    }

    fn anchor(&self, element: usize) -> String {
        let links = &self.subject.links;
        links.element_anchor(links.outline.scopes.len().saturating_sub(1), element)
    }

    /// Value of a tag that stands for a single text.
    fn value(&self, tag: &Tag, about: TagSubject) -> String {
        let Some(file) = self.file() else { return String::new() };
        let it = &file.graph.elements[about.element];
        let (inputs, outputs) = file.graph.ports()[about.element];
        let class_link = || self.subject.links.class(&file.classes[about.element]);
        let linked = |text: &str, href: Option<String>| match href {
            Some(href) => format!("<a href='{}'>{}</a>", escape(&href), escape(text)),
            None => escape(text),
        };
        let counted = |count: usize, word: &str| match tag.has("english") {
            true => format!("{count} {word}{}", if count == 1 { "" } else { "s" }),
            false => count.to_string(),
        };
        match tag.name.as_str() {
            "name" if about.class => linked(&it.class, tag.has("link").then(class_link).flatten()),
            "name" => match tag.get("link") {
                "" => linked(&it.name, None),
                "type" => linked(&it.name, class_link()),
                _ => linked(&it.name, Some(format!("#{}", self.anchor(about.element)))),
            },
            "type" => linked(&it.class, tag.has("link").then(class_link).flatten()),
            "anonymous" if it.name.contains('@') => "yes".to_owned(),
            "config" if !about.class && !it.config.is_empty() => {
                let config = limited(&it.config, tag.get("limit"));
                match tag.has("parens") {
                    true => format!("({})", escape(&config)),
                    false => escape(&config),
                }
            }
            "ninputs" if !about.class => counted(inputs, "input"),
            "noutputs" if !about.class => counted(outputs, "output"),
            "port" => about.port.map(|(port, _)| port.to_string()).unwrap_or_default(),
            "processing" => {
                about.port.map(|port| self.flow(about.element, port)).unwrap_or_default().to_owned()
            }
            "processingcode" => {
                self.subject.processing.get(about.element).map(|it| it.code()).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    fn flow(&self, element: usize, (port, side): (usize, PortSide)) -> &'static str {
        let it = self.subject.processing.get(element);
        let letter = it.and_then(|it| match side {
            PortSide::Input => it.inputs.get(port),
            PortSide::Output => it.outputs.get(port),
        });
        match letter {
            Some('h') => "push",
            Some('l') => "pull",
            _ => "agnostic",
        }
    }

    /// `<~typerefs>`: the elements of a class.
    fn references(&mut self, tag: &Tag, about: TagSubject) {
        let Some(graph) = self.graph() else { return };
        let text = self.either(tag, "entry", "typeref");
        let class = &graph.elements[about.element].class;
        let mut all: Vec<_> =
            graph.elements.iter().enumerate().filter(|(_, it)| it.class == *class).collect();
        all.sort_by(|a, b| compare(&a.1.name, &b.1.name));
        for (element, _) in all {
            self.run(&text, TagSubject { element, class: false, port: None });
            tag.get("sep").clone_into(&mut self.separator);
        }
        self.separator.clear();
    }

    /// `<~inputs>` and `<~outputs>`.
    fn ports(&mut self, tag: &Tag, about: TagSubject, side: PortSide) {
        let Some(graph) = self.graph() else { return };
        let (inputs, outputs) = graph.ports()[about.element];
        let count = if side == PortSide::Input { inputs } else { outputs };
        if count == 0 {
            let text = self.either(tag, "noentry", &format!("no{}entry", side.word()));
            return self.run(&text, TagSubject { port: None, ..about });
        }
        let text = self.either(tag, "entry", &format!("{}entry", side.word()));
        for port in 0..count {
            self.run(&text, TagSubject { port: Some((port, side)), ..about });
            tag.get("sep").clone_into(&mut self.separator);
        }
        self.separator.clear();
    }

    /// `<~inputconnections>` and `<~outputconnections>`: the ports at the other end.
    fn connections(&mut self, tag: &Tag, about: TagSubject, side: PortSide) {
        let (Some(graph), Some((port, at))) = (self.graph(), about.port) else { return };
        if at != side {
            return;
        }
        let other = |c: &castanet_lang::Connection| match side {
            PortSide::Input => (c.to, c.from, PortSide::Output),
            PortSide::Output => (c.from, c.to, PortSide::Input),
        };
        let ends = graph.connections.iter().map(other);
        let mut ends: Vec<_> =
            ends.filter(|(near, ..)| (near.element, near.port) == (about.element, port)).collect();
        let name = |element: usize| &graph.elements[element].name;
        ends.sort_by(|(_, a, _), (_, b, _)| {
            compare(name(a.element), name(b.element)).then(a.port.cmp(&b.port))
        });
        if ends.is_empty() {
            let text = self.either(tag, "noentry", &format!("no{}connection", side.word()));
            return self.run(&text, about);
        }
        let text = self.either(tag, "entry", &format!("{}connection", side.word()));
        for (_, far, side) in ends {
            let port = Some((far.port, side));
            self.run(&text, TagSubject { element: far.element, class: false, port });
            tag.get("sep").clone_into(&mut self.separator);
        }
        self.separator.clear();
    }

    /// Text of a filled template, which is not written.
    fn silently(&mut self, template: &str, about: TagSubject) -> String {
        let separator = std::mem::take(&mut self.separator);
        let start = self.out.len();
        self.run(template, about);
        self.separator = separator;
        self.out.split_off(start)
    }

    /// Whether the comparison of an `<~if>` is true.
    fn holds(&mut self, tag: &Tag, about: TagSubject) -> bool {
        let test = self.silently(tag.get("test"), about);
        match ["eq", "ne", "gt", "lt", "ge", "le"].into_iter().find(|name| tag.has(name)) {
            Some(name) => {
                let other = self.silently(tag.get(name), about);
                let order = compare(&test, &other);
                match name {
                    "eq" => order.is_eq(),
                    "ne" => order.is_ne(),
                    "gt" => order.is_gt(),
                    "lt" => order.is_lt(),
                    "ge" => order.is_ge(),
                    _ => order.is_le(),
                }
            }
            None => !test.is_empty(),
        }
    }
}

/// By letters, but numbers within by value: `q2` before `q10`.
fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    loop {
        let (m, n) = (digits(a), digits(b));
        if m > 0 && n > 0 {
            let (x, y) = (a[..m].trim_start_matches('0'), b[..n].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then(x.cmp(y)).then(m.cmp(&n));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[m..], &b[n..]);
            continue;
        }
        let (mut left, mut right) = (a.chars(), b.chars());
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) if x != y => return x.cmp(&y),
            _ => (a, b) = (left.as_str(), right.as_str()),
        }
    }
}

/// The first `limit` characters, and dots if there are more.
fn limited(text: &str, limit: &str) -> String {
    let limit = unquote(limit).parse().unwrap_or(0);
    match text.char_indices().nth(limit) {
        Some((end, _)) if limit > 0 => format!("{}...", &text[..end]),
        _ => text.to_owned(),
    }
}

/// `WHICH/COUNT`; one of one if it is anything else.
fn column(text: &str) -> (usize, usize) {
    let numbers = text
        .split_once('/')
        .and_then(|(which, count)| Some((which.trim().parse().ok()?, count.trim().parse().ok()?)));
    numbers.filter(|&(which, count)| which > 0 && which <= count).unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_do() {
        let mut names = ["q10", "q2", "q", "a", "q2b", "q02", "Q", "é"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["Q", "a", "q", "q2", "q2b", "q02", "q10", "é"]);
    }

    #[test]
    fn columns_and_limits() {
        for (text, want) in [("2/3", (2, 3)), ("0/3", (1, 1)), ("4/3", (1, 1)), ("", (1, 1))] {
            assert_eq!(column(text), want, "{text}");
        }
        assert_eq!(limited("äbc", "2"), "äb...");
        assert_eq!(limited("abc", "3"), "abc");
        assert_eq!(limited("abc", ""), "abc");
    }
}
