//! eBPF programs (`bpf(2)`): loading, maps, and links that end with the process.

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

// From linux/bpf.h: commands.
const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_LINK_DETACH: libc::c_long = 34;

/// Of a loaded instruction's source register: the constant is a map's descriptor.
pub(super) const PSEUDO_MAP_FD: u8 = 1;

/// Most processors that Linux can be built for.
const MAX_CPUS: usize = 8192;

/// Type, attachment, name and flags of a program.
pub(super) struct ProgramSpec {
    /// Its type (`BPF_PROG_TYPE_…`).
    pub(super) program_type: u32,
    /// Where it is attached (`BPF_TCX_INGRESS` and its kin).
    pub(super) attach_type: u32,
    /// Its name in the kernel's lists, at most 15 bytes.
    pub(super) name: &'static str,
    /// Flags of its creation (`BPF_F_…`).
    pub(super) flags: u32,
}

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct ProgramLoad {
    program_type: u32,
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
    expected_attach_type: u32,
}

/// The part of `union bpf_attr` that attaches one.
#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    revision: u64,
}

/// The part of `union bpf_attr` that makes a map.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// The part of `union bpf_attr` about one entry of a map.
#[repr(C)]
struct MapEntry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The part of `union bpf_attr` that runs a program.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    returned: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// One instruction: opcode, registers, offset and constant.
pub(crate) const fn instruction(
    opcode: u8,
    target: u8,
    source: u8,
    offset: i16,
    constant: i32,
) -> u64 {
    opcode as u64
        | ((target | source << 4) as u64) << 8
        | (offset as u16 as u64) << 16
        | (constant as u32 as u64) << 32
}

/// Loads a program.
pub(super) fn load(spec: &ProgramSpec, code: &[u64]) -> io::Result<OwnedFd> {
    let license = c"MIT";
    let attributes = ProgramLoad {
        program_type: spec.program_type,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: spec.flags,
        name: object_name(spec.name),
        ifindex: 0,
        expected_attach_type: spec.attach_type,
    };
    // SAFETY: the command reads this structure and, through it, the code
    // and the licence, which live until it returns.
    unsafe { bpf_fd(BPF_PROG_LOAD, &attributes) }
}

/// A program on an interface, until this is dropped or the process ends.
pub(super) struct Link(OwnedFd);

impl Drop for Link {
    /// Closing it would do, if no process that is being started had a copy of the descriptor, for
    /// the moment between `fork` and `exec`: until that closes too, the interface would be taken.
    fn drop(&mut self) {
        // Of a link, flags.
        let attributes = [self.0.as_raw_fd() as u32, 0];
        // SAFETY: the command reads two numbers. If the interface is gone it fails, and nothing is
        // left to be done.
        _ = unsafe { bpf(BPF_LINK_DETACH, &raw const attributes) };
    }
}

/// Attaches a program to the interface of number `index`.
pub(super) fn attach(
    program: &OwnedFd,
    spec: &ProgramSpec,
    index: u32,
    flags: u32,
) -> io::Result<Link> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        ifindex: index,
        attach_type: spec.attach_type,
        flags,
        relative: 0,
        padding: 0,
        revision: 0,
    };
    // SAFETY: the command reads this structure, which points nowhere.
    unsafe { bpf_fd(BPF_LINK_CREATE, &attributes) }.map(Link)
}

/// Runs an XDP program `times` times, each time on a packet of the kernel's
/// that begins as `frame` and then goes where the program says; up to `batch`
/// of them at once. A signal ends it early (Linux 5.18).
pub(super) fn run_on_live_frames(
    program: &OwnedFd,
    frame: &[u8],
    times: u32,
    batch: u32,
) -> io::Result<()> {
    const LIVE_FRAMES: u32 = 1 << 1;
    let test = TestRun { repeat: times, batch, flags: LIVE_FRAMES, ..TestRun::default() };
    match test_run(program, frame, test) {
        Err(error) if error.raw_os_error() != Some(libc::EINTR) => Err(error),
        _ => Ok(()),
    }
}

/// Runs a program once on a frame; returns its verdict.
pub(super) fn run_once(program: &OwnedFd, frame: &[u8]) -> io::Result<u32> {
    test_run(program, frame, TestRun { repeat: 1, ..TestRun::default() })
}

