//! The console: destination of lines that elements write.

use crate::terminal::{complain, say};
use castanet_runtime::console::Console;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something that elements printed could not be written.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Whether something that elements printed could not be written, which has been
/// said, and is a failure in the end.
pub(crate) fn is_unwritten() -> bool {
    UNWRITTEN.load(Ordering::Relaxed)
}

/// Standard error and standard output.
pub(crate) struct Terminal;

impl Console for Terminal {
    fn chatter(&self, lines: &str) {
        crate::log::chatter(lines);
    }
    fn print(&self, text: &str) {
        if let Err(message) = say(text)
            && !UNWRITTEN.swap(true, Ordering::Relaxed)
        {
            complain(message);
        }
    }
}
