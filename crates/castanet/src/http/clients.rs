//! The clients of an HTTP listener: no more than a number of them, of which slow ones make room.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// Clients at a time.
const MOST: usize = 256;
/// Time for which a client that is not being answered keeps its place, where others wait for one.
const PATIENCE: Duration = Duration::from_millis(500);

/// The clients that are connected.
#[derive(Default)]
pub(super) struct Clients(Mutex<ClientList>);

#[derive(Default)]
struct ClientList {
    clients: Vec<Client>,
    /// Number of the last client.
    last: u64,
}

/// A client.
struct Client {
    number: u64,
    /// Whether it is being answered, for a request that it may make.
    is_answered: bool,
    /// When such an answer was there last, or the client came.
    since: Instant,
    /// Ends its task.
    task: AbortHandle,
}

impl Clients {
    fn list(&self) -> MutexGuard<'_, ClientList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for one more. Where there is none, the client is disconnected that was answered
    /// last the longest ago, unless that is less than [`PATIENCE`].
    pub(super) fn make_room(&self) -> bool {
        let clients = &mut self.list().clients;
        if clients.len() < MOST {
            return true;
        }
        let slow = clients.iter().enumerate().filter(|(_, client)| !client.is_answered);
        let slowest = slow.min_by_key(|(_, client)| client.since);
        let slowest = slowest.filter(|(_, client)| client.since.elapsed() >= PATIENCE);
        let place = slowest.map(|(place, _)| place);
        place.iter().for_each(|&place| clients.swap_remove(place).task.abort());
        place.is_some()
    }

    /// Chooses the number of another client.
    pub(super) fn next(&self) -> u64 {
        let mut list = self.list();
        list.last += 1;
        list.last
    }

    /// Adds a client, which has come now.
    pub(super) fn add(&self, number: u64, task: AbortHandle) {
        let client = Client { number, is_answered: false, since: Instant::now(), task };
        self.list().clients.push(client);
    }

    /// Notes that a client is being answered, or that the answer is there.
    pub(super) fn set_answered(&self, number: u64, is_answered: bool) {
        let mut list = self.list();
        if let Some(client) = list.clients.iter_mut().find(|client| client.number == number) {
            (client.is_answered, client.since) = (is_answered, Instant::now());
        }
    }

    /// Removes a client that has gone.
    pub(super) fn remove(&self, number: u64) {
        self.list().clients.retain(|client| client.number != number);
    }
}
