//! Instructions of Click's programs, and what the result of one tells about another.

/// The target of an instruction's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// A later instruction.
    Step(u32),
    /// The packet goes to this output.
    Output(u8),
    /// The packet is dropped, or cannot exist.
    Drop,
    /// The packet does not match the rules so far.
    Failure,
}

impl Jump {
    /// The instruction that it leads to.
    pub(super) fn step(self) -> Option<usize> {
        match self {
            Jump::Step(step) => Some(step as usize),
            _ => None,
        }
    }
}

/// The comparison of a word under a mask with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Comparison {
    /// The word's first byte, by Click's count: network headers start at 256, transport headers at 512.
    pub(super) offset: u16,
    pub(super) mask: u32,
    pub(super) value: u32,
    /// Whether a packet that is too short counts as equal.
    pub(super) short_yes: bool,
}

/// A comparison, and where packets go from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) test: Comparison,
    /// The branch for unequal and the one for equal.
    pub(super) jumps: [Jump; 2],
}

impl Comparison {
    /// The bytes that a packet must have, by Click's count.
    pub(super) fn length(&self) -> u32 {
        match self.mask {
            0 => 0,
            mask => u32::from(self.offset) + 4 - mask.trailing_zeros() / 8,
        }
    }

    /// Whether it compares one bit, so that unequal means equal to the other value.
    pub(super) fn is_of_one_bit(&self) -> bool {
        self.mask.is_power_of_two()
    }

    /// The result of another comparison that follows from the result `equal` of this one, for packets
    /// that had `known_length` bytes before; `None` if it may be either.
    pub(super) fn decides(
        &self,
        equal: bool,
        other: &Comparison,
        known_length: u32,
    ) -> Option<bool> {
        if other.mask == 0 {
            return Some(true);
        }
        if !equal && self.mask == 0 {
            return Some(false);
        }
        if self.offset != other.offset {
            return None;
        }
        let both = self.mask & other.mask;
        let answer = match equal {
            true if both == other.mask => self.value & both == other.value,
            false if both == self.mask && self.value == other.value & both => false,
            false if self.is_of_one_bit() && self.mask == other.mask => true,
            _ => return None,
        };
        self.holds_if_short(equal, other, answer, known_length).then_some(answer)
    }

    /// Whether packets that are too short for this comparison, and so have the result `equal`, have the
    /// result `answer` in the other, if there are such packets.
    fn holds_if_short(&self, equal: bool, other: &Comparison, answer: bool, known: u32) -> bool {
        let length = self.length();
        self.short_yes != equal
            || u32::from(self.offset) + 4 <= known
            || length <= known
            || (length <= other.length() && answer == other.short_yes)
    }

    /// Whether some word is equal to both values.
    pub(super) fn is_compatible(&self, other: &Comparison) -> bool {
        let differing = (self.value ^ other.value) & self.mask & other.mask;
        self.mask == 0 || other.mask == 0 || (self.offset == other.offset && differing == 0)
    }
}

impl Instruction {
    pub(super) fn jump(&self, equal: bool) -> Jump {
        self.jumps[usize::from(equal)]
    }

    pub(super) fn yes(&self) -> Jump {
        self.jumps[1]
    }

    pub(super) fn no(&self) -> Jump {
        self.jumps[0]
    }

    /// The same behind so many other instructions.
    pub(super) fn moved_by(self, steps: u32) -> Instruction {
        let jumps = self.jumps.map(|jump| match jump {
            Jump::Step(step) => Jump::Step(step + steps),
            end => end,
        });
        Instruction { jumps, ..self }
    }

    /// Asks for the other value of the one bit that it compares.
    pub(super) fn flip(&mut self) {
        self.test.value ^= self.test.mask;
        self.test.short_yes = !self.test.short_yes;
        self.jumps.swap(0, 1);
    }
}
