//! Division of a batch among others, by the fates of its packets.

use crate::batch::{Batch, MAX_BURST, common_prefix};
use crate::packet::Packet;

/// The most fates of packets that are moved in one pass.
const MOST_FATES: usize = 16;
/// The fewest packets for which such a pass pays.
const FEWEST: usize = 8;
/// The index of a fate that no packet has had yet.
const NO_INDEX: u8 = u8::MAX;

/// The batches to which [`Batch::divide`] moves packets.
pub trait Exits {
    /// The value that lies beside each batch.
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
struct FateCounts {
    /// By fate: its index.
    of: [u8; 256],
    fates: [u8; MOST_FATES],
    /// Packets of each.
    counts: [usize; MOST_FATES],
    len: usize,
}

impl FateCounts {
    /// The counts for packets with these fates, `first` before all others; `None` if there are too many fates.
    #[inline]
    fn new(first: u8, fates: &[u8]) -> Option<FateCounts> {
        let mut counted =
            FateCounts { of: [NO_INDEX; 256], fates: [first; _], counts: [0; _], len: 1 };
        counted.of[usize::from(first)] = 0;
        for &fate in fates {
            let mut index = usize::from(counted.of[usize::from(fate)]);
            if index >= MOST_FATES {
                index = counted.len;
                *counted.fates.get_mut(index)? = fate;
                counted.of[usize::from(fate)] = index as u8;
                counted.len += 1;
            }
            counted.counts[index % MOST_FATES] += 1;
        }
        Some(counted)
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

    /// Divides the last packets of the batch, which have these fates, if there is a batch for each fate, and if the fates are
    /// few: looks each of the batches up once, and makes room in it once. Else returns `None`, and moves nothing.
    fn deal(&mut self, fates: &[u8], keep: u8, exits: &mut impl Exits) -> Option<()> {
        let counted = FateCounts::new(keep, fates)?;
        let others = 1..counted.len;
        let mut places = [0; MOST_FATES];
        let batches =
            exits.batches_for(&counted.fates[others.clone()], &mut places[others.clone()])?;
        let mut ends = [std::ptr::null_mut::<Packet>(); MOST_FATES];
        for n in others.clone() {
            if places[1..n].contains(&places[n]) {
                return None;
            }
            batches[places[n]].1.reserve(counted.counts[n]);
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
            for n in others.clone() {
                let batch = &mut batches[places[n]].1.packets;
                ends[n] = batch.as_mut_ptr().add(batch.len());
            }
            for (n, &fate) in fates.iter().enumerate() {
                let end = &mut ends[usize::from(counted.of[usize::from(fate)]) % MOST_FATES];
                let packet = first.add(kept + n).read();
                end.write(packet);
                *end = end.add(1);
            }
            self.packets.set_len(kept + counted.counts[0]);
            for n in others {
                let batch = &mut batches[places[n]].1.packets;
                let len = batch.len() + counted.counts[n];
                batch.set_len(len);
            }
        }
        Some(())
    }
}
