//! Where lines that elements write go.

use castanet_engine::worker::Console;
use std::io::Write;

/// Standard error and standard output.
pub(crate) struct Terminal;

impl Console for Terminal {
    fn chatter(&self, lines: &str) {
        // A reader that went away is no reason to stop a router.
        _ = std::io::stderr().lock().write_all(lines.as_bytes());
    }
    fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
