//! A pool's memory as the kernel's: frames go to it and come back, each once.

use super::super::{check, set_option};
use castanet_packet::{FrameHeader, Packet, Pool};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Where the kernel's part of a frame starts: behind our header.
const HEADER: usize = size_of::<FrameHeader>();

/// What the kernel keeps free before a received packet (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: usize = 256;

/// In unaligned mode, an address has the offset from the frame's start in its
/// upper 16 bits (`XSK_UNALIGNED_BUF_OFFSET_SHIFT`).
const OFFSET_SHIFT: u32 = 48;

/// A pool's memory, as the kernel addresses it.
#[derive(Clone)]
pub(super) struct Umem {
    pool: Pool,
    base: NonNull<u8>,
    stride: usize,
    frames: usize,
}

// SAFETY: the base only names memory, which lives as long as the pool that is
// held beside it and may be used from any thread.
unsafe impl Send for Umem {}

/// A packet's bytes in the memory.
pub(super) struct Place {
    /// The frame's number.
    pub(super) frame: usize,
    /// The address in the kernel's form.
    pub(super) address: u64,
    /// How many bytes.
    pub(super) len: u32,
}

impl Umem {
    /// The memory of `pool`.
    pub(super) fn new(pool: &Pool) -> Umem {
        let (base, len) = pool.memory();
        let stride = pool.stride();
        Umem { pool: pool.clone(), base, stride, frames: len / stride }
    }

    /// How many frames the memory has.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// The longest packet that a frame has room for as the kernel fills it.
    pub(super) fn longest(&self) -> usize {
        self.stride.saturating_sub(HEADER + KERNEL_HEADROOM)
    }

    /// Where packets come from and go back to.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Registers the memory with a socket; the kernel pins its pages.
    ///
    /// Frames are `unaligned` chunks: the pool's stride is an odd number of
    /// cache lines, and aligned chunks would have to be powers of two.
    pub(super) fn register(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let (base, len) = self.pool.memory();
        let request = libc::xdp_umem_reg {
            addr: base.as_ptr().addr() as u64,
            len: len as u64,
            chunk_size: self.stride as u32,
            headroom: HEADER as u32,
            flags: libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG,
            tx_metadata_len: 0,
        };
        set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
    }

    /// Asks for the memory to be moved to huge pages, in which any frame is
    /// contiguous; says whether all of it is now.
    pub(super) fn make_contiguous(&self) -> bool {
        let (base, len) = self.pool.memory();
        // Only pages that are there can be moved.
        let steps = [libc::MADV_HUGEPAGE, libc::MADV_POPULATE_WRITE, libc::MADV_COLLAPSE];
        let take = |advice| {
            // SAFETY: the range is a mapping of the pool's, whose contents
            // no step changes.
            check(unsafe { libc::madvise(base.as_ptr().cast(), len, advice) }).is_ok()
        };
        // A page that is just being looked at elsewhere can be moved later.
        steps.into_iter().all(|advice| (0..5).any(|_| take(advice)))
    }

    /// Gives the packet's frame up. A packet that does not lie in this memory,
    /// or shares its frame, is copied into a frame of its own first; it comes
    /// back if there is none or it is longer than frames are.
    pub(super) fn give_up(&self, mut packet: Packet) -> Result<Place, Packet> {
        if packet.is_shared() {
            packet.bytes_mut(); // makes it the only owner
        }
        if packet.pool_id() != self.pool.id() {
            match self.pool.copy_in(packet.bytes()) {
                Some(copy) if copy.pool_id() == self.pool.id() => packet = copy,
                _ => return Err(packet),
            }
        }
        let (data, len) = (packet.bytes().as_ptr().addr(), packet.len() as u32);
        let start = packet.into_frame().as_ptr().addr();
        let base = start - self.base.as_ptr().addr();
        let address = base as u64 | ((data - start) as u64) << OFFSET_SHIFT;
        Ok(Place { frame: base / self.stride, address, len })
    }

    /// Gives an empty packet's frame up, for the kernel to fill.
    pub(super) fn give_up_empty(&self, packet: Packet) -> Place {
        let start = packet.into_frame().as_ptr().addr();
        let base = start - self.base.as_ptr().addr();
        Place { frame: base / self.stride, address: base as u64, len: 0 }
    }

    /// The frame that an address of the kernel's lies in, and how far from the
    /// frame's start.
    pub(super) fn locate(&self, address: u64) -> (usize, usize) {
        let base = address & ((1 << OFFSET_SHIFT) - 1);
        let at = base as usize + (address >> OFFSET_SHIFT) as usize;
        (at / self.stride, at % self.stride)
    }

    /// A packet of `len` bytes, `start` from the beginning of a frame; nothing
    /// if they do not lie in it, which loses the frame.
    ///
    /// # Safety
    /// The frame must have been given up, and the kernel must have done with it.
    pub(super) unsafe fn take_back(
        &self,
        frame: usize,
        start: usize,
        len: usize,
    ) -> Option<Packet> {
        let data = start.checked_sub(HEADER)?;
        if frame >= self.frames || len > self.stride.checked_sub(start)? {
            return None;
        }
        // SAFETY: the frame's number is in range, so its header lies in the
        // memory, and it was a packet's of this pool, as the caller says.
        Some(unsafe {
            let header = self.base.add(frame * self.stride).cast::<FrameHeader>();
            self.pool.adopt(header, data, len)
        })
    }
}

