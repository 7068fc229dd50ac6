//! Reads values out of tables of TOML, and reports all that is wrong with them.

use super::Entry;
use castanet_element::args::{FromArg, Names};
use castanet_lang::{Diagnostic, Diagnostics, FileId, Span, nearest};
use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The reader of one system file.
pub(super) struct Reader<'a> {
    pub(super) file: FileId,
    pub(super) found: &'a mut Diagnostics,
}

/// A table, and what messages call it.
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    pub(super) title: String,
    pub(super) span: Span,
}

/// The kind of a value of TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Text,
    Number,
    Flag,
    List,
    Table,
    Time,
}

impl ValueKind {
    fn of(value: &DeValue<'_>) -> ValueKind {
        match value {
            DeValue::String(_) => ValueKind::Text,
            DeValue::Integer(_) | DeValue::Float(_) => ValueKind::Number,
            DeValue::Boolean(_) => ValueKind::Flag,
            DeValue::Array(_) => ValueKind::List,
            DeValue::Table(_) => ValueKind::Table,
            DeValue::Datetime(_) => ValueKind::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ValueKind::Text => "a text",
            ValueKind::Number => "a number",
            ValueKind::Flag => "true or false",
            ValueKind::List => "a list",
            ValueKind::Table => "a table",
            ValueKind::Time => "a time",
        }
    }

    /// A text as a value of this kind, which has no quotation marks.
    fn written(self, value: &DeValue<'_>) -> Option<String> {
        match (self, value) {
            (ValueKind::Number, DeValue::String(it)) => it.parse::<u32>().ok().map(shown),
            (ValueKind::Flag, DeValue::String(it)) => it.parse::<bool>().ok().map(shown),
            _ => None,
        }
    }
}

