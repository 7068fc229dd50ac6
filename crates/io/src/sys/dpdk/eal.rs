//! DPDK's environment abstraction layer (EAL): a process starts it once, threads register with it.

use super::shim;
use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether this program was built with DPDK.
pub(crate) const BUILT_IN: bool = true;

/// Result of the start of the environment, if it was tried. It starts once per process.
static STARTED: Mutex<Option<Result<(), String>>> = Mutex::new(None);

/// Starts DPDK's environment with these options; the error is DPDK's reason.
pub(crate) fn start(options: &[String]) -> Result<(), String> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = &*started {
        return before.clone();
    }
    let mut words = vec![c"castanet".to_owned()];
    for option in options {
        let word = CString::new(option.as_str());
        words.push(word.map_err(|_| format!("`{option}` has a zero byte in it"))?);
    }
    // DPDK keeps pointers to its options.
    let words: &[*mut c_char] =
        Vec::leak(words.into_iter().map(CString::into_raw).chain([std::ptr::null_mut()]).collect());
    let affinity = affinity();
    // SAFETY: `words` holds the number of strings passed, then a null pointer; they
    // last until the process ends. The lock excludes a concurrent start.
    let failed = unsafe { shim::castanet_dpdk_init(words.len() as c_int - 1, words.as_ptr()) } < 0;
    restore(&affinity);
    let answer = if failed { Err(last_error()) } else { Ok(()) };
    *started = Some(answer.clone());
    // SAFETY: the environment runs.
    if answer.is_ok() && !unsafe { shim::castanet_dpdk_is_primary() } {
        expect_others();
    }
    answer
}

/// Whether other processes share this one's memory, or may attach later. DPDK registers threads only
/// while there is no other process, and refuses other processes once a thread is registered.
static SHARED: AtomicBool = AtomicBool::new(false);

/// Allows other processes to share this one's memory: threads are no longer registered, and so have
/// no mempool caches. It has no effect on threads that are registered already.
pub(super) fn expect_others() {
    SHARED.store(true, Ordering::Relaxed);
}

/// Whether this is the primary process, which creates shared objects.
pub(crate) fn is_primary() -> bool {
    // SAFETY: only reads what `start` has set.
    is_started() && unsafe { shim::castanet_dpdk_is_primary() }
}

/// Whether the environment runs.
pub(crate) fn is_started() -> bool {
    matches!(&*STARTED.lock().unwrap_or_else(PoisonError::into_inner), Some(Ok(())))
}

/// Number of lcores of the environment; 0 before it starts.
pub(crate) fn cores() -> usize {
    // SAFETY: only reads what `start` has set, or zero.
    if is_started() { unsafe { shim::castanet_dpdk_lcores() as usize } } else { 0 }
}

/// The CPUs that this thread may use. DPDK pins the thread that starts it, and so all threads spawned
/// from it, to one core; the engine pins its workers itself.
fn affinity() -> libc::cpu_set_t {
    // SAFETY: all zeros is an empty set, which the call fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    }
}

fn restore(set: &libc::cpu_set_t) {
    // SAFETY: the set is live and of that size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
}

/// DPDK's text for an error number.
fn words(error: c_int) -> String {
    // SAFETY: DPDK returns a string that lasts until the thread's next call.
    let text = unsafe { CStr::from_ptr(shim::castanet_dpdk_strerror(error)) };
    text.to_string_lossy().into_owned()
}

/// DPDK's text for this thread's last error (`rte_errno`).
pub(super) fn last_error() -> String {
    // SAFETY: only reads a number of this thread.
    words(unsafe { shim::castanet_dpdk_errno() })
}

/// Turns a negative error number into DPDK's text for it.
pub(super) fn check(result: c_int) -> Result<c_int, String> {
    if result < 0 { Err(words(-result)) } else { Ok(result) }
}

/// This thread's registration with DPDK, which gives it an lcore number and mempool caches; `false`
/// if the thread had a number already, or if no number was left.
struct ThreadRegistration(bool);

impl Drop for ThreadRegistration {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: the thread was registered; its number is not used again.
            unsafe { shim::castanet_dpdk_leave_thread() };
        }
    }
}

thread_local! {
    static REGISTRATION: OnceCell<ThreadRegistration> = const { OnceCell::new() };
}

/// Registers this thread with DPDK, if it has no lcore number yet and one is left. The environment
/// must run.
#[inline]
pub(super) fn enter_thread() {
    // A thread that is ending needs no registration.
    let _ = REGISTRATION.try_with(|registration| {
        registration.get_or_init(|| {
            let alone = !SHARED.load(Ordering::Relaxed);
            // SAFETY: the environment runs.
            ThreadRegistration(alone && unsafe { shim::castanet_dpdk_enter_thread() } == 0)
        });
    });
}
