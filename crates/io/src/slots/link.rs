//! One connection of a slot channel: the shared memory, and the socket that brought it.
//!
//! The socket is the doorbell, too: a byte wakes the peer, and its end says that the peer is gone. An
//! eventfd would not do with a hostile peer: whether a write to it blocks is a property of the open
//! file, which both sides share, so that the peer could block the worker that rings.

use super::layout::{Geometry, HEADER_LEN, MAGIC, VERSION};
use super::ring::{Consumer, Producer};
use crate::descriptors;
use crate::sys::shared_slots::SharedMemory;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the message that brings the memory: the magic, and the version.
const MESSAGE_LEN: usize = 12;

/// The seals without which memory of a peer is not mapped: it can make no access fault then.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A connection to a peer.
pub(super) struct Link {
    socket: UnixStream,
    geometry: Geometry,
    /// The ends of the rings, while no element has them.
    producer: Mutex<Option<Producer>>,
    consumer: Mutex<Option<Consumer>>,
    /// Whether either side has ended the connection.
    ended: AtomicBool,
}

/// The state of a connection's socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PeerState {
    Alive,
    /// It rings without being asked: a peer rings once for each time that this side sleeps.
    Flooding,
    Gone,
}

impl Link {
    /// Makes memory with rings of this size, and passes it to the peer.
    pub(super) fn create(socket: UnixStream, geometry: Geometry) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("castanet-slots", flags)?;
        rustix::fs::ftruncate(&file, geometry.bytes() as u64)?;
        // With the last seal the peer can add none.
        rustix::fs::fcntl_add_seals(&file, SEALS | SealFlags::SEAL)?;
        let memory = SharedMemory::map(file.as_fd(), geometry.bytes())?;
        memory.write(0, &geometry.header());
        send_memory(&socket, &file)?;
        let [ours, theirs] = rings(geometry, memory)?;
        Ok(Link::new(socket, geometry, Producer::new(ours), Consumer::new(theirs)))
    }

    /// As [`Link::create`], for a connection that nothing wakes a sleeping worker for: the first packet
    /// of the peer does.
    pub(super) fn create_awaited(socket: UnixStream, geometry: Geometry) -> io::Result<Link> {
        let link = Link::create(socket, geometry)?;
        if let Some(consumer) = &mut *link.consumer.lock().unwrap_or_else(PoisonError::into_inner) {
            consumer.sleep();
        }
        Ok(link)
    }

    /// Takes the memory that the peer passes; an error of kind `WouldBlock` while it has not.
    pub(super) fn join(socket: UnixStream) -> Result<Link, (UnixStream, io::Error)> {
        let joined = receive_memory(&socket).and_then(|file| map_foreign(&file));
        match joined {
            Ok((geometry, memory)) => match rings(geometry, memory) {
                Ok([theirs, ours]) => {
                    Ok(Link::new(socket, geometry, Producer::new(ours), Consumer::new(theirs)))
                }
                Err(error) => Err((socket, error)),
            },
            Err(error) => Err((socket, error)),
        }
    }

    fn new(socket: UnixStream, geometry: Geometry, tx: Producer, rx: Consumer) -> Link {
        let (producer, consumer) = (Mutex::new(Some(tx)), Mutex::new(Some(rx)));
        Link { socket, geometry, producer, consumer, ended: AtomicBool::new(false) }
    }

    /// The size of its rings.
    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The socket, whose descriptor is readable when the peer rings or is gone.
    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Takes the end that fills slots, unless another element has it.
    pub(super) fn take_producer(&self) -> Option<Producer> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the end that empties slots, unless another element has it.
    pub(super) fn take_consumer(&self) -> Option<Consumer> {
        self.consumer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives an end back, so that the next element goes on where this one stopped.
    pub(super) fn return_producer(&self, end: Producer) {
        *self.producer.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// As [`Link::return_producer`].
    pub(super) fn return_consumer(&self, end: Consumer) {
        *self.consumer.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// Wakes the peer; returns whether it is there. A peer that has not read earlier bytes is awake
    /// as soon as it reads them.
    pub(super) fn wake_peer(&self) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, &[0], flags) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => true,
            Err(_) => false,
        }
    }

    /// Reads the bytes by which the peer has rung, all of them, because the worker is woken by an
    /// event on the socket once, be it a byte or the end.
    pub(super) fn read_doorbell(&self) -> PeerState {
        // A socket's buffer holds some hundreds of messages of one byte, so that as many bytes as this
        // are not those of single rings.
        let (mut bytes, mut total) = ([0; 4096], 0);
        loop {
            let read = || rustix::net::recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT);
            match rustix::io::retry_on_intr(read) {
                Ok((_, 0)) => return PeerState::Gone,
                Ok((_, n)) => total += n,
                Err(Errno::AGAIN) => return PeerState::Alive,
                Err(_) => return PeerState::Gone,
            }
            if total >= bytes.len() {
                return PeerState::Flooding;
            }
        }
    }

    /// Ends the connection for both sides; returns whether this call has done so.
    pub(super) fn end(&self) -> bool {
        let first = !self.ended.swap(true, Ordering::AcqRel);
        // The peer, and the other element of this process, find the socket readable.
        _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        first
    }

    /// Whether the connection has ended.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

fn rings(
    geometry: Geometry,
    memory: SharedMemory,
) -> io::Result<[crate::sys::shared_slots::RingMemory; 2]> {
    geometry.rings(&Arc::new(memory)).ok_or_else(|| invalid("the rings do not fit the memory"))
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Passes the memory file to the peer.
pub(super) fn send_memory(socket: &UnixStream, file: &OwnedFd) -> io::Result<()> {
    let mut message = [0; MESSAGE_LEN];
    message[..8].copy_from_slice(&MAGIC);
    message[8..].copy_from_slice(&VERSION.to_le_bytes());
    descriptors::send(socket, &message, &[file.as_fd()])
}

/// Receives the peer's memory file.
pub(super) fn receive_memory(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut message = [0; MESSAGE_LEN];
    let (len, mut files) = descriptors::receive(socket, &mut message, 1)?;
    if len == 0 {
        return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the peer has hung up"));
    }
    let is_known = len == MESSAGE_LEN
        && message.starts_with(&MAGIC)
        && message.ends_with(&VERSION.to_le_bytes());
    let file = files.pop().filter(|_| is_known);
    file.ok_or_else(|| invalid("the peer speaks no slot channel of version 1"))
}

/// Maps memory that a peer has made, if it cannot shrink and has a layout of this version.
fn map_foreign(file: &OwnedFd) -> io::Result<(Geometry, SharedMemory)> {
    let sealed = rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS));
    if !sealed {
        return Err(invalid("the peer's memory is not sealed against shrinking"));
    }
    let bytes = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
    let short = || invalid("the peer's memory has no layout of version 1");
    if bytes < HEADER_LEN {
        return Err(short());
    }
    // The header is read once: from here on its copy counts.
    let (page, mut header) = (SharedMemory::map(file.as_fd(), HEADER_LEN)?, [0; HEADER_LEN]);
    page.read(0, &mut header);
    let geometry = Geometry::parse(&header).filter(|it| it.bytes() <= bytes).ok_or_else(short)?;
    Ok((geometry, SharedMemory::map(file.as_fd(), geometry.bytes())?))
}
