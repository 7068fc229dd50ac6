//! The interface of all devices: one queue of packets in each direction.

use castanet_packet::{Batch, Pool};
use std::io;
use std::os::fd::RawFd;

/// One queue of a device, owned by the worker that polls it. The device fills packets and empties
/// batches itself, so that hardware which writes into frames directly needs no copy.
pub trait Device: Send {
    /// Adds up to `max` received packets to `batch` and returns their number; never waits. Packets
    /// carry their timestamp, packet type and device number; checksums are complete and
    /// super-frames are segmented.
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize>;

    /// Sends packets from the front of `batch` and returns the number sent; never waits. Removes
    /// sent packets and those that the device rejects (counted as errors) from the batch; packets
    /// for which the device has no room stay.
    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize>;

    /// Starts the transmission of all packets that `transmit` has taken.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns whether packets that `transmit` has taken need another `flush`.
    fn unsent(&self) -> bool {
        false
    }

    /// Returns whether the device lacks frames to receive into. The worker must then poll it again
    /// without waiting for its descriptor.
    fn starved(&self) -> bool {
        false
    }

    /// Number of received packets that were dropped because the pool had no frame.
    fn no_frame(&self) -> u64 {
        0
    }

    /// A descriptor that becomes readable when there may be packets to receive, and writable when
    /// there may be room to send.
    fn fd(&self) -> Option<RawFd>;

    /// Returns the counts since the device was opened.
    fn stats(&self) -> DeviceStats;

    /// Describes the method of receiving and sending, and the reason for it.
    fn describe(&self) -> String;
}

/// Counts of a device's packets.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DeviceStats {
    /// Packets returned by `receive`.
    pub received: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets taken by `transmit`.
    pub sent: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets that the kernel or the hardware dropped for lack of room.
    pub kernel_drops: u64,
    /// Received packets dropped because the pool had no frame.
    pub no_frame: u64,
    /// Received packets dropped because their checksum, segmentation or length does not match what
    /// the kernel or the peer says of it.
    pub malformed: u64,
    /// Super-frames that were segmented into packets.
    pub super_frames: u64,
    /// Number of times that there was no room to send.
    pub tx_full: u64,
    /// Packets that the device rejected: too long, or the link is down.
    pub tx_errors: u64,
}

impl DeviceStats {
    /// The sums of these counts and those of another device.
    pub(crate) fn plus(self, other: &DeviceStats) -> DeviceStats {
        DeviceStats {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            kernel_drops: self.kernel_drops + other.kernel_drops,
            no_frame: self.no_frame + other.no_frame,
            malformed: self.malformed + other.malformed,
            super_frames: self.super_frames + other.super_frames,
            tx_full: self.tx_full + other.tx_full,
            tx_errors: self.tx_errors + other.tx_errors,
        }
    }
}
