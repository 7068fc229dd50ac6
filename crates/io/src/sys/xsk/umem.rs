//! A pool's memory as a UMEM: each frame goes to the kernel and comes back once.

use super::super::{check, set_option};
use castanet_packet::{Batch, FrameHeader, Packet, Pool, prefetch};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Offset of the kernel's part of a frame: behind the frame header.
const HEADER: usize = size_of::<FrameHeader>();

/// Bytes that the kernel keeps free before a received packet (`XDP_PACKET_HEADROOM`).
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
    /// 2^64 divided by the stride, rounded up.
    stride_inverse: u64,
}

// SAFETY: the base only names memory, which lives as long as the pool that is
// held beside it and may be used from any thread.
unsafe impl Send for Umem {}

/// A packet's bytes in the UMEM.
pub(super) struct Descriptor {
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
        // The stride is more than one: a frame has a header.
        let stride_inverse = u64::MAX / stride as u64 + 1;
        Umem { pool: pool.clone(), base, stride, frames: len / stride, stride_inverse }
    }

    /// How many frames the memory has.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// The longest packet that a frame has room for as the kernel fills it.
    pub(super) fn max_packet_len(&self) -> usize {
        self.stride.saturating_sub(HEADER + KERNEL_HEADROOM)
    }

    /// Whether the other UMEM is the same memory, so that frame numbers are valid in both.
    pub(super) fn shares_memory_with(&self, other: &Umem) -> bool {
        self.pool.id() == other.pool.id()
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

    /// Makes a packet one that can be given up: one that does not lie in this
    /// memory, or shares its frame, is copied into a frame of its own. `false`
    /// if there is none or it is longer than frames are.
    #[inline]
    pub(super) fn ensure_own_frame(&self, packet: &mut Packet) -> bool {
        packet.make_exclusive();
        packet.pool_id() == self.pool.id() || self.copy_in(packet)
    }

    #[cold]
    fn copy_in(&self, packet: &mut Packet) -> bool {
        match self.pool.copy_in(packet.bytes()) {
            Some(copy) if copy.pool_id() == self.pool.id() => {
                *packet = copy;
                true
            }
            _ => false,
        }
    }

    /// Where the bytes are of a packet that was taken in, for the kernel to
    /// send. The packet itself is the caller's to give up, `Batch::release`.
    #[inline]
    pub(super) fn descriptor(&self, packet: &Packet) -> Descriptor {
        let (data, len) = (packet.bytes().as_ptr().addr(), packet.len() as u32);
        let start = packet.frame().as_ptr().addr();
        let base = start - self.base.as_ptr().addr();
        let address = base as u64 | ((data - start) as u64) << OFFSET_SHIFT;
        Descriptor { frame: self.frame_at(base), address, len }
    }

    /// The number of the frame that a packet of this memory lies in.
    #[inline]
    pub(super) fn frame_of(&self, packet: &Packet) -> usize {
        self.frame_at(packet.frame().as_ptr().addr() - self.base.as_ptr().addr())
    }

    /// Where a frame is, for the kernel to fill.
    #[inline]
    pub(super) fn frame_address(&self, frame: usize) -> u64 {
        (frame * self.stride) as u64
    }

    /// The frame that an address of the kernel's lies in, and how far from the
    /// frame's start.
    pub(super) fn locate(&self, frame_address: u64) -> (usize, usize) {
        let base = frame_address & ((1 << OFFSET_SHIFT) - 1);
        let at = base as usize + (frame_address >> OFFSET_SHIFT) as usize;
        let frame = self.frame_at(at);
        (frame, at - frame * self.stride)
    }

    /// The frame in which a byte of the memory lies: `at / stride`, by a
    /// multiplication, for it is asked four times a packet. The
    /// product is too large by less than `at / 2^64`: less than a step as long
    /// as `at * stride` is below 2^64 (it is below 2^48 * 2^16).
    #[inline]
    fn frame_at(&self, at: usize) -> usize {
        ((at as u128 * u128::from(self.stride_inverse)) >> 64) as usize
    }

    /// Has the processor fetch the beginning of a packet.
    #[inline]
    pub(super) fn prefetch(&self, frame_address: u64) {
        let (base, offset) =
            (frame_address & ((1 << OFFSET_SHIFT) - 1), frame_address >> OFFSET_SHIFT);
        prefetch(self.base.as_ptr().wrapping_add(base as usize).wrapping_add(offset as usize));
    }

    /// The same, and its frame's header.
    #[inline]
    pub(super) fn prefetch_frame(&self, frame_address: u64) {
        let base = frame_address & ((1 << OFFSET_SHIFT) - 1);
        prefetch(self.base.as_ptr().wrapping_add(base as usize));
        self.prefetch(frame_address);
    }

    /// Adds a packet of `len` bytes, `start` from the beginning of a frame, to
    /// `batch`. Says no if they do not lie in it, which loses the frame.
    ///
    /// # Safety
    /// The frame must have been given up, and the kernel must have done with it.
    #[inline]
    pub(super) unsafe fn adopt_frame(
        &self,
        frame: usize,
        start: usize,
        len: usize,
        batch: &mut Batch,
    ) -> bool {
        if !self.contains(frame, start, len) {
            return false;
        }
        // SAFETY: the frame's number is in range, so its header lies in the
        // memory, and it was a packet's of this pool, as the caller says.
        // Both numbers are less than the stride.
        unsafe {
            let header = self.base.add(frame * self.stride).cast::<FrameHeader>();
            self.pool.adopt_into(batch, header, (start - HEADER) as u32, len as u32);
        }
        true
    }

    /// The bytes of a packet in a frame that stays given up; nothing if they do not lie in it.
    ///
    /// # Safety
    /// As for [`Umem::adopt_frame`], and the frame must have no other owner while its bytes are in
    /// use.
    #[inline]
    pub(super) unsafe fn bytes_mut(
        &mut self,
        frame: usize,
        start: usize,
        len: usize,
    ) -> Option<&mut [u8]> {
        // SAFETY: they lie in the memory, whose bytes are all valid, behind the frame's header; the
        // caller promises that the frame has no other owner.
        self.contains(frame, start, len).then(|| unsafe {
            std::slice::from_raw_parts_mut(self.base.add(frame * self.stride + start).as_ptr(), len)
        })
    }

    /// Whether there is such a frame, with room for `len` bytes, `start` from its beginning, behind
    /// its header.
    #[inline]
    fn contains(&self, frame: usize, start: usize, len: usize) -> bool {
        let room = self.stride.checked_sub(start);
        frame < self.frames && start >= HEADER && room.is_some_and(|room| len <= room)
    }
}

