//! Limits of resources of a tenant's process (`setrlimit`).

use castanet_tenants::sandbox::ProcessDescription;
use nix::sys::resource::{Resource, setrlimit};

/// Threads of the process.
const THREADS: u64 = 64;
/// Descriptors of the process.
const DESCRIPTORS: u64 = 1024;

/// Bytes of private memory that this process has reserved; read while there is `/proc`.
pub(super) fn reserved_data() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kilobytes = value.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.map_or(0, |it: u64| it << 10)
}

/// Bytes that stacks reserve, most of which no thread ever uses: 64 MiB for a worker's, and some for other
/// threads'.
const STACKS: u64 = 96 << 20;

/// Sets the limits; `data` is what [`reserved_data`] has returned. A limit that is lower already stays.
pub(super) fn set(description: &ProcessDescription, data: u64) {
    let mut limits = vec![
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, THREADS),
        (Resource::RLIMIT_NOFILE, DESCRIPTORS),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_NICE, 0),
        (Resource::RLIMIT_RTPRIO, 0),
    ];
    // Without a control group, this is the next best: private memory beside that of stacks and of frames.
    let growth = description.memory.filter(|_| !description.has_memory_cgroup);
    limits.extend(growth.map(|bytes| (Resource::RLIMIT_DATA, data + STACKS + bytes.min(1 << 48))));
    for (resource, limit) in limits {
        // Only raising a limit can fail.
        _ = setrlimit(resource, limit, limit);
    }
}