fn test_run(program: &OwnedFd, frame: &[u8], test: TestRun) -> io::Result<u32> {
    let mut attributes = TestRun {
        program: program.as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        ..test
    };
    // SAFETY: the command reads this structure and, through it, the frame,
    // which lives until it returns; what it writes are numbers, into the
    // structure, which may be written to.
    unsafe { bpf(BPF_PROG_TEST_RUN, &raw mut attributes) }?;
    Ok(attributes.returned)
}

/// A map from numbers below `entries` to descriptors, numbers or counts.
#[derive(Debug)]
pub(super) struct Map(OwnedFd);

impl Map {
    /// Makes an array of descriptors or numbers, of type `program_type` (`BPF_MAP_TYPE_…`).
    pub(super) fn new(map_type: u32, entries: u32, name: &str) -> io::Result<Map> {
        Map::create(map_type, size_of::<RawFd>() as u32, entries, name)
    }

    /// Makes an array that has `entries` counts for each processor.
    pub(super) fn per_cpu_counters(entries: u32, name: &str) -> io::Result<Map> {
        const BPF_MAP_TYPE_PERCPU_ARRAY: u32 = 6;
        Map::create(BPF_MAP_TYPE_PERCPU_ARRAY, size_of::<u64>() as u32, entries, name)
    }

    fn create(map_type: u32, value: u32, entries: u32, name: &str) -> io::Result<Map> {
        let key = size_of::<u32>() as u32;
        let name = object_name(name);
        let (flags, inner, numa_node) = (0, 0, 0);
        let attributes = MapCreate { map_type, key, value, entries, flags, inner, numa_node, name };
        // SAFETY: the command reads this structure, which points nowhere.
        unsafe { bpf_fd(BPF_MAP_CREATE, &attributes) }.map(Map)
    }

    /// The sum of the counters of all processors at index `key`.
    pub(super) fn sum(&self, key: u32) -> io::Result<u64> {
        let mut counts = vec![0u64; MAX_CPUS];
        let attributes = MapEntry {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: &raw const key as u64,
            value: counts.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the command reads this structure and a key of four bytes
        // through it, and writes eight bytes for each processor that is
        // possible, for which there is room.
        unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &attributes) }?;
        Ok(counts.iter().sum())
    }

    /// Puts a descriptor in place `key`.
    pub(super) fn insert(&self, key: u32, value: BorrowedFd<'_>) -> io::Result<()> {
        self.set(key, value.as_raw_fd() as u32)
    }

    /// Puts a number in place `key`.
    pub(super) fn set(&self, key: u32, value: u32) -> io::Result<()> {
        let attributes = MapEntry {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: &raw const key as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        // SAFETY: the command reads this structure and, through it, a key and
        // a value of four bytes each, which live until this returns.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }

    /// Takes out what is in place `key`.
    pub(super) fn remove(&self, key: u32) -> io::Result<()> {
        let map = self.0.as_raw_fd() as u32;
        let key = &raw const key as u64;
        let attributes = MapEntry { map, padding: 0, key, value: 0, flags: 0 };
        // SAFETY: the command reads this structure and, through it, a key of
        // four bytes, which lives until this returns.
        unsafe { bpf(BPF_MAP_DELETE_ELEM, &attributes) }.map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A name of at most 15 bytes, ended by zeros.
fn object_name(name: &str) -> [u8; 16] {
    let mut array = [0; 16];
    for (to, from) in array.iter_mut().zip(name.bytes().take(15)) {
        *to = from;
    }
    array
}

/// Calls `bpf(2)` with a command that returns a new descriptor.
///
/// # Safety
/// `attributes` and the memory it points to must be as the command expects, and live.
unsafe fn bpf_fd<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller says.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls `bpf(2)`.
///
/// # Safety
/// `attributes` and the memory it points to must be as the command expects, and live.
unsafe fn bpf<T>(command: libc::c_long, attributes: *const T) -> io::Result<libc::c_int> {
    // SAFETY: the structure is live and as long as stated; the rest is the
    // caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    check(result as libc::c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_laid_out_as_the_kernel_reads_them() {
        // r2 = *(u32 *)(r1 + 16)
        assert_eq!(instruction(0x61, 2, 1, 16, 0).to_ne_bytes(), [0x61, 0x12, 16, 0, 0, 0, 0, 0]);
        assert_eq!(
            instruction(0xb7, 0, 0, 0, -2).to_ne_bytes(),
            [0xb7, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]
        );
    }

    #[test]
    fn object_names_are_nul_terminated() {
        assert_eq!(&object_name("castanet_ingress"), b"castanet_ingres\0");
    }
}
