//! A thread that waits for changes of interfaces, so that neither the control thread nor a worker
//! has to look.

use crate::sys::netlink::LinkMonitor;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

/// A thread that waits for changes until this is dropped.
pub(super) struct LinkWatcher {
    /// Closed to end the thread.
    stop: Option<io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
    removed: Receiver<u32>,
}

impl LinkWatcher {
    /// Calls `wake` at each change.
    pub(super) fn new(wake: impl Fn() + Send + 'static) -> io::Result<LinkWatcher> {
        let monitor = LinkMonitor::new()?;
        let (stopped, stop) = io::pipe()?;
        let (sender, removed) = channel();
        let thread = std::thread::Builder::new().name("castanet-links".into());
        let thread = thread.spawn(move || {
            let mut indices = Vec::new();
            while monitor.wait(stopped.as_fd()) {
                if monitor.read_removed(&mut indices) {
                    // Without a receiver the thread is about to end.
                    indices.drain(..).for_each(|index| _ = sender.send(index));
                    wake();
                }
            }
        })?;
        Ok(LinkWatcher { stop: Some(stop), thread: Some(thread), removed })
    }

    /// Indices of the interfaces that were removed since the last call.
    pub(super) fn removed(&self) -> Vec<u32> {
        self.removed.try_iter().collect()
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            _ = thread.join();
        }
    }
}
