//! Tags such as `<~name link>` in a template, and their attributes.

use std::collections::HashMap;

/// A tag.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    /// Its name in small letters; empty at the end of a template.
    pub(super) name: String,
    attributes: HashMap<String, String>,
}

impl Tag {
    /// The value of an attribute: empty if it is not there, its own name if it has none.
    pub(super) fn get(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).map_or("", String::as_str)
    }

    pub(super) fn has(&self, attribute: &str) -> bool {
        self.attributes.contains_key(attribute)
    }
}

/// Whether references such as `&lt;` in values become what they stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    Stay,
    Resolve,
}

/// The text before the first tag of a template, the tag, and what follows it.
pub(super) fn next(template: &str, references: References) -> (&str, Option<(Tag, &str)>) {
    match template.split_once("<~") {
        Some((before, tag)) => (before, Some(parse(tag, references))),
        None => (template, None),
    }
}

/// The tag whose inside a text begins with.
fn parse(text: &str, references: References) -> (Tag, &str) {
    let text = text.trim_start();
    let end = text.find(|c: char| c == '>' || c.is_ascii_whitespace()).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    // `<~name/>` is the same as `<~name />`.
    let short = name.strip_suffix('/').unwrap_or(name);
    let mut tag = Tag { name: short.to_ascii_lowercase(), ..Tag::default() };
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return (tag, rest);
        }
        if let Some(after) = rest.strip_prefix('>').or(rest.strip_prefix("-->")) {
            return (tag, after);
        }
        if let Some(after) = rest.strip_prefix('/') {
            rest = after;
            continue;
        }
        let ends = |c: char| c == '>' || c == '=' || c.is_ascii_whitespace();
        let (name, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        let name = unquote(name).to_ascii_lowercase();
        rest = after.trim_start();
        let value = match rest.strip_prefix('=') {
            Some(after) => {
                let (value, after) = self::value(after.trim_start());
                rest = after;
                match references {
                    References::Resolve => unquote(value),
                    References::Stay => value.to_owned(),
                }
            }
            None => name.clone(),
        };
        tag.attributes.insert(name, value);
    }
}

/// A value in quotes of either kind, or without, and what follows it.
fn value(text: &str) -> (&str, &str) {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    text.split_at(text.find(|c: char| c == '>' || c.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// Text with the commonest references, `&lt;` or `&#60;`, as what they stand for.
pub(super) fn unquote(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.find(|c: char| c != '#' && !c.is_ascii_alphanumeric());
        let (name, behind) = after.split_at(end.unwrap_or(after.len()));
        let known = match name {
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "lt" => Some('<'),
            "gt" => Some('>'),
            _ => name.strip_prefix('#').and_then(|n| n.parse().ok()).and_then(char::from_u32),
        };
        match known {
            Some(c) => {
                out.push(c);
                rest = behind.strip_prefix(';').unwrap_or(behind);
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_taken_apart() {
        let text = "a <~Name LINK sep=', ' entry=\"<~x>\" n=3 lt='&lt;' /-->b <~c";
        let (before, rest) = next(text, References::Resolve);
        assert_eq!(before, "a ");
        let (tag, after) = rest.unwrap();
        assert_eq!((tag.name.as_str(), after), ("name", "b <~c"));
        for (name, value) in
            [("link", "link"), ("sep", ", "), ("entry", "<~x>"), ("n", "3"), ("lt", "<")]
        {
            assert_eq!(tag.get(name), value);
        }
        assert!(tag.has("link") && !tag.has("typeref"));
        let (_, rest) = next(after, References::Stay);
        assert_eq!(rest.unwrap().0.name, "c", "an unfinished tag ends with the text");
        assert_eq!(next("no tag < ~", References::Stay), ("no tag < ~", None));
        let (_, raw) = next("<~x lt='&lt;'>", References::Stay);
        assert_eq!(raw.unwrap().0.get("lt"), "&lt;");
        assert_eq!(unquote("&lt;&#65;&amp;lt; &x; & &quot"), "<A&lt; &x; & \"");
    }
}
