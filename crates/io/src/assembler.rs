//! An assembler for eBPF, with labels for jump targets that are placed later.

use crate::sys::bpf::instruction;

/// A register: `R1` has the context at the start, a function's answer is in `R0`.
pub(crate) type Register = u8;

pub(crate) const R0: Register = 0;
pub(crate) const R1: Register = 1;

/// A conditional jump on 64 bits: if one register is more than another.
pub(crate) const IF_MORE: u8 = 0x2d;
/// If a register is, or is not, a constant.
pub(crate) const IF_IS: u8 = 0x15;
pub(crate) const IF_IS_NOT: u8 = 0x55;
/// On 32 bits: if a register is a constant, or at most that.
pub(crate) const IF_WORD_IS: u8 = 0x16;
pub(crate) const IF_WORD_AT_MOST: u8 = 0xb6;
/// The register that has the packet for [`Assembler::load_network_word`] and its kin.
pub(crate) const PACKET: Register = 6;
/// Offsets from here on count from the network header (`SKF_NET_OFF`).
const NETWORK: i32 = -0x10_0000;
const ALWAYS: u8 = 0x05;
const EXIT: u8 = 0x95;

/// A jump target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(usize);

/// Instructions (RFC 9669).
#[derive(Default)]
pub(crate) struct Assembler {
    instructions: Vec<u64>,
    /// The instruction index of each label, once it is placed.
    targets: Vec<Option<usize>>,
    /// Jumps whose distance is not yet known: instruction index and label.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// Creates a label, to be placed later.
    pub(crate) fn label(&mut self) -> Label {
        self.targets.push(None);
        Label(self.targets.len() - 1)
    }

    /// Places the label before the next instruction.
    pub(crate) fn place(&mut self, label: Label) {
        self.targets[label.0] = Some(self.instructions.len());
    }

    fn push(&mut self, opcode: u8, to: Register, from: Register, offset: i16, constant: i32) {
        self.instructions.push(instruction(opcode, to, from, offset, constant));
    }

