//! `AF_XDP` sockets: a queue of an interface whose packets are frames of a pool, in place.

mod forward;
mod minimal_forwarder;
mod program;
mod ring;
mod umem;

pub(crate) use minimal_forwarder::Forwarder;
pub(crate) use program::{AttachMode, Program};

use super::check;
use castanet_packet::{Batch, Packet, Pool};
use ring::{Consumer, Producer, RingKind};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use umem::{KernelFrames, Umem};

/// Entries of the rings of each direction: powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingSizes {
    /// Of the receive ring, and of the fill ring.
    pub(crate) rx: u32,
    /// Of the transmit ring, and of the completion ring.
    pub(crate) tx: u32,
}

impl Default for RingSizes {
    fn default() -> RingSizes {
        RingSizes { rx: 2048, tx: 2048 }
    }
}

/// Most frames of one packet: the kernel takes one, and 17 pages more (`MAX_SKB_FRAGS`).
pub(crate) const MAX_FRAMES: usize = 17;

/// How many packets one call sends in copy mode, where the kernel lets us
/// choose (Linux 6.18); else it is 32.
const SEND_BUDGET: u32 = 256;

/// `XDP_MAX_TX_SKB_BUDGET` of linux/if_xdp.h.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// Bytes of packets that may be on their way in the kernel.
const SEND_BUFFER: libc::c_int = 8 << 20;

// Of asm-generic/socket.h, which `libc` does not have.
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;

/// How long the driver may look, where a call waits; ours never do, but zero
/// would mean not to look.
const BUSY_POLL_MICROSECONDS: libc::c_int = 20;

/// Whether the kernel copies packets between the interface and the UMEM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BindMode {
    /// Zero-copy mode: the interface reads and writes the frames itself.
    ZeroCopy,
    /// Copy mode: the kernel copies.
    Copy,
}

/// Options of `bind(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BindOptions {
    pub(crate) mode: BindMode,
    /// Whether packets longer than a frame come and go in several (Linux 6.6).
    pub(crate) multi_buffer: bool,
    pub(crate) rings: RingSizes,
}

/// A socket on one queue of an interface, which receives and sends.
///
/// The two directions have nothing in common but the descriptor, and each has
/// a lock of its own, so that one worker may receive while another sends.
pub(crate) struct Socket {
    /// Closed before frames are taken back.
    fd: ManuallyDrop<OwnedFd>,
    index: u32,
    queue: u32,
    options: BindOptions,
    rx: Mutex<RxRings>,
    tx: Mutex<TxRings>,
}

/// Counters of the kernel for one socket.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SocketStats {
    /// Received packets that found no frame or no room, or were too long.
    pub(crate) dropped: u64,
    /// Frames that it could not use; they are lost.
    pub(crate) invalid: u64,
}

/// The longest packet that frames of `pool` have room for.
pub(crate) fn max_packet_len(pool: &Pool) -> usize {
    Umem::new(pool).max_packet_len()
}

/// Moves the pool's memory to huge pages, if the kernel can; whether it did.
pub(crate) fn make_contiguous(pool: &Pool) -> bool {
    Umem::new(pool).make_contiguous()
}

impl Socket {
    /// Binds a socket to queue `queue` of the interface of number `index`. The
    /// memory of `pool` becomes its UMEM.
    ///
    /// Each socket registers the memory for itself: packets go from any to
    /// any by their place in it, sockets come and go in any order, and some
    /// may copy where others need not. (`XDP_SHARED_UMEM` would tie all of
    /// them to the first and its mode.)
    pub(crate) fn bind(
        index: u32,
        queue: u32,
        pool: &Pool,
        options: BindOptions,
    ) -> io::Result<Socket> {
        let fd = open_unbound()?;
        let umem = Umem::new(pool);
        umem.register(fd.as_fd())?;
        let RingSizes { rx, tx } = options.rings;
        let kinds = [
            (RingKind::Fill, rx),
            (RingKind::Completion, tx),
            (RingKind::Rx, rx),
            (RingKind::Tx, tx),
        ];
        for (kind, size) in kinds {
            ring::create(fd.as_fd(), kind, size)?;
        }
        let rx = RxRings {
            in_kernel: KernelFrames::empty(umem.frames()),
            umem: umem.clone(),
            fill: Producer::map(fd.as_fd(), RingKind::Fill, rx)?,
            descriptors: Consumer::map(fd.as_fd(), RingKind::Rx, rx)?,
            partial: Vec::new(),
        };
        let tx = TxRings {
            in_kernel: KernelFrames::empty(umem.frames()),
            capacity: pool.data_capacity(),
            size: tx as usize,
            umem,
            descriptors: Producer::map(fd.as_fd(), RingKind::Tx, tx)?,
            completion: Consumer::map(fd.as_fd(), RingKind::Completion, tx)?,
        };
        bind_fd(fd.as_fd(), index, queue, options, None)?;
        raise_tx_limits(fd.as_fd());
        let (rx, tx) = (Mutex::new(rx), Mutex::new(tx));
        Ok(Socket { fd: ManuallyDrop::new(fd), index, queue, options, rx, tx })
    }

