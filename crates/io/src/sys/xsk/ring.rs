//! The rings of an AF_XDP socket: this process fills two of them and the kernel empties those; the
//! other two work in reverse.

use super::super::{check, set_option};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// One of a socket's four rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingKind {
    /// The fill ring: free frames, for the kernel to fill.
    Fill,
    /// The RX ring: received packets.
    Rx,
    /// The TX ring: packets for the kernel to send.
    Tx,
    /// The completion ring: frames whose packets were sent.
    Completion,
}

/// Entries of rings: plain numbers, for which any bytes are valid.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Gives `socket` a ring of `size` entries, a power of two.
pub(super) fn create(socket: BorrowedFd<'_>, kind: RingKind, size: u32) -> io::Result<()> {
    let option = match kind {
        RingKind::Fill => libc::XDP_UMEM_FILL_RING,
        RingKind::Rx => libc::XDP_RX_RING,
        RingKind::Tx => libc::XDP_TX_RING,
        RingKind::Completion => libc::XDP_UMEM_COMPLETION_RING,
    };
    set_option(socket, libc::SOL_XDP, option, &size)
}

/// A mapped ring. Both sides count entries up without end, modulo 2^32; slots repeat.
struct Ring<T> {
    map: NonNull<u8>,
    len: usize,
    offset: libc::xdp_ring_offset,
    size: u32,
    /// This side's index: the number of entries that it has written or read.
    own: u32,
    /// The kernel's index when it was last loaded.
    peer: u32,
    entries: PhantomData<T>,
}

// SAFETY: the mapping is owned by this value alone and has no ties to a thread.
unsafe impl<T> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    fn map(socket: BorrowedFd<'_>, kind: RingKind, size: u32) -> io::Result<Ring<T>> {
        let all = offsets(socket)?;
        let (offset, page) = match kind {
            RingKind::Fill => (all.fr, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t),
            RingKind::Rx => (all.rx, libc::XDP_PGOFF_RX_RING),
            RingKind::Tx => (all.tx, libc::XDP_PGOFF_TX_RING),
            RingKind::Completion => (all.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t),
        };
        let len = offset.desc as usize + size as usize * size_of::<T>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the
        // length is that of the ring that was asked for.
        let map = unsafe {
            libc::mmap(std::ptr::null_mut(), len, protection, flags, socket.as_raw_fd(), page)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { map, len, offset, size, own: 0, peer: 0, entries: PhantomData })
    }

    /// An index or flag word that both sides use.
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel named the offset, of an aligned word before the
        // entries; the mapping lives as long as `self`; both sides only touch
        // it as one word.
        unsafe { AtomicU32::from_ptr(self.map.as_ptr().add(offset as usize).cast()) }
    }

    /// Pointer to the slot of entry `count`.
    fn entry(&self, count: u32) -> *mut T {
        let slot = (count & (self.size - 1)) as usize;
        // SAFETY: the place is less than the ring's size, a power of two, for
        // which the mapping has room after `desc`.
        unsafe { self.map.as_ptr().add(self.offset.desc as usize).cast::<T>().add(slot) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; nothing borrows from it.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.len) };
    }
}

/// The offsets of indices, flags and entries in each ring's mapping.
fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    let empty = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let mut offsets = libc::xdp_mmap_offsets { rx: empty(), tx: empty(), fr: empty(), cr: empty() };
    let mut size = size_of_val(&offsets) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `offsets`.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            std::ptr::from_mut(&mut offsets).cast(),
            &mut size,
        )
    })?;
    // A kernel before 5.4 answers with less, and has no need-wakeup flag.
    if (size as usize) < size_of_val(&offsets) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(offsets)
}

/// A ring that this process fills.
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    /// Maps a ring that was requested.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        kind: RingKind,
        size: u32,
    ) -> io::Result<Producer<T>> {
        Ring::map(socket, kind, size).map(Producer)
    }

    /// Number of free entries. Loads the kernel's index only if fewer than `wanted` are known to be
    /// free.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let ring = &mut self.0;
        let room = |ring: &Ring<T>| ring.size - ring.own.wrapping_sub(ring.peer).min(ring.size);
        if room(ring) < wanted {
            ring.peer = ring.word(ring.offset.consumer).load(Ordering::Acquire);
        }
        room(ring)
    }

    /// Writes an entry, if there is room; the kernel sees it after `publish`.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        // SAFETY: the kernel does not look at places with room, and will only
        // after `publish`.
        unsafe { self.0.entry(self.0.own).write(entry) };
        self.0.own = self.0.own.wrapping_add(1);
        true
    }

    /// Publishes the written entries to the kernel.
    pub(super) fn publish(&self) {
        self.0.word(self.0.offset.producer).store(self.0.own, Ordering::Release);
    }

    /// Number of entries that the kernel has not yet consumed.
    pub(super) fn pending(&mut self) -> u32 {
        self.0.peer = self.0.word(self.0.offset.consumer).load(Ordering::Acquire);
        self.0.own.wrapping_sub(self.0.peer)
    }

    /// Whether the kernel sleeps and wants to be called.
    pub(super) fn needs_wakeup(&self) -> bool {
        // The kernel goes to sleep by setting the flag and looking once more:
        // one of the two sides sees the other's store.
        fence(Ordering::SeqCst);
        self.0.word(self.0.offset.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that this process empties.
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    /// Maps a ring that was requested.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        kind: RingKind,
        size: u32,
    ) -> io::Result<Consumer<T>> {
        Ring::map(socket, kind, size).map(Consumer)
    }

    /// The next entry, if the kernel has written one.
    pub(super) fn next(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.own == ring.peer {
            ring.peer = ring.word(ring.offset.producer).load(Ordering::Acquire);
            if ring.own == ring.peer {
                return None;
            }
        }
        // SAFETY: the kernel has written this entry and leaves it alone until
        // `release`; any bytes are a valid entry.
        let entry = unsafe { ring.entry(ring.own).read() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// The entry `index` places after the next, if the kernel had written it when its index was
    /// last loaded.
    pub(super) fn peek(&self, index: u32) -> Option<T> {
        let ring = &self.0;
        if index >= ring.peer.wrapping_sub(ring.own) {
            return None;
        }
        // SAFETY: the kernel has written this entry and leaves it alone until
        // `release`; any bytes are a valid entry.
        Some(unsafe { ring.entry(ring.own.wrapping_add(index)).read() })
    }

    /// Skips the next `count` entries, at most those known to be written.
    pub(super) fn skip(&mut self, count: u32) {
        let ring = &mut self.0;
        ring.own = ring.own.wrapping_add(count.min(ring.peer.wrapping_sub(ring.own)));
    }

    /// Loads the kernel's index; returns the number of entries to read.
    pub(super) fn available(&mut self) -> u32 {
        let ring = &mut self.0;
        ring.peer = ring.word(ring.offset.producer).load(Ordering::Acquire);
        ring.peer.wrapping_sub(ring.own)
    }

    /// Returns the slots of the read entries to the kernel.
    pub(super) fn release(&self) {
        self.0.word(self.0.offset.consumer).store(self.0.own, Ordering::Release);
    }
}
