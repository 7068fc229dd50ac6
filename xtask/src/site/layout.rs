//! The frame of a page: head, search, menu, and the pages before and after.

use super::markdown::{Document, relative};
use super::pages::{ELEMENTS, Source};
use castanet_lang::print::escape;

/// Returns the page of a number with its frame around `body`.
pub(super) fn page(all: &[(Source, Document)], number: usize, body: &str) -> String {
    let (source, document) = &all[number];
    let address = source.address();
    let to = |path: &str| relative(&address, path);
    let title = escape(&document.title);
    let title = if title == "Castanet" { title } else { format!("{title} – Castanet") };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"{css}\">\n\
         <script defer src=\"{js}\" data-root=\"{root}\"></script>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the text</a>\n\
         <header>\n<a class=\"home\" href=\"{home}\">Castanet</a>\n\
         <search>\n<input type=\"search\" aria-label=\"Search the documentation\" \
         placeholder=\"Search ( / )\" autocomplete=\"off\" spellcheck=\"false\">\n\
         <div id=\"found\" hidden>\n<p role=\"status\"></p>\n<ol></ol>\n</div>\n</search>\n\
         <a class=\"to-menu\" href=\"#menu\">Menu</a>\n</header>\n\
         <main id=\"content\">\n{body}\n{turns}</main>\n\
         <nav id=\"menu\" aria-label=\"Pages\">\n{menu}</nav>\n</body>\n</html>\n",
        css = to("site.css"),
        js = to("site.js"),
        home = to("index.html"),
        root = to("index.html").strip_suffix("index.html").unwrap_or_default(),
        turns = turns(all, number),
        menu = menu(all, number),
    )
}

/// Returns the links to the pages before and after in the order of the menu.
fn turns(all: &[(Source, Document)], number: usize) -> String {
    let in_menu = |i: &usize| !all[*i].0.group.is_empty();
    if !in_menu(&number) {
        return String::new();
    }
    let before = (0..number).rev().find(in_menu);
    let after = (number + 1..all.len()).find(in_menu);
    let address = all[number].0.address();
    let link = |i: Option<usize>, rel: &str, arrow: [&str; 2]| {
        let Some(i) = i else { return String::new() };
        let (source, document) = &all[i];
        let (href, title) = (relative(&address, &source.address()), escape(&document.title));
        let [left, right] = arrow;
        format!("<a rel=\"{rel}\" href=\"{href}\">{left}{title}{right}</a>\n")
    };
    let (before, after) = (link(before, "prev", ["← ", ""]), link(after, "next", ["", " →"]));
    format!("<nav class=\"turns\" aria-label=\"Pages before and after\">\n{before}{after}</nav>\n")
}

/// Returns the menu: all pages, except that of the elements only those of the page's room.
fn menu(all: &[(Source, Document)], number: usize) -> String {
    let address = all[number].0.address();
    let mut menu = String::new();
    let mut group = "";
    for (i, (source, document)) in all.iter().enumerate() {
        if source.group.is_empty() {
            continue;
        }
        if source.group != group {
            menu += if group.is_empty() { "" } else { "</ul>\n" };
            menu += &format!("<h2>{}</h2>\n<ul>\n", source.group);
            group = source.group;
        }
        if source.room.is_some() && source.room != all[number].0.room {
            menu += &first_of_room(all, i, &address);
            continue;
        }
        if let (Some(room), true) = (source.room, is_first(all, i)) {
            menu += &format!("<li class=\"room\">{room}</li>\n");
        }
        let current = if i == number { " aria-current=\"page\"" } else { "" };
        let (href, title) = (relative(&address, &source.address()), escape(&document.title));
        menu += &format!("<li><a href=\"{href}\"{current}>{title}</a></li>\n");
    }
    menu + "</ul>\n"
}

/// Whether a page is the first one of its room.
fn is_first(all: &[(Source, Document)], i: usize) -> bool {
    i == 0 || all[i - 1].0.room != all[i].0.room
}

/// Returns the link to a room in the list of elements, at the first element of the room.
fn first_of_room(all: &[(Source, Document)], i: usize, address: &str) -> String {
    let Some(room) = all[i].0.room.filter(|_| is_first(all, i)) else { return String::new() };
    let index = all.iter().find(|(it, _)| it.group == ELEMENTS && it.room.is_none());
    let index = index.map(|(it, _)| it.address()).unwrap_or_default();
    format!("<li class=\"room\"><a href=\"{}#{room}\">{room}</a></li>\n", relative(address, &index))
}
