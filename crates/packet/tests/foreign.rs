//! Tests of pools with foreign frames: every frame returns to its store, from any thread.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, FrameHeader, FrameStore, Packet, Pool, PoolConfig, RawPacket};
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

const FRAMES: usize = 256;
const STRIDE: usize = 64 + 1024;

/// A driver: its memory, and the addresses of free frames in it.
#[derive(Clone, Default)]
struct Driver(Arc<Mutex<Vec<usize>>>);

impl Driver {
    /// A driver with all its frames free.
    fn new() -> Driver {
        let layout = Layout::from_size_align(FRAMES * STRIDE, 64).unwrap();
        // SAFETY: the layout is not empty. The memory is never freed.
        let memory = unsafe { alloc_zeroed(layout) };
        let frames = (0..FRAMES).map(|n| memory.wrapping_add(n * STRIDE).expose_provenance());
        Driver(Arc::new(Mutex::new(frames.collect())))
    }

    fn pool(&self) -> Pool {
        let config = PoolConfig {
            frames: FRAMES,
            data_capacity: 800,
            stride: Some(STRIDE),
            ..PoolConfig::default()
        };
        // SAFETY: the frames have that size, are aligned, zeroed and never freed;
        // a frame that the store hands out is not in its list.
        unsafe { Pool::foreign(&config, Box::new(self.clone())).unwrap() }
    }

    /// Takes a free frame, as a driver does that has received a packet.
    fn receive(&self) -> NonNull<FrameHeader> {
        let frame = self.0.lock().unwrap().pop().unwrap();
        NonNull::new(std::ptr::with_exposed_provenance_mut(frame)).unwrap()
    }

