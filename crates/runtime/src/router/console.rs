//! A console to whose lines programs subscribe.

use crate::console::Console;
use crate::worker::driver::{DriverEvent, ProgramId};
use castanet_element::control::{ChatterSubscriber, DriverHandle};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// The user's console, and the subscribers to its lines.
pub(super) struct ConsoleFanout {
    console: Arc<dyn Console>,
    subscribers: Mutex<Vec<ChatterSubscriber>>,
}

impl ConsoleFanout {
    pub(super) fn new(console: Arc<dyn Console>) -> ConsoleFanout {
        ConsoleFanout { console, subscribers: Mutex::new(Vec::new()) }
    }

    pub(super) fn subscribe(&self, subscriber: ChatterSubscriber) {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(subscriber);
    }
}

impl Console for ConsoleFanout {
    fn chatter(&self, lines: &str) {
        self.console.chatter(lines);
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|subscriber| subscriber(lines));
    }
    fn print(&self, text: &str) {
        self.console.print(text);
    }
}

/// The driver, as the waker of one control program reaches it.
pub(super) struct ProgramWaker {
    pub(super) program: ProgramId,
    pub(super) driver: Sender<DriverEvent>,
    pub(super) console: Arc<ConsoleFanout>,
}

impl DriverHandle for ProgramWaker {
    fn wake(&self) {
        // After the end of the router no driver receives it.
        _ = self.driver.send(DriverEvent::ProgramNotified(self.program));
    }

    fn subscribe(&self, subscriber: ChatterSubscriber) {
        self.console.subscribe(subscriber);
    }
}
