//! The pages of the site in the order of its menu, each with its text in Markdown.

use std::fs;

use castanet_elements::families::FAMILIES;

use crate::docs::rooms;
use crate::files::{files, root, text};

/// Groups of the menu, each with the pages that stand first in it. Pages of `docs` that no group
/// names follow in [`OTHERS`], those of `docs/design` in [`DESIGN`].
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["README.md", "docs/tutorial.md", "docs/from-fastclick.md", "conf/examples"]),
    (
        OTHERS,
        &[
            "docs/language.md",
            "docs/handlers.md",
            "docs/checking.md",
            "docs/debugging.md",
            "docs/operating.md",
            "docs/metrics.md",
            "docs/middlebox.md",
            "docs/splitbox.md",
            "docs/wasm.md",
            "docs/slots.md",
            "docs/tenants.md",
            "docs/firewalls.md",
            "docs/click-differences.md",
        ],
    ),
    (ELEMENTS, &["docs/elements/README.md"]),
    (DESIGN, &["ARCHITECTURE.md", "docs/design/walk.md"]),
    ("Project", &["CONTRIBUTING.md", "CHANGELOG.md"]),
];

/// The group of the pages about use.
const OTHERS: &str = "Guide";

/// The group of the manual.
pub(super) const ELEMENTS: &str = "Elements";

/// The group of the pages about the code.
const DESIGN: &str = "Design";

/// The folder of the manual.
pub(super) const MANUAL: &str = "docs/elements/";

/// A page before it is rendered.
pub(super) struct Source {
    /// The path of the file or folder from the root of the project.
    pub(super) path: String,
    /// The group of the menu in which the page stands; empty for files that pages link to.
    pub(super) group: &'static str,
    /// The room of the element that the page is about.
    pub(super) room: Option<&'static str>,
    /// The text, in Markdown.
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: &str, group: &'static str, text: String) -> Source {
        Source { path: path.to_owned(), group, room: None, text }
    }

    /// Returns the path of the page in the site.
    pub(super) fn address(&self) -> String {
        if root().join(&self.path).is_dir() {
            return format!("{}/index.html", self.path);
        }
        match self.path.strip_suffix("README.md") {
            Some(folder) => format!("{folder}index.html"),
            None => format!("{}.html", self.path.strip_suffix(".md").unwrap_or(&self.path)),
        }
    }

    /// Returns the name of the element that the page is about.
    pub(super) fn element(&self) -> Option<&str> {
        self.room?;
        self.path.strip_prefix(MANUAL)?.strip_suffix(".md")
    }
}

/// Returns all pages in the order of the menu.
pub(super) fn sources() -> Vec<Source> {
    let mut docs = files(&["docs"], &["md"]);
    docs.retain(|(path, _)| !path.starts_with(MANUAL));
    docs.sort();
    let named = |path: &str| GROUPS.iter().any(|(_, pages)| pages.contains(&path));
    let mut sources = Vec::new();
    for &(group, first) in GROUPS {
        let first = first.iter().filter(|path| root().join(path).exists());
        sources.extend(first.filter_map(|path| {
            if path.ends_with(".md") {
                return Some(Source::new(path, group, text(path)));
            }
            of_file(path).map(|source| Source { group, ..source })
        }));
        let others = docs.iter().filter(|(path, _)| {
            let home = if path.starts_with("docs/design/") { DESIGN } else { OTHERS };
            home == group && !named(path)
        });
        sources.extend(others.map(|(path, text)| Source::new(path, group, text.clone())));
        if group == ELEMENTS {
            sources.extend(elements());
        }
    }
    sources
}

/// Returns the pages of the manual: those that compare elements, then those of elements, by room.
fn elements() -> impl Iterator<Item = Source> {
    let families = FAMILIES.iter().map(|family| {
        let path = format!("{MANUAL}{}", family.file);
        Source::new(&path, ELEMENTS, text(&path))
    });
    let elements = rooms().into_iter().flat_map(|(room, classes)| {
        classes.iter().map(move |class| {
            let path = format!("{MANUAL}{}.md", class.spec.class);
            let text = text(&path);
            Source { path, group: ELEMENTS, room: Some(room), text }
        })
    });
    families.chain(elements)
}

/// Makes a page of a file or folder of the project that is not Markdown, or not in the menu.
pub(super) fn of_file(path: &str) -> Option<Source> {
    let place = root().join(path);
    if !place.starts_with(root()) {
        return None;
    }
    if place.is_dir() {
        return Some(Source::new(path, "", folder(path)));
    }
    let body = fs::read_to_string(place).ok()?;
    if path.ends_with(".md") {
        return Some(Source::new(path, "", body));
    }
    let language = match path.rsplit_once('.') {
        Some((_, "click")) => "click",
        _ => "text",
    };
    // A fence that is longer than any in the file.
    let fence = "`".repeat(12);
    Some(Source::new(path, "", format!("# {path}\n\n{fence}{language}\n{body}{fence}\n")))
}

/// Lists the files of a folder, each with its first comment.
fn folder(path: &str) -> String {
    let entries = fs::read_dir(root().join(path)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let rows = names.iter().map(|name| {
        let body = fs::read_to_string(root().join(path).join(name)).unwrap_or_default();
        format!("* [`{name}`]({name}): {}\n", first_comment(&body))
    });
    format!("# {path}\n\n{}", rows.collect::<String>())
}

/// Returns the first sentence of the comment with which a file begins.
fn first_comment(body: &str) -> String {
    let comment = |line: &str| {
        let marks = ["//", "#"];
        let text = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
        Some(text.trim().to_owned())
    };
    let lines = body.lines().skip_while(|line| line.starts_with("#!"));
    let text: Vec<String> = lines.map_while(comment).take_while(|line| !line.is_empty()).collect();
    let text = text.join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_paths() {
        let address = |path: &str| Source::new(path, "", String::new()).address();
        assert_eq!(address("README.md"), "index.html");
        assert_eq!(address("docs/metrics.md"), "docs/metrics.html");
        assert_eq!(address("docs/elements/README.md"), "docs/elements/index.html");
        assert_eq!(address("conf/router.click"), "conf/router.click.html");
        assert_eq!(address("conf/examples"), "conf/examples/index.html");
    }

    #[test]
    fn files_say_what_they_are() {
        assert_eq!(first_comment("#!/bin/sh\n# Runs it. Fast.\nset -e"), "Runs it.");
        assert_eq!(first_comment("// Splits\n// packets.\n\n// more"), "Splits packets.");
        assert_eq!(first_comment("in -> out"), "");
    }
}
