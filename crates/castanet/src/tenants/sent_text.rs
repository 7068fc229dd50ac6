//! The text of a configuration that a client sends to a running system.

use crate::library::library;
use crate::load::{LibraryClasses, LoadedConfiguration};
use castanet_lang::transform::expand_keeping_variables;
use castanet_lang::{Diagnostics, print};

/// The text of a configuration that was read, as it is sent: as it was written. Where it includes libraries, which
/// the other side does not read, or `vars` set some of its variables, it is the text without compound elements.
/// All errors are in the second part.
pub(crate) fn sent_text(
    loaded: &LoadedConfiguration,
    vars: &[(String, String)],
) -> (String, Diagnostics) {
    match &loaded.tree {
        Some(tree) if loaded.sources.texts().count() > 1 || !vars.is_empty() => {
            let (flat, found) = expand_keeping_variables(tree, &LibraryClasses(&library()), vars);
            (print::flat(&flat), found)
        }
        _ => (loaded.text.clone().unwrap_or_default(), Diagnostics::new()),
    }
}