    /// `to = from`
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from, 0, 0);
    }

    /// `to = constant`
    pub(crate) fn set(&mut self, to: Register, constant: i32) {
        self.push(0xb7, to, 0, 0, constant);
    }

    /// `to += constant`
    pub(crate) fn add(&mut self, to: Register, constant: i32) {
        self.push(0x07, to, 0, 0, constant);
    }

    /// `to += from`
    pub(crate) fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to, from, 0, 0);
    }

    /// `to -= constant`, on 32 bits.
    pub(crate) fn subtract_word(&mut self, to: Register, constant: u32) {
        self.push(0x14, to, 0, 0, constant as i32);
    }

    /// `to &= constant`, on 32 bits.
    pub(crate) fn and_word(&mut self, to: Register, constant: u32) {
        self.push(0x54, to, 0, 0, constant as i32);
    }

    /// `to |= from`
    pub(crate) fn or(&mut self, to: Register, from: Register) {
        self.push(0x4f, to, from, 0, 0);
    }

    /// `to <<= bits`
    pub(crate) fn shift_left(&mut self, to: Register, bits: i32) {
        self.push(0x67, to, 0, 0, bits);
    }

    /// `to = *(u8 *)(from + offset)`
    pub(crate) fn load_byte(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x71, to, from, offset, 0);
    }

    /// `to = *(u16 *)(from + offset)`, from network to host order.
    pub(crate) fn load_big_half(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x69, to, from, offset, 0);
        self.push(0xdc, to, 0, 0, 16);
    }

    /// `to = *(u32 *)(from + offset)`
    pub(crate) fn load_word(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x61, to, from, offset, 0);
    }

    /// `to = *(u32 *)(from + offset)`, from network to host order.
    pub(crate) fn load_big_word(&mut self, to: Register, from: Register, offset: i16) {
        self.load_word(to, from, offset);
        self.push(0xdc, to, 0, 0, 32);
    }

    /// `R0 = *(u32 *)(network header + offset)` of [`PACKET`], which has the context, in host order. The
    /// program returns 0 where the packet is too short, and `R1` to `R5` are lost.
    pub(crate) fn load_network_word(&mut self, offset: i32) {
        self.push(0x20, 0, 0, 0, NETWORK + offset);
    }

    /// The same with two bytes.
    pub(crate) fn load_network_half(&mut self, offset: i32) {
        self.push(0x28, 0, 0, 0, NETWORK + offset);
    }

    /// The same with one byte.
    pub(crate) fn load_network_byte(&mut self, offset: i32) {
        self.push(0x30, 0, 0, 0, NETWORK + offset);
    }

    /// The same with four bytes, so far behind the network header as `distance` says.
    pub(crate) fn load_network_word_at(&mut self, distance: Register) {
        self.push(0x40, 0, distance, 0, NETWORK);
    }

    /// `to ^= from`
    pub(crate) fn exclusive_or(&mut self, to: Register, from: Register) {
        self.push(0xaf, to, from, 0, 0);
    }

    /// `to *= constant`, on 32 bits.
    pub(crate) fn multiply_word(&mut self, to: Register, constant: u32) {
        self.push(0x24, to, 0, 0, constant as i32);
    }

    /// `to >>= bits`, on 32 bits.
    pub(crate) fn shift_right_word(&mut self, to: Register, bits: i32) {
        self.push(0x74, to, 0, 0, bits);
    }

    /// Goes to `label` if the comparison holds.
    pub(crate) fn jump_if(
        &mut self,
        comparison: u8,
        a: Register,
        b: Register,
        constant: u32,
        label: Label,
    ) {
        self.jumps.push((self.instructions.len(), label));
        self.push(comparison, a, b, 0, constant as i32);
    }

    /// Goes to `label`.
    pub(crate) fn jump(&mut self, label: Label) {
        self.jump_if(ALWAYS, 0, 0, 0, label);
    }

    /// `return constant`
    pub(crate) fn return_constant(&mut self, constant: i32) {
        self.set(R0, constant);
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The instructions that can be reached, for the kernel takes no others;
    /// `None` if a jump leads back or too far, or the end cannot be reached.
    pub(crate) fn assemble(self) -> Option<Vec<u64>> {
        let mut jump_targets = vec![None; self.instructions.len()];
        for (at, label) in &self.jumps {
            jump_targets[*at] = Some(self.targets[label.0].filter(|target| target > at)?);
        }
        // Jumps only lead forward: all ways to an instruction come from before it.
        let mut reachable = vec![false; self.instructions.len() + 1];
        reachable[0] = true;
        for (at, word) in self.instructions.iter().enumerate() {
            if reachable[at] {
                if let Some(target) = jump_targets[at] {
                    reachable[target] = true;
                }
                reachable[at + 1] |= !matches!(*word as u8, ALWAYS | EXIT);
            }
        }
        // The number of reachable instructions before each.
        let before = reachable.iter().scan(0, |count, &stays| {
            let before = *count;
            *count += usize::from(stays);
            Some(before)
        });
        let before: Vec<usize> = before.collect();
        let mut instructions = Vec::with_capacity(self.instructions.len());
        for (at, word) in self.instructions.iter().enumerate().filter(|(at, _)| reachable[*at]) {
            let distance = jump_targets[at].map_or(0, |target| before[target] - before[at] - 1);
            let distance = i16::try_from(distance).ok()?;
            let offset =
                if jump_targets[at].is_some() { u64::from(distance as u16) << 16 } else { 0 };
            instructions.push(word | offset);
        }
        reachable.last().is_some_and(|&end| end).then_some(instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_reach_their_labels() {
        let mut asm = Assembler::default();
        let [end, behind] = [asm.label(), asm.label()];
        asm.jump_if(IF_IS, R1, 0, 7, end);
        asm.jump(end);
        asm.return_constant(1);
        asm.place(end);
        asm.return_constant(2);
        asm.place(behind);
        // `return_constant(1)` and the end of the program are unreachable.
        assert!(asm.assemble().is_none());
        let mut asm = Assembler::default();
        let [end, other] = [asm.label(), asm.label()];
        asm.jump_if(IF_IS, R1, 0, 7, end);
        asm.jump(other);
        asm.return_constant(1);
        asm.place(end);
        asm.return_constant(2);
        asm.place(other);
        asm.copy(R0, R1);
        let instructions = [
            instruction(0x15, 1, 0, 1, 7),
            instruction(0x05, 0, 0, 2, 0),
            instruction(0xb7, 0, 0, 0, 2),
            instruction(0x95, 0, 0, 0, 0),
            instruction(0xbf, 0, 1, 0, 0),
        ];
        assert_eq!(asm.assemble().unwrap(), instructions);
        // A jump to a label that is never placed is an error.
        let mut asm = Assembler::default();
        let nowhere = asm.label();
        asm.jump(nowhere);
        assert!(asm.assemble().is_none());
    }
}
