//! Slot channels as devices: rings of slots in memory that is shared with another process.

mod endpoint;
mod hostile_peer;
mod layout;
mod link;
mod ring;
#[cfg(test)]
mod tests;

pub(crate) use endpoint::SlotOptions;
pub use endpoint::{is_connected, pass};
pub use hostile_peer::run_hostile_peer;
pub(crate) use layout::{CAPACITY, Geometry, MAX_BYTES, SLOTS};

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use castanet_packet::{Batch, Pool};
use endpoint::Endpoint;
use link::{Link, PeerState};
use ring::{Consumer, Producer, ReceiveCount, SlotErrors};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// Number of times that there was no room after which the device looks whether the peer is alive.
const LOOK: u64 = 64;

/// Number of polls that find nothing, after which the device looks at the socket. It does so before each
/// sleep, too.
const POLLS: u32 = 256;

/// The reason for which the connection to a peer that lies about a ring ends.
const PASSED: &str = "the peer has moved its end of a ring past ours";

/// The direction in which an element uses a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Receive,
    Send,
}

/// Packets that were lost for reasons that only slot channels have.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct SlotLosses {
    /// Received packets of a length that neither a slot nor a frame holds.
    pub(crate) length: u64,
    /// Received packets of a type that there is not.
    pub(crate) kind: u64,
    /// Connections that were ended because the peer broke the rules of rings.
    pub(crate) ring_faults: u64,
    /// Packets that were in a ring when the peer left.
    pub(crate) unread: u64,
}

/// One direction of a slot channel.
pub(crate) struct SlotDevice {
    endpoint: Arc<Endpoint>,
    direction: Direction,
    attachment: Option<Attachment>,
    stats: DeviceStats,
    losses: SlotLosses,
    /// Number of polls until the next look at the socket.
    polls_left: u32,
}

/// One end of a ring of the connection.
struct Attachment {
    link: Arc<Link>,
    end: RingEnd,
    /// Once the peer has left, the number of its packets that may still be taken.
    left: Option<usize>,
}

enum RingEnd {
    Producer(Producer),
    Consumer(Consumer),
    /// It was given back.
    None,
}

impl Attachment {
    fn new(link: Arc<Link>, direction: Direction) -> Option<Attachment> {
        let end = match direction {
            Direction::Receive => RingEnd::Consumer(link.take_consumer()?),
            Direction::Send => RingEnd::Producer(link.take_producer()?),
        };
        Some(Attachment { link, end, left: None })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.end, RingEnd::None) {
            RingEnd::Producer(end) => self.link.return_producer(end),
            RingEnd::Consumer(end) => self.link.return_consumer(end),
            RingEnd::None => {}
        }
    }
}

impl SlotDevice {
    /// Opens one direction of a channel. The peer may come later.
    pub(crate) fn open(options: &SlotOptions, direction: Direction) -> Result<SlotDevice, IoError> {
        Ok(SlotDevice::new(endpoint::open(options)?, direction))
    }

    fn new(endpoint: Arc<Endpoint>, direction: Direction) -> SlotDevice {
        let (stats, losses) = (DeviceStats::default(), SlotLosses::default());
        SlotDevice { endpoint, direction, attachment: None, stats, losses, polls_left: 0 }
    }

    /// Whether there is a peer; if there was none, looks for one.
    pub(crate) fn attach(&mut self) -> bool {
        if self.direction == Direction::Send
            && self.attachment.as_ref().is_some_and(|it| it.link.has_ended())
        {
            self.detach("the peer has gone");
        }
        if self.attachment.is_none() {
            let link = self.endpoint.link();
            self.attachment = link.and_then(|link| Attachment::new(link, self.direction));
        }
        self.attachment.is_some()
    }

    /// Lets go of the connection, which ends.
    #[cold]
    fn detach(&mut self, why: &str) {
        let Some(it) = self.attachment.take() else { return };
        if let RingEnd::Producer(producer) = &it.end {
            let slots = it.link.geometry().slots;
            self.losses.unread += u64::from(producer.waiting().unwrap_or(slots));
        }
        self.endpoint.end(&it.link, why);
    }

    /// Ends a connection whose peer breaks the rules of rings.
    #[cold]
    fn end_faulty(&mut self, why: &str) {
        self.losses.ring_faults += 1;
        self.detach(&format!("{why}; the connection is ended"));
    }

