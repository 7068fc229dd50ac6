//! Expands a configuration but keeps the file's variables, so that a tool's output still has them.

use crate::args;
use crate::diagnostic::Diagnostics;
use crate::expand::{ClassInfo, expand};
use crate::flat::FlatGraph;
use crate::tree::{Stmt, Tree};

/// Expands a configuration as [`expand`] does, but configuration strings keep the variables of
/// `define` statements outside compounds, which are in [`FlatGraph::defines`]. Values in `vars`
/// override theirs.
pub fn expand_keeping_variables(
    tree: &Tree,
    classes: &dyn ClassInfo,
    vars: &[(String, String)],
) -> (FlatGraph, Diagnostics) {
    let mut defines = Vec::new();
    collect(tree, &mut defines);
    for (name, value) in &mut defines {
        if let Some((_, override_value)) = vars.iter().find(|(var, _)| var == name) {
            value.clone_from(override_value);
        }
    }
    let placeholders = Placeholders::new(tree, vars);
    let mut values: Vec<_> = vars.to_vec();
    values.retain(|(name, _)| !defines.iter().any(|(known, _)| known == name));
    let named = defines.iter().enumerate();
    values.extend(named.map(|(at, (name, _))| (name.clone(), placeholders.placeholder(at))));
    let (mut flat, diagnostics) = expand(tree, classes, &values);
    for element in &mut flat.elements {
        element.config = placeholders.restore_variables(&element.config, &defines);
    }
    flat.defines = defines;
    (flat, diagnostics)
}

/// Collects the variables of `define` statements, including those of libraries.
fn collect(tree: &Tree, into: &mut Vec<(String, String)>) {
    for stmt in &tree.body {
        match stmt {
            Stmt::Define(defines) => {
                for define in defines {
                    if !into.iter().any(|(name, _)| *name == define.name) {
                        into.push((define.name.clone(), args::uncomment(&define.value)));
                    }
                }
            }
            Stmt::Require(require) => {
                require.libraries.iter().for_each(|library| collect(library, into));
            }
            _ => {}
        }
    }
}

/// Words that stand for variables during expansion. No text of the configuration contains `start`,
/// and quoting does not change such a word.
struct Placeholders {
    start: String,
}

impl Placeholders {
    fn new(tree: &Tree, vars: &[(String, String)]) -> Self {
        let mut number = 0;
        loop {
            let start = format!("kept{number}_");
            let free = |text: &str| !text.contains(&start);
            if texts(tree).iter().all(|text| free(text)) && vars.iter().all(|(_, v)| free(v)) {
                return Placeholders { start };
            }
            number += 1;
        }
    }

    /// Returns the word for the variable with an index.
    fn placeholder(&self, at: usize) -> String {
        format!("{}{at}_", self.start)
    }

    /// Replaces the words in a text by variables.
    fn restore_variables(&self, text: &str, defines: &[(String, String)]) -> String {
        let mut out = String::new();
        let mut parts = text.split(self.start.as_str());
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, after) = part.split_once('_').unwrap_or((part, ""));
            let known = number.parse().ok().and_then(|at: usize| defines.get(at));
            let name = known.map_or("", |(name, _)| name);
            let joined = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            match joined {
                true => out.extend(["${", name, "}"]),
                false => out.extend(["$", name]),
            }
            out.push_str(after);
        }
        out
    }
}

/// Returns the text of a configuration and of the libraries that it includes.
fn texts(tree: &Tree) -> Vec<&str> {
    let mut all = vec![&*tree.text];
    for stmt in &tree.body {
        if let Stmt::Require(require) = stmt {
            all.extend(require.libraries.iter().flat_map(texts));
        }
    }
    all
}
