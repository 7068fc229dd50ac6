//! What all devices have in common: a queue of packets in each direction.

use castanet_packet::{Batch, Pool};
use std::io;
use std::os::fd::RawFd;

/// One queue of a device, owned by the worker that polls it. A device fills
/// packets and empties batches itself, so that one whose hardware writes
/// straight into frames needs no copy that its callers would notice.
pub trait Device: Send {
    /// Adds up to `max` received packets to `batch`, never waits, and says how
    /// many. Packets carry their time, whom the link meant them for, and the
    /// device's number; checksums are complete and super-frames are cut.
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize>;

    /// Sends packets from the front of `batch`, never waits, and says how many
    /// went. Those and the ones that the device refuses for good (counted as
    /// errors) are gone from the batch; what it has no room for now stays.
    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize>;

    /// Sees to it that what was sent is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether packets that were taken still wait for another `flush`.
    fn unsent(&self) -> bool {
        false
    }

    /// Whether it cannot receive for want of frames, so that it must be asked
    /// again without its descriptor becoming readable.
    fn starved(&self) -> bool {
        false
    }

    /// How many received packets were dropped because the pool had no frame.
    fn no_frame(&self) -> u64 {
        0
    }

    /// Becomes readable when there may be packets to receive, and writable
    /// when there may be room to send.
    fn fd(&self) -> Option<RawFd>;

    /// Counts since the device was opened.
    fn stats(&self) -> DeviceStats;

    /// How packets come and go here, and why that way.
    fn describe(&self) -> String;
}

/// What became of a device's packets.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DeviceStats {
    /// Packets handed out by `receive`.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets taken by `transmit`.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that the kernel or the hardware dropped for want of room.
    pub kernel_drops: u64,
    /// Received packets dropped because the pool had no frame.
    pub no_frame: u64,
    /// Received packets dropped because what the kernel or a peer said about their
    /// checksum, segmentation or length does not fit them.
    pub malformed: u64,
    /// Super-frames that were cut into packets.
    pub super_frames: u64,
    /// Times that there was no room to send.
    pub tx_full: u64,
    /// Packets that the device refused: too long, or the link is down.
    pub tx_errors: u64,
}
