//! The packets of a lane that the client puts together from the datagrams of all parties.

use crate::replay::Freshness;
use crate::share::ActionShare;
use std::vec::Drain;

/// Packets of one lane and epoch whose datagrams come in any order. It has room for a number of
/// packets: one that is so much newer than another takes its place. `P` is a datagram of the entry.
///
/// A datagram that has come, or is older than the window, is refused, so the window also protects from
/// replays.
#[derive(Debug)]
pub struct MergeWindow<P> {
    slots: Box<[Slot<P>]>,
    /// A bit for each processor.
    all: u64,
    /// One more than the greatest sequence number that has come.
    next: u64,
    /// No packet with a smaller sequence number waits.
    first: u64,
    /// Packets that do not wait any more and are not complete.
    given_up: Vec<IncompletePacket<P>>,
    held: usize,
}

#[derive(Debug)]
struct Slot<P> {
    /// One more than the sequence number of the packet; 0 in slots that no packet has had.
    number: u64,
    state: SlotState,
    /// A bit for each processor whose share has come.
    shares: u64,
    sum: ActionShare,
    parts: Vec<(u8, P)>,
    /// The number of parts, once the last one has come.
    part_count: Option<usize>,
    /// When the packet is given up, in nanoseconds.
    deadline: u64,
}

/// The state of the packet of a slot; a slot that no packet has had is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    Waiting,
    Complete,
    GivenUp,
}

/// A packet of which all datagrams have come.
#[derive(Debug)]
pub struct CompletePacket<'w, P> {
    /// The sum of the shares.
    pub sum: ActionShare,
    /// The datagrams of the entry with their numbers, in order.
    pub parts: Drain<'w, (u8, P)>,
}

/// A packet that is given up.
#[derive(Debug)]
pub struct IncompletePacket<P> {
    /// A bit for each processor whose share did not come.
    pub missing_shares: u64,
    /// Whether a datagram of the entry did not come.
    pub is_rest_missing: bool,
    /// The datagrams of the entry that came.
    pub parts: Vec<P>,
}

/// A datagram of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramPlace {
    /// The share of a processor.
    Share(u8),
    /// A part of the entry's.
    Part(u8),
}

impl<P> MergeWindow<P> {
    /// An empty window for at least `size` packets with shares of `processors` processors, 64 at most.
    pub fn new(size: usize, processors: usize) -> MergeWindow<P> {
        let slot = || Slot {
            number: 0,
            state: SlotState::Complete,
            shares: 0,
            sum: ActionShare::ZERO,
            parts: Vec::new(),
            part_count: None,
            deadline: 0,
        };
        let count = size.max(1).next_power_of_two();
        MergeWindow {
            slots: std::iter::repeat_with(slot).take(count).collect(),
            all: u64::MAX >> (u64::BITS as usize - processors.clamp(1, 64)),
            next: 0,
            first: 0,
            given_up: Vec::new(),
            held: 0,
        }
    }

    fn index(&self, sequence: u64) -> usize {
        (sequence & (self.slots.len() as u64 - 1)) as usize
    }

    /// Datagrams of the entry that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The relation of a datagram to those that have come, before it has proved authentic: it is old if
    /// its packet is given up. Sequence numbers are less than 2^56.
    #[inline]
    pub fn check(&self, sequence: u64, place: DatagramPlace) -> Freshness {
        let slot = &self.slots[self.index(sequence)];
        if slot.number == sequence + 1 {
            let has_come = match place {
                DatagramPlace::Share(processor) => slot.shares >> processor & 1 != 0,
                DatagramPlace::Part(part) => slot.parts.iter().any(|it| it.0 == part),
            };
            return match slot.state {
                SlotState::Waiting if !has_come => Freshness::New,
                SlotState::GivenUp if !has_come => Freshness::Old,
                _ => Freshness::Replayed,
            };
        }
        let is_old = slot.number > sequence + 1 || sequence + (self.slots.len() as u64) < self.next;
        if is_old { Freshness::Old } else { Freshness::New }
    }

