//! Keeping the kernel's own stack from what an interface receives (`tcx`, Linux 6.6).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

// From linux/bpf.h.
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;
const TCX_DROP: u64 = 2;
/// `r0 = immediate`, `exit`: opcode in the first byte, immediate in the last four.
const MOV_R0: u64 = 0xb7;
const EXIT: u64 = 0x95;

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    expected_attach: u32,
}

/// The part of `union bpf_attr` that attaches one.
#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    revision: u64,
}

/// As long as it lives, the kernel drops what the interface receives, after
/// packet sockets have seen it. The kernel itself takes it back when the
/// process ends in any way.
pub(crate) struct IngressBlock {
    _link: OwnedFd,
}

impl IngressBlock {
    /// Closes the interface of number `index` to the kernel's own stack.
    pub(crate) fn new(index: u32) -> io::Result<IngressBlock> {
        let code = [MOV_R0 | TCX_DROP << 32, EXIT];
        let license = c"MIT";
        let load = ProgramLoad {
            kind: BPF_PROG_TYPE_SCHED_CLS,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: *b"castanet_ingress",
            ifindex: 0,
            expected_attach: BPF_TCX_INGRESS,
        };
        let load = ProgramLoad { name: name_of(load.name), ..load };
        // SAFETY: the command reads this structure and, through it, the code
        // and the licence, which live until it returns.
        let program = unsafe { bpf(BPF_PROG_LOAD, &load) }?;
        let link = LinkCreate {
            program: program.as_raw_fd() as u32,
            ifindex: index,
            attach: BPF_TCX_INGRESS,
            flags: 0,
            relative: 0,
            padding: 0,
            revision: 0,
        };
        // SAFETY: the command reads this structure, which points nowhere.
        Ok(IngressBlock { _link: unsafe { bpf(BPF_LINK_CREATE, &link) }? })
    }
}

/// A program's name ends with a zero byte.
fn name_of(mut name: [u8; 16]) -> [u8; 16] {
    name[15] = 0;
    name
}

/// Calls `bpf(2)` with a command that answers with a new descriptor.
///
/// # Safety
/// What `attributes` points to must be as the command expects, and alive.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the structure is live and as long as stated; the rest is the
    // caller's promise.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: the descriptor is fresh and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
