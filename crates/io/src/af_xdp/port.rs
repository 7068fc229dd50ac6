//! Interfaces whose queues have sockets in this process, so that one side can receive while another sends.

use super::reception::Inlet;
use crate::error::IoError;
use crate::interface::{self, Interface};
use crate::sys::netif;
use crate::sys::xsk::{self, Manner, Mode, Socket};
use castanet_packet::{Pool, PoolConfig};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of a link header with one VLAN tag, which the MTU does not count.
pub(super) const LINK: usize = castanet_wire::Ethernet::LEN + castanet_wire::Vlan::LEN;

/// An interface with a socket on each of its queues.
pub(super) struct Port {
    pub(super) interface: Interface,
    pub(super) pool: Pool,
    pub(super) sockets: Vec<Socket>,
    /// Why packets are copied, if they are.
    pub(super) why_copy: Option<String>,
    /// Whether packets may be longer than a frame, and lie in several.
    pub(super) segments: bool,
    /// How many of the queues packets arrive in, and can be sent to.
    queues: (usize, usize),
    inlet: Mutex<Inlet>,
    requests: netif::Interface,
    /// The longest packet to send.
    longest: AtomicUsize,
}

impl Port {
    /// How many queues packets arrive in.
    pub(super) fn receiving_queues(&self) -> usize {
        self.queues.0
    }

    /// How many queues can be sent to.
    pub(super) fn sending_queues(&self) -> usize {
        self.queues.1
    }

    /// Asks the kernel about the interface.
    pub(super) fn requests(&self) -> &netif::Interface {
        &self.requests
    }

    /// The longest packet to send: as long as the MTU allows, and has room in a
    /// frame.
    pub(super) fn longest(&self) -> usize {
        self.longest.load(Relaxed)
    }

    /// Asks for the MTU again, which may have been changed since.
    #[cold]
    pub(super) fn look_at_mtu(&self) {
        // Of an interface that is gone, or has another name now, nothing new
        // is to be learnt.
        if self.requests.index().is_ok_and(|index| index == self.interface.index)
            && let Ok(mtu) = self.requests.mtu()
        {
            self.longest.store(longest(mtu, &self.pool, self.segments), Relaxed);
        }
    }

    /// Who receives.
    pub(super) fn inlet(&self) -> MutexGuard<'_, Inlet> {
        self.inlet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A network namespace (its inode), an interface's number, a pool's.
type Key = (u64, u32, u8);

/// The ports that are open, as long as somebody has them.
static OPEN: LazyLock<Mutex<HashMap<Key, Weak<Port>>>> = LazyLock::new(Mutex::default);

/// The port of an interface, opened if this process has not done so; `queues`
/// are how many there are to receive from and to send to.
pub(super) fn open(
    interface: Interface,
    requests: netif::Interface,
    queues: (u32, u32),
    pool: &Pool,
) -> Result<Arc<Port>, IoError> {
    let key = (interface::namespace(), interface.index, pool.id());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, port| port.strong_count() > 0);
    if let Some(port) = open.get(&key).and_then(Weak::upgrade) {
        port.look_at_mtu();
        return Ok(port);
    }
    let segments = takes_segments(&interface, pool)?;
    let port = Arc::new(bind(interface, requests, queues, pool, segments)?);
    open.insert(key, Arc::downgrade(&port));
    Ok(port)
}

/// Takes back all frames that were sent, on every port: for when there are
/// none left and those who sent them have nothing more to send.
#[cold]
pub(super) fn reclaim_all() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let ports: Vec<_> = open.values().filter_map(Weak::upgrade).collect();
    // A port that is dropped here must not find the list locked.
    drop(open);
    for socket in ports.iter().flat_map(|port| &port.sockets) {
        socket.sending().reclaim();
    }
}

