//! The index of the site's search: what pages and their parts say, for MiniSearch in the browser.

use serde_json::{Value, json};

use super::markdown::Document;
use super::pages::{ELEMENTS, Source};

/// The file of the index. It is a script, because a page of a local file may load no other.
pub(super) const INDEX: &str = "search-index.js";

/// Weights of a find in the manual, in a page, and in a part of a page.
const ELEMENT: f64 = 2.0;
const PAGE: f64 = 1.5;
const PART: f64 = 1.0;

/// Returns the index: a document for each element and for each part of the other pages.
pub(super) fn index(pages: &[(Source, Document)]) -> String {
    let documents: Vec<Value> =
        pages.iter().flat_map(|(source, it)| documents(source, it)).collect();
    let mut numbered = documents;
    for (i, document) in numbered.iter_mut().enumerate() {
        document["id"] = json!(i);
    }
    format!("window.searchDocuments = {};\n", Value::Array(numbered))
}

fn documents(source: &Source, document: &Document) -> Vec<Value> {
    let address = source.address();
    if let Some(name) = source.element() {
        // Sentences of related elements belong to their own pages.
        let own = document.sections.iter().filter(|it| it.title != "See also");
        let texts: Vec<&str> = own.map(|it| it.text.as_str()).collect();
        return vec![json!({
            "page": address,
            "title": name,
            "words": words(name),
            "summary": document.summary,
            "text": texts.join("\n"),
            "place": format!("element, {}", source.room.unwrap_or(ELEMENTS)),
            "weight": ELEMENT,
        })];
    }
    let sections = document.sections.iter().enumerate();
    let part = |(i, section): (usize, &super::markdown::Section)| {
        let (page, place) = match i {
            0 => (address.clone(), source.group),
            _ => (format!("{address}#{}", section.anchor), document.title.as_str()),
        };
        let summary = section.text.trim().lines().next().unwrap_or_default();
        json!({
            "page": page,
            "title": section.title,
            "words": words(&section.title),
            "summary": summary.chars().take(200).collect::<String>(),
            "text": format!("{}\n{}", section.text, section.code),
            "place": place,
            "weight": if i == 0 { PAGE } else { PART },
        })
    };
    sections.map(part).collect()
}

/// Divides names in mixed case: `SetIPTTL` is `Set IPTTL`, `BandwidthShaper` `Bandwidth Shaper`.
fn words(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut divided = String::new();
    for (i, &c) in letters.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| letters[i]);
        let after = letters.get(i + 1);
        let starts = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase()
                    || (b.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if starts {
            divided.push(' ');
        }
        divided.push(c);
    }
    divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_divided_into_words() {
        assert_eq!(words("BandwidthShaper"), "Bandwidth Shaper");
        assert_eq!(words("SetIPDSCP"), "Set IPDSCP");
        assert_eq!(words("IPFilter"), "IP Filter");
        assert_eq!(words("DecIP6HLIM"), "Dec IP6HLIM");
        assert_eq!(words("A routing loop"), "A routing loop");
    }
}
