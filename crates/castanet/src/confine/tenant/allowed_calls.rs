//! System calls that a tenant's process may make (seccomp).

use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Calls that are allowed with any arguments: on descriptors that are open, on memory, on time, on
/// threads of the process, and about itself.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Calls of this kind that only some architectures have.
#[cfg(target_arch = "x86_64")]
const ALSO_ALLOWED: &[libc::c_long] = &[libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const ALSO_ALLOWED: &[libc::c_long] = &[];

/// Whether an error is that of a call that is not on the list.
pub(crate) fn is_refused(error: Errno) -> bool {
    error == Errno::EPERM
}

/// From now on all calls that are not on the list fail with "operation not permitted".
pub(crate) fn restrict() -> Result<(), String> {
    let wrong = |error: seccompiler::BackendError| error.to_string();
    let (calls, threads) = (calls().map_err(wrong)?, no_clone3().map_err(wrong)?);
    // The second filter allows no further one.
    apply_filter(&threads).and_then(|()| apply_filter(&calls)).map_err(|error| error.to_string())
}

/// The filter of calls on the list.
fn calls() -> Result<BpfProgram, seccompiler::BackendError> {
    let any = ALLOWED.iter().chain(ALSO_ALLOWED).map(|&call| (call, Vec::new()));
    let conditional = [
        (libc::SYS_clone, vec![thread()?]),
        (libc::SYS_mmap, vec![no_code()?]),
        (libc::SYS_mprotect, vec![no_code()?]),
        (libc::SYS_prctl, vec![process_control(libc::PR_SET_NAME)?, process_control(PR_SET_VMA)?]),
    ];
    filter(
        any.chain(conditional).collect(),
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
    )
}

/// The filter that has the C library make threads by `clone`, whose flags a filter can look at.
fn no_clone3() -> Result<BpfProgram, seccompiler::BackendError> {
    let calls = vec![(libc::SYS_clone3, Vec::new())];
    filter(calls, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

fn filter(
    calls: Vec<(libc::c_long, Vec<SeccompRule>)>,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls.into_iter().collect(), others, these, architecture)?.try_into()
}

/// `PR_SET_VMA` of `prctl`: names of memory areas.
const PR_SET_VMA: libc::c_int = 0x5356_4d41;

/// Flags of `clone` that must be as for a thread: it shares the memory and is no process, and has no
/// namespace of its own.
const THREAD: libc::c_int = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

fn thread() -> Result<SeccompRule, seccompiler::BackendError> {
    let mask = (THREAD | NAMESPACES) as u32;
    rule(0, SeccompCmpOp::MaskedEq(u64::from(mask)), THREAD as u32)
}

/// Memory of the call may not be executed.
fn no_code() -> Result<SeccompRule, seccompiler::BackendError> {
    rule(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)
}

fn process_control(operation: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    rule(0, SeccompCmpOp::Eq, operation as u32)
}

/// A rule about one argument.
fn rule(
    argument: u8,
    operation: SeccompCmpOp,
    value: u32,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let length = SeccompCmpArgLen::Dword;
    SeccompRule::new(vec![SeccompCondition::new(argument, length, operation, value.into())?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};

    #[test]
    fn a_thread_runs_and_makes_threads_but_reaches_nothing() {
        let thread = std::thread::spawn(|| {
            restrict().unwrap();
            assert_eq!(unshare(CloneFlags::CLONE_FS), Err(Errno::EPERM));
            let refused = |error: std::io::Error| {
                assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
            };
            refused(std::fs::read("/proc/self/status").unwrap_err());
            refused(std::net::UdpSocket::bind("127.0.0.1:0").unwrap_err());
            refused(std::os::unix::net::UnixStream::pair().unwrap_err());
            refused(std::process::Command::new("/bin/true").status().unwrap_err());
            let memory = vec![1u8; 16 << 20];
            std::thread::spawn(move || memory.len()).join().unwrap()
        });
        assert_eq!(thread.join().unwrap(), 16 << 20);
    }
}
