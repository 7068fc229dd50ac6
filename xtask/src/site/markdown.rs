//! Pages from Markdown to HTML: anchors of headings, links between pages, classes of elements.

use std::collections::{BTreeMap, BTreeSet};

use castanet_lang::print::escape;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::highlight::{console, highlight};
use super::pages::Source;

/// A parsed page.
pub(super) struct Document {
    /// The text of the first heading.
    pub(super) title: String,
    /// The text of the first paragraph.
    pub(super) summary: String,
    /// The parts of the page, each from a heading to the next.
    pub(super) sections: Vec<Section>,
    events: Vec<Event<'static>>,
}

/// A heading and the text below it.
#[derive(Default)]
pub(super) struct Section {
    /// The heading's text.
    pub(super) title: String,
    /// The heading's anchor, as GitHub makes it.
    pub(super) anchor: String,
    /// The text without code blocks.
    pub(super) text: String,
    /// The text of code blocks.
    pub(super) code: String,
}

impl Document {
    pub(super) fn parse(source: &Source) -> Document {
        let parser = Parser::new_ext(&source.text, Options::ENABLE_TABLES);
        let events: Vec<Event<'static>> = parser.map(Event::into_static).collect();
        let mut document = Document {
            title: String::new(),
            summary: String::new(),
            sections: vec![Section::default()],
            events,
        };
        let (mut in_heading, mut in_code, mut paragraphs) = (false, false, 0);
        let mut anchors = BTreeMap::new();
        for event in &document.events {
            let section = document.sections.last_mut().expect("has one");
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    document.sections.push(Section::default());
                    in_heading = true;
                }
                Event::End(TagEnd::Heading(_)) => {
                    section.anchor = anchor(&section.title, &mut anchors);
                    in_heading = false;
                }
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::End(TagEnd::Paragraph) => {
                    paragraphs += 1;
                    section.text.push('\n');
                }
                Event::End(TagEnd::Item | TagEnd::TableCell) => section.text.push('\n'),
                _ => {}
            }
            let Some(text) = plain(event) else { continue };
            let section = document.sections.last_mut().expect("has one");
            let target = match (in_heading, in_code) {
                (true, _) => &mut section.title,
                (_, true) => &mut section.code,
                _ => &mut section.text,
            };
            target.push_str(&text);
            if paragraphs == 0 && !in_heading && !in_code {
                document.summary.push_str(&text);
            }
        }
        document.sections.retain(|it| !it.title.is_empty());
        document.title = document.sections.first().map(|it| it.title.clone()).unwrap_or_default();
        document
    }

    /// Returns the files and folders that the page links to: paths from the root of the project.
    pub(super) fn targets(&self, page: &str) -> Vec<String> {
        let link = |event: &Event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(resolve(page, dest_url)?.0),
            _ => None,
        };
        self.events.iter().filter_map(link).collect()
    }
}

/// Returns the pictures of a page, by their paths from the root of the project.
pub(super) fn pictures(document: &Document, page: &str) -> Vec<String> {
    let picture = |event: &Event| match event {
        Event::Start(Tag::Image { dest_url, .. }) => Some(resolve(page, dest_url)?.0),
        _ => None,
    };
    document.events.iter().filter_map(picture).collect()
}

/// Returns the text of an event, if it has any.
fn plain(event: &Event) -> Option<String> {
    match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
            Some(text.to_string())
        }
        Event::SoftBreak | Event::HardBreak => Some(" ".into()),
        _ => None,
    }
}

/// Returns the anchor of a heading as GitHub makes it; `used` has those of the page so far.
fn anchor(title: &str, used: &mut BTreeMap<String, u32>) -> String {
    let kept = title.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    let count = used.entry(anchor.clone()).or_default();
    *count += 1;
    if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
}

/// Returns the path, from the root of the project, and the anchor that a link of a page means; none
/// if the link leaves the project.
fn resolve(page: &str, link: &str) -> Option<(String, String)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return Some((page.to_owned(), anchor.to_owned()));
    }
    let is_folder = !page.rsplit('/').next().unwrap_or(page).contains('.');
    let base = if is_folder { page } else { page.rsplit_once('/').map_or("", |(base, _)| base) };
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    Some((parts.join("/"), anchor.to_owned()))
}

