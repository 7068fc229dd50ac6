//! A device of an element, and its counts since somebody reset them.

use crate::device::{Device, DeviceStats};

/// A device that is open, was, or will be.
pub(super) struct DeviceSlot<D> {
    device: Option<D>,
    /// What it had counted when it was closed.
    last: DeviceStats,
    /// What it had counted at the last reset.
    before: DeviceStats,
}

impl<D> Default for DeviceSlot<D> {
    fn default() -> Self {
        DeviceSlot { device: None, last: DeviceStats::default(), before: DeviceStats::default() }
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
        self.last = self.stats();
        self.device = None;
    }

    /// All that was counted.
    pub(super) fn stats(&self) -> DeviceStats {
        self.device.as_ref().map_or(self.last, Device::stats)
    }

    /// What one of the counts has grown by since the last reset.
    pub(super) fn since(&self, count: fn(&DeviceStats) -> u64) -> u64 {
        count(&self.stats()) - count(&self.before)
    }

    pub(super) fn reset(&mut self) {
        self.before = self.stats();
    }

    pub(super) fn describe(&self) -> String {
        self.device.as_ref().map_or_else(String::new, Device::describe)
    }
}
