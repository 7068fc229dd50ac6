//! Mapped memory for frames: zeroed, aligned, optionally in huge pages and on a NUMA node.

use std::io;
use std::ptr::{self, NonNull};

/// Size of a huge page in bytes, and alignment of mappings.
const HUGE_PAGE: usize = 2 << 20;

/// A private anonymous mapping, unmapped when dropped.
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, so that any thread may use and unmap it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` zero bytes at an address aligned to huge pages, and requests such pages if
    /// `huge_pages` and the bytes fill one.
    pub(super) fn new(len: usize, huge_pages: bool, node: Option<u8>) -> io::Result<Mapping> {
        let huge_pages = huge_pages && len >= HUGE_PAGE;
        let len = len.max(1).next_multiple_of(HUGE_PAGE);
        let Some(padded) = len.checked_add(HUGE_PAGE) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        // SAFETY: a new mapping at an address that the kernel chooses replaces no other.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                padded,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(address) = NonNull::new(address.cast::<u8>()) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let skip = address.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: `skip` is less than a huge page, and the mapping is one huge page
        // longer than `len`. So `base` and the `len` bytes behind it lie in the
        // mapping, and the rest of it, which is unmapped, has no users.
        let base = unsafe {
            let base = address.add(skip);
            unmap(address, skip);
            unmap(base.add(len), HUGE_PAGE - skip);
            base
        };
        let mapping = Mapping { base, len };
        mapping.advise(huge_pages, node);
        Ok(mapping)
    }

    /// Start address of the mapping.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length of the mapping in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Advises the kernel on page size and NUMA node. Errors are ignored: without
    /// huge pages or NUMA the pool works, but slower.
    fn advise(&self, huge_pages: bool, node: Option<u8>) {
        let address = self.base.as_ptr().cast::<libc::c_void>();
        let advice = if huge_pages { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range belongs to this mapping, and neither call changes its
        // contents.
        unsafe {
            libc::madvise(address, self.len, advice);
            if let Some(node) = node.filter(|&node| node < 64) {
                let nodes: u64 = 1 << node;
                let bits: libc::c_ulong = 64 + 1;
                libc::syscall(
                    libc::SYS_mbind,
                    address,
                    self.len,
                    libc::MPOL_PREFERRED,
                    &raw const nodes,
                    bits,
                    0,
                );
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pool drops its mapping only when no frame is in use.
        unsafe { unmap(self.base, self.len) }
    }
}

/// Unmaps `len` bytes at `address`, if any.
///
/// # Safety
/// The range must be mapped and unused.
unsafe fn unmap(address: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: the caller guarantees it.
        unsafe { libc::munmap(address.as_ptr().cast(), len) };
    }
}
