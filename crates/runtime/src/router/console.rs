//! A console to whose lines programs subscribe.

use crate::console::Console;
use crate::worker::driver::{DriverEvent, ProgramId};
use castanet_element::control::{ChatterChannel, ChatterSubscriber, DriverHandle};
use castanet_element::exec::is_default_channel;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The user's console, and the subscribers to its lines.
pub(super) struct ConsoleFanout {
    console: Arc<dyn Console>,
    subscribers: Mutex<Vec<(ChatterChannel, ChatterSubscriber)>>,
}

impl ConsoleFanout {
    pub(super) fn new(console: Arc<dyn Console>) -> ConsoleFanout {
        ConsoleFanout { console, subscribers: Mutex::new(Vec::new()) }
    }

    pub(super) fn subscribe(&self, mut channel: ChatterChannel, subscriber: ChatterSubscriber) {
        let mut subscribers = self.subscribers();
        // The first subscriber decides, as in Click.
        if let Some((first, _)) = subscribers.iter().find(|(it, _)| it.name == channel.name) {
            channel.quiet = first.quiet;
        }
        subscribers.push((channel, subscriber));
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<(ChatterChannel, ChatterSubscriber)>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console for ConsoleFanout {
    fn chatter(&self, lines: &str) {
        self.console.chatter(lines);
        self.subscribers().retain(|(channel, subscriber)| {
            !is_default_channel(&channel.name) || subscriber(lines)
        });
    }
    fn chatter_on(&self, name: &str, lines: &str) {
        let mut subscribers = self.subscribers();
        if subscribers.iter().any(|(channel, _)| channel.name == name && !channel.quiet) {
            self.console.chatter(lines);
        }
        subscribers.retain(|(channel, subscriber)| channel.name != name || subscriber(lines));
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

    fn subscribe(&self, channel: ChatterChannel, subscriber: ChatterSubscriber) {
        self.console.subscribe(channel, subscriber);
    }
}
