//! DPDK's environment, which a process starts once, and threads' places in it.

use super::shim;
use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether DPDK was there when this program was built.
pub(crate) const BUILT_IN: bool = true;

/// Whether, and how, the environment was started. It starts once a process.
static STARTED: Mutex<Option<Result<(), String>>> = Mutex::new(None);

/// Starts DPDK's environment with these options; what it says if it will not.
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
    // SAFETY: as many strings as it says, followed by a null pointer; they
    // last until the process ends. The lock sees to it that nobody else is at it.
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

/// Whether other processes share this one's memory, or may come to: DPDK gives
/// threads numbers only where there is no other process, and takes no other
/// process once it has given one.
static SHARED: AtomicBool = AtomicBool::new(false);

/// Other processes are to share this one's memory: threads go without numbers,
/// and so without caches of mempools. Comes too late for threads that have one.
pub(super) fn expect_others() {
    SHARED.store(true, Ordering::Relaxed);
}

/// Whether this process is the one that makes what others find.
pub(crate) fn is_primary() -> bool {
    // SAFETY: only reads what `start` has set.
    is_started() && unsafe { shim::castanet_dpdk_is_primary() }
}

/// Whether the environment runs.
pub(crate) fn is_started() -> bool {
    matches!(&*STARTED.lock().unwrap_or_else(PoisonError::into_inner), Some(Ok(())))
}

/// How many cores the environment was told to use.
pub(crate) fn cores() -> usize {
    // SAFETY: only reads what `start` has set, or zero.
    if is_started() { unsafe { shim::castanet_dpdk_lcores() as usize } } else { 0 }
}

/// The processors that this thread may use. DPDK ties the thread that starts
/// it, and so all that come of it, to one core; the engine does that itself.
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

/// DPDK's words for an error number.
fn words(error: c_int) -> String {
    // SAFETY: gives a string that lasts until the thread's next call.
    let text = unsafe { CStr::from_ptr(shim::castanet_dpdk_strerror(error)) };
    text.to_string_lossy().into_owned()
}

/// The last error that DPDK noted in this thread, in its words.
pub(super) fn last_error() -> String {
    // SAFETY: only reads a number of this thread.
    words(unsafe { shim::castanet_dpdk_errno() })
}

/// Turns a negative error number into its words.
pub(super) fn check(result: c_int) -> Result<c_int, String> {
    if result < 0 { Err(words(-result)) } else { Ok(result) }
}

/// This thread's number in DPDK, with which it has caches of its own; `false`
/// if it had one anyway, or if there was none left.
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

/// Gives this thread a number, if it has none and there is one left. The
/// environment must run.
#[inline]
pub(super) fn enter_thread() {
    // A thread that is ending has no use for one.
    let _ = REGISTRATION.try_with(|registration| {
        registration.get_or_init(|| {
            let alone = !SHARED.load(Ordering::Relaxed);
            // SAFETY: the environment runs.
            ThreadRegistration(alone && unsafe { shim::castanet_dpdk_enter_thread() } == 0)
        });
    });
}
