//! Manual pages of classes as HTML.

use crate::library::{self, library};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// The manual page of a class, if there is such a class.
pub(crate) fn manual_page(class: &str) -> Option<String> {
    let text = library::manual_page(library().get(class)?);
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        // HTML in the text is shown, not interpreted.
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        // The other files of the manual are not here.
        Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link) => None,
        event => Some(event),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_html_without_the_html_of_texts() {
        let page = manual_page("Counter").unwrap_or_default();
        assert!(page.contains("<h1>Counter</h1>") && page.contains("<code>"), "{page}");
        assert_eq!(manual_page("<script>"), None);
        for (_, classes) in crate::library::rooms() {
            for class in classes {
                let page = manual_page(class.spec.class).unwrap_or_default();
                assert!(page.starts_with("<h1>") && !page.contains("<script"), "{page}");
            }
        }
    }
}
