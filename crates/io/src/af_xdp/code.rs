//! Code for the kernel's virtual machine, with jumps to places that are named before they are known.

use crate::sys::bpf::instruction;

/// A register: `R1` has the context at the start, a function's answer is in `R0`.
pub(super) type Register = u8;

pub(super) const R0: Register = 0;
pub(super) const R1: Register = 1;

/// A conditional jump on 64 bits: if one register is more than another.
pub(super) const IF_MORE: u8 = 0x2d;
/// If a register is, or is not, a constant.
pub(super) const IF_IS: u8 = 0x15;
pub(super) const IF_IS_NOT: u8 = 0x55;
/// On 32 bits: if a register is a constant, or at most that.
pub(super) const IF_WORD_IS: u8 = 0x16;
pub(super) const IF_WORD_AT_MOST: u8 = 0xb6;
const ALWAYS: u8 = 0x05;
const EXIT: u8 = 0x95;

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(usize);

/// Instructions (RFC 9669).
#[derive(Default)]
pub(super) struct Code {
    words: Vec<u64>,
    /// Where each label's place is.
    places: Vec<Option<usize>>,
    /// Jumps that lack their distance.
    jumps: Vec<(usize, Label)>,
}

impl Code {
    /// A name for a place that is to come.
    pub(super) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The place is here.
    pub(super) fn here(&mut self, label: Label) {
        self.places[label.0] = Some(self.words.len());
    }

    fn push(&mut self, opcode: u8, to: Register, from: Register, offset: i16, constant: i32) {
        self.words.push(instruction(opcode, to, from, offset, constant));
    }

    /// `to = from`
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from, 0, 0);
    }

    /// `to = constant`
    pub(super) fn set(&mut self, to: Register, constant: i32) {
        self.push(0xb7, to, 0, 0, constant);
    }

    /// `to += constant`
    pub(super) fn add(&mut self, to: Register, constant: i32) {
        self.push(0x07, to, 0, 0, constant);
    }

    /// `to += from`
    pub(super) fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to, from, 0, 0);
    }

    /// `to -= constant`, on 32 bits.
    pub(super) fn subtract_word(&mut self, to: Register, constant: u32) {
        self.push(0x14, to, 0, 0, constant as i32);
    }

    /// `to &= constant`, on 32 bits.
    pub(super) fn and_word(&mut self, to: Register, constant: u32) {
        self.push(0x54, to, 0, 0, constant as i32);
    }

    /// `to |= from`
    pub(super) fn or(&mut self, to: Register, from: Register) {
        self.push(0x4f, to, from, 0, 0);
    }

    /// `to <<= bits`
    pub(super) fn shift_left(&mut self, to: Register, bits: i32) {
        self.push(0x67, to, 0, 0, bits);
    }

    /// `to = *(u8 *)(from + offset)`
    pub(super) fn load_byte(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x71, to, from, offset, 0);
    }

    /// `to = *(u16 *)(from + offset)`, from network to host order.
    pub(super) fn load_big_half(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x69, to, from, offset, 0);
        self.push(0xdc, to, 0, 0, 16);
    }

    /// `to = *(u32 *)(from + offset)`
    pub(super) fn load_word(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x61, to, from, offset, 0);
    }

    /// `to = *(u32 *)(from + offset)`, from network to host order.
    pub(super) fn load_big_word(&mut self, to: Register, from: Register, offset: i16) {
        self.load_word(to, from, offset);
        self.push(0xdc, to, 0, 0, 32);
    }

    /// Goes to `label` if the comparison holds.
    pub(super) fn jump_if(
        &mut self,
        comparison: u8,
        a: Register,
        b: Register,
        constant: u32,
        label: Label,
    ) {
        self.jumps.push((self.words.len(), label));
        self.push(comparison, a, b, 0, constant as i32);
    }

    /// Goes to `label`.
    pub(super) fn jump(&mut self, label: Label) {
        self.jump_if(ALWAYS, 0, 0, 0, label);
    }

    /// `return constant`
    pub(super) fn answer(&mut self, constant: i32) {
        self.set(R0, constant);
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The instructions that can be reached, for the kernel takes no others;
    /// `None` if a jump leads back or too far, or the end cannot be reached.
    pub(super) fn finish(self) -> Option<Vec<u64>> {
        let mut leads = vec![None; self.words.len()];
        for (at, label) in &self.jumps {
            leads[*at] = Some(self.places[label.0].filter(|place| place > at)?);
        }
        // Jumps only lead forward: all ways to an instruction come from before it.
        let mut reached = vec![false; self.words.len() + 1];
        reached[0] = true;
        for (at, word) in self.words.iter().enumerate() {
            if reached[at] {
                if let Some(place) = leads[at] {
                    reached[place] = true;
                }
                reached[at + 1] |= !matches!(*word as u8, ALWAYS | EXIT);
            }
        }
        // How many that stay are before each.
        let before = reached.iter().scan(0, |count, &stays| {
            let before = *count;
            *count += usize::from(stays);
            Some(before)
        });
        let before: Vec<usize> = before.collect();
        let mut words = Vec::with_capacity(self.words.len());
        for (at, word) in self.words.iter().enumerate().filter(|(at, _)| reached[*at]) {
            let distance = leads[at].map_or(0, |place| before[place] - before[at] - 1);
            let distance = i16::try_from(distance).ok()?;
            let offset = if leads[at].is_some() { u64::from(distance as u16) << 16 } else { 0 };
            words.push(word | offset);
        }
        reached.last().is_some_and(|&end| end).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_places() {
        let mut code = Code::default();
        let [end, behind] = [code.label(), code.label()];
        code.jump_if(IF_IS, R1, 0, 7, end);
        code.jump(end);
        code.answer(1);
        code.here(end);
        code.answer(2);
        code.here(behind);
        // What nobody reaches is not there: neither `answer(1)` nor the end.
        assert!(code.finish().is_none());
        let mut code = Code::default();
        let [end, other] = [code.label(), code.label()];
        code.jump_if(IF_IS, R1, 0, 7, end);
        code.jump(other);
        code.answer(1);
        code.here(end);
        code.answer(2);
        code.here(other);
        code.copy(R0, R1);
        let words = [
            instruction(0x15, 1, 0, 1, 7),
            instruction(0x05, 0, 0, 2, 0),
            instruction(0xb7, 0, 0, 0, 2),
            instruction(0x95, 0, 0, 0, 0),
            instruction(0xbf, 0, 1, 0, 0),
        ];
        assert_eq!(code.finish().unwrap(), words);
        // Nor does a jump lead nowhere.
        let mut code = Code::default();
        let nowhere = code.label();
        code.jump(nowhere);
        assert!(code.finish().is_none());
    }
}
