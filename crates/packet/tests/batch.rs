//! Tests of batches: order, ownership, and partition against a reference implementation.
#![allow(clippy::unwrap_used)]

use castanet_packet::{Batch, Exits, Packet, PacketQueue, Pool, PoolConfig};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn batch_of(pool: &Pool, n: usize) -> Batch {
    (0..n).map(|i| pool.copy_in(&[i as u8]).unwrap()).collect()
}

fn numbers(batch: &Batch) -> Vec<u8> {
    batch.iter().map(|packet| packet.bytes()[0]).collect()
}

fn pool(frames: usize) -> Pool {
    Pool::new(PoolConfig { frames, data_capacity: 64, ..PoolConfig::default() }).unwrap()
}

/// Batches by fate, and the first bytes of packets that were dropped.
#[derive(Default)]
struct ExitBatches([((), Batch); 20], Vec<u8>);

impl Exits for ExitBatches {
    type Destination = ();

    fn batches_for(&mut self, fates: &[u8], places: &mut [usize]) -> Option<&mut [((), Batch)]> {
        places.iter_mut().zip(fates).for_each(|(place, &fate)| *place = fate.into());
        fates.iter().all(|&fate| usize::from(fate) < self.0.len()).then_some(&mut self.0)
    }

    fn batch_for(&mut self, fate: u8) -> Option<&mut Batch> {
        self.0.get_mut(usize::from(fate)).map(|(_, batch)| batch)
    }

    fn drop_one(&mut self, fate: u8, packet: &Packet) {
        assert_eq!(fate, 255);
        self.1.push(packet.bytes()[0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn partition_keeps_the_order(
        fates in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => 0..4u8, 1 => Just(255)], 0..100),
        keep in 0..3u8,
    ) {
        let pool = pool(128);
        let mut batch = batch_of(&pool, fates.len());
        let mut removed = Vec::new();
        batch.partition(&fates, keep, |fate, packet| removed.push((fate, packet.bytes()[0])));
        let pairs = || fates.iter().copied().zip(0u8..);
        let kept: Vec<u8> = pairs().filter(|p| p.0 == keep).map(|p| p.1).collect();
        let expected: Vec<_> = pairs().filter(|p| p.0 != keep).collect();
        prop_assert_eq!(pool.in_use(), kept.len());
        prop_assert_eq!(numbers(&batch), kept);
        prop_assert_eq!(removed, expected);
        drop(batch);
        prop_assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn divide_moves_by_fate_and_drops_the_rest(
        mut fates in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => 0..20u8, 1 => Just(255)], 0..200),
        keep in 0..3u8,
        most in prop_oneof![Just(255), Just(19), 1..6u8],
        before in 0..3usize,
    ) {
        fates.iter_mut().for_each(|fate| *fate = (*fate).min(most));
        let pool = pool(256);
        let mut batch: Batch = (0..fates.len()).map(|i| pool.copy_in(&[i as u8]).unwrap()).collect();
        let mut ways = ExitBatches::default();
        for (_, way) in &mut ways.0 {
            *way = (0..before).map(|_| Packet::from_bytes(&[201])).collect();
        }
        batch.divide(&fates, keep, &mut ways);
        let of = |fate| -> Vec<u8> {
            fates.iter().zip(0u8..).filter(|pair| *pair.0 == fate).map(|pair| pair.1).collect()
        };
        prop_assert_eq!(numbers(&batch), of(keep));
        for ((_, way), fate) in ways.0.iter().zip(0u8..).filter(|pair| pair.1 != keep) {
            prop_assert_eq!(numbers(way), [vec![201; before], of(fate)].concat());
        }
        prop_assert_eq!(pool.in_use(), fates.len() - ways.1.len());
        prop_assert_eq!(ways.1, of(255));
    }

