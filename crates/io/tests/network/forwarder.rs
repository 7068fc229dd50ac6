//! Connects two devices by a thread that sleeps when there are no packets.

use castanet_io::{Device, DeviceStats};
use castanet_packet::{Batch, Pool, PoolConfig};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that forwards between two devices; dropping this ends it.
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<[DeviceStats; 2]>>,
}

impl Forwarder {
    /// Connects two devices.
    pub(crate) fn new(devices: [Box<dyn Device>; 2]) -> Forwarder {
        Forwarder::with(devices, Pool::new(PoolConfig::default()).unwrap())
    }

    /// Connects two devices by packets of this pool.
    pub(crate) fn with(devices: [Box<dyn Device>; 2], pool: Pool) -> Forwarder {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Forwarder { stop, thread: Some(thread::spawn(move || run(devices, &pool, &seen))) }
    }

    /// Ends the thread and returns the devices' counts.
    pub(crate) fn finish(mut self) -> [DeviceStats; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("the forwarder runs without a panic")
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(mut devices: [Box<dyn Device>; 2], pool: &Pool, stop: &AtomicBool) -> [DeviceStats; 2] {
    let mut poll = Poll::new().unwrap();
    let mut events = Events::with_capacity(4);
    for (i, device) in devices.iter().enumerate() {
        let fd = device.fd().unwrap();
        poll.registry().register(&mut SourceFd(&fd), Token(i), Interest::READABLE).unwrap();
    }
    let mut batches = [Batch::new(), Batch::new()];
    while !stop.load(Ordering::Relaxed) {
        let mut received = 0;
        for from in 0..2 {
            let batch = &mut batches[from];
            received += devices[from].receive(pool, batch, 32).unwrap();
            devices[1 - from].transmit(batch).unwrap();
            devices[1 - from].flush().unwrap();
        }
        if received == 0 && batches.iter().all(Batch::is_empty) {
            poll.poll(&mut events, Some(Duration::from_millis(50))).unwrap();
        }
    }
    drop(batches);
    let stats = devices.each_ref().map(|device| device.stats());
    drop(devices);
    Pool::flush_thread();
    assert_eq!(pool.in_use(), 0, "frames are lost");
    stats
}
