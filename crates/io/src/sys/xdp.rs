//! Small XDP programs: they make, count and redirect packets within the kernel.

use super::bpf::{self, Link, Map, PSEUDO_MAP_FD, ProgramSpec, instruction};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

// From linux/bpf.h and linux/if_link.h.
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_DROP: i32 = 1;
pub(crate) const XDP_PASS: i32 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const MAP_LOOKUP_ELEM: i32 = 1;
const GET_PRANDOM_U32: i32 = 7;
const REDIRECT: i32 = 23;

/// Where `struct xdp_md` has the number of the interface; the loopback's for packets that are made.
const INGRESS_INDEX: i16 = 12;

/// Of every XDP program here.
pub(super) const PROGRAM: ProgramSpec = ProgramSpec {
    program_type: BPF_PROG_TYPE_XDP,
    attach_type: BPF_XDP,
    name: "castanet_xdp",
    flags: 0,
};

/// How many packets the kernel makes at once; it takes no more than 256.
const GENERATOR_BATCH: u32 = 256;

/// A program on an interface, in its driver, until this is dropped.
fn attach(code: &[u64], index: u32) -> io::Result<Link> {
    let program = bpf::load(&PROGRAM, code)?;
    bpf::attach(&program, &PROGRAM, index, XDP_FLAGS_DRV_MODE)
}

/// Whether `code` passes a frame on to the host, rather than going on behind
/// its end.
pub(crate) fn passes(code: &[u64], frame: &[u8]) -> io::Result<bool> {
    let code = [code, &return_verdict(XDP_DROP)].concat();
    Ok(bpf::run_once(&bpf::load(&PROGRAM, &code)?, frame)? == XDP_PASS as u32)
}

/// `return verdict`.
const fn return_verdict(verdict: i32) -> [u64; 2] {
    [instruction(0xb7, 0, 0, 0, verdict), instruction(0x95, 0, 0, 0, 0)]
}

/// `return bpf_redirect(index, 0)`.
const fn redirect(index: u32) -> [u64; 4] {
    [
        instruction(0xb7, 1, 0, 0, index as i32),
        instruction(0xb7, 2, 0, 0, 0),
        instruction(0x85, 0, 0, 0, REDIRECT),
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// Packets that the kernel makes, and sends on an interface.
pub(crate) struct Source {
    program: OwnedFd,
    frame: Vec<u8>,
    _link: Link,
}

impl Source {
    /// Packets that go out as `frame`, on the interface of number `index`, but
    /// with 16 random bits at `random`, and their complement at `complement`,
    /// so that Internet checksums stay as they are for the frame with zeros
    /// and ones there. All three are even.
    ///
    /// The kernel uses each packet again when its receiver has done with it:
    /// so the program writes it anew, as far as the first `rewritten` bytes, a
    /// multiple of four.
    ///
    /// The program is on the interface as well, where it passes what arrives: of one that is on
    /// none, the kernel makes a shortcut at the beginning of each run and takes it away at the end,
    /// and each time waits until no core can be using the one of before
    /// (`bpf_dispatcher_change_prog`), which took several times as long as making 16 384 packets.
    pub(crate) fn new(
        index: u32,
        frame: &[u8],
        rewritten: usize,
        random: i16,
        complement: i16,
    ) -> io::Result<Source> {
        let words = frame.get(..rewritten).unwrap_or_default().chunks_exact(4);
        let mut write: Vec<u64> = words
            .map(|word| i32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .zip((0..).step_by(4))
            // *(u32 *)(r2 + at) = word
            .map(|(word, at)| instruction(0x62, 2, 0, at, word))
            .collect();
        write.extend([
            // *(u16 *)(r2 + random) = r7
            instruction(0x6b, 2, 7, random, 0),
            instruction(0xa7, 7, 0, 0, -1),
            instruction(0x6b, 2, 7, complement, 0),
        ]);
        write.extend(redirect(index));
        let needed = rewritten.max(random as usize + 2).max(complement as usize + 2) as i32;
        let mut code = vec![
            // if (context->ingress_ifindex == index) return XDP_PASS
            instruction(0x61, 3, 1, INGRESS_INDEX, 0),
            instruction(0x55, 3, 0, 2, index as i32),
        ];
        code.extend(return_verdict(XDP_PASS));
        code.extend([
            // r7 = random; calls change r1 to r5
            instruction(0xbf, 6, 1, 0, 0),
            instruction(0x85, 0, 0, 0, GET_PRANDOM_U32),
            instruction(0xbf, 7, 0, 0, 0),
            // r2 = data; if (data + needed > data_end) return XDP_DROP
            instruction(0x61, 2, 6, 0, 0),
            instruction(0x61, 3, 6, 4, 0),
            instruction(0xbf, 4, 2, 0, 0),
            instruction(0x07, 4, 0, 0, needed),
            instruction(0x2d, 4, 3, write.len() as i16, 0),
        ]);
        code.extend(write);
        code.extend(return_verdict(XDP_DROP));
        let program = bpf::load(&PROGRAM, &code)?;
        let link = bpf::attach(&program, &PROGRAM, index, XDP_FLAGS_DRV_MODE)?;
        Ok(Source { program, frame: frame.to_vec(), _link: link })
    }

    /// Sends that many, from the calling thread's network namespace.
    pub(crate) fn send(&self, packets: u32) -> io::Result<()> {
        bpf::run_on_live_frames(&self.program, &self.frame, packets, GENERATOR_BATCH)
    }
}

/// Counts what an interface receives and drops it there.
pub(crate) struct Sink {
    counts: Map,
    _link: Link,
}

impl Sink {
    /// On the interface of number `index`.
    pub(crate) fn new(index: u32) -> io::Result<Sink> {
        let counts = Map::per_cpu_counters(1, "castanet_count")?;
        let mut code = vec![
            // r0 = bpf_map_lookup_elem(counts, &0)
            instruction(0x62, 10, 0, -4, 0),
            instruction(0xbf, 2, 10, 0, 0),
            instruction(0x07, 2, 0, 0, -4),
            // A load of 64 bits takes two places.
            instruction(0x18, 1, PSEUDO_MAP_FD, 0, counts.as_fd().as_raw_fd()),
            0,
            instruction(0x85, 0, 0, 0, MAP_LOOKUP_ELEM),
            // if (r0) *r0 += 1
            instruction(0x15, 0, 0, 3, 0),
            instruction(0x79, 1, 0, 0, 0),
            instruction(0x07, 1, 0, 0, 1),
            instruction(0x7b, 0, 1, 0, 0),
        ];
        code.extend(return_verdict(XDP_DROP));
        let link = attach(&code, index)?;
        Ok(Sink { counts, _link: link })
    }

    /// How many packets have come.
    pub(crate) fn count(&self) -> io::Result<u64> {
        self.counts.sum(0)
    }
}

/// Sends what one interface receives on another, in the driver.
pub(crate) struct Redirect {
    _link: Link,
}

impl Redirect {
    /// From the interface of number `from` to that of number `to`.
    pub(crate) fn new(from: u32, to: u32) -> io::Result<Redirect> {
        Ok(Redirect { _link: attach(&redirect(to), from)? })
    }
}
