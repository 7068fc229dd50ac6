//! `castanet man`: the man pages, written from the command line's own words.

use crate::load::io_error_text;
use crate::terminal::complain;
use std::path::Path;

/// Writes a page for each command, and for each of its own commands, into `dir`.
pub(crate) fn main(commands: Vec<clap::Command>, dir: &Path) -> i32 {
    let page = |command| clap_mangen::generate_to(command, dir);
    let written =
        std::fs::create_dir_all(dir).and_then(|()| commands.into_iter().try_for_each(page));
    match written {
        Ok(()) => 0,
        Err(e) => {
            let (dir, e) = (dir.display(), io_error_text(&e));
            complain(format_args!("castanet: cannot write man pages into {dir}: {e}"));
            crate::exit::CONFIGURATION
        }
    }
}
