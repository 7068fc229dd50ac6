//! The XDP program: what arrives in a queue that has a socket goes there, what is chosen and the rest to the kernel.

use super::super::bpf::{self, Link, Map, PSEUDO_MAP_FD, ProgramSpec, instruction};
use super::super::xdp::{PROGRAM, XDP_PASS};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

// From linux/bpf.h and linux/if_link.h.
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const REDIRECT_MAP: i32 = 51;
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// Where `struct xdp_md` has the number of the queue.
const RX_QUEUE_INDEX: i16 = 16;

/// Where in its way through the kernel a packet meets the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttachMode {
    /// In the driver, before the kernel has made anything of it.
    Driver,
    /// In the kernel's stack, with any driver.
    Generic,
}

/// The program on an interface, with a place for each queue's socket. The
/// kernel takes it off when this is dropped or the process ends in any way.
pub(crate) struct Program {
    map: Map,
    _link: Link,
}

impl Program {
    /// Attaches the program to the interface of number `index`, with room for the sockets of
    /// `queues` queues. Packets that `filter` does not match go to the sockets; with
    /// `multi_buffer` a packet may lie in several frames.
    pub(crate) fn new(
        index: u32,
        queues: u32,
        mode: AttachMode,
        multi_buffer: bool,
        filter: &[u64],
    ) -> io::Result<Program> {
        let map = Map::new(BPF_MAP_TYPE_XSKMAP, queues, "castanet_xsks")?;
        let flags = if multi_buffer { BPF_F_XDP_HAS_FRAGS } else { 0 };
        let program =
            bpf::load(&ProgramSpec { flags, ..PROGRAM }, &[filter, &code(&map)].concat())?;
        let flags = match mode {
            AttachMode::Driver => XDP_FLAGS_DRV_MODE,
            AttachMode::Generic => XDP_FLAGS_SKB_MODE,
        };
        Ok(Program { _link: bpf::attach(&program, &PROGRAM, index, flags)?, map })
    }

    /// Sends what arrives in queue `queue` to `socket` from now on.
    pub(crate) fn insert(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.map.insert(queue, socket)
    }

    /// Leaves what arrives in queue `queue` to the kernel again.
    pub(crate) fn remove(&self, queue: u32) -> io::Result<()> {
        self.map.remove(queue)
    }
}

/// `return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)`: the last
/// argument is the verdict where the map has no socket (Linux 5.3).
fn code(map: &Map) -> [u64; 6] {
    [
        instruction(0x61, 2, 1, RX_QUEUE_INDEX, 0),
        // A load of 64 bits takes two places.
        instruction(0x18, 1, PSEUDO_MAP_FD, 0, map.as_fd().as_raw_fd()),
        0,
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ]
}
