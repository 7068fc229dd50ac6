//! The attachments of this process, and the supervisor that watches over them.

use super::attachment::Attachment;
use crate::elements::device_selection::DeviceForecast;
use crate::interface;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Wakes the supervisor, from any thread.
pub(super) type SupervisorWaker = Arc<dyn Fn() + Send + Sync>;

/// Attachments, as long as their elements exist, and the waker of the supervisor, if there is one.
#[derive(Default)]
struct Registry {
    attachments: Vec<Weak<Attachment>>,
    waker: Option<SupervisorWaker>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { attachments: Vec::new(), waker: None });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an attachment, of which the supervisor hears.
pub(super) fn add(attachment: &Arc<Attachment>) {
    let mut registry = registry();
    registry.attachments.retain(|it| it.strong_count() > 0);
    registry.attachments.push(Arc::downgrade(attachment));
    drop(registry);
    wake();
}

/// Has the supervisor run a step.
pub(super) fn wake() {
    let waker = registry().waker.clone();
    waker.iter().for_each(|wake| wake());
}

/// Sets the waker of the supervisor, or that there is none.
pub(super) fn set_supervisor(waker: Option<SupervisorWaker>) {
    registry().waker = waker;
}

/// Whether devices that are gone are closed and opened again.
pub(crate) fn is_supervised() -> bool {
    registry().waker.is_some()
}

/// All attachments in the network namespace of the calling thread.
pub(super) fn here() -> Vec<Arc<Attachment>> {
    let all: Vec<_> = registry().attachments.iter().filter_map(Weak::upgrade).collect();
    let namespace = interface::namespace();
    all.into_iter().filter(|it| it.namespace() == namespace).collect()
}

/// Whether the running configuration uses an interface of this name, so that another configuration
/// may wait for it, too.
pub(crate) fn is_awaited(devname: &str) -> bool {
    is_supervised() && here().iter().any(|it| it.devname() == devname && it.is_watched())
}

/// The device that the running configuration has had on an interface that is gone.
pub(crate) fn remembered(devname: &str, receives: bool) -> Option<DeviceForecast> {
    let all = here();
    let mut same = all.iter().filter(|it| it.devname() == devname && it.is_watched());
    let of_direction = same.clone().find(|it| it.request().receive.is_some() == receives);
    of_direction.or_else(|| same.next())?.forecast()
}
