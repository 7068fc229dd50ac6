//! Policies from files.

use crate::commands::CommandError;
use crate::terminal::{colours_on_stderr, complain};
use castanet_lang::{Diagnostic, Diagnostics, SourceMap, Span};
use castanet_splitbox::policy::{CompiledPolicy, ip_filter};
use clap::ValueEnum;
use std::path::Path;

/// The language of a policy file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum PolicyFormat {
    /// A rule of `IPFilter` on each line.
    IpFilter,
}

/// Compiles a policy; prints everything that is wrong with it.
pub(super) fn compile(path: &Path, format: PolicyFormat) -> Result<CompiledPolicy, CommandError> {
    let mut sources = SourceMap::new();
    let mut found = Diagnostics::new();
    let compiled = match sources.load(path) {
        Ok(file) => match format {
            PolicyFormat::IpFilter => {
                let text = sources.text(file);
                let rules = rules(&text);
                let texts: Vec<&str> = rules.iter().map(|(_, rule)| *rule).collect();
                let errors = |errors: Vec<castanet_splitbox::policy::PolicyError>| {
                    for error in errors {
                        let (start, rule) = rules[error.rule];
                        let at = start + error.error.offset.min(rule.len());
                        let end = (start + rule.len()) as u32;
                        let span = Span { file, start: at as u32, end };
                        let diagnostic = Diagnostic::error(span, error.error.message);
                        found.push(diagnostic.with_maybe_help(error.error.help));
                    }
                };
                ip_filter(&texts).map_err(errors).ok()
            }
        },
        Err(error) => {
            found.push(error);
            None
        }
    };
    if !found.is_empty() {
        complain(found.render_rich(&sources, colours_on_stderr()).trim_end());
    }
    compiled.ok_or(CommandError::REPORTED)
}

/// The rules of a text without comments and empty lines, each with its offset.
fn rules(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    let mut rules = Vec::new();
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        let rule = code.trim();
        if !rule.is_empty() {
            rules.push((start + code.len() - code.trim_start().len(), rule));
        }
        start += line.len();
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_their_places() {
        let text = "# all\n\n  allow tcp # web\ndeny all";
        assert_eq!(rules(text), [(9, "allow tcp"), (25, "deny all")]);
    }
}
