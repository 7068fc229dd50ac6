//! Click's `-h` and `-x`: handlers read after the run.

use crate::terminal::{complain, say};
use castanet_element::class::{Class, Role};
use castanet_runtime::router::Router;
use glob::Pattern;

/// Reads and prints handlers in Click's form: one bare, several, or those of a
/// pattern, with their names; gives the exit status.
pub(super) fn print(router: &mut Router, handlers: &[String]) -> i32 {
    let mut status = 0;
    for handler in handlers {
        let done = named(router, handler).and_then(|(paths, many)| {
            let with_name = many || handlers.len() > 1;
            paths.iter().try_for_each(|path| print_one(router, path, with_name))
        });
        if let Err(message) = done {
            complain(message);
            status = 1;
        }
    }
    status
}

fn print_one(router: &mut Router, path: &str, with_name: bool) -> Result<(), String> {
    let mut text = read(router, path)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match with_name {
        true => say(&format!("{path}:\n{text}\n")),
        false => say(&text),
    }
    .map_err(|message| format!("click: {message}"))
}

/// Reads a handler, or says in Click's words why not.
fn read(router: &mut Router, path: &str) -> Result<String, String> {
    let name = path.split_whitespace().next().unwrap_or_default();
    if router.has_handler(name, false) && !router.is_private(name) {
        let words = |e: castanet_element::error::ArgError| e.in_click_words();
        return router.read(path).map_err(|e| words(e).unwrap_or_default());
    }
    Err(match router.has_handler(name, true) {
        true => format!("'{name}' is a write handler"),
        false => format!("no '{name}' handler"),
    })
}

/// Handlers that `ELEMENT.H` names, where ELEMENT may be an element, a pattern such as
/// `c*`, or a class; and whether it may name several.
fn named(router: &Router, handler: &str) -> Result<(Vec<String>, bool), String> {
    let Some((element, name)) = handler.split_once('.') else {
        return Ok((vec![handler.to_owned()], false));
    };
    let elements = &router.graph().elements;
    if elements.iter().any(|e| e.name == element) {
        return Ok((vec![handler.to_owned()], false));
    }
    let pattern = element.contains(['*', '?', '[']);
    // Click complements a set with `^`, the crate with `!`.
    let glob = Pattern::new(&element.replace("[^", "[!")).ok().filter(|_| pattern);
    let fits = |e: &&castanet_runtime::graph::Element| match &glob {
        Some(glob) => glob.matches(&e.name),
        None => is_a(e.class, element),
    };
    let found: Vec<_> = elements.iter().filter(fits).collect();
    if found.is_empty() {
        let matching = if pattern { " matching" } else { "" };
        return Err(format!("no element{matching} '{element}'"));
    }
    let paths = found.iter().map(|e| format!("{}.{name}", e.name));
    Ok((paths.filter(|path| router.has_handler(path, false)).collect(), true))
}

/// Whether a class has this name, or is of that kind, as Click names kinds.
fn is_a(class: &Class, kind: &str) -> bool {
    class.spec.class == kind
        || class.spec.aliases.contains(&kind)
        || match kind {
            "Storage" => class.role == Role::Store,
            "SimpleQueue" | "NotifierQueue" => {
                ["Queue", "MixedQueue", "FrontDropQueue"].contains(&class.spec.class)
            }
            "Script" => class.spec.class == "DriverManager",
            "IPRouteTable" => class.spec.class == "RadixIPLookup",
            _ => false,
        }
}

/// `-x`: the handler's value as exit status: a number, or a boolean of which
/// true is 0.
pub(super) fn exit_status(router: &mut Router, handler: &str) -> i32 {
    let said = router.read(handler).map_err(|e| e.in_click_words().unwrap_or_default());
    let status = said.and_then(|text| {
        let text = text.trim();
        // As a parent sees it: the low byte.
        let number = integer(text).map(|n| (n & 0xff) as i32);
        let status = number.or(match text {
            "true" | "yes" | "t" | "y" => Some(0),
            "false" | "no" | "f" | "n" => Some(1),
            _ => None,
        });
        status.ok_or_else(|| "exit handler value should be integer".to_owned())
    });
    status.unwrap_or_else(|message| {
        complain(message);
        255
    })
}

/// A number as Click writes them, perhaps in hexadecimal.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}
