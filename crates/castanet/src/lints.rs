//! Lints of `castanet check`: their names, their explanations, and how they are silenced.

use crate::commands::CommandError;
use castanet_lang::{Diagnostics, SourceMap, Span, nearest};
use castanet_runtime::graph::lints::{LINTS, Lint};

/// Begins a comment that silences lints for the element in its line, or in the line below.
const COMMENT: &str = "castanet: allow";

/// The lint of a name.
pub(crate) fn find(name: &str) -> Result<&'static Lint, CommandError> {
    LINTS.iter().find(|lint| lint.name == name).ok_or_else(|| {
        let near = nearest(name, LINTS.iter().map(|lint| lint.name));
        let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        CommandError::usage(format!(
            "there is no lint '{name}'{near} (castanet check --lints lists them)"
        ))
    })
}

/// The names of all lints, each with its summary.
pub(crate) fn list() -> String {
    let line = |lint: &Lint| format!("{:<22} {}\n", lint.name, lint.summary);
    LINTS.iter().map(line).collect()
}

/// The explanation of a lint, with the ways to silence it.
pub(crate) fn explanation(lint: &Lint) -> String {
    format!(
        "{name}: {summary}\n\n{explanation}\n\n\
         To silence it for one element, write this comment in its line or in the line above:\n\n    \
         // {COMMENT} {name}\n\n\
         or for all of them: castanet check --allow {name}\n",
        name = lint.name,
        summary = lint.summary,
        explanation = lint.explanation,
    )
}

/// Removes the warnings of lints that are `allowed`, and of those that a comment at the element allows.
pub(crate) fn silence(found: &mut Diagnostics, sources: &SourceMap, allowed: &[String]) {
    found.silence(|warning, lint| {
        allowed.iter().any(|it| it == lint)
            || warning.span.is_some_and(|span| is_allowed_at(sources, span, lint))
    });
}

/// Whether a comment in the line of a text, or in the line above, allows a lint.
fn is_allowed_at(sources: &SourceMap, span: Span, lint: &str) -> bool {
    let text = sources.text(span.file);
    let before = text.get(..span.start as usize).unwrap_or_default();
    let number = before.matches('\n').count();
    let lines = text.lines().skip(number.saturating_sub(1)).take(1 + number.min(1));
    lines
        .filter_map(|line| Some(line.split_once(COMMENT)?.1))
        .any(|names| names.split([',', ' ', '*']).map(str::trim).any(|name| name == lint))
}
