//! An example's text, taken apart into configuration and script.

use crate::class::Library;
use castanet_lang::{Diagnostic, Diagnostics, SourceMap, nearest, parse};
use std::collections::BTreeSet;

/// One example.
pub struct Script<'a> {
    /// The configuration; empty lines stand for the script, so that errors
    /// name the lines of the example.
    pub config: String,
    /// The script's lines with their numbers, from 1.
    pub lines: Vec<(usize, &'a str)>,
}

impl<'a> Script<'a> {
    /// Takes the text of an example apart.
    pub fn new(text: &'a str) -> Script<'a> {
        let config = text.lines().map(|l| if super::is_script(l.trim()) { "" } else { l });
        let lines = text.lines().map(str::trim).enumerate().map(|(n, l)| (n + 1, l));
        Script {
            config: config.collect::<Vec<_>>().join("\n"),
            lines: lines.filter(|(_, l)| super::is_script(l)).collect(),
        }
    }

    /// The packets that are fed: line, port and sketch.
    pub fn fed(&self) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
        self.lines.iter().filter_map(|&(n, line)| {
            let line = line.strip_prefix('>')?.trim();
            let (port, sketch) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            Some((n, port, sketch.trim()))
        })
    }

    /// Declarations for the names that the configuration leaves open, and
    /// which of them are outputs.
    pub fn ports(&self, library: &Library) -> Result<(String, BTreeSet<String>), String> {
        let mut outputs = self.open_ends(library)?;
        let (mut text, mut fed) = (String::new(), BTreeSet::new());
        for (n, name, sketch) in self.fed() {
            if fed.insert(name) && !outputs.remove(name) {
                let line = format!("> {name} {sketch}");
                return Err(at(
                    n,
                    &line,
                    &format!("the configuration has no open end `{name} ->`"),
                ));
            }
        }
        fed.iter().for_each(|name| text += &format!("{name} :: ExampleInput;\n"));
        outputs.iter().for_each(|name| text += &format!("{name} :: ExampleOutput;\n"));
        Ok((text, outputs))
    }

    /// The names that the configuration does not declare. A name that begins with
    /// a capital is no port, but an unknown class.
    fn open_ends(&self, library: &Library) -> Result<BTreeSet<String>, String> {
        let mut sources = SourceMap::new();
        let file = sources.add("example", &self.config);
        let (tree, mut found) = parse(&mut sources, file);
        let (_, errors) = library.expand(&tree);
        let mut names = BTreeSet::new();
        let unknown: Diagnostics = errors
            .iter()
            .filter_map(|error| {
                let name =
                    error.message.strip_prefix("undeclared element '")?.strip_suffix('\'')?;
                if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
                    names.insert(name.to_owned());
                    return None;
                }
                let near = nearest(name, library.names()).map(|n| format!("did you mean '{n}'?"));
                let message = format!("unknown element class '{name}'");
                Some(Diagnostic::error(error.span, message).with_maybe_help(near))
            })
            .collect();
        found.append(unknown);
        if found.has_errors() { Err(found.render_rich(&sources, false)) } else { Ok(names) }
    }
}

/// An error, said to be about that line.
pub fn at(number: usize, line: &str, error: &str) -> String {
    let indented = error.starts_with("  ");
    format!("line {number}: {line}\n{}{error}", if indented { "" } else { "  " })
}
