//! The general allocator with accounts: whose memory is on the heap.
//!
//! Each allocation has a header with the number of the account that paid for it, so that it is given
//! back to that account whichever thread frees it. Frames of packets are not allocated here.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of accounts, the one of nobody included.
const ACCOUNTS: usize = 4096;
/// The account of what belongs to nobody; it is not counted.
const NOBODY: usize = 0;
/// Bytes of a header at least: those that keep the alignment of the general allocator.
const HEADER: usize = 16;

/// By account: bytes on the heap, without headers.
static BYTES: [AtomicUsize; ACCOUNTS] = [const { AtomicUsize::new(0) }; ACCOUNTS];
/// By account: whether a [`HeapAccount`] stands for it.
static OPEN: [AtomicBool; ACCOUNTS] = [const { AtomicBool::new(false) }; ACCOUNTS];

thread_local! {
    static PAYER: Cell<usize> = const { Cell::new(NOBODY) };
}

/// The system's allocator, which charges allocations to the account that pays on the thread. A
/// program makes it its `#[global_allocator]`; accounts stay at zero in a program that does not.
pub struct AccountAllocator;

/// An account of memory on the heap.
#[derive(Clone, Debug)]
pub struct HeapAccount(Arc<AccountNumber>);

/// The number of an account; closes it with the last owner.
#[derive(Debug)]
struct AccountNumber(usize);

impl Drop for AccountNumber {
    fn drop(&mut self) {
        OPEN[self.0].store(false, Ordering::Release);
    }
}

impl HeapAccount {
    /// Opens an account; `None` if there are 4095 already. An account that was closed counts until
    /// its memory is freed.
    pub fn new() -> Option<HeapAccount> {
        let open = |number: &usize| {
            BYTES[*number].load(Ordering::Relaxed) == 0
                && !OPEN[*number].swap(true, Ordering::Acquire)
        };
        (NOBODY + 1..ACCOUNTS).find(open).map(|number| HeapAccount(Arc::new(AccountNumber(number))))
    }

    /// Bytes on the heap that were charged to it and are not freed.
    pub fn bytes(&self) -> usize {
        BYTES[self.0.0].load(Ordering::Relaxed)
    }

    /// Charges what this thread allocates to the account, until the result is dropped.
    #[inline]
    pub fn pay(&self) -> HeapPayment {
        HeapPayment { before: PAYER.replace(self.0.0) }
    }
}

/// Has nobody pay for what this thread allocates, until the result is dropped: for memory that the
/// thread keeps.
#[inline]
pub(crate) fn nobody_pays() -> HeapPayment {
    HeapPayment { before: PAYER.replace(NOBODY) }
}

/// A time for which an account pays for what its thread allocates; dropped, the account before pays
/// again.
#[derive(Debug)]
#[must_use]
pub struct HeapPayment {
    before: usize,
}

impl Drop for HeapPayment {
    #[inline]
    fn drop(&mut self) {
        PAYER.set(self.before);
    }
}

/// The layout of an allocation with its header, and the length of the header.
#[inline]
fn with_header(layout: Layout) -> Option<(Layout, usize)> {
    let offset = layout.align().max(HEADER);
    let size = layout.size().checked_add(offset)?;
    Some((Layout::from_size_align(size, offset).ok()?, offset))
}

/// Adds `size` bytes to an account.
#[inline]
fn charge(account: usize, size: usize) {
    if account != NOBODY {
        BYTES[account].fetch_add(size, Ordering::Relaxed);
    }
}

/// Writes the header of new memory and charges it; returns the memory behind the header.
///
/// # Safety
/// `memory` is null, or has `offset + size` bytes that nobody else uses, aligned to `offset`.
#[inline]
unsafe fn begin(memory: *mut u8, offset: usize, size: usize) -> *mut u8 {
    if memory.is_null() {
        return memory;
    }
    let account = PAYER.get();
    charge(account, size);
    // SAFETY: the header is within the memory, and ends at a multiple of 16 bytes.
    unsafe {
        let start = memory.add(offset);
        start.sub(HEADER).cast::<usize>().write(account);
        start
    }
}

/// The account that has paid for an allocation.
///
/// # Safety
/// `start` comes from [`begin`].
#[inline]
unsafe fn payer_of(start: *mut u8) -> usize {
    // SAFETY: `begin` has written the header there.
    unsafe { start.sub(HEADER).cast::<usize>().read() }
}

// SAFETY: each allocation is one of the system's allocator, with `offset` bytes more than the layout
// asks for, of which the first are the header. `offset` is a multiple of the alignment, so what
// follows is aligned. Nothing here panics or allocates: the thread's payer needs no destructor.
unsafe impl GlobalAlloc for AccountAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = with_header(layout) else { return ptr::null_mut() };
        // SAFETY: the layout has at least the header.
        unsafe { begin(System.alloc(whole), offset, layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = with_header(layout) else { return ptr::null_mut() };
        // SAFETY: as in `alloc`.
        unsafe { begin(System.alloc_zeroed(whole), offset, layout.size()) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        let Some((whole, offset)) = with_header(layout) else { return };
        // SAFETY: `alloc` has made the memory with this layout, `offset` bytes before.
        unsafe {
            let account = payer_of(start);
            if account != NOBODY {
                BYTES[account].fetch_sub(layout.size(), Ordering::Relaxed);
            }
            System.dealloc(start.sub(offset), whole);
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some((whole, offset)) = with_header(layout) else { return ptr::null_mut() };
        let Some(new_whole) = new_size.checked_add(offset) else { return ptr::null_mut() };
        // SAFETY: as in `dealloc`; the system keeps the alignment and the bytes of the header. If it
        // fails, the memory before stays as it is, and so does its account.
        unsafe {
            let account = payer_of(start);
            let memory = System.realloc(start.sub(offset), whole, new_whole);
            if memory.is_null() {
                return memory;
            }
            if account != NOBODY {
                BYTES[account].fetch_add(new_size, Ordering::Relaxed);
                BYTES[account].fetch_sub(layout.size(), Ordering::Relaxed);
            }
            memory.add(offset)
        }
    }
}