/// The set of frames that the kernel has. It guarantees that no frame is taken back twice, whatever
/// the kernel writes into the rings.
pub(super) struct KernelFrames {
    bits: Box<[u64]>,
    count: usize,
}

impl KernelFrames {
    /// An empty set for frame numbers below `frames`.
    pub(super) fn empty(frames: usize) -> KernelFrames {
        KernelFrames { bits: vec![0; frames.div_ceil(64)].into(), count: 0 }
    }

    /// Number of frames in the set.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether the kernel has a frame.
    #[inline]
    pub(super) fn contains(&self, frame: usize) -> bool {
        self.bits.get(frame / 64).is_some_and(|word| word & (1 << (frame % 64)) != 0)
    }

    /// Notes that the kernel has a frame.
    #[inline]
    pub(super) fn insert(&mut self, frame: usize) {
        if let Some(word) = self.bits.get_mut(frame / 64) {
            let bit = 1 << (frame % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Notes that the kernel has given a frame back; `false` if it had not got it.
    #[inline]
    pub(super) fn remove(&mut self, frame: usize) -> bool {
        let Some(word) = self.bits.get_mut(frame / 64) else { return false };
        let bit = 1 << (frame % 64);
        let had = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(had);
        had
    }

    /// Removes and returns all frames.
    pub(super) fn drain(&mut self) -> Vec<usize> {
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

    /// Gives a packet's frame up; the packet comes back if that cannot be.
    fn release(umem: &Umem, mut packet: Packet) -> Result<Descriptor, Packet> {
        if !umem.ensure_own_frame(&mut packet) {
            return Err(packet);
        }
        let descriptor = umem.descriptor(&packet);
        let mut batch = Batch::from_iter([packet]);
        // SAFETY: `ensure_own_frame` has seen to it that it is not shared.
        unsafe { batch.release(1) };
        Ok(descriptor)
    }

    /// Takes a packet back, of a frame that no kernel has.
    fn adopt_frame(umem: &Umem, frame: usize, start: usize, len: usize) -> Option<Packet> {
        let mut batch = Batch::new();
        // SAFETY: it was given up, and no kernel has it; or it is refused.
        let taken = unsafe { umem.adopt_frame(frame, start, len, &mut batch) };
        assert_eq!(taken, !batch.is_empty());
        batch.drain().next()
    }

    #[test]
    fn kernel_frames_are_inserted_and_removed_once() {
        let mut in_kernel = KernelFrames::empty(130);
        for frame in [0, 63, 64, 129, 129] {
            in_kernel.insert(frame);
        }
        assert_eq!(in_kernel.len(), 4);
        assert!(in_kernel.contains(129) && !in_kernel.contains(1) && !in_kernel.contains(9999));
        assert!(
            in_kernel.remove(63)
                && !in_kernel.remove(63)
                && !in_kernel.remove(1)
                && !in_kernel.remove(9999)
        );
        assert_eq!(in_kernel.drain(), [0, 64, 129]);
        assert_eq!((in_kernel.len(), in_kernel.drain()), (0, vec![]));
    }

    #[test]
    fn a_released_packet_is_adopted_in_place() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let umem = Umem::new(&pool);
        for _ in 0..3 {
            let packet = pool.copy_in(b"there and back").unwrap();
            let at = packet.bytes().as_ptr();
            let Ok(descriptor) = release(&umem, packet) else { panic!("it is the pool's") };
            let (frame, start) = umem.locate(descriptor.address);
            assert_eq!((frame, start), (descriptor.frame, 64 + pool.headroom()));
            assert_eq!(pool.in_use(), 1);
            let packet = adopt_frame(&umem, frame, start, descriptor.len as usize).unwrap();
            assert_eq!((packet.bytes(), packet.bytes().as_ptr()), (&b"there and back"[..], at));
        }
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn frame_numbers_equal_the_quotient() {
        for frames in [1, 64, 5000] {
            let pool = Pool::new(PoolConfig { frames, ..PoolConfig::default() }).unwrap();
            let umem = Umem::new(&pool);
            let stride = umem.stride;
            for frame in 0..umem.frames() {
                for at in [0, 1, stride / 2, stride - 1] {
                    assert_eq!(umem.locate((frame * stride + at) as u64), (frame, at));
                }
            }
            // As far as addresses go at all.
            for at in [(1 << 48) - 1, (1 << 48) / stride * stride, (1 << 48) / stride * stride - 1]
            {
                assert_eq!(umem.frame_at(at), at / stride);
            }
        }
    }

    #[test]
    fn huge_pages_keep_the_contents() {
        let pool = Pool::new(PoolConfig { frames: 4000, ..PoolConfig::default() }).unwrap();
        let packets: Vec<_> =
            (0..3000u32).map(|i| pool.copy_in(&i.to_be_bytes()).unwrap()).collect();
        let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
        let huge = std::fs::read_to_string(enabled).is_ok_and(|text| !text.contains("[never]"));
        assert!(Umem::new(&pool).make_contiguous() || !huge);
        assert!((0..3000u32).zip(&packets).all(|(i, packet)| packet.bytes() == i.to_be_bytes()));
    }

    #[test]
    fn packets_of_other_pools_and_shared_packets_are_copied() {
        let pool = Pool::new(PoolConfig { frames: 64, ..PoolConfig::default() }).unwrap();
        let umem = Umem::new(&pool);
        let mut original = pool.copy_in(b"twice").unwrap();
        let shared = original.share();
        for packet in [shared, Packet::from_bytes(b"twice")] {
            let at = packet.bytes().as_ptr();
            let Ok(descriptor) = release(&umem, packet) else { panic!("there are frames") };
            let (frame, start) = umem.locate(descriptor.address);
            let back = adopt_frame(&umem, frame, start, descriptor.len as usize).unwrap();
            assert_eq!(back.bytes(), b"twice");
            assert_ne!(back.bytes().as_ptr(), at);
        }
        let long = Packet::from_bytes(&[0; 4000]);
        assert!(release(&umem, long).is_err_and(|packet| packet.len() == 4000));
        drop(original);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn ranges_outside_of_a_frame_are_refused() {
        let pool = Pool::new(PoolConfig { frames: 4, ..PoolConfig::default() }).unwrap();
        let mut umem = Umem::new(&pool);
        let stride = pool.stride();
        for (frame, start, len) in [
            (umem.frames(), 64, 1),
            (0, 63, 1),
            (0, stride, 1),
            (0, stride + 1, 0),
            (0, 64, stride),
        ] {
            assert!(adopt_frame(&umem, frame, start, len).is_none());
            // SAFETY: none of the frames has an owner.
            assert!(unsafe { umem.bytes_mut(frame, start, len) }.is_none());
        }
        // SAFETY: as above.
        let bytes = unsafe { umem.bytes_mut(3, stride - 5, 5) }.unwrap();
        let (base, _) = pool.memory();
        assert_eq!((bytes.as_ptr().addr(), bytes.len()), (base.addr().get() + 4 * stride - 5, 5));
    }
}
