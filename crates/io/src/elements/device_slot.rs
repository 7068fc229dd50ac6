//! A device of an element, and its counts since the last reset.

use crate::device::{Device, DeviceStats};

/// The place of a device that may be open, closed, or not open yet; it keeps the counts.
pub(super) struct DeviceSlot<D> {
    device: Option<D>,
    /// The counts of a device when it was closed.
    at_close: DeviceStats,
    /// The counts at the last reset.
    at_reset: DeviceStats,
}

impl<D> Default for DeviceSlot<D> {
    fn default() -> Self {
        DeviceSlot {
            device: None,
            at_close: DeviceStats::default(),
            at_reset: DeviceStats::default(),
        }
    }
}

impl<D: Device> DeviceSlot<D> {
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
