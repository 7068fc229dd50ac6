//! The minimal loop that forwards by AF_XDP: frames are numbers that move through four rings.

use super::program::{AttachMode, Program};
use super::ring::{self, Consumer, Producer, RingKind};
use super::{BindMode, BindOptions, RingSizes, bind_fd, open_unbound, raise_tx_limits, wake_tx};
use crate::sys::{check, set_option};
use castanet_packet::prefetch;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of frames, and entries of each ring: every frame is in exactly one ring, so that no ring
/// is ever full.
const FRAMES: u32 = 2048;
/// Bytes of a frame; the kernel takes powers of two for aligned ones.
const FRAME_SIZE: u32 = 2048;
/// Packets per burst.
const BURST: usize = 64;
/// Milliseconds to wait for packets before reading the stop flag again.
const POLL_TIMEOUT_MS: libc::c_int = 10;

/// The UMEM that both sockets share.
struct UmemMapping(NonNull<libc::c_void>);

// SAFETY: the mapping is owned by this value alone and has no ties to a thread.
unsafe impl Send for UmemMapping {}

const BYTES: usize = FRAMES as usize * FRAME_SIZE as usize;

impl UmemMapping {
    fn new() -> io::Result<UmemMapping> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        );
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(UmemMapping(NonNull::new(map).ok_or(io::ErrorKind::OutOfMemory)?))
    }

    fn register(&self, socket: &OwnedFd) -> io::Result<()> {
        let request = libc::xdp_umem_reg {
            addr: self.0.as_ptr().addr() as u64,
            len: BYTES as u64,
            chunk_size: FRAME_SIZE,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(socket.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
    }
}

impl Drop for UmemMapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, which nothing here reads
        // or writes; the kernel has its own hold of the pages.
        unsafe { libc::munmap(self.0.as_ptr(), BYTES) };
    }
}

/// Forwards from one interface to another.
pub(crate) struct Forwarder {
    // The program goes before the socket that it names.
    _program: Program,
    receiver: OwnedFd,
    sender: OwnedFd,
    fill: Producer<u64>,
    rx: Consumer<libc::xdp_desc>,
    tx: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    memory: UmemMapping,
}

impl Forwarder {
    /// From the interface of number `from` to that of number `to`, the first
    /// queue of each.
    pub(crate) fn new(from: u32, to: u32) -> io::Result<Forwarder> {
        let memory = UmemMapping::new()?;
        let (receiver, sender) = (open_unbound()?, open_unbound()?);
        memory.register(&receiver)?;
        for kind in [RingKind::Fill, RingKind::Completion, RingKind::Rx] {
            ring::create(receiver.as_fd(), kind, FRAMES)?;
        }
        for kind in [RingKind::Fill, RingKind::Completion, RingKind::Tx] {
            ring::create(sender.as_fd(), kind, FRAMES)?;
        }
        let mut fill = Producer::map(receiver.as_fd(), RingKind::Fill, FRAMES)?;
        let rx = Consumer::map(receiver.as_fd(), RingKind::Rx, FRAMES)?;
        let tx = Producer::map(sender.as_fd(), RingKind::Tx, FRAMES)?;
        let completion = Consumer::map(sender.as_fd(), RingKind::Completion, FRAMES)?;
        let options =
            BindOptions { mode: BindMode::Copy, multi_buffer: false, rings: RingSizes::default() };
        bind_fd(receiver.as_fd(), from, 0, options, None)?;
        bind_fd(sender.as_fd(), to, 0, options, Some(receiver.as_fd()))?;
        raise_tx_limits(sender.as_fd());
        (0..FRAMES).for_each(|frame| _ = fill.push(u64::from(frame * FRAME_SIZE)));
        fill.publish();
        let program = Program::new(from, 1, AttachMode::Driver, false, &[])?;
        program.insert(0, receiver.as_fd())?;
        let _program = program;
        Ok(Forwarder { _program, receiver, sender, fill, rx, tx, completion, memory })
    }

    /// Forwards until `stop` is set; says how many packets that were.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> io::Result<u64> {
        let mut packets = 0;
        while !stop.load(Ordering::Relaxed) {
            let count = self.forward();
            packets += count as u64;
            while self.tx.pending() > 0 && self.tx.needs_wakeup() {
                match wake_tx(self.sender.as_fd()) {
                    Err(error)
                        if !matches!(
                            error.raw_os_error(),
                            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)
                        ) =>
                    {
                        return Err(error);
                    }
                    _ => self.reclaim(),
                }
            }
            self.reclaim();
            if count == 0 {
                self.wait()?;
            }
        }
        Ok(packets)
    }

    /// Moves received descriptors to the TX ring, up to a burst; returns their number.
    fn forward(&mut self) -> usize {
        let mut count = 0;
        // The kernel is about to copy them.
        for index in 0..self.rx.available().min(BURST as u32) {
            if let Some(packet) = self.rx.peek(index) {
                prefetch(self.memory.0.as_ptr().cast::<u8>().wrapping_add(packet.addr as usize));
            }
        }
        while count < BURST
            && let Some(packet) = self.rx.next()
        {
            self.tx.push(libc::xdp_desc { options: 0, ..packet });
            count += 1;
        }
        if count > 0 {
            self.rx.release();
            self.tx.publish();
        }
        count
    }

    /// Moves completed frames to the fill ring.
    fn reclaim(&mut self) {
        let mut any = false;
        while let Some(address) = self.completion.next() {
            any |= self.fill.push(address & !u64::from(FRAME_SIZE - 1));
        }
        if any {
            self.completion.release();
            self.fill.publish();
        }
    }

    /// Waits for packets, at most `POLL_TIMEOUT_MS`.
    fn wait(&self) -> io::Result<()> {
        let mut one =
            libc::pollfd { fd: self.receiver.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live structure.
        match check(unsafe { libc::poll(&mut one, 1, POLL_TIMEOUT_MS) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}
