//! The interface of an element on one worker, which may go and come back.

use super::device_selection::{self, DeviceRequest, SelectedDevice};
use crate::af_packet::FanoutGroup;
use crate::device::{Device, DeviceStats};
use crate::interface::Interface;
use crate::links::{self, Attachment, DeviceCommand};
use castanet_element::prelude::*;
use castanet_packet::{PacketTotals, Pool};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// An interface that is open, or away; its counts go on when it comes back.
pub(super) struct AttachedDevice {
    /// None while it is away.
    device: Option<SelectedDevice>,
    attachment: Arc<Attachment>,
    /// The counts of the devices before this one.
    before: DeviceStats,
    /// Whether packets begin with an Ethernet header.
    ethernet: bool,
}

impl AttachedDevice {
    /// Opens the interface `devname`, but does not start it; it will receive to frames of `pool`. If
    /// the running configuration has it and it is away, this one waits for it, too.
    pub(super) fn open(
        devname: &str,
        request: &DeviceRequest,
        pool: &Pool,
    ) -> Result<AttachedDevice, ArgError> {
        let device = match device_selection::open(devname, request, pool, None) {
            Ok(device) => Some(device),
            Err(_) if is_away(devname) && links::is_awaited(devname) => None,
            Err(error) => return Err(error),
        };
        let attachment = Attachment::new(devname, request, pool, device.as_ref());
        let mut it =
            AttachedDevice { device, attachment, before: DeviceStats::default(), ethernet: true };
        it.note_link();
        Ok(it)
    }

    fn note_link(&mut self) {
        if let Some(device) = &self.device {
            self.ethernet = device.interface().ether.is_some();
        }
    }

    /// Whether packets begin with an Ethernet header.
    pub(super) fn is_ethernet(&self) -> bool {
        self.ethernet
    }

    /// The packet sockets that share the received packets, if they do by a table.
    pub(super) fn table_group(&self) -> Option<&FanoutGroup> {
        self.device.as_ref().and_then(SelectedDevice::table_group)
    }

    /// Whether there is no interface to use.
    #[inline]
    pub(super) fn is_away(&self) -> bool {
        self.device.is_none()
    }

    /// Closes the interface if it is gone, or takes the one that was opened in its place; returns
    /// whether either was done.
    pub(super) fn exchange(&mut self) -> bool {
        let next = match self.attachment.take_command() {
            None => return false,
            Some(DeviceCommand::Close) => None,
            Some(DeviceCommand::Open(device)) => Some(*device),
        };
        if let Some(before) = std::mem::replace(&mut self.device, next) {
            self.before = self.before.plus(&before.stats());
            self.attachment.retire(before);
        }
        self.note_link();
        true
    }

    /// Starts to receive; takes the queues over from a device that is retiring.
    pub(super) fn start(&mut self) -> Result<(), ArgError> {
        self.device.as_mut().map_or(Ok(()), SelectedDevice::start)
    }

    /// Sets whether another device may claim its queues, which then starts once this one is closed.
    pub(super) fn set_retiring(&mut self, leaving: bool) {
        self.device.iter_mut().for_each(|device| device.set_retiring(leaving));
    }

    /// Forwards up to `max` received packets to `to`, as [`SelectedDevice::pass`].
    #[inline]
    pub(super) fn pass(&mut self, to: &mut AttachedDevice, max: usize) -> PacketTotals {
        match (&mut self.device, &mut to.device) {
            (Some(from), Some(to)) => from.pass(to, max),
            _ => PacketTotals::default(),
        }
    }
}

/// Whether an interface is missing or down.
fn is_away(devname: &str) -> bool {
    Interface::find(devname).map_or_else(|error| error.is_missing(), |it| !it.up)
}

impl Device for AttachedDevice {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let Some(device) = &mut self.device else { return Ok(0) };
        let received = device.receive(pool, batch, max);
        match received {
            Err(error) if error.kind() == io::ErrorKind::NotConnected && links::is_supervised() => {
                self.attachment.report_lost();
                Ok(0)
            }
            received => received,
        }
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        self.device.as_mut().map_or(Ok(0), |device| device.transmit(batch))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.as_mut().map_or(Ok(()), SelectedDevice::flush)
    }

    fn unsent(&self) -> bool {
        self.device.as_ref().is_some_and(SelectedDevice::unsent)
    }

    fn starved(&self) -> bool {
        self.device.as_ref().is_some_and(SelectedDevice::starved)
    }

    fn no_frame(&self) -> u64 {
        self.before.no_frame + self.device.as_ref().map_or(0, SelectedDevice::no_frame)
    }

    fn fd(&self) -> Option<RawFd> {
        self.device.as_ref().and_then(SelectedDevice::fd)
    }

    fn stats(&self) -> DeviceStats {
        self.device.as_ref().map_or(self.before, |device| self.before.plus(&device.stats()))
    }

    fn describe(&self) -> String {
        match &self.device {
            Some(device) => device.describe(),
            None => format!("{}: gone; waits for an interface of this name", self.devname()),
        }
    }
}

impl AttachedDevice {
    fn devname(&self) -> &str {
        self.attachment.devname()
    }
}