    /// The direction from the interface.
    pub(crate) fn rx(&self) -> MutexGuard<'_, RxRings> {
        self.rx.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The direction to the interface.
    pub(crate) fn tx(&self) -> MutexGuard<'_, TxRings> {
        self.tx.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptor, for readiness.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The kernel's statistics of the socket.
    pub(crate) fn stats(&self) -> io::Result<SocketStats> {
        let mut all = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        self.get_option(libc::SOL_XDP, libc::XDP_STATISTICS, &mut all)?;
        Ok(SocketStats {
            dropped: all.rx_dropped + all.rx_ring_full,
            invalid: all.rx_invalid_descs + all.tx_invalid_descs,
        })
    }

    /// Takes the error that is pending on the socket: its interface is gone.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        self.get_option(libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Reads a socket option, a plain C structure or number.
    fn get_option<T: Copy>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &mut T,
    ) -> io::Result<()> {
        let mut size = size_of::<T>() as libc::socklen_t;
        let to = std::ptr::from_mut(value).cast();
        // SAFETY: the kernel writes at most `size` bytes into `value`, of
        // types for which any bytes are valid.
        check(unsafe { libc::getsockopt(self.raw_fd(), level, name, to, &mut size) }).map(drop)
    }

    /// Has the driver look for packets when we ask for them, up to `packets`
    /// at once, and not by interrupts as long as we ask often (Linux 5.11).
    pub(crate) fn set_busy_poll(&self, packets: u32) -> io::Result<()> {
        let options = [
            (SO_PREFER_BUSY_POLL, 1),
            (libc::SO_BUSY_POLL, BUSY_POLL_MICROSECONDS),
            (SO_BUSY_POLL_BUDGET, packets as libc::c_int),
        ];
        options.into_iter().try_for_each(|(name, value)| {
            super::set_option(self.as_fd(), libc::SOL_SOCKET, name, &value)
        })
    }

    /// Has the driver take new frames, and look for packets if it is polled.
    pub(crate) fn wake_rx(&self) {
        let (fd, nothing) = (self.raw_fd(), std::ptr::null_mut());
        // SAFETY: room for no bytes: nothing is written.
        unsafe { libc::recv(fd, nothing, 0, libc::MSG_DONTWAIT) };
    }

    /// Has the kernel send what it was given, as much as it takes now, and
    /// says whether that was all.
    pub(crate) fn kick_tx(&self, tx: &mut TxRings) -> io::Result<bool> {
        self.kick_tx_with(tx, TxRings::reclaim)
    }

    /// The same, where what was sent goes by `reclaim`.
    pub(crate) fn kick_tx_with(
        &self,
        tx: &mut TxRings,
        mut reclaim: impl FnMut(&mut TxRings),
    ) -> io::Result<bool> {
        let mut left = tx.descriptors.pending();
        while left > 0 && tx.descriptors.needs_wakeup() {
            match wake_tx(self.as_fd()) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                    _ => return Err(error),
                },
            }
            reclaim(tx);
            let now = tx.descriptors.pending();
            if now == left {
                return Ok(false);
            }
            left = now;
        }
        Ok(left == 0)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: nothing uses the descriptor after this.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
        let rx = self.rx.get_mut().unwrap_or_else(PoisonError::into_inner);
        let tx = self.tx.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The kernel takes the memory from the driver some time after the
        // socket is closed; until then the interface may still write to the
        // frames. It has when the queue is free for another socket, and when
        // there is no such interface: before one is gone, the kernel takes
        // the memory from its driver (`xsk_notifier`). Frames stay lent
        // otherwise: missing is better than changing.
        let pool = rx.umem.pool();
        let copying = BindOptions { mode: BindMode::Copy, ..self.options };
        if self.options.mode == BindMode::ZeroCopy
            && let Err(error) = Socket::bind(self.index, self.queue, pool, copying)
            && error.raw_os_error() != Some(libc::ENODEV)
        {
            return;
        }
        // SAFETY: in copy mode only the socket's own calls and the program's
        // redirection touch frames, and closing has waited for both; without
        // copies the driver has let go, as was just seen.
        unsafe {
            reclaim_all(&rx.umem, &mut rx.in_kernel);
            reclaim_all(&tx.umem, &mut tx.in_kernel);
        }
    }
}

