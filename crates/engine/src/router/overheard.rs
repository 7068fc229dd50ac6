//! A console whose lines other programs hear too.

use crate::worker::Console;
use std::sync::{Arc, Mutex, PoisonError};

/// Hears lines, and says whether it will hear more.
type Ear = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The user's console, and who else hears what is written to it.
pub(super) struct Overheard {
    console: Arc<dyn Console>,
    ears: Mutex<Vec<Ear>>,
}

impl Overheard {
    pub(super) fn new(console: Arc<dyn Console>) -> Overheard {
        Overheard { console, ears: Mutex::new(Vec::new()) }
    }

    pub(super) fn overhear(&self, ear: Ear) {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).push(ear);
    }
}

impl Console for Overheard {
    fn chatter(&self, lines: &str) {
        self.console.chatter(lines);
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).retain(|ear| ear(lines));
    }
    fn print(&self, text: &str) {
        self.console.print(text);
    }
}
