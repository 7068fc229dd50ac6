//! System calls that a running router never makes (seccomp).

use super::failed;
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};

/// Calls that are refused: other processes, other programs, mounts, modules, clocks, keys, and calls
/// that go around filters.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mknodat,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setreuid,
    libc::SYS_settimeofday,
    libc::SYS_setuid,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Refuses these calls with "operation not permitted" from now on, and `bpf`, too, unless the
/// configuration needs it.
pub(super) fn refuse(needs_bpf: bool) -> Result<String, String> {
    let (program, count) = program(needs_bpf)?;
    apply_filter_all_threads(&program).map_err(|error| failed("seccomp", &error))?;
    Ok(format!("{count} system calls are refused"))
}

/// The filter, and the number of calls that it refuses.
fn program(needs_bpf: bool) -> Result<(BpfProgram, usize), String> {
    let wrong = |error: seccompiler::BackendError| failed("seccomp", &error);
    let bpf = (!needs_bpf).then_some(libc::SYS_bpf);
    let calls: Vec<libc::c_long> = REFUSED.iter().copied().chain(bpf).collect();
    let errno = u32::try_from(libc::EPERM).unwrap_or(1);
    let filter = SeccompFilter::new(
        calls.iter().map(|&call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().map_err(wrong)?,
    );
    Ok((filter.and_then(TryInto::try_into).map_err(wrong)?, calls.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};

    #[test]
    fn refused_calls_fail_and_others_do_not() {
        // The filter holds for the thread that applies it, and its children.
        let thread = std::thread::spawn(|| {
            assert_eq!(unshare(CloneFlags::CLONE_FS), Ok(()));
            let (program, count) = program(false).unwrap();
            assert_eq!(count, REFUSED.len() + 1);
            seccompiler::apply_filter(&program).unwrap();
            assert_eq!(unshare(CloneFlags::CLONE_FS), Err(Errno::EPERM));
            let executed = std::process::Command::new("/bin/true").status();
            assert_eq!(executed.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
            assert!(std::fs::read("/proc/self/status").is_ok());
            std::thread::spawn(|| 7).join().unwrap()
        });
        assert_eq!(thread.join().unwrap(), 7);
    }
}
