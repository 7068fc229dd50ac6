//! Queues that are open in this process, so that a device can be opened by name twice.

use super::Kind;
use crate::error::IoError;
use crate::interface;
use crate::sys::tun::TunQueue;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// A network namespace (its inode) and a name in it.
type Key = (u64, String);

/// The queues that are open, as long as somebody has them.
type Open = HashMap<Key, (Kind, Weak<TunQueue>)>;

static OPEN: LazyLock<Mutex<Open>> = LazyLock::new(Mutex::default);

/// The queue of the device `name`, opened if this process has not done so.
/// With `several`, always a queue of its own. Answers the device's name too.
pub(super) fn open(
    name: &str,
    kind: Kind,
    several: bool,
) -> Result<(Arc<TunQueue>, String), IoError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, (_, queue)| queue.strong_count() > 0);
    let namespace = interface::namespace();
    let known = open.get(&(namespace, name.to_owned())).filter(|_| !several);
    if let Some((known, queue)) = known
        && *known == kind
        && let Some(queue) = queue.upgrade()
    {
        return Ok((queue, name.to_owned()));
    }
    let (queue, name) = make(name, kind, several)?;
    let queue = Arc::new(queue);
    open.insert((namespace, name.clone()), (kind, Arc::downgrade(&queue)));
    Ok((queue, name))
}

fn make(name: &str, kind: Kind, several: bool) -> Result<(TunQueue, String), IoError> {
    let (flag, word) = match kind {
        Kind::Tun => (libc::IFF_TUN, "TUN"),
        Kind::Tap => (libc::IFF_TAP, "TAP"),
    };
    TunQueue::open(name, flag, several).map_err(|error| {
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
