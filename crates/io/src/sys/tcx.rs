//! Keeping the kernel's own stack from what an interface receives (`tcx`, Linux 6.6).

use super::bpf::{self, Link, ProgramSpec, instruction};
use std::io;

// From linux/bpf.h.
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;
const TCX_DROP: i32 = 2;

const PROGRAM: ProgramSpec = ProgramSpec {
    program_type: BPF_PROG_TYPE_SCHED_CLS,
    attach_type: BPF_TCX_INGRESS,
    name: "castanet_ingres",
    flags: 0,
};

/// `return TCX_DROP`.
const CODE: [u64; 2] = [instruction(0xb7, 0, 0, 0, TCX_DROP), instruction(0x95, 0, 0, 0, 0)];

/// As long as it lives, the kernel drops what the interface receives, after
/// packet sockets have seen it. The kernel itself takes it back when the
/// process ends in any way.
pub(crate) struct IngressBlock {
    _link: Link,
}

impl IngressBlock {
    /// Closes the interface of number `index` to the kernel's own stack.
    pub(crate) fn new(index: u32) -> io::Result<IngressBlock> {
        let program = bpf::load(&PROGRAM, &CODE)?;
        Ok(IngressBlock { _link: bpf::attach(&program, &PROGRAM, index, 0)? })
    }
}