/// Frees all frames that are lent.
///
/// # Safety
/// The kernel must not use them any more.
unsafe fn reclaim_all(umem: &Umem, in_kernel: &mut KernelFrames) {
    let mut free = Batch::new();
    for frame in in_kernel.drain() {
        let start = size_of::<castanet_packet::FrameHeader>();
        // SAFETY: lent frames were given up; the rest is the caller's promise.
        unsafe { umem.adopt_frame(frame, start, 0, &mut free) };
    }
}

/// Opens an unbound AF_XDP socket.
fn open_unbound() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Raises how much one call sends. Neither has to succeed: then it sends fewer
/// packets.
fn raise_tx_limits(fd: BorrowedFd<'_>) {
    drop(super::set_option(fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &SEND_BUDGET));
    drop(super::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER));
}

/// Has the kernel send what it was given.
fn wake_tx(fd: BorrowedFd<'_>) -> io::Result<()> {
    let (fd, nothing) = (fd.as_raw_fd(), std::ptr::null());
    // SAFETY: an empty message: nothing is read.
    let sent = unsafe { libc::sendto(fd, nothing, 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    check(sent as libc::c_int).map(drop)
}

/// Binds, trying again for a while where the kernel has not yet let go of a
/// socket that was closed before. A socket that has no memory of its own uses
/// that of `owner`, in the owner's manner.
fn bind_fd(
    fd: BorrowedFd<'_>,
    index: u32,
    queue: u32,
    options: BindOptions,
    owner: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let flags = match (owner, options.mode) {
        (Some(_), _) => libc::XDP_SHARED_UMEM,
        (None, BindMode::ZeroCopy) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
        (None, BindMode::Copy) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
    };
    let multi_buffer = if options.multi_buffer { libc::XDP_USE_SG } else { 0 };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags | multi_buffer,
        sxdp_ifindex: index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: owner.map_or(0, |owner| owner.as_raw_fd() as u32),
    };
    let size = size_of_val(&address) as libc::socklen_t;
    super::retry_while_busy(|| {
        // SAFETY: `address` is a live structure of `size` bytes.
        check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) })
    })
    .map(drop)
}

/// The direction from the interface.
pub(crate) struct RxRings {
    umem: Umem,
    in_kernel: KernelFrames,
    fill: Producer<u64>,
    descriptors: Consumer<libc::xdp_desc>,
    /// The beginning of a packet whose end has not come yet.
    partial: Vec<u8>,
}

impl RxRings {
    /// Adds up to `max` packets to `batch`.
    pub(crate) fn receive(&mut self, batch: &mut Batch, max: usize) {
        let count = self.descriptors.available().min(max as u32);
        self.prefetch_packets(count, Umem::prefetch_frame);
        batch.reserve(count as usize);
        for _ in 0..count {
            let Some(entry) = self.descriptors.next() else { break };
            let (frame, start) = self.umem.locate(entry.addr);
            let before = batch.len();
            if self.in_kernel.remove(frame) {
                // SAFETY: the frame was lent, and the kernel has just given it
                // back with a packet in it.
                unsafe { self.umem.adopt_frame(frame, start, entry.len as usize, batch) };
            }
            let continues = entry.options & libc::XDP_PKT_CONTD != 0;
            if continues || !self.partial.is_empty() {
                self.append_frames(batch, before, continues);
            }
        }
        self.descriptors.release();
    }

    /// Has the processor fetch the next `count` packets: the core that received them has written
    /// them, and one after the other they would take 100 ns each.
    fn prefetch_packets(&self, count: u32, prefetch: impl Fn(&Umem, u64)) {
        for index in 0..count {
            if let Some(entry) = self.descriptors.peek(index) {
                prefetch(&self.umem, entry.addr);
            }
        }
    }

    /// Joins the pieces of a packet that is longer than a frame: the next is
    /// in `batch` behind the `before`th packet, and the last if nothing goes on.
    #[cold]
    fn append_frames(&mut self, batch: &mut Batch, before: usize, continues: bool) {
        for frame in batch.split_off(before) {
            self.partial.extend_from_slice(frame.bytes());
        }
        if !continues {
            batch.push(Packet::from_bytes(&self.partial));
            self.partial.clear();
        }
    }

    /// Number of frames that the kernel has to fill.
    pub(crate) fn frames_in_kernel(&self) -> usize {
        self.in_kernel.len()
    }

    /// Gives the kernel frames until it has `target`; says whether the driver
    /// must be woken for them.
    pub(crate) fn refill(&mut self, target: usize) -> bool {
        let count = self.missing(target);
        if count == 0 {
            return false;
        }
        let mut batch = Batch::new();
        self.umem.pool().alloc_batch(count, &mut batch);
        batch.iter().for_each(|packet| self.push_fill(self.umem.frame_of(packet)));
        // SAFETY: new packets, which are not shared; the kernel has their frames.
        unsafe { batch.release(batch.len()) };
        self.publish_fill()
    }

