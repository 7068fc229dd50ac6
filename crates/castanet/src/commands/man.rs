//! `castanet man`: the man pages, written from the command line's own words.

use super::CommandResult;
use crate::load::io_error_text;
use std::path::Path;

/// Writes a page for each command, and for each of its own commands, into `dir`.
pub(crate) fn main(commands: Vec<clap::Command>, dir: &Path) -> CommandResult {
    let page = |command| clap_mangen::generate_to(command, dir);
    let written =
        std::fs::create_dir_all(dir).and_then(|()| commands.into_iter().try_for_each(page));
    Ok(written.map_err(|e| {
        format!("cannot write man pages into {}: {}", dir.display(), io_error_text(&e))
    })?)
}
