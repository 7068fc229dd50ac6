//! The rings of an AF_XDP socket: arrays that we fill and the kernel empties, or the reverse.

use super::super::{check, set_option};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Which of a socket's rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    /// Frames for the kernel to fill.
    Fill,
    /// Packets that it has received.
    Receive,
    /// Packets for it to send.
    Transmit,
    /// Frames that it has sent.
    Completion,
}

/// What rings hold: numbers, for which any bytes are valid.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Gives `socket` a ring of `size` entries, a power of two.
pub(super) fn request(socket: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<()> {
    let option = match which {
        Which::Fill => libc::XDP_UMEM_FILL_RING,
        Which::Receive => libc::XDP_RX_RING,
        Which::Transmit => libc::XDP_TX_RING,
        Which::Completion => libc::XDP_UMEM_COMPLETION_RING,
    };
    set_option(socket, libc::SOL_XDP, option, &size)
}

/// A mapped ring. Both sides count entries up for ever; places repeat.
struct Ring<T> {
    map: NonNull<u8>,
    len: usize,
    offset: libc::xdp_ring_offset,
    size: u32,
    /// How far we have come.
    at: u32,
    /// How far the kernel had come when we last looked.
    seen: u32,
    entries: PhantomData<T>,
}

// SAFETY: the mapping is owned by this value alone and has no ties to a thread.
unsafe impl<T> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    fn map(socket: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<Ring<T>> {
        let all = offsets(socket)?;
        let (offset, page) = match which {
            Which::Fill => (all.fr, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t),
            Which::Receive => (all.rx, libc::XDP_PGOFF_RX_RING),
            Which::Transmit => (all.tx, libc::XDP_PGOFF_TX_RING),
            Which::Completion => (all.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t),
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
        Ok(Ring { map, len, offset, size, at: 0, seen: 0, entries: PhantomData })
    }

    /// One of the words that both sides use.
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel named the offset, of an aligned word before the
        // entries; the mapping lives as long as `self`; both sides only touch
        // it as one word.
        unsafe { AtomicU32::from_ptr(self.map.as_ptr().add(offset as usize).cast()) }
    }

    /// Where entry `count` lies.
    fn entry(&self, count: u32) -> *mut T {
        let place = (count & (self.size - 1)) as usize;
        // SAFETY: the place is less than the ring's size, a power of two, for
        // which the mapping has room after `desc`.
        unsafe { self.map.as_ptr().add(self.offset.desc as usize).cast::<T>().add(place) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; nothing borrows from it.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.len) };
    }
}

/// Where in their mappings the rings have what.
fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    let none = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let mut offsets = libc::xdp_mmap_offsets { rx: none(), tx: none(), fr: none(), cr: none() };
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

/// A ring that we fill.
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    /// Maps a ring that was requested.
    pub(super) fn map(socket: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<Producer<T>> {
        Ring::map(socket, which, size).map(Producer)
    }

    /// How many entries have room; looks at what the kernel has emptied only
    /// where fewer than `wanted` are known to.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let ring = &mut self.0;
        let room = |ring: &Ring<T>| ring.size - ring.at.wrapping_sub(ring.seen).min(ring.size);
        if room(ring) < wanted {
            ring.seen = ring.word(ring.offset.consumer).load(Ordering::Acquire);
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
        unsafe { self.0.entry(self.0.at).write(entry) };
        self.0.at = self.0.at.wrapping_add(1);
        true
    }

    /// Shows the kernel what was written.
    pub(super) fn publish(&self) {
        self.0.word(self.0.offset.producer).store(self.0.at, Ordering::Release);
    }

    /// How many entries the kernel has not yet taken.
    pub(super) fn untaken(&mut self) -> u32 {
        self.0.seen = self.0.word(self.0.offset.consumer).load(Ordering::Acquire);
        self.0.at.wrapping_sub(self.0.seen)
    }

    /// Whether the kernel sleeps and wants to be called.
    pub(super) fn needs_wakeup(&self) -> bool {
        // The kernel goes to sleep by setting the flag and looking once more:
        // one of the two sides sees the other's store.
        fence(Ordering::SeqCst);
        self.0.word(self.0.offset.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that we empty.
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    /// Maps a ring that was requested.
    pub(super) fn map(socket: BorrowedFd<'_>, which: Which, size: u32) -> io::Result<Consumer<T>> {
        Ring::map(socket, which, size).map(Consumer)
    }

    /// The next entry, if the kernel has written one.
    pub(super) fn next(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.at == ring.seen {
            ring.seen = ring.word(ring.offset.producer).load(Ordering::Acquire);
            if ring.at == ring.seen {
                return None;
            }
        }
        // SAFETY: the kernel has written this entry and leaves it alone until
        // `release`; any bytes are a valid entry.
        let entry = unsafe { ring.entry(ring.at).read() };
        ring.at = ring.at.wrapping_add(1);
        Some(entry)
    }

    /// The entry that comes `ahead` places after the next, if the kernel had
    /// written it when we last looked.
    pub(super) fn ahead(&self, ahead: u32) -> Option<T> {
        let ring = &self.0;
        if ahead >= ring.seen.wrapping_sub(ring.at) {
            return None;
        }
        // SAFETY: the kernel has written this entry and leaves it alone until
        // `release`; any bytes are a valid entry.
        Some(unsafe { ring.entry(ring.at.wrapping_add(ahead)).read() })
    }

    /// Goes past the next `count` entries, as far as the kernel had come when we last looked.
    pub(super) fn skip(&mut self, count: u32) {
        let ring = &mut self.0;
        ring.at = ring.at.wrapping_add(count.min(ring.seen.wrapping_sub(ring.at)));
    }

    /// Looks how far the kernel has come; says how many entries there are.
    pub(super) fn look(&mut self) -> u32 {
        let ring = &mut self.0;
        ring.seen = ring.word(ring.offset.producer).load(Ordering::Acquire);
        ring.seen.wrapping_sub(ring.at)
    }

    /// Gives the places of what was read back to the kernel.
    pub(super) fn release(&self) {
        self.0.word(self.0.offset.consumer).store(self.0.at, Ordering::Release);
    }
}