/// A key that has a meaning, but no effect yet.
pub(super) struct UnsupportedKey {
    pub(super) key: &'static str,
    /// A sentence about what is missing.
    pub(super) reason: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span { file: self.file, start: range.start as u32, end: range.end as u32 }
    }

    pub(super) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.found.push(Diagnostic::error(span, message).with_help(help));
    }

    /// The table of a value, whose keys have to be among `keys`.
    pub(super) fn section<'t>(
        &mut self,
        title: String,
        value: &'t Spanned<DeValue<'t>>,
        keys: &[&str],
        unsupported: &[UnsupportedKey],
    ) -> Option<Section<'t>> {
        let span = self.span(value.span());
        let Some(table) = value.get_ref().as_table() else {
            self.error(span, format!("{title} is no table"), format!("it has {}", list(keys)));
            return None;
        };
        self.check_keys(&title, table, keys, unsupported);
        Some(Section { table, title, span })
    }

    /// The whole file, of so many bytes, whose keys have to be among `keys`.
    pub(super) fn whole<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        length: usize,
        keys: &[&str],
    ) -> Section<'t> {
        let title = "the system file".to_owned();
        self.check_keys(&title, table, keys, &[]);
        Section { table, title, span: self.span(0..length) }
    }

    /// Reports the keys of a table that have no meaning there.
    pub(super) fn check_keys(
        &mut self,
        title: &str,
        table: &DeTable<'_>,
        keys: &[&str],
        unsupported: &[UnsupportedKey],
    ) {
        for key in table.keys() {
            let (name, span) = (key.get_ref().as_ref(), self.span(key.span()));
            if keys.contains(&name) {
                continue;
            }
            if let Some(it) = unsupported.iter().find(|it| it.key == name) {
                let message = format!("`{name}` of {title} is not supported yet: {}", it.reason);
                self.error(span, message, "leave the key out");
                continue;
            }
            let help = match nearest(name, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", list(keys)),
            };
            self.error(span, format!("{title} has no key `{name}`"), help);
        }
    }

    /// The members of the table `key` of a section, in the order of their names.
    pub(super) fn members<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        key: &str,
    ) -> Vec<(String, Span, &'t Spanned<DeValue<'t>>)> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let Some(inner) = value.get_ref().as_table() else {
            let span = self.span(value.span());
            let help = format!("write a table for each, as in `[{key}.NAME]`");
            self.error(span, format!("`{key}` is no table of tables"), help);
            return Vec::new();
        };
        let member =
            |(key, value): (&'t Spanned<toml::de::DeString<'t>>, &'t Spanned<DeValue<'t>>)| {
                (key.get_ref().to_string(), self.span(key.span()), value)
            };
        inner.iter().map(member).collect()
    }

    /// A value of a section that `take` understands; otherwise an error with what it wants.
    fn value<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        (kind, wants): (ValueKind, &str),
        take: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Option<Entry<T>> {
        let value = section.table.get(key)?;
        let span = self.span(value.span());
        let taken = take(value.get_ref());
        if taken.is_none() {
            let (given, title) = (ValueKind::of(value.get_ref()), &section.title);
            let message = match given == kind {
                true => format!("`{key}` of {title} is not {wants}"),
                false => format!("`{key}` of {title} is {}, and has to be {wants}", given.name()),
            };
            let help = kind.written(value.get_ref()).map(|it| format!("write `{key} = {it}`"));
            self.found.push(Diagnostic::error(span, message).with_maybe_help(help));
        }
        taken.map(|value| Entry { value, span })
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, section: &Section<'_>, key: &str) -> Option<Entry<bool>> {
        self.value(section, key, (ValueKind::Flag, "true or false"), |it| it.as_bool())
    }

    /// A text.
    pub(super) fn text(&mut self, section: &Section<'_>, key: &str) -> Option<Entry<String>> {
        self.text_by(section, key, "a text in quotation marks", |it| Some(it.to_owned()))
    }

    /// The path of a file, a folder or a socket.
    pub(super) fn path(&mut self, section: &Section<'_>, key: &str) -> Option<Entry<PathBuf>> {
        self.text_by(section, key, "a path in quotation marks, and not empty", |it| {
            (!it.is_empty()).then(|| PathBuf::from(it))
        })
    }

    /// A text that is parsed.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wants: &str,
    ) -> Option<Entry<T>> {
        self.text_by(section, key, wants, |it| it.parse().ok())
    }

    /// A text that is kept as it is, if `is_right` says so of the value of an argument that it is.
    pub(super) fn argument<T: FromArg>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wants: &str,
        is_right: impl FnOnce(T) -> bool,
    ) -> Option<Entry<String>> {
        self.text_by(section, key, wants, |text| {
            let value = T::from_arg(text, &Names::default());
            value.is_ok_and(is_right).then(|| text.to_owned())
        })
    }

    /// A text that `parse` understands.
    pub(super) fn text_by<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wants: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<Entry<T>> {
        self.value(section, key, (ValueKind::Text, wants), |it| parse(it.as_str()?))
    }

    /// A number from a range.
    pub(super) fn number(
        &mut self,
        section: &Section<'_>,
        key: &str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<Entry<u32>> {
        let wants = format!("a number from {} to {}", range.start(), range.end());
        self.value(section, key, (ValueKind::Number, &wants), |it| {
            number(it).filter(|it| range.contains(it))
        })
    }

    /// One text, or an array of texts, each parsed.
    pub(super) fn list<T: FromStr>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wants: &str,
    ) -> Option<Entry<Vec<Entry<T>>>> {
        let value = section.table.get(key)?;
        let span = self.span(value.span());
        let items: Vec<_> = match value.get_ref() {
            DeValue::Array(all) => all.iter().collect(),
            _ => vec![value],
        };
        let mut list = Vec::new();
        for item in items {
            let span = self.span(item.span());
            match item.get_ref().as_str().and_then(|it| it.parse().ok()) {
                Some(value) => list.push(Entry { value, span }),
                None => {
                    let message = format!("`{key}` of {} has to be {wants}", section.title);
                    self.found.push(Diagnostic::error(span, message));
                }
            }
        }
        Some(Entry { value: list, span })
    }

    /// The values of a table of variables: texts, numbers and booleans.
    pub(super) fn variables(
        &mut self,
        section: &Section<'_>,
        key: &str,
    ) -> Vec<(String, Entry<String>)> {
        let mut all = Vec::new();
        for (name, _, value) in self.members(section.table, key) {
            let span = self.span(value.span());
            match variable(value.get_ref()) {
                Some(value) => all.push((name, Entry { value, span })),
                None => {
                    let help = "write it as text, such as \"1.0.0.1\"";
                    self.error(span, format!("variable `{name}` is no text or number"), help);
                }
            }
        }
        all
    }

    /// Whether a section has a key.
    pub(super) fn has(section: &Section<'_>, key: &str) -> bool {
        section.table.contains_key(key)
    }

    /// The value of a key, for a section of its own.
    pub(super) fn inner<'t>(section: &Section<'t>, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        section.table.get(key)
    }

    /// The table of a section.
    pub(super) fn table<'t>(section: &Section<'t>) -> &'t DeTable<'t> {
        section.table
    }
}

fn number(value: &DeValue<'_>) -> Option<u32> {
    let it = value.as_integer()?;
    u32::from_str_radix(it.as_str(), it.radix()).ok()
}

fn variable(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(it) => Some(it.to_string()),
        DeValue::Integer(it) => i64::from_str_radix(it.as_str(), it.radix()).ok().map(shown),
        DeValue::Float(it) => Some(it.as_str().to_owned()),
        _ => None,
    }
}

fn shown(value: impl Display) -> String {
    value.to_string()
}

/// Keys for a message.
fn list(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}
