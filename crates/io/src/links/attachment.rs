//! An element's use of an interface on one worker, as the worker and the control thread share it.

use super::registry;
use crate::af_xdp::Queues;
use crate::elements::device_selection::{
    self, DeviceForecast, DeviceRequest, SelectedDevice, Selection,
};
use crate::interface;
use castanet_element::error::ArgError;
use castanet_packet::Pool;
use castanet_wire::MacAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An element's use of an interface on one worker.
pub(crate) struct Attachment {
    devname: String,
    namespace: u64,
    request: DeviceRequest,
    pool: Pool,
    state: Mutex<AttachmentState>,
}

/// The part of an attachment that changes.
#[derive(Default)]
struct AttachmentState {
    /// Index of the interface that the worker has open, or is to get.
    interface: Option<u32>,
    /// The device that it had last.
    last: Option<LastDevice>,
    /// The command to the worker.
    command: Option<DeviceCommand>,
    /// A device that the worker has given up, to be closed on the control thread.
    retired: Option<SelectedDevice>,
    /// Whether the worker has found that the interface is gone.
    is_lost: bool,
    /// Whether the supervisor knows the attachment: it belongs to a configuration that runs.
    is_watched: bool,
}

/// The facts that are remembered of a device that is gone.
struct LastDevice {
    selection: Selection,
    forecast: DeviceForecast,
    ether: Option<MacAddr>,
}

/// A command to the worker.
pub(crate) enum DeviceCommand {
    /// Give the device up.
    Close,
    /// Take this one in its place.
    Open(Box<SelectedDevice>),
}

impl Attachment {
    /// Makes the attachment of a worker that has `device`, or waits for one.
    pub(crate) fn new(
        devname: &str,
        request: &DeviceRequest,
        pool: &Pool,
        device: Option<&SelectedDevice>,
    ) -> Arc<Attachment> {
        let it = Arc::new(Attachment {
            devname: devname.into(),
            namespace: interface::namespace(),
            request: request.clone(),
            pool: pool.clone(),
            state: Mutex::default(),
        });
        device.into_iter().for_each(|device| it.note(device));
        registry::add(&it);
        it
    }

    fn state(&self) -> MutexGuard<'_, AttachmentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interface's name in the configuration.
    pub(crate) fn devname(&self) -> &str {
        &self.devname
    }

    pub(super) fn namespace(&self) -> u64 {
        self.namespace
    }

    pub(super) fn request(&self) -> &DeviceRequest {
        &self.request
    }

    /// Index of the interface that the worker has open, or is to get.
    pub(super) fn interface(&self) -> Option<u32> {
        self.state().interface
    }

    /// Whether the supervisor knows the attachment.
    pub(super) fn is_watched(&self) -> bool {
        self.state().is_watched
    }

    /// Notes that the supervisor knows the attachment.
    pub(super) fn set_watched(&self) {
        self.state().is_watched = true;
    }

    /// The forecast of the device that it had last.
    pub(super) fn forecast(&self) -> Option<DeviceForecast> {
        self.state().last.as_ref().map(|it| it.forecast.clone())
    }

    /// The Ethernet address of the device that it had last.
    pub(super) fn ether(&self) -> Option<MacAddr> {
        self.state().last.as_ref()?.ether
    }

    /// Remembers a device that the worker has, or is to get.
    fn note(&self, device: &SelectedDevice) {
        let interface = device.interface();
        let forecast = device_selection::predict(&self.devname, &self.request);
        let mut state = self.state();
        state.interface = Some(interface.index);
        state.is_lost = false;
        let (selection, ether) = (device.selection(), interface.ether);
        state.last = Some(LastDevice { selection, forecast, ether });
    }

    // On the worker.

    /// Reports that the interface is gone.
    pub(crate) fn report_lost(&self) {
        self.state().is_lost = true;
        registry::wake();
    }

    /// The command to the worker, if there is one.
    pub(crate) fn take_command(&self) -> Option<DeviceCommand> {
        self.state().command.take()
    }

    /// Leaves a device to the control thread, which closes it.
    pub(crate) fn retire(&self, device: SelectedDevice) {
        self.state().retired = Some(device);
    }

    // On the control thread.

    /// Whether the worker has not executed the last command yet.
    pub(super) fn is_unsettled(&self) -> bool {
        self.state().command.is_some()
    }

    /// Whether the interface that the worker has open is gone; `removed` are indices of removed ones.
    pub(super) fn has_lost(&self, removed: &[u32]) -> bool {
        let state = self.state();
        let is_gone = |index: u32| {
            state.is_lost || removed.contains(&index) || crate::sys::netif::name_of(index).is_none()
        };
        state.interface.is_some_and(is_gone)
    }

    /// Tells the worker to give its device up.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.interface = None;
        state.is_lost = false;
        // A device that the worker has not taken yet is dropped with the lock released.
        let before = state.command.replace(DeviceCommand::Close);
        drop(state);
        drop(before);
        let group = self.request.receive.as_ref().and_then(|it| it.group.as_ref());
        group.into_iter().for_each(|(group, _)| group.forget());
    }

    /// Closes the device that the worker has given up.
    pub(super) fn close_retired(&self) {
        let retired = self.state().retired.take();
        drop(retired);
    }

    /// Opens the device again, as it was; none if the interface has fewer queues now, and none of
    /// those of the worker.
    pub(super) fn open_again(&self) -> Result<Option<SelectedDevice>, ArgError> {
        let (before, queues) = match &self.state().last {
            Some(last) => (Some(last.selection.clone()), last.forecast.queues),
            None => (None, None),
        };
        let mut request = self.request.clone();
        if let (Some(receive), Some((had, _))) = (&mut request.receive, queues)
            && !matches!(before, Some(Selection::Packet(_)))
        {
            let has = interface::Interface::find(&self.devname).map_or(1, |it| it.queues().0);
            match clipped(receive.queues, had as u32, has as u32) {
                Some(queues) => receive.queues = queues,
                None => return Ok(None),
            }
        }
        device_selection::open(&self.devname, &request, &self.pool, before.as_ref()).map(Some)
    }

    /// Hands a device to the worker; without one the worker waits until the interface, of index
    /// `index`, is gone again.
    pub(super) fn assign(&self, index: u32, device: Option<SelectedDevice>) {
        match device {
            None => self.state().interface = Some(index),
            Some(device) => {
                self.note(&device);
                self.state().command = Some(DeviceCommand::Open(Box::new(device)));
            }
        }
    }
}

/// The queues of a worker on an interface that has had `had` receive queues and now has `has`; a
/// worker that had all has all again.
fn clipped(queues: Queues, had: u32, has: u32) -> Option<Queues> {
    if queues == Queues::ALL || (queues.first == 0 && queues.count >= had) {
        return Some(Queues::ALL);
    }
    let count = queues.count.min(has.saturating_sub(queues.first));
    (count > 0).then_some(Queues { count, ..queues })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_keeps_those_of_its_queues_that_are_there() {
        let queues = |first, count| Queues { first, count };
        assert_eq!(clipped(queues(0, 2), 4, 4), Some(queues(0, 2)));
        assert_eq!(clipped(queues(2, 2), 4, 3), Some(queues(2, 1)));
        assert_eq!(clipped(queues(2, 2), 4, 2), None);
        // All of them, however many there are now.
        assert_eq!(clipped(queues(0, 4), 4, 2), Some(Queues::ALL));
        assert_eq!(clipped(queues(0, 1), 1, 8), Some(Queues::ALL));
    }
}
