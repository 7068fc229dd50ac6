//! A receive ring shared with the kernel (`TPACKET_V3`), walked block by block.

use super::set_option;
use crate::offload::{VlanTag, VnetHeader};
use crate::rx_finisher::FrameMeta;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use zerocopy::FromBytes;

/// How much memory a ring has and how long a block may wait to be filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSize {
    /// Bytes of one block: a power of two, at least a page. It must hold the
    /// largest super-frame (64 KiB and headers).
    pub(crate) block: u32,
    /// How many blocks.
    pub(crate) blocks: u32,
    /// Milliseconds until the kernel hands over a block that is not full.
    pub(crate) retire: u32,
}

/// A mapped receive ring. It belongs to one thread at a time.
pub(crate) struct RxRing {
    base: NonNull<u8>,
    block: usize,
    blocks: usize,
    /// The block that is read, or that the kernel fills next.
    block_index: usize,
    /// Where the next frame starts in that block.
    offset: usize,
    /// Frames left in that block.
    frames_left: u32,
    /// Whether the block belongs to us.
    owned: bool,
}

// SAFETY: the mapping is owned by this value alone and has no ties to a thread.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Gives `socket` a ring and maps it.
    pub(crate) fn new(socket: BorrowedFd<'_>, size: RingSize) -> io::Result<RxRing> {
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        // V3 packs frames; the frame size only has to divide the block.
        let frame = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: size.block,
            tp_block_nr: size.blocks,
            tp_frame_size: frame,
            tp_frame_nr: size.block / frame * size.blocks,
            tp_retire_blk_tov: size.retire,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (block, blocks) = (size.block as usize, size.blocks as usize);
        // SAFETY: a fresh mapping at an address of the kernel's choice; the
        // length is that of the ring just asked for.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                block * blocks,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RxRing { base, block, blocks, block_index: 0, offset: 0, frames_left: 0, owned: false })
    }

    /// The next frame, in the ring's memory until the next is asked for, or
    /// `None` while the kernel has no block for us.
    pub(crate) fn next(&mut self) -> Option<(&[u8], FrameMeta)> {
        while self.frames_left == 0 {
            self.release();
            if !self.acquire() {
                return None;
            }
        }
        let start = self.offset;
        let block = self.owned_block()?;
        let header = read::<libc::tpacket3_hdr>(block, start)?;
        let address = start + size_of::<libc::tpacket3_hdr>();
        let mac = start + usize::from(header.tp_mac);
        let frame = mac..mac + header.tp_snaplen as usize;
        // The kernel puts the virtio header right before the link header.
        let vnet = block.get(mac.checked_sub(size_of::<VnetHeader>())?..mac)?;
        let meta = FrameMeta {
            wire_len: header.tp_len as usize,
            vnet: VnetHeader::read_from_bytes(vnet).unwrap_or_default(),
            vlan: vlan_tag(&header),
            kind: read::<libc::sockaddr_ll>(block, address)?.sll_pkttype,
            time: i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec),
        };
        self.frames_left -= 1;
        self.offset = start + header.tp_next_offset as usize;
        Some((self.owned_block()?.get(frame)?, meta))
    }

    /// The word by which a block changes hands.
    fn status(&self, index: usize) -> &AtomicU32 {
        let offset = index % self.blocks * self.block + STATUS_OFFSET;
        // SAFETY: `offset` lies in the mapping, which lives as long as `self`;
        // the word is aligned as blocks are pages; kernel and this side only
        // touch it as one word.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Takes the next block from the kernel, if it is ready.
    fn acquire(&mut self) -> bool {
        if self.status(self.block_index).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        self.owned = true;
        let header =
            self.owned_block().and_then(|b| read::<libc::tpacket_hdr_v1>(b, HEADER_OFFSET));
        // A block without a readable header is given back at once.
        let Some(header) = header else { return true };
        self.frames_left = header.num_pkts;
        self.offset = header.offset_to_first_pkt as usize;
        true
    }

    /// Gives the block that was read back to the kernel.
    fn release(&mut self) {
        if self.owned {
            self.owned = false;
            self.status(self.block_index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block_index = (self.block_index + 1) % self.blocks;
        }
    }

    /// The bytes of the block that belongs to us.
    fn owned_block(&self) -> Option<&[u8]> {
        if !self.owned {
            return None;
        }
        // SAFETY: the block lies in the mapping, and as long as it is held the
        // kernel does not write to it; it is released by `&mut self` only, so
        // no slice of it is alive then.
        Some(unsafe {
            std::slice::from_raw_parts(
                self.base.as_ptr().add(self.block_index * self.block),
                self.block,
            )
        })
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; nothing borrows from it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.block * self.blocks) };
    }
}

const HEADER_OFFSET: usize = std::mem::offset_of!(libc::tpacket_block_desc, hdr);
const STATUS_OFFSET: usize =
    HEADER_OFFSET + std::mem::offset_of!(libc::tpacket_hdr_v1, block_status);

/// C structures of the ring that are nothing but numbers.
trait Plain: Copy {}
impl Plain for libc::tpacket3_hdr {}
impl Plain for libc::tpacket_hdr_v1 {}
impl Plain for libc::sockaddr_ll {}

/// Reads a structure at `offset`, if it lies within `block`.
fn read<T: Plain>(block: &[u8], offset: usize) -> Option<T> {
    let bytes = block.get(offset..offset.checked_add(size_of::<T>())?)?;
    // SAFETY: `bytes` is as long as `T`, which by `Plain` has no invalid values.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The tag that the kernel moved out of the frame, if there was one.
fn vlan_tag(header: &libc::tpacket3_hdr) -> Option<VlanTag> {
    let has = |flag: u32| header.tp_status & flag != 0;
    has(libc::TP_STATUS_VLAN_VALID).then(|| VlanTag {
        tpid: if has(libc::TP_STATUS_VLAN_TPID_VALID) { header.hv1.tp_vlan_tpid } else { 0x8100 },
        tci: header.hv1.tp_vlan_tci as u16,
    })
}