/// Returns the link from one page of the site to another: relative, so that the site works in any
/// folder.
pub(super) fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let folders = from.len() - 1;
    let most = folders.min(to.len() - 1);
    let common = (0..most).take_while(|&i| from[i] == to[i]).count();
    let mut parts = vec![".."; folders - common];
    parts.extend(&to[common..]);
    parts.join("/")
}

/// A known page, for links to it.
struct Target {
    address: String,
    anchors: BTreeSet<String>,
}

/// Renders pages that link to each other.
pub(super) struct Renderer {
    /// The pages by the path of their source.
    pages: BTreeMap<String, Target>,
    /// The address of each element's page.
    elements: BTreeMap<String, String>,
}

impl Renderer {
    pub(super) fn new(all: &[(Source, Document)]) -> Renderer {
        let target = |(source, document): &(Source, Document)| {
            let anchors = document.sections.iter().map(|it| it.anchor.clone()).collect();
            (source.path.clone(), Target { address: source.address(), anchors })
        };
        let element = |(source, _): &(Source, Document)| {
            Some((source.element()?.to_owned(), source.address()))
        };
        Renderer {
            pages: all.iter().map(target).collect(),
            elements: all.iter().filter_map(element).collect(),
        }
    }

    /// Returns the HTML of a page, and adds its links that lead nowhere to `wrong`.
    pub(super) fn render(
        &self,
        source: &Source,
        document: &Document,
        wrong: &mut Vec<String>,
    ) -> String {
        let mut page = PageWriter {
            renderer: self,
            address: source.address(),
            source,
            wrong,
            headings: document.sections.iter(),
            heading: String::new(),
            in_link: false,
            code: None,
            output: Vec::new(),
        };
        document.events.iter().for_each(|event| page.event(event));
        let mut body = String::new();
        html::push_html(&mut body, page.output.into_iter());
        // A heading of a table that has no text is no heading.
        for align in ["", " style=\"text-align: right\"", " style=\"text-align: center\""] {
            body = body.replace(&format!("<th{align}></th>"), "<td></td>");
        }
        body
    }
}

/// A page while it is rendered.
struct PageWriter<'a> {
    renderer: &'a Renderer,
    address: String,
    source: &'a Source,
    wrong: &'a mut Vec<String>,
    /// The headings to come.
    headings: std::slice::Iter<'a, Section>,
    /// The anchor of the open heading.
    heading: String,
    in_link: bool,
    /// The language and the text of the open code block.
    code: Option<(String, String)>,
    output: Vec<Event<'a>>,
}