    /// How many frames it takes, and there is room for, until the kernel has `target`.
    fn missing(&mut self, target: usize) -> usize {
        let missing = target.saturating_sub(self.in_kernel.len()) as u32;
        missing.min(self.fill.room(missing)) as usize
    }

    /// Writes a frame for the kernel, which is to fill it after [`RxRings::publish`].
    #[inline]
    fn push_fill(&mut self, frame: usize) {
        self.in_kernel.insert(frame);
        self.fill.push(self.umem.frame_address(frame));
    }

    /// Shows the kernel what was lent; says whether the driver must be woken for it.
    fn publish_fill(&self) -> bool {
        self.fill.publish();
        self.fill.needs_wakeup()
    }
}

/// The direction to the interface.
pub(crate) struct TxRings {
    umem: Umem,
    /// The longest packet that a new frame has room for.
    capacity: usize,
    /// Entries of each ring.
    size: usize,
    in_kernel: KernelFrames,
    descriptors: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
}

impl TxRings {
    /// Takes frames back from the completion ring.
    pub(crate) fn reclaim(&mut self) {
        self.reclaim_with(|_| false);
    }

    /// The same, but for those that `push_fill` gives to the kernel again; it says whether it does.
    fn reclaim_with(&mut self, mut push_fill: impl FnMut(usize) -> bool) {
        let mut free = Batch::new();
        while let Some(address) = self.completion.next() {
            let (frame, start) = self.umem.locate(address);
            if self.in_kernel.remove(frame) && !push_fill(frame) {
                // SAFETY: the frame was lent, and the kernel has just given it
                // back.
                unsafe { self.umem.adopt_frame(frame, start, 0, &mut free) };
            }
        }
        self.completion.release();
    }

    /// How many packets there is room for, if `wanted` at most are of interest.
    fn room(&mut self, wanted: usize) -> usize {
        // The completion ring must have room for all that is on its way.
        let in_flight = self.in_kernel.len();
        let room = self.descriptors.room(wanted.min(self.size) as u32) as usize;
        room.min(self.size.saturating_sub(in_flight))
    }

    /// Hands packets from the front of `batch` to the kernel, up to the first
    /// for which there is no room, or no frame to copy it to; says how many
    /// packets and bytes.
    pub(crate) fn send(&mut self, batch: &mut Batch) -> (usize, u64) {
        let mut room = self.room(batch.len());
        let (mut sent, mut bytes) = (0, 0);
        for packet in batch.iter_mut() {
            let len = packet.len();
            let whole = len <= self.capacity || packet.pool_id() == self.umem.pool().id();
            let ready = match whole {
                true => room > 0 && self.umem.ensure_own_frame(packet),
                false => self.split(packet, &mut room),
            };
            if !ready {
                break;
            }
            self.push(packet, 0);
            room -= 1;
            (sent, bytes) = (sent + 1, bytes + len as u64);
        }
        // SAFETY: `ensure_own_frame` has seen to it that none is shared; the kernel has
        // their frames.
        unsafe { batch.release(sent) };
        self.descriptors.publish();
        (sent, bytes)
    }

    /// Writes a packet, or a piece of one, that is to be given up.
    #[inline]
    fn push(&mut self, packet: &Packet, options: u32) {
        let descriptor = self.umem.descriptor(packet);
        self.in_kernel.insert(descriptor.frame);
        self.descriptors.push(libc::xdp_desc {
            addr: descriptor.address,
            len: descriptor.len,
            options,
        });
    }

    /// Hands over all of a packet that is longer than frames are but its last
    /// piece, which `packet` is then, if there are room and frames for it.
    #[cold]
    fn split(&mut self, packet: &mut Packet, room: &mut usize) -> bool {
        let pool = self.umem.pool().clone();
        let frames = packet.bytes().chunks(pool.data_capacity());
        let count = frames.len();
        if *room < count {
            *room = self.room(count);
        }
        if *room < count {
            return false;
        }
        let mut copies: Batch = frames.filter_map(|frame| pool.copy_in(frame)).collect();
        if copies.len() < count {
            return false;
        }
        let Some(last) = copies.pop() else { return false };
        for frame in &copies {
            self.push(frame, libc::XDP_PKT_CONTD);
        }
        // SAFETY: new packets, which are not shared; the kernel has their frames.
        unsafe { copies.release(copies.len()) };
        *packet = last;
        *room -= count - 1;
        true
    }
}
