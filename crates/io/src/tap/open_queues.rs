//! The queues that are open in this process, so that a device can be opened by name twice.

use super::TunTapMode;
use crate::error::IoError;
use crate::interface;
use crate::sys::tun::TunQueue;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// A network namespace (its inode) and a name in it.
type Key = (u64, String);

/// The open queues, each as long as it has an owner.
type OpenQueues = HashMap<Key, (TunTapMode, Weak<TunQueue>)>;

static OPEN_QUEUES: LazyLock<Mutex<OpenQueues>> = LazyLock::new(Mutex::default);

/// The queue of the device `name`, opened if this process has not done so.
/// With `multi_queue`, always a queue of its own. Also returns the device's name.
pub(super) fn open(
    name: &str,
    mode: TunTapMode,
    multi_queue: bool,
) -> Result<(Arc<TunQueue>, String), IoError> {
    let mut open = OPEN_QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, (_, queue)| queue.strong_count() > 0);
    let namespace = interface::namespace();
    let known = open.get(&(namespace, name.to_owned())).filter(|_| !multi_queue);
    if let Some((known, queue)) = known
        && *known == mode
        && let Some(queue) = queue.upgrade()
        && queue.is_attached()
    {
        return Ok((queue, name.to_owned()));
    }
    let (queue, name) = create(name, mode, multi_queue)?;
    let queue = Arc::new(queue);
    open.insert((namespace, name.clone()), (mode, Arc::downgrade(&queue)));
    Ok((queue, name))
}

fn create(name: &str, mode: TunTapMode, multi_queue: bool) -> Result<(TunQueue, String), IoError> {
    let (flag, word) = match mode {
        TunTapMode::Tun => (libc::IFF_TUN, "TUN"),
        TunTapMode::Tap => (libc::IFF_TAP, "TAP"),
    };
    TunQueue::open(name, flag, multi_queue).map_err(|error| {
        let doing = if name.is_empty() {
            format!("make a {word} device")
        } else {
            format!("make or open {word} device {name}")
        };
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV) => IoError::Unsupported {
                doing,
                hint: "there is no /dev/net/tun; it takes the kernel's ‘tun’ module",
            },
            Some(libc::EINVAL) => IoError::Unsupported {
                doing,
                hint: "an interface of that name exists and is of another kind",
            },
            _ => IoError::new(doing, error),
        }
    })
}
