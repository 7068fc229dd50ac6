//! `castanet man`: the man pages, written from the command line's own words.

use crate::load::system_words;
use crate::terminal::complain;
use std::path::Path;

/// Writes `castanet.1` and a page for each command into `dir`.
pub(crate) fn main(command: clap::Command, dir: &Path) -> i32 {
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    match written {
        Ok(()) => 0,
        Err(e) => {
            let (dir, e) = (dir.display(), system_words(&e));
            complain(format_args!("castanet: cannot write man pages into {dir}: {e}"));
            crate::exit::CONFIGURATION
        }
    }
}