/// Frames that the kernel has. It keeps a frame from ever being taken back
/// twice, whatever the kernel says.
pub(super) struct Lent {
    bits: Box<[u64]>,
    count: usize,
}

impl Lent {
    /// None of `frames` frames.
    pub(super) fn none_of(frames: usize) -> Lent {
        Lent { bits: vec![0; frames.div_ceil(64)].into(), count: 0 }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Notes that the kernel has a frame.
    pub(super) fn insert(&mut self, frame: usize) {
        if let Some(word) = self.bits.get_mut(frame / 64) {
            let bit = 1 << (frame % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Notes that the kernel has given a frame back; `false` if it had not got it.
    pub(super) fn remove(&mut self, frame: usize) -> bool {
        let Some(word) = self.bits.get_mut(frame / 64) else { return false };
        let bit = 1 << (frame % 64);
        let had = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(had);
        had
    }

    /// All that there are, and none from now on.
    pub(super) fn take_all(&mut self) -> Vec<usize> {
        let mut all = Vec::with_capacity(self.count);
        for (i, word) in self.bits.iter_mut().enumerate() {
            while *word != 0 {
                all.push(i * 64 + word.trailing_zeros() as usize);
                *word &= *word - 1;
            }
        }
        self.count = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_packet::PoolConfig;

    #[test]
    fn frames_are_lent_once_and_come_back_once() {
        let mut lent = Lent::none_of(130);
        for frame in [0, 63, 64, 129, 129] {
            lent.insert(frame);
        }
        assert_eq!(lent.len(), 4);
        assert!(lent.remove(63) && !lent.remove(63) && !lent.remove(1) && !lent.remove(9999));
        assert_eq!(lent.take_all(), [0, 64, 129]);
        assert_eq!((lent.len(), lent.take_all()), (0, vec![]));
    }

    #[test]
    fn a_packet_goes_and_comes_back_in_place() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let umem = Umem::new(&pool);
        for _ in 0..3 {
            let packet = pool.copy_in(b"there and back").unwrap();
            let at = packet.bytes().as_ptr();
            let Ok(place) = umem.give_up(packet) else { panic!("it is the pool's") };
            let (frame, start) = umem.locate(place.address);
            assert_eq!((frame, start), (place.frame, 64 + pool.headroom()));
            assert_eq!(pool.in_use(), 1);
            // SAFETY: no kernel has it.
            let packet = unsafe { umem.take_back(frame, start, place.len as usize) }.unwrap();
            assert_eq!((packet.bytes(), packet.bytes().as_ptr()), (&b"there and back"[..], at));
        }
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn memory_moves_with_its_contents() {
        let pool = Pool::new(PoolConfig { frames: 4000, ..PoolConfig::default() }).unwrap();
        let packets: Vec<_> =
            (0..3000u32).map(|i| pool.copy_in(&i.to_be_bytes()).unwrap()).collect();
        let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
        let huge = std::fs::read_to_string(enabled).is_ok_and(|text| !text.contains("[never]"));
        assert!(Umem::new(&pool).make_contiguous() || !huge);
        assert!((0..3000u32).zip(&packets).all(|(i, packet)| packet.bytes() == i.to_be_bytes()));
    }

    #[test]
    fn strangers_and_shared_packets_are_copied() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let umem = Umem::new(&pool);
        let mut original = pool.copy_in(b"twice").unwrap();
        let shared = original.share();
        for packet in [shared, Packet::from_bytes(b"twice")] {
            let at = packet.bytes().as_ptr();
            let Ok(place) = umem.give_up(packet) else { panic!("there are frames") };
            let (frame, start) = umem.locate(place.address);
            // SAFETY: no kernel has it.
            let back = unsafe { umem.take_back(frame, start, place.len as usize) }.unwrap();
            assert_eq!(back.bytes(), b"twice");
            assert_ne!(back.bytes().as_ptr(), at);
        }
        let long = Packet::from_bytes(&[0; 4000]);
        assert!(umem.give_up(long).is_err_and(|packet| packet.len() == 4000));
        drop(original);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn what_lies_outside_of_a_frame_is_refused() {
        let pool = Pool::new(PoolConfig { frames: 4, ..PoolConfig::default() }).unwrap();
        let umem = Umem::new(&pool);
        let stride = pool.stride();
        for (frame, start, len) in [
            (umem.frames(), 64, 1),
            (0, 63, 1),
            (0, stride, 1),
            (0, stride + 1, 0),
            (0, 64, stride),
        ] {
            // SAFETY: all are refused before the frame is touched.
            assert!(unsafe { umem.take_back(frame, start, len) }.is_none());
        }
    }
}
