//! The limit: the same work fused by hand into one loop over raw frames.
//!
//! Every check, rewrite and checksum of the elements stands here once, on
//! the bytes, with no batches, descriptors, fates or graph between them.
//! Packets come in bursts, as from a device: code that reads a packet right after
//! it was copied waits for the copy, which costs a third of the whole path.
//!
//! The frames lie in pages of 4 KiB, and nothing is prefetched. Where so many frames are in use that they
//! miss the L1 cache and the TLB, a router may take less time.

use super::traffic::{FRAME, Frames, Traffic, frames, routes};
use castanet_kit::lpm::Lpm;
use castanet_packet::BURST;
use castanet_wire::{Ethernet, Ipv4Header, MacAddr, ether_type};
use std::hint::black_box;
use std::time::Instant;
use zerocopy::{FromBytes, IntoBytes};

/// As the pool lays frames out (an odd number of cache lines).
const STRIDE: usize = 2240;
/// Offset of the packet in its frame.
const HEADROOM: usize = 192;
/// Bytes of an Ethernet header.
const ETHER: usize = size_of::<Ethernet>();

/// Annotations of a packet.
#[derive(Clone, Copy, Default)]
struct Annotations {
    broadcast: bool,
    paint: u8,
    fix_source: bool,
}

/// A worker's frames and tables.
// Two cache lines: no two workers may count in the same one.
#[repr(align(128))]
pub(crate) struct FusedLoop {
    memory: Vec<u8>,
    marks: Vec<Annotations>,
    templates: Frames,
    table: Lpm,
    ether: Ethernet,
    /// Packets that did not get through; none, in this traffic.
    refused: u64,
    sent: u64,
}

impl FusedLoop {
    /// With that many frames in use, flows and routes.
    pub(crate) fn new(in_use: usize, flows: usize, route_count: u32) -> FusedLoop {
        FusedLoop {
            memory: vec![0; in_use * STRIDE],
            marks: vec![Annotations::default(); in_use],
            templates: frames(Traffic::Plain, flows),
            table: Lpm::build(routes(1, route_count)),
            ether: Ethernet::new(
                MacAddr([2, 0, 0, 0, 1, 1]),
                MacAddr([2, 0, 0, 0, 1, 2]),
                ether_type::IPV4,
            ),
            refused: 0,
            sent: 0,
        }
    }

    /// Bare forwarding for about `time`; the number of packets.
    pub(crate) fn forward(&mut self, time: std::time::Duration) -> u64 {
        self.rounds(time, |it, frame| {
            let bytes = &it.memory[frame * STRIDE + HEADROOM..][..FRAME];
            it.sent += u64::from(bytes[0] != 0xff);
        })
    }

    /// The whole router path for about `time`; the number of packets.
    pub(crate) fn route(&mut self, time: std::time::Duration) -> u64 {
        self.rounds(time, |it, frame| match it.one(frame) {
            Some(()) => it.sent += 1,
            None => it.refused += 1,
        })
    }

    fn rounds(
        &mut self,
        time: std::time::Duration,
        mut each: impl FnMut(&mut FusedLoop, usize),
    ) -> u64 {
        let (started, mut packets) = (Instant::now(), 0);
        let (mut template, frames) = (0, self.marks.len());
        loop {
            for first in (0..frames).step_by(BURST) {
                let burst = first..(first + BURST).min(frames);
                for frame in burst.clone() {
                    let bytes = &mut self.memory[frame * STRIDE + HEADROOM..][..FRAME];
                    bytes.copy_from_slice(&self.templates[template]);
                    template += 1;
                    if template == self.templates.len() {
                        template = 0;
                    }
                }
                burst.for_each(|frame| each(self, frame));
            }
            packets += frames as u64;
            if started.elapsed() >= time {
                black_box((self.sent, self.refused, &self.memory));
                return packets;
            }
        }
    }

    /// One packet through all the steps; `None` if any refuses it.
    #[inline(always)]
    fn one(&mut self, frame: usize) -> Option<()> {
        let bytes = &mut self.memory[frame * STRIDE + HEADROOM..][..FRAME];
        let marks = self.marks[frame];
        // Classifier(12/0800, -).
        if bytes[12..14] != ether_type::IPV4.to_be_bytes() {
            return None;
        }
        // Strip(14), CheckIPHeader.
        let (head, packet) = bytes.split_first_chunk_mut::<ETHER>()?;
        let have = packet.len();
        let (ip, _) = Ipv4Header::mut_from_prefix(packet).ok()?;
        let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
        if ip.version() != 4 || header < 20 || total < header || total > have {
            return None;
        }
        if header != 20 || !ip.checksum_ok(&[]) {
            return None;
        }
        let src = ip.src_u32();
        if src == 0 || src == u32::MAX {
            return None;
        }
        // StaticIPLookup, DropBroadcasts, PaintTee.
        let way = self.table.lookup(ip.dst_u32())?;
        if way != 0 || marks.broadcast || marks.paint == 2 {
            return None;
        }
        // IPGWOptions has nothing to do without options; FixIPSrc, DecIPTTL.
        if marks.fix_source {
            return None;
        }
        ip.decrement_ttl()?;
        // IPFragmenter(1500), EtherEncap.
        if total > 1500 {
            return None;
        }
        head.copy_from_slice(self.ether.as_bytes());
        Some(())
    }

    /// Packets that some step refused; the benchmark insists on none.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }
}
