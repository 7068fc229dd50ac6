//! The text of a configuration that a client sends to a running system.

use crate::library::library;
use crate::load::{LibraryClasses, Origin, open};
use castanet_lang::print;
use castanet_lang::transform::expand_keeping_variables;
use castanet_runtime::router::ErrorStyle;

/// Reads a configuration, and returns its text as a client sends it: as it was written. Where it includes libraries,
/// which the other side does not read, or `vars` set some of its variables, that is the text without compound
/// elements. All errors are printed; with one, the result is `None`. `clickpath` stands in for the environment's.
pub(crate) fn sent_text(
    origin: &Origin,
    vars: &[(String, String)],
    clickpath: Option<&str>,
    wording: ErrorStyle,
) -> Option<String> {
    let mut loaded = open(origin, clickpath);
    loaded.check_settings(vars, wording);
    let mut text = loaded.text.clone().unwrap_or_default();
    if let Some(tree) = &loaded.tree
        && (loaded.sources.texts().count() > 1 || !vars.is_empty())
    {
        let (flat, found) = expand_keeping_variables(tree, &LibraryClasses(&library()), vars);
        text = print::flat(&flat);
        loaded.found.append(found);
    }
    loaded.report(wording);
    (!loaded.found.has_errors()).then_some(text)
}
