//! Memory that is shared with another process: a mapping, and rings of slots in it.
//!
//! The other process may write to all of it at any time. So no reference to its bytes is ever made:
//! words are atomic, and packets are copied, each once. Every offset is checked against the mapping.

use castanet_packet::{Packet, prefetch};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mapping of a sealed memory file, which cannot shrink.
pub(crate) struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping has no ties to a thread, and is owned by this value alone.
unsafe impl Send for SharedMemory {}
// SAFETY: all access through `&self` is atomic or a copy of raw bytes that any process may write at
// the same time, as the peer does.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps the first `len` bytes of a memory file, and has the kernel fill in its pages. The caller
    /// has checked that the file has as many bytes and is sealed against shrinking.
    pub(crate) fn map(file: BorrowedFd<'_>, len: usize) -> io::Result<SharedMemory> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedMemory { base, len })
    }

    /// Copies bytes to an offset; returns whether they fit.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len);
        if fits {
            // SAFETY: the range lies in the mapping, and private bytes never overlap it.
            unsafe { copy(bytes.as_ptr(), self.base.as_ptr().add(offset), bytes.len()) };
        }
        fits
    }

    /// Copies bytes from an offset; returns whether there are as many.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len);
        if fits {
            // SAFETY: as in `write`, in the other direction.
            unsafe { copy(self.base.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len()) };
        }
        fits
    }
}

/// Copies bytes of which one side is shared memory.
///
/// # Safety
/// Both ranges of `len` bytes are mapped and do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the contract. The peer's writes are those of another process: they make the
    // copied bytes arbitrary and nothing else, and the caller checks the copy.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; rings hold it by `Arc`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// The words at the head of a ring; their values are their offsets.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum RingWord {
    /// Number of packets that the producer has published.
    Tail = 0,
    /// 1 if the producer sleeps until there is room.
    ProducerSleeps = 128,
    /// Number of packets that the consumer has taken.
    Head = 256,
    /// 1 if the consumer sleeps until there are packets.
    ConsumerSleeps = 384,
}

/// Bytes of a ring before its first slot.
pub(crate) const RING_HEADER: usize = 512;

/// Bytes of a slot before the packet's.
pub(crate) const SLOT_HEADER: usize = 16;

/// One ring of slots in shared memory.
pub(crate) struct RingMemory {
    /// The first byte of the ring.
    base: NonNull<u8>,
    /// The number of slots, a power of two, minus one.
    mask: u32,
    /// Bytes from slot to slot, a multiple of 64.
    stride: usize,
    /// Keeps the mapping.
    _memory: Arc<SharedMemory>,
}

// SAFETY: as for the mapping that it holds.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// The ring at `offset` of the mapping; `None` if it does not lie in it or is ill-formed.
    pub(crate) fn new(
        memory: &Arc<SharedMemory>,
        offset: usize,
        slots: u32,
        stride: usize,
    ) -> Option<RingMemory> {
        let bytes = stride.checked_mul(slots as usize)?.checked_add(RING_HEADER)?;
        let fits = offset.checked_add(bytes)? <= memory.len;
        let formed = slots.is_power_of_two() && stride > SLOT_HEADER;
        if !fits || !formed || !stride.is_multiple_of(64) || !offset.is_multiple_of(64) {
            return None;
        }
        // SAFETY: the offset lies in the mapping.
        let base = unsafe { memory.base.add(offset) };
        Some(RingMemory { base, mask: slots - 1, stride, _memory: memory.clone() })
    }

    /// Number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.mask + 1
    }

    /// Bytes of a packet for which a slot has room.
    pub(crate) fn capacity(&self) -> usize {
        self.stride - SLOT_HEADER
    }

    /// A word of the ring's head.
    #[inline]
    pub(crate) fn word(&self, word: RingWord) -> &AtomicU32 {
        // SAFETY: the words lie in the ring's head, which `new` has checked to lie in the mapping,
        // and are aligned as the head is. All sides access them as atomic words only.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(word as usize).cast()) }
    }

    /// The slot of the packet of this number.
    #[inline]
    fn slot(&self, number: u32) -> *mut u8 {
        let index = (number & self.mask) as usize;
        // SAFETY: the index is less than the number of slots, all of which lie in the mapping.
        unsafe { self.base.as_ptr().add(RING_HEADER + index * self.stride) }
    }

    /// Reads a slot's descriptor, once.
    #[inline]
    pub(crate) fn descriptor(&self, number: u32) -> [u64; 2] {
        let slot = self.slot(number).cast::<u64>();
        // SAFETY: slots are aligned to 64 bytes and longer than a descriptor; both words are atomic.
        let words = unsafe { [AtomicU64::from_ptr(slot), AtomicU64::from_ptr(slot.add(1))] };
        words.map(|word| u64::from_le(word.load(Ordering::Relaxed)))
    }

    /// Writes a descriptor and a packet to a slot; returns whether the packet fits.
    #[inline]
    pub(crate) fn write(&self, number: u32, descriptor: [u64; 2], bytes: &[u8]) -> bool {
        if bytes.len() > self.capacity() {
            return false;
        }
        let slot = self.slot(number);
        // SAFETY: as in `descriptor`; the packet was checked to fit behind it.
        unsafe {
            AtomicU64::from_ptr(slot.cast()).store(descriptor[0].to_le(), Ordering::Relaxed);
            AtomicU64::from_ptr(slot.cast::<u64>().add(1))
                .store(descriptor[1].to_le(), Ordering::Relaxed);
            copy(bytes.as_ptr(), slot.add(SLOT_HEADER), bytes.len());
        }
        true
    }

    /// Copies the first bytes of a slot's packet behind those of `packet`; returns whether the slot has as
    /// many, and the packet room for them.
    #[inline]
    pub(crate) fn read(&self, number: u32, len: usize, packet: &mut Packet) -> bool {
        let slot = self.slot(number);
        len <= self.capacity()
            // SAFETY: the range lies in the slot, as was checked, and private bytes never overlap it; all
            // `len` bytes of the packet are written.
            && unsafe {
                packet.put_back_with(len, |to| copy(slot.add(SLOT_HEADER), to, len))
            }
    }

    /// Has the processor fetch the slot of the packet of this number.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch(self.slot(number));
    }
}