    /// The slot of a packet of which a new datagram has come.
    fn enter(&mut self, sequence: u64, deadline: u64) -> &mut Slot<P> {
        let index = self.index(sequence);
        if self.slots[index].number != sequence + 1 {
            self.give_up(index);
            let slot = &mut self.slots[index];
            (slot.number, slot.state) = (sequence + 1, SlotState::Waiting);
            slot.deadline = deadline;
            (slot.shares, slot.sum, slot.part_count) = (0, ActionShare::ZERO, None);
            self.next = self.next.max(sequence + 1);
            self.first = self.first.min(sequence);
        }
        &mut self.slots[index]
    }

    /// Adds the share of a processor, which [`MergeWindow::check`] calls new. A packet that is not complete
    /// at its deadline, in nanoseconds, is given up.
    #[inline]
    pub fn add_share(
        &mut self,
        sequence: u64,
        processor: u8,
        share: &ActionShare,
        deadline: u64,
    ) -> Option<CompletePacket<'_, P>> {
        let slot = self.enter(sequence, deadline);
        slot.shares |= 1 << processor;
        slot.sum = slot.sum.plus(share);
        self.take_complete(sequence)
    }

    /// Adds part `part` of a packet, which [`MergeWindow::check`] calls new.
    #[inline]
    pub fn add_part(
        &mut self,
        sequence: u64,
        part: (u8, P),
        is_last: bool,
        deadline: u64,
    ) -> Option<CompletePacket<'_, P>> {
        let slot = self.enter(sequence, deadline);
        if is_last {
            slot.part_count = Some(usize::from(part.0) + 1);
        }
        slot.parts.push(part);
        self.held += 1;
        self.take_complete(sequence)
    }

    #[inline]
    fn take_complete(&mut self, sequence: u64) -> Option<CompletePacket<'_, P>> {
        let (index, all) = (self.index(sequence), self.all);
        let slot = &mut self.slots[index];
        if slot.shares & all != all || slot.part_count != Some(slot.parts.len()) {
            return None;
        }
        slot.state = SlotState::Complete;
        slot.parts.sort_unstable_by_key(|it| it.0);
        self.held -= slot.parts.len();
        Some(CompletePacket { sum: slot.sum, parts: slot.parts.drain(..) })
    }

    fn give_up(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.state != SlotState::Waiting {
            return;
        }
        slot.state = SlotState::GivenUp;
        self.held -= slot.parts.len();
        let is_rest_missing = slot.part_count != Some(slot.parts.len());
        self.given_up.push(IncompletePacket {
            missing_shares: self.all & !slot.shares,
            is_rest_missing,
            parts: slot.parts.drain(..).map(|it| it.1).collect(),
        });
    }

    /// Gives up packets whose deadline is not after `now`; with `u64::MAX` all.
    pub fn expire(&mut self, now: u64) {
        let oldest = self.next.saturating_sub(self.slots.len() as u64);
        if self.first + (self.slots.len() as u64) < oldest {
            // After a gap there are fewer slots than numbers.
            for index in 0..self.slots.len() {
                if self.slots[index].number <= oldest {
                    self.give_up(index);
                }
            }
            self.first = oldest;
        }
        while self.first < self.next {
            let index = self.index(self.first);
            let slot = &self.slots[index];
            if slot.number == self.first + 1 && slot.state == SlotState::Waiting {
                if slot.deadline > now {
                    break;
                }
                self.give_up(index);
            }
            self.first += 1;
        }
    }

    /// Takes the packets that were given up since the last call.
    pub fn take_given_up(&mut self) -> impl Iterator<Item = IncompletePacket<P>> + '_ {
        self.given_up.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn share(bit: usize) -> ActionShare {
        let mut value = Bits::ZERO;
        value.set(bit);
        ActionShare { value, projection: Bits::ZERO }
    }

    #[test]
    fn packets_wait_for_all_and_are_given_up() {
        let mut window = MergeWindow::new(4, 2);
        assert!(window.add_share(5, 1, &share(1), 100).is_none());
        assert!(window.add_part(5, (1, "b"), true, 100).is_none());
        assert_eq!(window.check(5, DatagramPlace::Share(1)), Freshness::Replayed);
        assert_eq!(window.check(5, DatagramPlace::Part(1)), Freshness::Replayed);
        assert!(window.add_part(5, (0, "a"), false, 100).is_none());
        assert_eq!(window.held(), 2);
        let CompletePacket { sum, parts } =
            window.add_share(5, 0, &share(2), 100).expect("is complete");
        assert_eq!(parts.collect::<Vec<_>>(), [(0, "a"), (1, "b")]);
        assert!(sum.value.get(1) && sum.value.get(2));
        assert_eq!(window.held(), 0);
        assert_eq!(window.check(5, DatagramPlace::Share(0)), Freshness::Replayed);
        // Not so old, but one packet newer than it by the size of the window has come.
        assert!(window.add_part(6, (0, "c"), true, 110).is_none());
        assert!(window.add_share(10, 0, &share(0), 120).is_none());
        let given_up: Vec<_> = window.take_given_up().collect();
        assert_eq!((given_up[0].missing_shares, &given_up[0].parts), (3, &vec!["c"]));
        assert!(!given_up[0].is_rest_missing);
        assert_eq!(window.check(6, DatagramPlace::Share(0)), Freshness::Old);
        assert_eq!(window.check(7, DatagramPlace::Share(0)), Freshness::New);
        window.expire(119);
        assert_eq!(window.take_given_up().count(), 0);
        // A late one, behind the newest.
        assert!(window.add_share(8, 0, &share(0), 121).is_none());
        window.expire(120);
        assert_eq!(window.take_given_up().count(), 0, "the first deadline comes first");
        window.expire(121);
        let missing: Vec<_> = window.take_given_up().map(|it| it.missing_shares).collect();
        assert_eq!(missing, [2, 2]);
        // The others of a packet that was given up come too late, and are no replays.
        assert_eq!(window.check(8, DatagramPlace::Share(1)), Freshness::Old);
        assert_eq!(window.check(8, DatagramPlace::Part(0)), Freshness::Old);
        assert_eq!(window.check(8, DatagramPlace::Share(0)), Freshness::Replayed);
    }

    #[test]
    fn a_gap_in_the_numbers_costs_no_time() {
        let mut window = MergeWindow::new(4, 1);
        assert!(window.add_part(0, (0, "a"), true, 10).is_none());
        assert!(window.add_part(3, (0, "b"), true, 10).is_none());
        let newest = (1 << 56) - 1;
        assert!(window.add_part(newest, (0, "c"), true, 20).is_none());
        assert!(window.add_part(newest - 1, (0, "d"), true, 20).is_none());
        window.expire(15);
        let parts: Vec<_> = window.take_given_up().flat_map(|it| it.parts).collect();
        assert_eq!(parts, ["b", "a"]);
        window.expire(20);
        assert_eq!((window.take_given_up().count(), window.held()), (2, 0));
    }

    proptest! {
        /// Each packet is complete once, or given up once if a datagram of it came, whatever is lost,
        /// late or doubled.
        #[test]
        fn each_packet_has_one_end(
            order in prop::collection::vec((0..60_u64, 0..5_u8), 1..500),
            size in 1..64_usize,
        ) {
            let mut window = MergeWindow::new(size, 3);
            let mut ends: HashMap<u64, u32> = HashMap::new();
            let mut come: HashSet<(u64, u8)> = HashSet::new();
            let mut accepted: HashSet<u64> = HashSet::new();
            for (sequence, what) in order {
                let place = match what {
                    0..3 => DatagramPlace::Share(what),
                    part => DatagramPlace::Part(part - 3),
                };
                if window.check(sequence, place) != Freshness::New {
                    continue;
                }
                prop_assert!(come.insert((sequence, what)), "each datagram is new once");
                accepted.insert(sequence);
                let complete = match what {
                    0..3 => window.add_share(sequence, what, &share(usize::from(what)), 1),
                    part => window.add_part(sequence, (part - 3, sequence), part == 4, 1),
                };
                if let Some(complete) = complete {
                    let parts: Vec<_> = complete.parts.collect();
                    prop_assert_eq!(parts, [(0, sequence), (1, sequence)]);
                    *ends.entry(sequence).or_default() += 1;
                }
            }
            window.expire(u64::MAX);
            let given_up = window.take_given_up().count();
            prop_assert_eq!(window.held(), 0);
            prop_assert!(ends.values().all(|&count| count == 1));
            prop_assert_eq!(ends.len() + given_up, accepted.len());
        }
    }
}
