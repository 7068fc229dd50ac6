//! Tests of pools and shared packets across threads: no frame is lost, no write is torn.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Packet, Pool, PoolConfig, anno};
use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const THREADS: usize = 4;
const ROUNDS: usize = 1500;

fn pool(frames: usize) -> Pool {
    Pool::new(PoolConfig { frames, data_capacity: 128, ..PoolConfig::default() }).unwrap()
}

/// Bytes that depend on `seed`, so that a reader detects a mix of two writes.
fn stamp(seed: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&(seed ^ (i as u64).wrapping_mul(0x9e37_79b9)).to_ne_bytes());
    }
    bytes
}

/// Checks that a packet is consistent, and returns its seed.
fn seed_of(packet: &Packet) -> u64 {
    let seed = u64::from_ne_bytes(packet.bytes()[..8].try_into().unwrap());
    assert_eq!(packet.bytes(), stamp(seed));
    assert_eq!(packet.anno_u64(anno::PERFCTR), seed);
    seed
}

/// Makes packets, keeps one share of each, writes to another, and sends them to the next thread.
fn work(pool: &Pool, number: usize, next: Sender<Batch>, from: &Receiver<Batch>) -> usize {
    let (mut sent, mut kept) = (0, Vec::new());
    for round in 0..ROUNDS {
        let mut batch = Batch::new();
        pool.alloc_batch(1 + round % 40, &mut batch);
        let mut clones = Batch::new();
        for (i, packet) in batch.iter_mut().enumerate() {
            let seed = (number * ROUNDS * 64 + round * 64 + i) as u64;
            packet.replace_contents(&stamp(seed));
            packet.set_anno_u64(anno::PERFCTR, seed);
            if round % 2 == 0 {
                clones.push(packet.share());
                kept.push(packet.share());
            }
        }
        if round % 2 == 1 {
            let mut both = batch.clones(2);
            clones = both.next().unwrap();
            kept.extend(both.next().unwrap());
        }
        for clone in clones.iter_mut().step_by(2) {
            let seed = !seed_of(clone);
            clone.bytes_mut().copy_from_slice(&stamp(seed));
            clone.set_anno_u64(anno::PERFCTR, seed);
            seed_of(clone);
        }
        batch.append(&mut clones);
        sent += batch.len();
        next.send(batch).unwrap();
        from.try_iter().for_each(inspect);
        for packet in &kept {
            seed_of(packet);
        }
        if kept.len() > 60 {
            kept.drain(..50);
        }
    }
    // Lets the next thread end: no more packets come from this one.
    drop(next);
    from.iter().for_each(inspect);
    sent
}

/// Checks packets from another thread, and writes to some.
fn inspect(mut other: Batch) {
    for packet in &other {
        seed_of(packet);
    }
    // These writes race with reads of the shares that other threads keep.
    for packet in other.iter_mut().step_by(3) {
        packet.bytes_mut().fill(0);
    }
}

#[test]
fn packets_passed_between_threads_are_consistent_and_return() {
    let pool = pool(4096);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let sent: usize = thread::scope(|scope| {
        let handles: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(i, from)| {
                let (pool, next) = (pool.clone(), senders[(i + 1) % THREADS].clone());
                scope.spawn(move || work(&pool, i, next, &from))
            })
            .collect();
        drop(senders);
        handles.into_iter().map(|handle| handle.join().unwrap()).sum()
    });
    assert!(sent > THREADS * ROUNDS);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.cached), (0, 0));
    assert!(stats.high_water <= 4096);
}

#[test]
fn frames_in_other_threads_caches_count_as_free() {
    let pool = pool(1024);
    let (to_worker, from_main) = channel::<Batch>();
    let (done, is_done) = channel();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            for batch in from_main {
                drop(batch);
                done.send(()).unwrap();
            }
        });
        for round in 0..50 {
            let mut batch = Batch::new();
            assert_eq!(pool.alloc_batch(200, &mut batch), 200, "round {round}");
            assert_eq!(pool.in_use(), 200);
            to_worker.send(batch).unwrap();
            is_done.recv().unwrap();
            assert_eq!(pool.in_use(), 0);
            assert!(pool.stats().cached > 0);
        }
        drop(to_worker);
        // The scope alone would not wait for the thread's destructors.
        worker.join().unwrap();
    });
    Pool::flush_thread();
    assert_eq!(pool.stats().cached, 0);
    assert!(pool.stats().high_water <= 1024);
}

