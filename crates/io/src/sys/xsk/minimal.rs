//! The tightest loop that forwards by AF_XDP: a frame is a number that travels through four rings.

use super::program::{Program, Stage};
use super::ring::{self, Consumer, Producer, Which};
use super::{Manner, Mode, bind_as, open_socket, prepare_to_send, send_now};
use crate::sys::{check, prefetch, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames in all, and entries of each ring: every frame is in exactly one, so
/// that none is ever full.
const FRAMES: u32 = 2048;
/// Bytes of a frame; the kernel takes powers of two for aligned ones.
const FRAME: u32 = 2048;
/// How many packets go on at once.
const BURST: usize = 64;
/// Milliseconds to sleep without packets before looking at the stop sign.
const NAP: libc::c_int = 10;

/// Memory that two sockets share.
struct Memory(NonNull<libc::c_void>);

// SAFETY: the mapping is owned by this value alone and has no ties to a thread.
unsafe impl Send for Memory {}

const BYTES: usize = FRAMES as usize * FRAME as usize;

impl Memory {
    fn new() -> io::Result<Memory> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        );
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory(NonNull::new(map).ok_or(io::ErrorKind::OutOfMemory)?))
    }

    fn register(&self, socket: &OwnedFd) -> io::Result<()> {
        let request = libc::xdp_umem_reg {
            addr: self.0.as_ptr().addr() as u64,
            len: BYTES as u64,
            chunk_size: FRAME,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(socket.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, which nothing here reads
        // or writes; the kernel has its own hold of the pages.
        unsafe { libc::munmap(self.0.as_ptr(), BYTES) };
    }
}

/// Forwards from one interface to another.
pub(crate) struct Relay {
    // The program goes before the socket that it names.
    _program: Program,
    receiver: OwnedFd,
    sender: OwnedFd,
    fill: Producer<u64>,
    received: Consumer<libc::xdp_desc>,
    transmit: Producer<libc::xdp_desc>,
    done: Consumer<u64>,
    memory: Memory,
}

impl Relay {
    /// From the interface of number `from` to that of number `to`, the first
    /// queue of each.
    pub(crate) fn new(from: u32, to: u32) -> io::Result<Relay> {
        let memory = Memory::new()?;
        let (receiver, sender) = (open_socket()?, open_socket()?);
        memory.register(&receiver)?;
        for which in [Which::Fill, Which::Completion, Which::Receive] {
            ring::request(receiver.as_fd(), which, FRAMES)?;
        }
        for which in [Which::Fill, Which::Completion, Which::Transmit] {
            ring::request(sender.as_fd(), which, FRAMES)?;
        }
        let mut fill = Producer::map(receiver.as_fd(), Which::Fill, FRAMES)?;
        let received = Consumer::map(receiver.as_fd(), Which::Receive, FRAMES)?;
        let transmit = Producer::map(sender.as_fd(), Which::Transmit, FRAMES)?;
        let done = Consumer::map(sender.as_fd(), Which::Completion, FRAMES)?;
        let manner = Manner { mode: Mode::Copy, segments: false };
        bind_as(receiver.as_fd(), from, 0, manner, None)?;
        bind_as(sender.as_fd(), to, 0, manner, Some(receiver.as_fd()))?;
        prepare_to_send(sender.as_fd());
        (0..FRAMES).for_each(|frame| _ = fill.push(u64::from(frame * FRAME)));
        fill.publish();
        let program = Program::new(from, 1, Stage::Driver, false, &[])?;
        program.insert(0, receiver.as_fd())?;
        let _program = program;
        Ok(Relay { _program, receiver, sender, fill, received, transmit, done, memory })
    }

    /// Forwards until `stop` is set; says how many packets that were.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> io::Result<u64> {
        let mut packets = 0;
        while !stop.load(Ordering::Relaxed) {
            let count = self.forward();
            packets += count as u64;
            while self.transmit.untaken() > 0 && self.transmit.needs_wakeup() {
                match send_now(self.sender.as_fd()) {
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

    /// Hands what was received to the other interface, up to a burst.
    fn forward(&mut self) -> usize {
        let mut count = 0;
        // The kernel is about to copy them.
        for ahead in 0..self.received.look().min(BURST as u32) {
            if let Some(packet) = self.received.ahead(ahead) {
                prefetch(self.memory.0.as_ptr().cast::<u8>().wrapping_add(packet.addr as usize));
            }
        }
        while count < BURST
            && let Some(packet) = self.received.next()
        {
            self.transmit.push(libc::xdp_desc { options: 0, ..packet });
            count += 1;
        }
        if count > 0 {
            self.received.release();
            self.transmit.publish();
        }
        count
    }

    /// Hands the frames that were sent back, to be filled again.
    fn reclaim(&mut self) {
        let mut any = false;
        while let Some(address) = self.done.next() {
            any |= self.fill.push(address & !u64::from(FRAME - 1));
        }
        if any {
            self.done.release();
            self.fill.publish();
        }
    }

    /// Sleeps until packets come.
    fn wait(&self) -> io::Result<()> {
        let mut one =
            libc::pollfd { fd: self.receiver.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live structure.
        match check(unsafe { libc::poll(&mut one, 1, NAP) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}
