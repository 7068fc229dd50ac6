//! Ctrl-C and its kin end a router in good order.

use castanet_engine::router::Notice;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Sender;

/// Tells the driver when the user wants to end; the second Ctrl-C ends the
/// process at once.
pub(crate) fn forward(line: Sender<Notice>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for (nth, _) in signals.forever().enumerate() {
            if nth > 0 || line.send(Notice::Interrupted).is_err() {
                std::process::exit(crate::exit::INTERRUPTED);
            }
        }
    })?;
    Ok(())
}
