//! Interfaces whose queues have AF_XDP sockets in this process, so that one side can receive while
//! another sends.

use super::receiver::RxClaims;
use crate::error::IoError;
use crate::interface::{self, Interface};
use crate::sys::netif;
use crate::sys::xsk::{self, BindMode, BindOptions, RingSizes, Socket};
use castanet_packet::{Pool, PoolConfig};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes of a link header with one VLAN tag, which the MTU does not count.
pub(super) const LINK_HEADER: usize = castanet_wire::Ethernet::LEN + castanet_wire::Vlan::LEN;

/// An interface with a socket on each of its queues.
pub(super) struct Port {
    pub(super) interface: Interface,
    pub(super) pool: Pool,
    pub(super) sockets: Vec<Socket>,
    /// Reason for copy mode, if packets are copied.
    pub(super) why_copy: Option<String>,
    /// Whether packets may be longer than a frame, and lie in several.
    pub(super) multi_buffer: bool,
    /// Entries of each receive ring.
    pub(super) rx_ring: usize,
    /// How many of the queues packets arrive in, and can be sent to.
    queues: (usize, usize),
    rx_claims: Mutex<RxClaims>,
    ioctls: netif::IoctlSocket,
    /// The longest packet to send.
    max_packet_len: AtomicUsize,
}

impl Port {
    /// How many queues packets arrive in.
    pub(super) fn rx_queues(&self) -> usize {
        self.queues.0
    }

    /// How many queues can be sent to.
    pub(super) fn tx_queues(&self) -> usize {
        self.queues.1
    }

    /// Asks the kernel about the interface.
    pub(super) fn ioctls(&self) -> &netif::IoctlSocket {
        &self.ioctls
    }

    /// The longest packet to send: as long as the MTU allows, and has room in a
    /// frame.
    pub(super) fn max_packet_len(&self) -> usize {
        self.max_packet_len.load(Relaxed)
    }

    /// Asks for the MTU again, which may have been changed since.
    #[cold]
    pub(super) fn refresh_mtu(&self) {
        // Of an interface that is gone, or has another name now, nothing new
        // is to be learnt.
        if self.ioctls.index().is_ok_and(|index| index == self.interface.index)
            && let Ok(mtu) = self.ioctls.mtu()
        {
            self.max_packet_len.store(max_packet_len(mtu, &self.pool, self.multi_buffer), Relaxed);
        }
    }

    /// The claims on its receive queues.
    pub(super) fn rx_claims(&self) -> MutexGuard<'_, RxClaims> {
        self.rx_claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A network namespace (its inode), an interface's number, a pool's.
type Key = (u64, u32, u8);

/// The open ports, each as long as it has owners.
static OPEN_PORTS: LazyLock<Mutex<HashMap<Key, Weak<Port>>>> = LazyLock::new(Mutex::default);

/// By interface: the sizes of rings that elements have asked for.
static RING_SIZES: LazyLock<Mutex<HashMap<String, RingSizes>>> = LazyLock::new(Mutex::default);

/// Sets the number of descriptors of the receive queues of an interface, or of its transmit queues, for
/// sockets that open from now on; 0 for 2048. It is rounded up to a power of two.
pub(crate) fn set_descriptors(devname: &str, receives: bool, number: u16) {
    let mut all = RING_SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sizes = all.get(devname).copied().unwrap_or_default();
    let (size, default) = match receives {
        true => (&mut sizes.rx, RingSizes::default().rx),
        false => (&mut sizes.tx, RingSizes::default().tx),
    };
    *size = if number == 0 { default } else { u32::from(number).next_power_of_two() };
    all.insert(devname.to_owned(), sizes);
}

/// The port of an interface, opened if this process has not done so; `queues`
/// are how many there are to receive from and to send to.
pub(super) fn open(
    interface: Interface,
    ioctls: netif::IoctlSocket,
    queues: (u32, u32),
    pool: &Pool,
) -> Result<Arc<Port>, IoError> {
    let key = (interface::namespace(), interface.index, pool.id());
    let mut open = OPEN_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, port| port.strong_count() > 0);
    if let Some(port) = open.get(&key).and_then(Weak::upgrade) {
        port.refresh_mtu();
        return Ok(port);
    }
    let multi_buffer = needs_multi_buffer(&interface, pool)?;
    let port = Arc::new(bind(interface, ioctls, queues, pool, multi_buffer)?);
    open.insert(key, Arc::downgrade(&port));
    Ok(port)
}