impl<'a> PageWriter<'a> {
    fn event(&mut self, event: &Event<'a>) {
        if let (Some((_, code)), Event::Text(text)) = (&mut self.code, event) {
            code.push_str(text);
            return;
        }
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let heading = self.headings.next();
                self.heading = heading.map(|it| it.anchor.clone()).unwrap_or_default();
                let id = Some(self.heading.clone().into());
                let (classes, attrs) = (classes.clone(), attrs.clone());
                self.output.push(Event::Start(Tag::Heading { level: *level, id, classes, attrs }));
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = std::mem::take(&mut self.heading);
                self.html(format!(
                    " <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to this heading\">#</a>"
                ));
                self.output.push(event.clone());
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                self.in_link = true;
                let dest_url = self.link(dest_url);
                let (title, id) = (title.clone(), id.clone());
                self.output.push(Event::Start(Tag::Link {
                    link_type: *link_type,
                    dest_url,
                    title,
                    id,
                }));
            }
            Event::End(TagEnd::Link) => {
                self.in_link = false;
                self.output.push(event.clone());
            }
            Event::Code(text) => self.inline_code(text),
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => self.code_block(),
            Event::Start(Tag::Table(_)) => {
                self.html("<div class=\"table\" tabindex=\"0\">".into());
                self.output.push(event.clone());
            }
            Event::End(TagEnd::Table) => {
                self.output.push(event.clone());
                self.html("</div>\n".into());
            }
            // Markdown of the project has no HTML: what looks like it is text.
            Event::Html(text) | Event::InlineHtml(text) => {
                self.output.push(Event::Text(text.clone()));
            }
            other => self.output.push(other.clone()),
        }
    }

    fn html(&mut self, text: String) {
        self.output.push(Event::InlineHtml(text.into()));
    }

    /// Returns the link in the site that a link of the source means.
    fn link(&mut self, link: &CowStr<'a>) -> CowStr<'a> {
        let Some((path, anchor)) = resolve(&self.source.path, link) else { return link.clone() };
        let page = &self.source.path;
        let Some(target) = self.renderer.pages.get(&path) else {
            self.wrong.push(format!("{page}: {link}: there is no such page"));
            return link.clone();
        };
        if anchor.is_empty() {
            return relative(&self.address, &target.address).into();
        }
        if !target.anchors.contains(&anchor) {
            let anchors: Vec<String> = target.anchors.iter().map(|it| format!("#{it}")).collect();
            let (address, anchors) = (&target.address, anchors.join(", "));
            let what = format!("{address} has no heading of that name; it has {anchors}");
            self.wrong.push(format!("{page}: {link}: {what}"));
        }
        let path = relative(&self.address, &target.address);
        if target.address == self.address {
            format!("#{anchor}").into()
        } else {
            format!("{path}#{anchor}").into()
        }
    }

    /// Writes code in a line; the name of an element is a link to its page.
    fn inline_code(&mut self, text: &CowStr<'a>) {
        let address = self.renderer.elements.get(&**text);
        let elsewhere = address.filter(|it| **it != self.address);
        match elsewhere {
            Some(address) if !self.in_link && self.heading.is_empty() => {
                let link = relative(&self.address, address);
                self.html(format!("<a href=\"{link}\"><code>{}</code></a>", escape(text)));
            }
            _ => self.output.push(Event::Code(text.clone())),
        }
    }

    fn code_block(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        let link = |class: &str| {
            let address = self.renderer.elements.get(class).filter(|it| **it != self.address)?;
            Some(relative(&self.address, address))
        };
        let body = match language.as_str() {
            "click" => highlight(&text, &link),
            "console" | "sh" => console(&text),
            _ => escape(&text),
        };
        // A block that is wider than the page scrolls, also with the keyboard.
        self.html(format!("<pre tabindex=\"0\"><code>{body}</code></pre>\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let mut used = BTreeMap::new();
        let mut anchor = |title| super::anchor(title, &mut used);
        assert_eq!(anchor("1. A packet, from AF_XDP on"), "1-a-packet-from-af_xdp-on");
        assert_eq!(anchor("Ports -- `[0]`"), "ports----0");
        assert_eq!(anchor("Logs"), "logs");
        assert_eq!(anchor("Logs"), "logs-1");
    }

    #[test]
    fn links_are_resolved_and_relative() {
        let resolved = |page, link| resolve(page, link).map(|(path, anchor)| path + "#" + &anchor);
        assert_eq!(
            resolved("docs/design/walk.md", "../metrics.md#a").unwrap(),
            "docs/metrics.md#a"
        );
        assert_eq!(resolved("README.md", "conf/examples/").unwrap(), "conf/examples#");
        assert_eq!(resolved("conf/examples", "a.click").unwrap(), "conf/examples/a.click#");
        assert_eq!(resolved("docs/a.md", "#b").unwrap(), "docs/a.md#b");
        assert_eq!(resolved("docs/a.md", "https://example.org"), None);
        assert_eq!(relative("docs/elements/A.html", "docs/elements/B.html"), "B.html");
        assert_eq!(relative("docs/a.html", "index.html"), "../index.html");
        assert_eq!(relative("index.html", "docs/a.html"), "docs/a.html");
        assert_eq!(relative("docs/design/a.html", "docs/elements/b.html"), "../elements/b.html");
    }
}
