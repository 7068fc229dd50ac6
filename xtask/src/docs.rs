//! Generates the manual, one page for each element from its declarations, and pages beside it.

use castanet_element::class::Class;
use castanet_element::manual;
use castanet_elements::families;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/elements";

/// Returns the generated pages outside the manual by their paths: the rule language of `Middlebox`,
/// and the handlers.
fn other_pages() -> [(&'static str, String); 2] {
    [
        ("docs/middlebox.md", castanet_middlebox::page()),
        ("docs/handlers.md", crate::handlers_page::page()),
    ]
}

/// Returns all classes by room: the folder of their protocol or purpose.
pub fn rooms() -> Vec<(&'static str, &'static [Class])> {
    let mut rooms = castanet_elements::ROOMS.to_vec();
    rooms.push(("io", castanet_io::elements::CLASSES));
    rooms.push(("middlebox", castanet_middlebox::CLASSES));
    rooms.push(("splitbox", castanet_splitbox::CLASSES));
    rooms.push(("wasm", castanet_wasm::CLASSES));
    rooms.push(("tenants", castanet_tenants::CLASSES));
    rooms
}

/// Returns all pages by file name, with the index.
pub fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut index = String::from("# The elements\n\nWhich of these?\n\n");
    for family in families::FAMILIES {
        index += &format!("* [{}]({})\n", family.title, family.file);
        pages.insert(family.file.to_owned(), family.page());
    }
    let all: Vec<&Class> = rooms().into_iter().flat_map(|(_, classes)| classes).collect();
    for (room, classes) in rooms() {
        if !classes.is_empty() {
            index += &format!("\n## {room}\n\n");
        }
        for class in classes {
            let name = class.spec.class;
            let summary = manual::summary(class).split_whitespace().collect::<Vec<_>>().join(" ");
            index += &format!("* [{name}]({name}.md): {summary}\n");
            pages
                .insert(format!("{name}.md"), manual::page(class, families::see_also(class, &all)));
        }
    }
    pages.insert("README.md".into(), index);
    pages
}

/// Writes all pages, and removes those of elements that no longer exist.
pub fn write() -> Result<(), String> {
    let pages = pages();
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    for (path, text) in other_pages() {
        fs::write(path, text).map_err(|e| format!("{path}: {e}"))?;
    }
    for old in existing()? {
        if !pages.contains_key(&old) {
            fs::remove_file(Path::new(FOLDER).join(&old)).map_err(|e| format!("{old}: {e}"))?;
        }
    }
    pages.iter().try_for_each(|(name, text)| {
        fs::write(Path::new(FOLDER).join(name), text).map_err(|e| format!("{name}: {e}"))
    })
}

/// Checks that all pages are current; the error names one that is not.
pub fn check() -> Result<(), String> {
    for (path, text) in other_pages() {
        if fs::read_to_string(path).ok() != Some(text) {
            return Err(format!("{path} is stale: run `cargo xtask docs`"));
        }
    }
    let pages = pages();
    let stale = |(name, text): &(&String, &String)| {
        fs::read_to_string(Path::new(FOLDER).join(name)).ok().as_ref() != Some(*text)
    };
    if let Some((name, _)) = pages.iter().find(stale) {
        return Err(format!("{FOLDER}/{name} is stale: run `cargo xtask docs`"));
    }
    match existing()?.iter().find(|name| !pages.contains_key(*name)) {
        Some(name) => Err(format!("{FOLDER}/{name} has no element: run `cargo xtask docs`")),
        None => Ok(()),
    }
}

/// Returns the file names of the pages in the folder.
fn existing() -> Result<Vec<String>, String> {
    let Ok(entries) = fs::read_dir(FOLDER) else { return Ok(Vec::new()) };
    entries
        .map(|entry| {
            Ok(entry.map_err(|e| e.to_string())?.file_name().to_string_lossy().into_owned())
        })
        .collect()
}