    fn free(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl FrameStore for Driver {
    fn take(&self, frames: &mut [Option<NonNull<FrameHeader>>]) -> usize {
        let mut free = self.0.lock().unwrap();
        let keep = free.len().saturating_sub(frames.len());
        let taken = free.split_off(keep);
        for (slot, &frame) in frames.iter_mut().zip(&taken) {
            *slot = NonNull::new(std::ptr::with_exposed_provenance_mut(frame));
        }
        taken.len()
    }

    unsafe fn put(&self, frames: &[NonNull<FrameHeader>]) {
        self.0
            .lock()
            .unwrap()
            .extend(frames.iter().map(|frame| frame.as_ptr().expose_provenance()));
    }

    fn out(&self) -> usize {
        FRAMES - self.free()
    }
}

/// A batch of `n` packets that the driver has received.
fn received(driver: &Driver, pool: &Pool, n: usize) -> Batch {
    let mut batch = Batch::from(Packet::from_bytes(b"was there before"));
    let raw = || RawPacket {
        frame: driver.receive(),
        offsets: (64 + 128) * 0x1_0001,
        span: 60,
        marks: pool.marks(),
    };
    // SAFETY: `receive` passes the ownership of the frames; the bytes lie in them;
    // `fill` writes `n` packets and returns `n`.
    let added = unsafe {
        pool.adopt_raw(&mut batch, n + 1, |slot| {
            (0..n).for_each(|n| slot.add(n).write(raw()));
            n
        })
    };
    assert_eq!(added, n);
    drop(batch.remove(0));
    assert_eq!(batch.len(), n);
    for (n, packet) in batch.iter_mut().enumerate() {
        packet.bytes_mut().fill(n as u8);
    }
    batch
}

#[test]
fn received_packets_behave_like_others() {
    let (driver, pool) = {
        let driver = Driver::new();
        let pool = driver.pool();
        (driver, pool)
    };
    let mut batch = received(&driver, &pool, 100);
    assert_eq!((driver.free(), pool.in_use()), (FRAMES - 100, 100));
    for (n, packet) in batch.iter_mut().enumerate() {
        assert_eq!((packet.len(), packet.headroom(), packet.pool_id()), (60, 128, pool.id()));
        assert_eq!((packet.mac_offset(), packet.network_offset()), (Some(0), None));
        assert_eq!((packet.timestamp(), packet.paint(), packet.dst().to_bits()), (0, 0, 0));
        assert_eq!(packet.tailroom(), 1024 - 128 - 60);
        packet.set_timestamp(7);
        packet.push_front(128).fill(1);
        packet.put_back(700).fill(2);
        assert_eq!(packet.bytes()[128..188], [n as u8; 60]);
        assert_eq!(packet.pool_id(), pool.id(), "it had room");
    }
    // A write to shared bytes copies into another of the driver's frames.
    let mut twin = batch[0].share();
    twin.bytes_mut()[0] = 9;
    assert_eq!((batch[0].bytes()[0], twin.pool_id()), (1, pool.id()));
    drop((twin, batch));
    assert_eq!(pool.in_use(), 0);
    Pool::flush_thread();
    assert_eq!(driver.free(), FRAMES);
}

#[test]
fn frames_return_from_other_threads_and_after_the_pool() {
    let driver = Driver::new();
    let pool = driver.pool();
    let mut batch = Batch::new();
    assert_eq!(pool.alloc_batch(1000, &mut batch), FRAMES, "no more than there are");
    assert!(pool.alloc().is_none());
    drop(pool);
    let half = batch.split_off(FRAMES / 2);
    std::thread::spawn(move || drop(half)).join().unwrap();
    assert_eq!(driver.free(), FRAMES / 2);
    drop(batch);
    Pool::flush_thread();
    assert_eq!(driver.free(), FRAMES);
}

#[test]
fn released_frames_belong_to_the_driver() {
    let driver = Driver::new();
    let pool = driver.pool();
    let mut batch = received(&driver, &pool, 10);
    batch.push(Packet::from_bytes(b"of the heap"));
    batch[1].set_paint(3);
    let twin = batch[8].share();
    let raw = batch.as_raw().to_vec();
    assert_eq!(raw.len(), 11);
    let frames: Vec<_> = raw[..7].iter().map(|raw| raw.frame).collect();
    assert_eq!(frames, batch.iter().take(7).map(Packet::frame).collect::<Vec<_>>());
    assert_eq!((raw[1].offsets & 0xffff, raw[1].span, raw[1].marks & 0xff), (64 + 128, 60, 3));
    assert_eq!(
        (raw[1].marks >> 16 & 0xff, raw[1].marks & RawPacket::SHARED),
        (pool.id().into(), 0)
    );
    assert_eq!(raw[8].marks & RawPacket::SHARED, RawPacket::SHARED);
    drop(twin);
    // SAFETY: none of these packets is shared.
    unsafe { batch.release(7) };
    let left: Vec<u8> = batch.iter().map(|packet| packet.bytes()[0]).collect();
    assert_eq!(left, [7, 8, 9, b'o']);
    drop(batch);
    Pool::flush_thread();
    assert_eq!(driver.free(), FRAMES - 7);
    // SAFETY: `release` passed the ownership of these frames to the driver.
    unsafe { driver.put(&frames) };
    assert_eq!(driver.free(), FRAMES);
}

#[test]
#[should_panic(expected = "range")]
fn releasing_more_packets_than_the_batch_has_panics() {
    let mut batch = Batch::from(Packet::from_bytes(b"one"));
    // SAFETY: the packet is not shared.
    unsafe { batch.release(2) };
}

#[test]
fn adopts_single_packets() {
    let driver = Driver::new();
    let pool = driver.pool();
    let mut batch = Batch::new();
    // SAFETY: `receive` passes the ownership of the frame.
    unsafe { pool.adopt_into(&mut batch, driver.receive(), 128, 1024 - 128) };
    assert_eq!((batch[0].headroom(), batch[0].len(), batch[0].tailroom()), (128, 896, 0));
    assert_eq!(batch[0].mac_offset(), Some(0));
}

#[test]
#[should_panic(expected = "beyond the frame")]
fn adopting_a_range_outside_the_frame_panics() {
    let driver = Driver::new();
    let pool = driver.pool();
    // SAFETY: `receive` passes the ownership of the frame; the invalid range must panic.
    unsafe { pool.adopt_into(&mut Batch::new(), driver.receive(), 128, 1024 - 127) };
}
