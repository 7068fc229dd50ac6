//! A device of an element, and its counts since the last reset.

use super::metrics;
use crate::device::{Device, DeviceStats};
use castanet_element::prelude::*;
use std::marker::PhantomData;

/// The place of a device that may be open, closed, or not open yet; it keeps the counts. `Direction`
/// is [`Rx`] or [`Tx`] if the slot has the handlers of that direction, for a field with `#[flatten]`.
pub(super) struct DeviceSlot<D, Direction = ()> {
    device: Option<D>,
    /// The counts of a device when it was closed.
    at_close: DeviceStats,
    /// The counts at the last reset.
    at_reset: DeviceStats,
    direction: PhantomData<Direction>,
}

/// The slot has the handlers of received packets.
pub(super) struct Rx;
/// The slot has the handlers of sent packets.
pub(super) struct Tx;

impl<D, Direction> Default for DeviceSlot<D, Direction> {
    fn default() -> Self {
        let (at_close, at_reset) = (DeviceStats::default(), DeviceStats::default());
        DeviceSlot { device: None, at_close, at_reset, direction: PhantomData }
    }
}

#[handlers]
impl<D: Device + 'static> DeviceSlot<D, Rx> {
    /// Packets received, since the last reset if there was one.
    #[read]
    #[metric(metrics::RECEIVED_PACKETS)]
    pub(super) fn count(&self) -> u64 {
        self.since(|it| it.received)
    }

    /// Bytes received, since the last reset if there was one.
    #[read]
    #[metric(metrics::RECEIVED_BYTES)]
    fn byte_count(&self) -> u64 {
        self.since(|it| it.received_bytes)
    }

    /// Packets dropped because the pool had no frame to receive or to copy them to.
    #[read]
    #[metric(metrics::NO_FRAME)]
    fn no_frame_drops(&self) -> u64 {
        self.stats().no_frame
    }

    /// Packets dropped because the lengths that the kernel or a peer states do not fit them.
    #[read]
    #[metric(metrics::RECEIVE_ERRORS)]
    fn malformed(&self) -> u64 {
        self.stats().malformed
    }
}

#[handlers]
impl<D: Device + 'static> DeviceSlot<D, Tx> {
    /// Packets sent, since the last reset if there was one.
    #[read]
    #[metric(metrics::SENT_PACKETS)]
    pub(super) fn count(&self) -> u64 {
        self.since(|it| it.sent)
    }

    /// Bytes sent, since the last reset if there was one.
    #[read]
    #[metric(metrics::SENT_BYTES)]
    fn byte_count(&self) -> u64 {
        self.since(|it| it.sent_bytes)
    }
}

impl<D: Device, Direction> DeviceSlot<D, Direction> {
    pub(super) fn set(&mut self, device: D) {
        self.device = Some(device);
    }

    pub(super) fn get(&self) -> Option<&D> {
        self.device.as_ref()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut D> {
        self.device.as_mut()
    }

    pub(super) fn close(&mut self) {
        self.at_close = self.stats();
        self.device = None;
    }

    /// All counts of the device, resets ignored; those at its end if it is closed.
    pub(super) fn stats(&self) -> DeviceStats {
        self.device.as_ref().map_or(self.at_close, Device::stats)
    }

    /// The increase of one of the counts since the last reset.
    pub(super) fn since(&self, count: fn(&DeviceStats) -> u64) -> u64 {
        count(&self.stats()) - count(&self.at_reset)
    }

    pub(super) fn reset(&mut self) {
        self.at_reset = self.stats();
    }

    pub(super) fn describe(&self) -> String {
        self.device.as_ref().map_or_else(String::new, Device::describe)
    }
}