/// Reclaims the frames of completed transmissions of every port, for a worker that has no free frames
/// while the senders of those frames are idle.
#[cold]
pub(super) fn reclaim_all() {
    let open = OPEN_PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let ports: Vec<_> = open.values().filter_map(Weak::upgrade).collect();
    // A port that is dropped here must not find the list locked.
    drop(open);
    for socket in ports.iter().flat_map(|port| &port.sockets) {
        socket.tx().reclaim();
    }
}

/// Whether it takes several frames of the pool for a packet of the interface;
/// an error if they do not suit it at all.
fn needs_multi_buffer(interface: &Interface, pool: &Pool) -> Result<bool, IoError> {
    let doing = || format!("use AF_XDP on {}", interface.name);
    if interface.ether.is_none() {
        return Err(IoError::Unfit { doing: doing(), why: "it carries bare IP packets".into() });
    }
    let (needed, room) =
        (interface.mtu + LINK_HEADER, xsk::max_packet_len(pool).min(pool.data_capacity()));
    if needed > room * xsk::MAX_FRAMES {
        let why = format!(
            "packets of its MTU {} do not fit in {} frames, which have room for {room} bytes each",
            interface.mtu,
            xsk::MAX_FRAMES,
        );
        return Err(IoError::Unfit { doing: doing(), why });
    }
    Ok(needed > room)
}

/// Binds a socket to each queue: without copies if the driver can do that.
fn bind(
    interface: Interface,
    ioctls: netif::IoctlSocket,
    queues: (u32, u32),
    pool: &Pool,
    multi_buffer: bool,
) -> Result<Port, IoError> {
    let all = queues.0.max(queues.1);
    let sizes = RING_SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let rings = sizes.get(&interface.name).copied().unwrap_or_default();
    drop(sizes);
    let options = BindOptions { mode: BindMode::ZeroCopy, multi_buffer, rings };
    let (sockets, why_copy) = match bind_zero_copy(interface.index, all, pool, options) {
        Ok(sockets) => (Ok(sockets), None),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBUSY) => (Err(error), None),
            code => {
                let cannot = code == Some(libc::EOPNOTSUPP);
                let why = if cannot { "the driver cannot".into() } else { error.to_string() };
                let options = BindOptions { mode: BindMode::Copy, ..options };
                (bind_all(interface.index, all, pool, options), Some(why))
            }
        },
    };
    let sockets = sockets.map_err(|error| socket_error(&interface, error, multi_buffer))?;
    let queues = (queues.0 as usize, queues.1 as usize);
    let max_packet_len = AtomicUsize::new(max_packet_len(interface.mtu, pool, multi_buffer));
    let (pool, rx_claims) = (pool.clone(), Mutex::default());
    Ok(Port {
        interface,
        pool,
        sockets,
        why_copy,
        multi_buffer,
        rx_ring: rings.rx as usize,
        queues,
        rx_claims,
        ioctls,
        max_packet_len,
    })
}

/// The longest packet to send at some MTU.
fn max_packet_len(mtu: usize, pool: &Pool, multi_buffer: bool) -> usize {
    (mtu + LINK_HEADER).min(pool.data_capacity() * if multi_buffer { xsk::MAX_FRAMES } else { 1 })
}

fn bind_all(index: u32, queues: u32, pool: &Pool, options: BindOptions) -> io::Result<Vec<Socket>> {
    (0..queues).map(|queue| Socket::bind(index, queue, pool, options)).collect()
}

/// Sockets whose frames the interface reads and writes itself.
fn bind_zero_copy(
    index: u32,
    queues: u32,
    pool: &Pool,
    options: BindOptions,
) -> io::Result<Vec<Socket>> {
    // Asked first with a small pool: most drivers say no.
    let trial = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() })?;
    drop(Socket::bind(index, 0, &trial, options)?);
    // A frame that crosses into a page elsewhere in memory is one that the
    // interface cannot write to; huge pages have no such places.
    if !xsk::make_contiguous(pool) {
        return Err(io::Error::other("it takes huge pages"));
    }
    bind_all(index, queues, pool, options)
}

/// The error for a socket that could not be opened.
fn socket_error(interface: &Interface, error: io::Error, multi_buffer: bool) -> IoError {
    let doing = format!("open an AF_XDP socket on {}", interface.name);
    match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => {
            IoError::Unsupported { doing, hint: "this kernel is built without AF_XDP" }
        }
        Some(libc::EINVAL) if multi_buffer => IoError::Unsupported {
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