#[test]
fn packets_outlive_their_pool_and_their_thread() {
    let pool = pool(64);
    let packet =
        thread::scope(|scope| scope.spawn(|| pool.copy_in(b"still here").unwrap()).join().unwrap());
    drop(pool);
    let mut twin = packet.copy();
    twin.push_front(4).copy_from_slice(b"yes ");
    thread::spawn(move || assert_eq!(packet.bytes(), b"still here")).join().unwrap();
    assert_eq!(twin.bytes(), b"yes still here");
}

#[test]
fn pool_numbers_are_reused() {
    let (to_worker, from_main) = channel::<Packet>();
    let worker = thread::spawn(move || {
        for packet in from_main {
            drop(packet);
        }
    });
    // More pools than there are numbers, each with caches in two threads. The
    // worker removes the cache of a closed pool when it makes the next one.
    for _ in 0..600 {
        let pool = pool(16);
        to_worker.send(pool.alloc().unwrap()).unwrap();
        drop(pool.alloc());
        drop(pool);
        while thread_has_backlog() {
            thread::yield_now();
        }
    }
    drop(to_worker);
    worker.join().unwrap();

    /// Whether all pool numbers are in use, because the worker has not removed its caches yet.
    fn thread_has_backlog() -> bool {
        Pool::new(PoolConfig { frames: 1, ..PoolConfig::default() }).is_err()
    }
}

/// Owners are counted correctly: two threads share, write and drop at the same
/// time. Uses heap frames, and passes packets through one atomic only, so that a
/// thread sanitizer sees all synchronisation, although it does not instrument `std`:
/// `RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread
/// -Cunsafe-allow-abi-mismatch=sanitizer" cargo test -p castanet-packet
/// --target x86_64-unknown-linux-gnu --test threads -- --exact
/// --test-threads=1 owners_are_counted`.
#[test]
fn owners_are_counted() {
    let slot = AtomicPtr::new(ptr::null_mut::<Packet>());
    let take = || {
        let taken = slot.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the pointer comes from `Box::into_raw`, and the thread that swaps it
        // out is its only owner.
        (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) })
    };
    let put = |packet: Packet| {
        let fresh = Box::into_raw(Box::new(packet));
        while slot
            .compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut received = 0;
            while received < ROUNDS {
                let Some(mut packet) = take() else { continue };
                let seed = seed_of(&packet);
                let twin = packet.share();
                packet.bytes_mut()[0] ^= 1;
                packet.set_anno_u64(anno::PERFCTR, seed ^ 1);
                drop(packet);
                assert_eq!(seed_of(&twin), seed);
                received += 1;
            }
        });
        for round in 0..ROUNDS as u64 {
            let mut packet = Packet::from_bytes(&stamp(round));
            packet.set_anno_u64(anno::PERFCTR, round);
            put(packet.share());
            assert_eq!(seed_of(&packet), round);
            packet.bytes_mut().copy_from_slice(&stamp(!round));
            packet.set_anno_u64(anno::PERFCTR, !round);
            assert_eq!(seed_of(&packet), !round);
        }
        reader.join().unwrap();
    });
}

thread_local! {
    static EARLY: RefCell<Vec<Packet>> = const { RefCell::new(Vec::new()) };
    static LATE: RefCell<Batch> = const { RefCell::new(Batch::new()) };
}

#[test]
fn packets_in_thread_locals_return_when_the_thread_ends() {
    let pool = pool(64);
    let held = pool.clone();
    thread::spawn(move || {
        EARLY.with(|early| early.borrow_mut().reserve(1));
        let packet = held.alloc().unwrap();
        EARLY.with(|early| early.borrow_mut().push(packet));
        LATE.with(|late| late.borrow_mut().extend(held.alloc()));
        assert_eq!(held.in_use(), 2);
    })
    .join()
    .unwrap();
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.stats().cached, 0);
}

#[test]
fn caches_leave_frames_for_other_threads() {
    // Every thread can allocate from a small pool although others cache its frames.
    let pool = pool(64);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut batch = Batch::new();
                    assert!(pool.alloc_batch(8, &mut batch) > 0);
                }
            });
        }
    });
    assert_eq!(pool.in_use(), 0);
}
