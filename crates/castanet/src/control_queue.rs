//! Requests of other threads, such as those of HTTP clients, to the control thread.

use castanet_element::control::ControlWaker;
use castanet_runtime::router::Router;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time after which a client is told that there is no answer: the control thread may wait for a worker
/// that is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for threads that have a configuration prepared, which may take seconds.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// A function that the control thread calls with the service that has the queue.
type ControlRequest<S> = Box<dyn FnOnce(&mut S, &mut Router) + Send>;

/// The requests that wait for the service `S`. There are no more than clients: each waits for its answer.
pub(crate) struct ControlQueue<S> {
    requests: Receiver<ControlRequest<S>>,
}

/// The other end of a [`ControlQueue`]: one for each listener or thread.
pub(crate) struct ControlSender<S> {
    requests: Sender<ControlRequest<S>>,
    waker: ControlWaker,
}

impl<S> Clone for ControlSender<S> {
    fn clone(&self) -> ControlSender<S> {
        ControlSender { requests: self.requests.clone(), waker: self.waker.clone() }
    }
}

impl<S: 'static> ControlQueue<S> {
    /// A queue, and its other end, which wakes the services of a router.
    pub(crate) fn new(router: &Router) -> (ControlQueue<S>, ControlSender<S>) {
        let (sender, requests) = channel();
        let waker = router.service_waker();
        (ControlQueue { requests }, ControlSender { requests: sender, waker })
    }

    /// The next request.
    pub(crate) fn next(&self) -> Option<ControlRequest<S>> {
        self.requests.try_recv().ok()
    }
}

impl<S: 'static> ControlSender<S> {
    /// Has the control thread call a function; `None` if it does not in time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut S, &mut Router) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let request = move |service: &mut S, router: &mut Router| {
            // A client that has gone costs the workers nothing.
            if !answer.is_closed() {
                _ = answer.send(request(service, router));
            }
        };
        self.requests.send(Box::new(request)).ok()?;
        self.waker.wake();
        timeout(PATIENCE, answered).await.ok()?.ok()
    }

    /// The same for a thread that waits, and longer. A request whose time is over before its turn is not made.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut S, &mut Router) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = sync_channel(1);
        let is_over = Arc::new(AtomicBool::new(false));
        let was_over = is_over.clone();
        let request = move |service: &mut S, router: &mut Router| {
            if !was_over.load(Ordering::Relaxed) {
                // Without a receiver the time is over.
                _ = answer.send(request(service, router));
            }
        };
        self.requests.send(Box::new(request)).ok()?;
        self.waker.wake();
        let answer = answered.recv_timeout(LONG_PATIENCE).ok();
        is_over.store(true, Ordering::Relaxed);
        answer
    }
}