    /// Says to the peer that this side is about to sleep. Returns whether it may: it must look again
    /// if packets have come in between.
    pub(crate) fn may_sleep(&mut self) -> bool {
        // An event on the socket wakes the worker once, and may have come while it was awake.
        self.polls_left = 0;
        if self.look_at_peer() {
            return false;
        }
        // The first poll without packets after the sleep looks for what has ended it.
        self.polls_left = 0;
        match &mut self.attachment {
            Some(Attachment { end: RingEnd::Consumer(consumer), left: None, .. }) => {
                consumer.may_sleep()
            }
            Some(_) => false,
            // Another connection may be there already.
            None => !self.attach(),
        }
    }

    /// The time until the next look for a peer; `None` if the descriptor will say when.
    pub(crate) fn retry_in(&self) -> Option<Duration> {
        match &self.attachment {
            None => self.endpoint.retry_in(),
            Some(_) => None,
        }
    }

    /// The packets that were lost.
    pub(crate) fn losses(&self) -> SlotLosses {
        self.losses
    }

    /// Log lines about connections since the last call, of both directions.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        self.endpoint.take_messages()
    }

    /// Number of connections until now.
    pub(crate) fn connections(&self) -> u64 {
        self.endpoint.connections()
    }

    fn count(&mut self, count: &ReceiveCount) {
        self.stats.received += count.received as u64;
        self.stats.received_bytes += count.bytes;
        self.stats.no_frame += count.no_frame as u64;
        let SlotErrors { length, kind } = count.errors;
        self.stats.malformed += length + kind;
        self.losses.length += length;
        self.losses.kind += kind;
    }

    /// Looks at the socket after a poll without packets; returns whether to poll once more, because
    /// the peer has left and may have put packets down before.
    fn look_at_peer(&mut self) -> bool {
        let Some(it) = &mut self.attachment else { return false };
        // Each look is two system calls.
        if self.polls_left > 0 && it.left.is_none() {
            self.polls_left -= 1;
            return false;
        }
        self.polls_left = POLLS;
        self.endpoint.reject_others();
        if it.left.is_some() {
            self.detach("the peer has gone");
            return false;
        }
        let state = if it.link.has_ended() { PeerState::Gone } else { it.link.read_doorbell() };
        match state {
            PeerState::Alive => false,
            PeerState::Gone => {
                it.left = Some(it.link.geometry().slots as usize);
                true
            }
            PeerState::Flooding => {
                self.end_faulty("the peer floods the doorbell");
                false
            }
        }
    }
}

impl Device for SlotDevice {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        if self.attachment.is_none() && !self.attach() {
            return Ok(0);
        }
        // Twice at most: the second time after the peer has left.
        for _ in 0..2 {
            let Some(Attachment { link, end: RingEnd::Consumer(consumer), left }) =
                &mut self.attachment
            else {
                break;
            };
            let Ok(count) = consumer.receive(pool, batch, max.min(left.unwrap_or(max))) else {
                self.end_faulty(PASSED);
                break;
            };
            if count.must_wake {
                link.wake_peer();
            }
            let taken = count.received + count.no_frame + count.errors.total();
            if let Some(left) = left {
                *left -= taken.min(*left);
            }
            self.count(&count);
            if taken > 0 || !self.look_at_peer() {
                return Ok(count.received);
            }
        }
        Ok(0)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if !self.attach() || batch.is_empty() {
            return Ok(0);
        }
        let Some(Attachment { link, end: RingEnd::Producer(producer), .. }) = &mut self.attachment
        else {
            return Ok(0);
        };
        let Ok(count) = producer.send(batch.as_slice()) else {
            self.end_faulty(PASSED);
            return Ok(0);
        };
        self.stats.sent += count.sent as u64;
        self.stats.sent_bytes += count.bytes;
        self.stats.tx_errors += count.refused as u64;
        let is_full = count.sent + count.refused < batch.len();
        self.stats.tx_full += u64::from(is_full);
        let must_look = is_full && self.stats.tx_full.is_multiple_of(LOOK);
        let is_gone = (count.must_wake || must_look) && !link.wake_peer();
        let rest = batch.split_off(count.sent + count.refused);
        *batch = rest;
        if is_gone {
            self.detach("the peer has gone");
        }
        Ok(count.sent)
    }

    fn no_frame(&self) -> u64 {
        self.stats.no_frame
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.endpoint.raw_fd())
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }

    fn describe(&self) -> String {
        let SlotOptions { path, is_client, is_passed, .. } = self.endpoint.options();
        let state = match &self.attachment {
            Some(it) => {
                let (slots, bytes) = (it.link.geometry().slots, it.link.geometry().capacity());
                format!("connected, rings of {slots} slots of {bytes} bytes")
            }
            None if *is_passed => "no peer; waits for the program to pass a connection".to_owned(),
            None if *is_client => "no peer; connects when there is one".to_owned(),
            None => "no peer; waits for one to connect".to_owned(),
        };
        format!("{path}: slot channel; {state}")
    }
}
