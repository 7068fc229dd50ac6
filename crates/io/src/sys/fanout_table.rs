//! The redirection table of a fanout group of packet sockets: a socket filter that chooses the socket of
//! each packet by its hash (`PACKET_FANOUT_EBPF`, Linux 4.3).

use super::bpf::{self, Map, PSEUDO_MAP_FD, ProgramSpec, instruction};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

// From linux/bpf.h.
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const MAP_LOOKUP_ELEM: i32 = 1;

const PROGRAM: ProgramSpec = ProgramSpec {
    program_type: BPF_PROG_TYPE_SOCKET_FILTER,
    attach_type: 0,
    name: "castanet_fanout",
    flags: 0,
};

/// A table of the kernel's: for each value of the lower bits of a hash, a socket by its index in the group.
#[derive(Debug)]
pub(crate) struct FanoutTable {
    map: Map,
    program: OwnedFd,
}

impl FanoutTable {
    /// A table of `entries` zeros, a power of two. `hash` is code that has a packet's hash in `R0` at its
    /// end.
    pub(crate) fn new(entries: u32, hash: &[u64]) -> io::Result<FanoutTable> {
        let map = Map::new(BPF_MAP_TYPE_ARRAY, entries, "castanet_reta")?;
        let program = bpf::load(&PROGRAM, &[hash, &lookup(&map, entries)].concat())?;
        Ok(FanoutTable { map, program })
    }

    /// The program that a group is to run.
    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Sets the socket of an entry, from the next packet on.
    pub(crate) fn set(&self, entry: u32, socket: u32) -> io::Result<()> {
        self.map.set(entry, socket)
    }

    /// The socket of a frame.
    #[cfg(test)]
    pub(crate) fn socket_of(&self, frame: &[u8]) -> io::Result<u32> {
        bpf::run_once(&self.program, frame)
    }
}

/// `return *bpf_map_lookup_elem(map, &(hash & (entries - 1)))`, or 0 where there is none.
fn lookup(map: &Map, entries: u32) -> [u64; 11] {
    [
        instruction(0x54, 0, 0, 0, (entries - 1) as i32),
        instruction(0x63, 10, 0, -4, 0),
        // A load of 64 bits takes two places.
        instruction(0x18, 1, PSEUDO_MAP_FD, 0, map.as_fd().as_raw_fd()),
        0,
        instruction(0xbf, 2, 10, 0, 0),
        instruction(0x07, 2, 0, 0, -4),
        instruction(0x85, 0, 0, 0, MAP_LOOKUP_ELEM),
        instruction(0x55, 0, 0, 1, 0),
        instruction(0x95, 0, 0, 0, 0),
        instruction(0x61, 0, 0, 0, 0),
        instruction(0x95, 0, 0, 0, 0),
    ]
}
