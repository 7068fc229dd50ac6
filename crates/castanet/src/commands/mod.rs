//! One module a command.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod elements;
pub(crate) mod explain;
mod explanation;
pub(crate) mod graph;
pub(crate) mod man;
pub(crate) mod middlebox;
pub(crate) mod run;
pub(crate) mod text;

use crate::cli::Configuration;
use crate::load::{LoadedConfiguration, io_error_text, load};
use crate::terminal::{complain, say};
use castanet_element::class::Library;
use castanet_runtime::router::ErrorStyle;

/// Starts DPDK if there are options for it; on failure prints why and gives
/// the exit status.
pub(crate) fn start_dpdk(options: Option<&str>) -> Result<(), i32> {
    let Some(options) = options else { return Ok(()) };
    castanet_io::dpdk::start(&castanet_io::dpdk::words(options)).map_err(|error| {
        complain(format_args!("castanet: {error}"));
        crate::exit::CONFIGURATION
    })
}

/// Loads what the command line names; on failure prints why and gives the
/// exit status.
pub(crate) fn load_or_report(
    configuration: &Configuration,
    library: &Library,
) -> Result<LoadedConfiguration, i32> {
    let (origin, vars) = configuration.sort().map_err(|message| {
        complain(format_args!("castanet: {message}"));
        crate::exit::USAGE
    })?;
    let mut loaded = load(&origin, &vars, library, None);
    loaded.check_settings(&vars, ErrorStyle::Castanet);
    if loaded.found.has_errors() {
        loaded.report(ErrorStyle::Castanet);
        return Err(crate::exit::CONFIGURATION);
    }
    Ok(loaded)
}

/// Writes to a file, or to standard output without one or for `-`; says what went wrong.
pub(crate) fn write_out(path: Option<&std::path::Path>, text: &str) -> i32 {
    let written = match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => std::fs::write(path, text)
            .map_err(|e| format!("cannot write {}: {}", path.display(), io_error_text(&e))),
        None => say(text),
    };
    match written {
        Ok(()) => 0,
        Err(message) => {
            complain(format_args!("castanet: {message}"));
            crate::exit::CONFIGURATION
        }
    }
}
