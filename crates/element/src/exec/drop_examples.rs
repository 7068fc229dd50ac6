//! Examples of dropped packets: one for each element and reason, on one worker.

use super::PacketImage;
use crate::time::Time;
use castanet_packet::Packet;

/// The most bytes that an example keeps: all headers of nearly every packet.
const MAX_BYTES: usize = 160;

/// A packet that an element dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropExample {
    /// The time of the burst in which it was dropped.
    pub time: Time,
    /// The packet, with at most 160 of its bytes.
    pub image: PacketImage,
}

/// The examples of one element.
#[derive(Clone, Default)]
struct ElementExamples {
    /// A bit for each fate whose next packet nobody wants to see.
    unwanted: [u64; 4],
    /// A bit for each fate of which an example was recorded since examples were last requested.
    recorded: [u64; 4],
    /// By fate: the latest example.
    examples: Vec<(u8, DropExample)>,
}

/// Examples of dropped packets on one worker: at most one for each element and fate, which is a
/// reason to drop or an open output. The first packet that is dropped after a request
/// ([`DropExamples::request`]) becomes the example; all others cost a test of one bit.
#[derive(Clone, Default)]
pub struct DropExamples {
    /// By element.
    elements: Vec<ElementExamples>,
    /// Whether each dropped packet is wanted, for traces and captures.
    wants_all: bool,
}

impl DropExamples {
    /// No examples yet, of that many elements, and a request for all.
    pub fn new(elements: usize) -> DropExamples {
        DropExamples { elements: vec![ElementExamples::default(); elements], wants_all: false }
    }

    /// Whether somebody wants to see the next packet that the element drops with this fate.
    #[inline]
    pub fn wants(&self, element: usize, fate: u8) -> bool {
        let bit = 1 << (fate % 64);
        let of = self.elements.get(element);
        of.is_some_and(|of| of.unwanted[usize::from(fate / 64)] & bit == 0)
    }

    /// Has each dropped packet be wanted, or only those that become examples.
    pub fn want_all(&mut self, wants_all: bool) {
        self.wants_all = wants_all;
        for of in &mut self.elements {
            of.unwanted = if wants_all { [0; 4] } else { of.recorded };
        }
    }

    /// Records a dropped packet in place of an earlier example, if there is none since examples were
    /// last requested.
    #[cold]
    #[inline(never)]
    pub fn record(&mut self, element: usize, fate: u8, now: Time, packet: &Packet) {
        let Some(of) = self.elements.get_mut(element) else { return };
        let (word, bit) = (usize::from(fate / 64), 1 << (fate % 64));
        if of.recorded[word] & bit != 0 {
            return;
        }
        of.recorded[word] |= bit;
        if !self.wants_all {
            of.unwanted[word] |= bit;
        }
        let example = DropExample { time: now, image: PacketImage::of(packet, MAX_BYTES) };
        match of.examples.iter_mut().find(|(other, _)| *other == fate) {
            Some((_, before)) => *before = example,
            None => of.examples.push((fate, example)),
        }
    }

    /// Requests new examples. Each one stays until the element drops another packet with its fate.
    pub fn request(&mut self) {
        for of in &mut self.elements {
            (of.recorded, of.unwanted) = ([0; 4], [0; 4]);
        }
    }

    /// The latest example of an element's packets with this fate.
    pub fn get(&self, element: usize, fate: u8) -> Option<&DropExample> {
        let examples = &self.elements.get(element)?.examples;
        examples.iter().find(|(other, _)| *other == fate).map(|(_, example)| example)
    }

    /// Moves the examples of element `before` of `old` to element `element`.
    pub fn inherit(&mut self, element: usize, old: &mut DropExamples, before: usize) {
        if let (Some(to), Some(from)) =
            (self.elements.get_mut(element), old.elements.get_mut(before))
        {
            *to = std::mem::take(from);
            to.unwanted = if self.wants_all { [0; 4] } else { to.recorded };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::{DROP, NOT_TAKEN};

    fn drop_one(examples: &mut DropExamples, element: usize, fate: u8, n: u8) {
        if examples.wants(element, fate) {
            examples.record(element, fate, Time(n.into()), &Packet::from_bytes(&[n]));
        }
    }

    fn first_byte(examples: &DropExamples, element: usize, fate: u8) -> Option<u8> {
        examples.get(element, fate).map(|it| it.image.bytes[0])
    }

    #[test]
    fn the_first_packet_after_a_request_is_kept_by_element_and_fate() {
        let mut examples = DropExamples::new(2);
        // All words of the mask, and both ends of each.
        let fates = [0, 1, 63, 64, 127, 128, 191, 192, NOT_TAKEN, DROP];
        for round in [10, 20] {
            for n in 0..3 {
                for (fate, place) in fates.iter().zip(0..) {
                    drop_one(&mut examples, 1, *fate, round + 100 * n.min(1) + place);
                }
            }
            for (fate, place) in fates.iter().zip(0..) {
                assert_eq!(first_byte(&examples, 1, *fate), Some(round + place));
                assert_eq!(first_byte(&examples, 0, *fate), None);
                assert!(!examples.wants(1, *fate) && examples.wants(0, *fate));
            }
            assert!((0..=255).filter(|&fate| !examples.wants(1, fate)).count() == fates.len());
            examples.request();
            assert_eq!(first_byte(&examples, 1, DROP), Some(round + 9), "the old one stays");
            assert!(fates.iter().all(|&fate| examples.wants(1, fate)));
        }
    }

    #[test]
    fn examples_and_requests_move_to_another_element() {
        let (mut old, mut new) = (DropExamples::new(3), DropExamples::new(2));
        drop_one(&mut old, 2, DROP, 7);
        new.inherit(0, &mut old, 2);
        assert_eq!(first_byte(&new, 0, DROP), Some(7));
        assert!(!new.wants(0, DROP) && new.wants(1, DROP));
        assert_eq!(first_byte(&old, 2, DROP), None);
        // Elements that do not exist have no examples.
        new.inherit(5, &mut old, 0);
        drop_one(&mut new, 5, DROP, 1);
        assert!(!new.wants(5, DROP) && new.get(5, DROP).is_none());
    }
}