    #[test]
    fn batches_behave_like_vectors(
        ops in prop::collection::vec((0..9usize, 0..40usize), 0..60),
    ) {
        let pool = pool(4096);
        let (mut batch, mut model, mut next) = (Batch::new(), Vec::new(), 0u8);
        for (op, n) in ops {
            match op {
                0 => {
                    batch.push(pool.copy_in(&[next]).unwrap());
                    model.push(next);
                    next = next.wrapping_add(1);
                }
                1 => prop_assert_eq!(batch.pop().map(|p| p.bytes()[0]), model.pop()),
                2 => {
                    let rest = batch.split_off(n);
                    let model_rest = model.split_off(n.min(model.len()));
                    prop_assert_eq!(numbers(&rest), model_rest);
                }
                3 => {
                    batch.append(&mut batch_of(&pool, n));
                    model.extend(0..n as u8);
                }
                4 if n % 4 == 0 => {
                    batch.clear();
                    model.clear();
                }
                5 if n < model.len() => {
                    batch.swap(0, n);
                    model.swap(0, n);
                }
                6 if n < model.len() => {
                    prop_assert_eq!(batch.remove(n).bytes()[0], model.remove(n));
                }
                7 => {
                    let taken = std::mem::take(&mut batch);
                    let order: Vec<u8> = taken.into_iter().take(n).map(|p| p.bytes()[0]).collect();
                    model.truncate(n);
                    prop_assert_eq!(order, std::mem::take(&mut model));
                }
                8 => {
                    batch.truncate(n);
                    model.truncate(n);
                }
                _ => {}
            }
            prop_assert_eq!(numbers(&batch), model.clone());
            prop_assert_eq!(pool.in_use(), model.len());
        }
    }
}

