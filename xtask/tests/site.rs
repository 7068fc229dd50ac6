//! Tests of the site of the documentation that need no browser: its links, its menu, its assets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use xtask::docs::rooms;
use xtask::files::{root, text};

fn site() -> BTreeMap<String, String> {
    std::env::set_current_dir(root()).expect("is there");
    xtask::site::files().unwrap_or_else(|e| panic!("{e}"))
}

/// The values of an attribute in a page.
fn values<'t>(page: &'t str, attribute: &str) -> Vec<&'t str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The file that a relative link means.
fn target(page: &str, link: &str) -> String {
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in link.split('/') {
        match part {
            ".." => assert!(path.pop().is_some(), "{page}: {link} leaves the site"),
            part => path.push(part),
        }
    }
    path.join("/")
}

#[test]
fn every_link_and_anchor_is_there() {
    let files = site();
    let pictures = xtask::site::pictures().unwrap_or_else(|e| panic!("{e}"));
    let pages = || files.iter().filter(|(name, _)| name.ends_with(".html"));
    let ids: BTreeMap<&str, BTreeSet<&str>> = pages()
        .map(|(name, text)| (name.as_str(), values(text, "id").into_iter().collect()))
        .collect();
    let mut checked = 0;
    for (name, text) in pages() {
        let anchors = values(text, "id");
        assert_eq!(ids[name.as_str()].len(), anchors.len(), "{name} has an id twice: {anchors:?}");
        for link in values(text, "href").into_iter().chain(values(text, "src")) {
            if link.starts_with("http") || link == "data:," {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { name.clone() } else { target(name, path) };
            let is_there = files.contains_key(&file) || pictures.contains(&file);
            assert!(is_there, "{name}: {link}: there is no {file}");
            assert!(anchor.is_empty() || ids[file.as_str()].contains(anchor), "{name}: {link}");
            checked += 1;
        }
    }
    assert!(checked > 10_000, "only {checked} links");
}

#[test]
fn no_page_needs_another_host() {
    for (name, text) in site() {
        for link in values(&text, "src") {
            assert!(!link.contains("//"), "{name} loads {link}");
        }
        assert!(!text.contains("@import") && !text.contains("url("), "{name} loads a style");
    }
}

#[test]
fn the_menu_reaches_every_page_of_the_documentation() {
    let files = site();
    let menu = |page: &str| values(&files[page], "href").join(" ");
    let start = menu("index.html");
    for (path, _) in xtask::files::files(&["docs"], &["md"]) {
        let page = path.replace("README.md", "index.md").replace(".md", ".html");
        assert!(files.contains_key(&page), "{path} has no page");
        assert!(
            path.starts_with("docs/elements/") || start.contains(&page),
            "{path} is in no menu"
        );
    }
    for (room, classes) in rooms() {
        assert!(start.contains(&format!("docs/elements/index.html#{room}")), "{room}");
        for class in classes {
            let name = class.spec.class;
            let own = menu(&format!("docs/elements/{name}.html"));
            let listed =
                classes.iter().filter(|it| own.contains(&format!("{}.html", it.spec.class)));
            assert_eq!(listed.count(), classes.len(), "{name} lists its room");
        }
    }
}

#[test]
fn a_folder_of_something_else_is_not_replaced() {
    std::env::set_current_dir(root()).expect("is there");
    let folder = std::env::temp_dir().join(format!("cst-site-{}", std::process::id()));
    let _remove = Removal(folder.clone());
    std::fs::create_dir(&folder).expect("is new");
    xtask::site::write(&folder).expect("an empty folder takes a site");
    let old = folder.join("old.html");
    std::fs::write(&old, "").expect("is written");
    xtask::site::write(&folder).expect("a site is replaced");
    assert!(!old.exists() && folder.join("docs/elements/Queue.html").exists());
    std::fs::remove_file(folder.join("search-index.js")).expect("is there");
    let error = xtask::site::write(&folder).expect_err("is no site");
    assert!(error.contains("name a new folder"), "{error}");
    assert!(folder.join("index.html").exists());
}

/// A folder that is removed with this value.
struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        // A failure leaves files in the temporary folder, which is no fault of the site.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn mini_search_is_the_version_that_its_note_names() {
    let file = root().join("xtask/vendor/minisearch/minisearch.js");
    let sum = Command::new("sha256sum").arg(file).output().expect("coreutils are installed");
    let sum = String::from_utf8(sum.stdout).expect("is text");
    let note = text("xtask/vendor/minisearch/README.md");
    assert!(sum.len() > 64 && note.contains(&sum[..64]), "{sum}");
}
