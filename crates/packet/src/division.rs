//! Division of a batch among others, by the fates of its packets.

use crate::batch::{Batch, MAX_BURST, common_prefix};
use crate::packet::Packet;

/// The most batches among which packets are dealt in one pass.
const MOST_WAYS: usize = 16;
/// The fewest packets for which that pays.
const FEWEST: usize = 8;
/// Marks a fate that no packet has had yet.
const UNSEEN: u8 = u8::MAX;

/// The batches to which [`Batch::divide`] moves packets.
pub trait Exits {
    /// What lies beside each batch.
    type Destination;

    /// The batches for these fates, which are different ones: those at `places`. `None` if some of the fates have no
    /// batch, which may only be asked for one by one then.
    fn batches_for(
        &mut self,
        fates: &[u8],
        places: &mut [usize],
    ) -> Option<&mut [(Self::Destination, Batch)]>;
    /// The batch for the next packet, which has this fate; `None` if it is to be dropped.
    fn batch_for(&mut self, fate: u8) -> Option<&mut Batch>;
    /// Called with each packet for which there was no batch, before it is dropped.
    fn drop_one(&mut self, fate: u8, packet: &Packet);
}

/// The fates of some packets, in the order of their first packets.
struct Ways {
    /// By fate: its index.
    of: [u8; 256],
    fates: [u8; MOST_WAYS],
    /// Packets of each.
    counts: [usize; MOST_WAYS],
    len: usize,
}

impl Ways {
    /// Those of packets with these fates, `first` before all others; `None` if there are too many.
    #[inline]
    fn new(first: u8, fates: &[u8]) -> Option<Ways> {
        let mut ways = Ways { of: [UNSEEN; 256], fates: [first; _], counts: [0; _], len: 1 };
        ways.of[usize::from(first)] = 0;
        for &fate in fates {
            let mut way = usize::from(ways.of[usize::from(fate)]);
            if way >= MOST_WAYS {
                way = ways.len;
                *ways.fates.get_mut(way)? = fate;
                ways.of[usize::from(fate)] = way as u8;
                ways.len += 1;
            }
            ways.counts[way % MOST_WAYS] += 1;
        }
        Some(ways)
    }
}

impl Batch {
    /// Keeps the packets whose fate is `keep`, in order, and moves each of the others to the end of
    /// the batch that `exits` has for its fate, or drops it. `fates` has one entry for each packet.
    ///
    /// # Panics
    /// If the lengths of `fates` and of the batch differ.
    #[inline]
    pub fn divide(&mut self, fates: &[u8], keep: u8, exits: &mut impl Exits) {
        assert_eq!(fates.len(), self.len(), "one fate a packet");
        let kept = common_prefix(fates, keep);
        let left = &fates[kept..];
        if (FEWEST..=MAX_BURST).contains(&left.len()) && self.deal(left, keep, exits).is_some() {
            return;
        }
        self.separate(fates, keep, |fate, packets| match exits.batch_for(fate) {
            Some(batch) => packets.move_to(batch),
            None => {
                let packet = packets.remove();
                exits.drop_one(fate, &packet);
            }
        });
    }

    /// Does that with the last packets, which have these fates, if there is a batch for each of them, and if they are
    /// few: looks each of the batches up once, and makes room in it once.
    fn deal(&mut self, fates: &[u8], keep: u8, exits: &mut impl Exits) -> Option<()> {
        let ways = Ways::new(keep, fates)?;
        let others = 1..ways.len;
        let mut places = [0; MOST_WAYS];
        let batches =
            exits.batches_for(&ways.fates[others.clone()], &mut places[others.clone()])?;
        let mut ends = [std::ptr::null_mut::<Packet>(); MOST_WAYS];
        for way in others.clone() {
            if places[1..way].contains(&places[way]) {
                return None;
            }
            batches[places[way]].1.reserve(ways.counts[way]);
        }
        let all = self.packets.len();
        let kept = all - fates.len();
        // SAFETY: this and the offsets below lie within the buffers: `reserve` made room for as many packets as
        // are written to each. The buffers are different ones, because the batches are at different places of a
        // slice borrowed mutably, as this one is; they stay where they are, because no other code runs. Each packet is
        // moved once, to the end of its batch, or down to the end of those that are kept, where a slot is free or its own.
        // The lengths then cover what was written.
        unsafe {
            self.packets.set_len(0);
            let first = self.packets.as_mut_ptr();
            ends[0] = first.add(kept);
            for way in others.clone() {
                let batch = &mut batches[places[way]].1.packets;
                ends[way] = batch.as_mut_ptr().add(batch.len());
            }
            for (n, &fate) in fates.iter().enumerate() {
                let end = &mut ends[usize::from(ways.of[usize::from(fate)]) % MOST_WAYS];
                let packet = first.add(kept + n).read();
                end.write(packet);
                *end = end.add(1);
            }
            self.packets.set_len(kept + ways.counts[0]);
            for way in others {
                let batch = &mut batches[places[way]].1.packets;
                let len = batch.len() + ways.counts[way];
                batch.set_len(len);
            }
        }
        Some(())
    }
}