proptest! {
    /// A queue has the packets of a `VecDeque` to which the same was done, and loses none.
    #[test]
    fn queues_behave_like_vecdeques(
        steps in prop::collection::vec((0..5u8, 0..90usize), 0..60),
    ) {
        let pool = pool(4096);
        let (mut queue, mut model) = (PacketQueue::default(), VecDeque::new());
        for (kind, n) in steps {
            match kind {
                0 | 1 => {
                    let mut batch = batch_of(&pool, n.min(80));
                    model.extend(numbers(&batch));
                    queue.append(&mut batch);
                    prop_assert!(batch.is_empty());
                }
                2 => {
                    let mut batch = batch_of(&pool, n % 3);
                    let before = numbers(&batch);
                    queue.take(n, &mut batch);
                    let taken = model.drain(..n.min(model.len()));
                    prop_assert_eq!(numbers(&batch), before.into_iter().chain(taken).collect::<Vec<_>>());
                }
                3 => {
                    queue.push_front(pool.copy_in(&[n as u8]).unwrap());
                    model.push_front(n as u8);
                }
                _ => {
                    let last = queue.pop_back().map(|packet| packet.bytes()[0]);
                    prop_assert_eq!(last, model.pop_back());
                    let len = queue.len().saturating_sub(n / 8);
                    queue.truncate(len);
                    model.truncate(len);
                }
            }
            prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
            let listed: VecDeque<u8> = queue.iter().map(|packet| packet.bytes()[0]).collect();
            prop_assert_eq!(listed, model.clone());
            prop_assert_eq!(pool.in_use(), model.len());
        }
        let mut half = Batch::new();
        queue.take(model.len() / 2, &mut half);
        drop((queue, half));
        prop_assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn a_panic_in_the_sink_leaks_no_frame() {
    let pool = pool(64);
    let mut batch = batch_of(&pool, 40);
    let fates: Vec<u8> = (0..40).map(|i| u8::from(i % 3 == 1)).collect();
    let result = catch_unwind(AssertUnwindSafe(|| {
        batch.partition(&fates, 0, |_, packet| assert!(packet.bytes()[0] < 20, "enough"));
    }));
    assert!(result.is_err());
    let mut expected: Vec<u8> = (0..22).filter(|i| i % 3 != 1).collect();
    expected.extend(23..40);
    assert_eq!(numbers(&batch), expected);
    assert_eq!(pool.in_use(), batch.len());
    drop(batch);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn the_steady_state_reuses_the_buffer() {
    let pool = pool(64);
    let buffer = |batch: &Batch| batch.as_slice().as_ptr().addr();
    let first = batch_of(&pool, 32);
    let address = buffer(&first);
    drop(first);
    for _ in 0..100 {
        let mut batch = Batch::default();
        assert_eq!(pool.alloc_batch(32, &mut batch), 32);
        assert_eq!(buffer(&batch), address);
    }
}

#[test]
fn a_batch_of_several_pools_returns_all_frames() {
    let (one, two) = (pool(64), pool(64));
    let mut batch = Batch::new();
    for i in 0..60u8 {
        let mut packet = match i % 4 {
            0 => Packet::from_bytes(&[i]),
            1 => two.copy_in(&[i]).unwrap(),
            _ => one.copy_in(&[i]).unwrap(),
        };
        if i % 5 == 0 {
            batch.push(packet.share());
        }
        batch.push(packet);
    }
    assert_eq!((one.in_use(), two.in_use()), (30, 15));
    let kept = batch[0].bytes()[0];
    let survivor = batch.remove(0);
    drop(batch);
    assert_eq!((one.in_use(), two.in_use()), (0, 0));
    assert_eq!(survivor.bytes(), [kept]);
}

#[test]
fn clones_share_their_frames_and_are_counted() {
    let pool = pool(512);
    let (mut batch, others) = (batch_of(&pool, 40), pool.in_use());
    // Some packets are shared before, by an owner that stays or is gone.
    let kept: Vec<_> = batch.iter_mut().step_by(3).map(Packet::share).collect();
    batch.iter_mut().skip(1).step_by(3).for_each(|packet| drop(packet.share()));
    let written = |mut clone: Batch, number| {
        assert_eq!(numbers(&clone), (0..40).collect::<Vec<u8>>());
        clone.iter_mut().for_each(|packet| packet.bytes_mut()[0] = number);
        assert!(clone.iter().all(|packet| packet.bytes()[0] == number));
    };
    let mut clones = batch.clones(4);
    assert_eq!(clones.len(), 4);
    written(clones.next().unwrap(), 100);
    let second = clones.next().unwrap();
    // Those that nobody takes are dropped.
    drop(clones);
    assert_eq!(pool.in_use(), others);
    written(second, 101);
    assert_eq!(batch.clones(0).count(), 0);
    assert_eq!(numbers(&batch), (0..40).collect::<Vec<u8>>());
    drop(kept);
    // All owners but one are gone: a write copies nothing.
    let frames: Vec<_> = batch.iter().map(Packet::frame).collect();
    batch.iter_mut().for_each(|packet| packet.bytes_mut()[0] = 1);
    assert!(batch.iter().map(Packet::frame).eq(frames));
    assert_eq!(Batch::new().clones(2).map(|clone| clone.len()).sum::<usize>(), 0);
    drop(batch);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn copies_of_a_batch_have_frames_of_their_own() {
    let pool = pool(64);
    let mut batch = batch_of(&pool, 30);
    batch.push(Packet::from_bytes(&[30; 9000]));
    for packet in &mut batch {
        packet.set_paint(packet.bytes()[0]);
        packet.set_timestamp(i64::from(packet.paint()));
        packet.set_device(7);
    }
    let clones: Batch = batch.iter_mut().step_by(2).map(Packet::share).collect();
    let mut copies = batch.copies();
    assert_eq!((pool.in_use(), copies.len()), (60, 31));
    copies.iter_mut().for_each(|packet| packet.bytes_mut()[0] += 100);
    for (packet, copy) in batch.iter().zip(&copies) {
        let number = packet.bytes()[0];
        assert!(!copy.is_shared() && copy.frame() != packet.frame());
        assert_eq!((copy.bytes()[0], copy.len()), (number + 100, packet.len()));
        let marks = (copy.paint(), copy.timestamp(), copy.device(), copy.headroom());
        assert_eq!(marks, (number, i64::from(number), 7, packet.headroom()));
    }
    drop((batch, clones));
    assert_eq!((pool.in_use(), Batch::new().copies().len()), (30, 0));
}

#[test]
fn copies_are_right_whatever_the_pools_have_left() {
    let of = |frames| {
        Pool::new(PoolConfig { frames, data_capacity: 256, ..PoolConfig::default() }).unwrap()
    };
    // Room for all copies, a cache that is refilled in between, and too few frames for all.
    for frames in [512, 256, 90] {
        let (one, two) = (of(frames), of(frames));
        one.use_for_copies();
        let mut batch = Batch::new();
        for number in 0..120u8 {
            let bytes = [number; 60];
            batch.push(match number {
                0..20 => one.copy_in(&bytes).unwrap(),
                20..60 if number % 2 == 0 => one.copy_in(&bytes).unwrap(),
                20..60 => two.copy_in(&bytes).unwrap(),
                60..80 => Packet::from_bytes(&bytes),
                80 => Packet::from_bytes(&[80; 3000]),
                _ => one.copy_in(&bytes).unwrap(),
            });
        }
        let shared: Batch = batch.iter_mut().step_by(3).map(Packet::share).collect();
        let (held, copies) = (one.in_use(), batch.copies());
        assert_eq!(copies.len(), 120);
        for (number, (packet, copy)) in (0..).zip(batch.iter().zip(&copies)) {
            assert!(copy.bytes().iter().all(|byte| *byte == number) && !copy.is_shared());
            assert_eq!((copy.len(), copy.headroom()), (packet.len(), packet.headroom()));
            assert_ne!(copy.frame(), packet.frame());
        }
        let frames_of_copies: BTreeSet<_> = copies.iter().map(|packet| packet.frame()).collect();
        assert_eq!(frames_of_copies.len(), 120, "each has a frame of its own");
        // Those of the heap have frames of the first pool, but for the long one.
        let expected = (79 + 20).min(frames - held);
        assert_eq!(one.in_use() - held, expected);
        drop((batch, shared, copies));
        assert_eq!((one.in_use(), two.in_use()), (0, 0));
    }
}

#[test]
fn batches_of_shared_and_other_packets_are_dropped_in_bulk() {
    let (one, two) = (pool(512), pool(512));
    let mut batch = batch_of(&one, 30);
    batch.append(&mut batch_of(&two, 30));
    batch.push(Packet::from_bytes(&[1]));
    let mut first = batch.clones(1).next().unwrap();
    first.append(&mut batch_of(&two, 300));
    drop(first);
    assert_eq!((one.in_use(), two.in_use()), (30, 30));
    let mut again = batch.clones(1).next().unwrap();
    drop(batch);
    assert_eq!((one.in_use(), two.in_use()), (30, 30));
    again.truncate(45);
    assert_eq!((one.in_use(), two.in_use()), (30, 15));
    drop(again);
    assert_eq!((one.in_use(), two.in_use()), (0, 0));
}

#[test]
fn equal_packets_are_made_in_bulk() {
    let (pool, bytes) = (pool(64), [7; 100]);
    let mut batch = batch_of(&pool, 2);
    assert_eq!(pool.copy_in_batch(&bytes, 20, &mut batch), 20);
    assert!(batch.iter().skip(2).all(|packet| packet.bytes() == bytes));
    assert_eq!((batch.len(), batch[1].bytes()[0], batch[1].len()), (22, 1, 1));
    assert_eq!(pool.copy_in_batch(&bytes, 64, &mut batch), 42);
    assert_eq!((batch.len(), pool.stats().failures), (64, 22));
    assert_eq!(pool.copy_in_batch(&[3; 9000], 2, &mut batch), 2);
    assert!(batch.iter().skip(64).all(|packet| packet.bytes() == [3; 9000]));
}
