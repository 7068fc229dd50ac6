//! The documentation as one static site: README, `docs` and the manual, with navigation and search.

mod highlight;
mod layout;
mod markdown;
mod pages;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use markdown::{Document, Renderer};
use pages::Source;

/// The folder of the site, unless the command names another.
pub const FOLDER: &str = "target/site";

/// The file by which a folder is known as a site's.
const MARK: &str = search::INDEX;

/// Files that every site has, beside its pages.
const ASSETS: &[(&str, &str)] = &[
    ("site.css", include_str!("../../assets/site/site.css")),
    ("site.js", include_str!("../../assets/site/site.js")),
    ("minisearch.js", include_str!("../../vendor/minisearch/minisearch.js")),
    ("minisearch-licence.txt", include_str!("../../vendor/minisearch/LICENSE.txt")),
];

/// Returns the files of the site by their path in it. The error lists all links that lead nowhere.
pub fn files() -> Result<BTreeMap<String, String>, String> {
    from_sources(pages::sources())
}

/// Returns the pictures of all pages by their path, which is the same in the project and in the site. The error lists
/// those that are not there.
pub fn pictures() -> Result<BTreeSet<String>, String> {
    let sources = pages::sources();
    let all = sources.iter().map(|it| markdown::pictures(&Document::parse(it), &it.path));
    let all: BTreeSet<String> = all.flatten().collect();
    let root = crate::files::root();
    let missing: Vec<&str> =
        all.iter().filter(|it| !root.join(it).is_file()).map(String::as_str).collect();
    match missing.is_empty() {
        true => Ok(all),
        false => Err(format!("there are no pictures {}", missing.join(", "))),
    }
}

/// Makes a site of some pages, with those of the files that they link to.
fn from_sources(sources: Vec<Source>) -> Result<BTreeMap<String, String>, String> {
    let mut parsed: Vec<(Source, Document)> = Vec::new();
    let mut queue = sources;
    // Files and folders of the project become pages when a page links to them.
    while !queue.is_empty() {
        let documents = queue.into_iter().map(|it| (Document::parse(&it), it));
        parsed.extend(documents.map(|(document, source)| (source, document)));
        let known: BTreeSet<&str> = parsed.iter().map(|(it, _)| it.path.as_str()).collect();
        let wanted: BTreeSet<String> = parsed
            .iter()
            .flat_map(|(source, document)| document.targets(&source.path))
            .filter(|path| !known.contains(path.as_str()))
            .collect();
        queue = wanted.iter().filter_map(|path| pages::of_file(path)).collect();
    }
    let renderer = Renderer::new(&parsed);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (i, (source, document)) in parsed.iter().enumerate() {
        let body = renderer.render(source, document, &mut wrong);
        files.insert(source.address(), layout::page(&parsed, i, &body));
    }
    if !wrong.is_empty() {
        return Err(format!("{} links lead nowhere:\n{}", wrong.len(), wrong.join("\n")));
    }
    files.insert(search::INDEX.into(), search::index(&parsed));
    files.extend(ASSETS.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())));
    Ok(files)
}

/// Writes the site into a folder, which is created, or replaced if it is an older site.
pub fn write(folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let (files, pictures) = (files()?, pictures()?);
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        if !folder.join(MARK).exists() {
            let folder = folder.display();
            return Err(format!("{folder} has files that are not a site's: name a new folder"));
        }
        fs::remove_dir_all(folder).map_err(|e| failed(folder, e))?;
    }
    for (name, text) in &files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
        fs::write(&path, text).map_err(|e| failed(&path, e))?;
    }
    for name in pictures {
        let path = folder.join(&name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
        fs::copy(crate::files::root().join(&name), &path).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Result<BTreeMap<String, String>, String> {
        from_sources(vec![Source::new("README.md", "Start", text.to_owned())])
    }

    #[test]
    fn planted_links_to_nowhere_are_errors() {
        let wrong = site("# A\n\n[a](docs/none.md) [b](#none) [c](conf/none.click)").unwrap_err();
        assert_eq!(
            wrong,
            "3 links lead nowhere:\n\
             README.md: docs/none.md: there is no such page\n\
             README.md: #none: index.html has no heading of that name; it has #a\n\
             README.md: conf/none.click: there is no such page"
        );
    }

    #[test]
    fn linked_files_become_pages() {
        let files =
            site("# A\n\nSee [the router](conf/router.click), [all](conf/examples).").unwrap();
        assert!(files["index.html"].contains("href=\"conf/router.click.html\""));
        assert!(files["conf/router.click.html"].contains("CheckIPHeader"));
        assert!(files["conf/examples/index.html"].contains("href=\"filter.click.html\""));
        assert!(files["conf/examples/filter.click.html"].contains("IPFilter"));
    }

    #[test]
    fn html_in_markdown_is_text() {
        let files = site("# A\n\nThe word <script>alert(1)</script> <b>is</b> text.").unwrap();
        assert!(files["index.html"].contains("&lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;is"));
    }
}