/// Whether it takes several frames of the pool for a packet of the interface;
/// an error if they do not suit it at all.
fn takes_segments(interface: &Interface, pool: &Pool) -> Result<bool, IoError> {
    let doing = || format!("use AF_XDP on {}", interface.name);
    if interface.ether.is_none() {
        return Err(IoError::Unfit { doing: doing(), why: "it carries bare IP packets".into() });
    }
    let (needed, room) = (interface.mtu + LINK, xsk::longest(pool).min(pool.data_capacity()));
    if needed > room * xsk::SEGMENTS {
        let why = format!(
            "packets of its MTU {} do not fit in {} frames, which have room for {room} bytes each",
            interface.mtu,
            xsk::SEGMENTS,
        );
        return Err(IoError::Unfit { doing: doing(), why });
    }
    Ok(needed > room)
}

/// Binds a socket to each queue: without copies if the driver can do that.
fn bind(
    interface: Interface,
    requests: netif::Interface,
    queues: (u32, u32),
    pool: &Pool,
    segments: bool,
) -> Result<Port, IoError> {
    let all = queues.0.max(queues.1);
    let (sockets, why_copy) = match bind_without_copies(interface.index, all, pool, segments) {
        Ok(sockets) => (Ok(sockets), None),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBUSY) => (Err(error), None),
            code => {
                let cannot = code == Some(libc::EOPNOTSUPP);
                let why = if cannot { "the driver cannot".into() } else { error.to_string() };
                let manner = Manner { mode: Mode::Copy, segments };
                (bind_all(interface.index, all, pool, manner), Some(why))
            }
        },
    };
    let sockets = sockets.map_err(|error| refused(&interface, error, segments))?;
    let queues = (queues.0 as usize, queues.1 as usize);
    let longest = AtomicUsize::new(longest(interface.mtu, pool, segments));
    let (pool, inlet) = (pool.clone(), Mutex::default());
    Ok(Port { interface, pool, sockets, why_copy, segments, queues, inlet, requests, longest })
}

/// The longest packet to send at some MTU.
fn longest(mtu: usize, pool: &Pool, segments: bool) -> usize {
    (mtu + LINK).min(pool.data_capacity() * if segments { xsk::SEGMENTS } else { 1 })
}

fn bind_all(index: u32, queues: u32, pool: &Pool, manner: Manner) -> io::Result<Vec<Socket>> {
    (0..queues).map(|queue| Socket::bind(index, queue, pool, manner)).collect()
}

/// Sockets whose frames the interface reads and writes itself.
fn bind_without_copies(
    index: u32,
    queues: u32,
    pool: &Pool,
    segments: bool,
) -> io::Result<Vec<Socket>> {
    let manner = Manner { mode: Mode::ZeroCopy, segments };
    // Asked first with a small pool: most drivers say no.
    let trial = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() })?;
    drop(Socket::bind(index, 0, &trial, manner)?);
    // A frame that crosses into a page elsewhere in memory is one that the
    // interface cannot write to; huge pages have no such places.
    if !xsk::make_contiguous(pool) {
        return Err(io::Error::other("it takes huge pages"));
    }
    bind_all(index, queues, pool, manner)
}

/// What it means that there is no socket.
fn refused(interface: &Interface, error: io::Error, segments: bool) -> IoError {
    let doing = format!("open an AF_XDP socket on {}", interface.name);
    match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => {
            IoError::Unsupported { doing, hint: "this kernel is built without AF_XDP" }
        }
        Some(libc::EINVAL) if segments => IoError::Unsupported {
            doing,
            hint: "packets in several frames take Linux 6.6 or later",
        },
        Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT) => {
            IoError::Unsupported { doing, hint: "it takes Linux 5.4 or later" }
        }
        Some(libc::ENOBUFS) => IoError::Unsupported {
            doing,
            hint: "the frames are more memory than may be locked; raise ‘ulimit -l’ or run with CAP_IPC_LOCK",
        },
        _ => IoError::raw(doing, error),
    }
}
