//! The first instruction of a program in forms that most programs end with.

use super::bytecode::{Load, Op, output};
use super::comparisons::Comparisons;
use super::dispatch::HashDispatch;
use super::graph::{OUT, Target};
use super::header_words::{HeaderWords, Headers};
use super::pattern::Base;

/// The first instruction, if it reads words from the network header on only, without a look at what else
/// instructions can be.
#[derive(Clone, Debug)]
pub(crate) enum NetworkLookup {
    /// A lookup of a word of the network header.
    Word { offset: usize, mask: u32, slots: HashDispatch },
    /// Comparisons of words of the network header and the transport header.
    Comparisons(Comparisons),
}

impl NetworkLookup {
    pub(crate) fn new(op: &Op) -> Option<NetworkLookup> {
        let (load, slots) = match op {
            Op::Hash { load, slots, .. } => (load, slots.clone()),
            &Op::Test { ref load, lo, span: 0, yes, no, .. } => {
                (load, HashDispatch::new(&[(lo, lo, yes)], no))
            }
            Op::Comparisons { comparisons, .. } if comparisons.are_of_network() => {
                return Some(NetworkLookup::Comparisons(comparisons.clone()));
            }
            _ => return None,
        };
        let offset = usize::from(load.offset);
        (load.base == Base::Network).then_some(NetworkLookup::Word {
            offset,
            mask: load.mask,
            slots,
        })
    }

    /// The target of a packet, if it has the words.
    #[inline(always)]
    pub(crate) fn find(&self, network: &[u8]) -> Option<Target> {
        match self {
            NetworkLookup::Word { offset, mask, slots } => {
                let word = network.get(*offset..)?.first_chunk()?;
                Some(slots.find(u32::from_be_bytes(*word) & mask))
            }
            NetworkLookup::Comparisons(comparisons) => {
                comparisons.find(&Headers::new(&[], network))
            }
        }
    }
}

/// A program with a single comparison. The value is stored in the byte order of memory, so that the
/// loaded word needs no byte swap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleTest {
    base: Base,
    offset: u16,
    mask: u32,
    value: u32,
    /// Outputs, or [`NO_OUTPUT`](super::bytecode::NO_OUTPUT).
    yes: u8,
    no: u8,
}

impl SingleTest {
    pub(crate) fn new(op: &Op) -> Option<SingleTest> {
        match *op {
            Op::Test { load, lo, span: 0, yes, no, .. } if yes >= OUT && no >= OUT => {
                Some(SingleTest {
                    base: load.base,
                    offset: load.offset,
                    mask: load.mask.to_be(),
                    value: lo.to_be(),
                    yes: output(yes),
                    no: output(no),
                })
            }
            _ => None,
        }
    }

    /// The output, if the packet is long enough for a whole word.
    #[inline(always)]
    pub(crate) fn find<W: HeaderWords>(&self, words: &W) -> Option<u8> {
        let word = words.word(self.base, self.offset)?.to_be();
        Some(if word & self.mask == self.value { self.yes } else { self.no })
    }
}

/// How many words a [`SmallDispatch`] compares with.
const SMALL_DISPATCH_WORDS: usize = 4;

/// A dispatch small enough to compare with all its words, without branches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallDispatch {
    load: Load,
    words: [u32; SMALL_DISPATCH_WORDS],
    targets: [Target; SMALL_DISPATCH_WORDS],
    default: Target,
}

impl SmallDispatch {
    fn new(op: &Op) -> Option<SmallDispatch> {
        let Op::Hash { load, slots, .. } = op else { return None };
        let mut dispatch = SmallDispatch {
            load: *load,
            words: [0; SMALL_DISPATCH_WORDS],
            targets: [0; SMALL_DISPATCH_WORDS],
            default: slots.default(),
        };
        // Unused entries repeat the last word.
        let mut known = slots.known().peekable();
        for i in 0..SMALL_DISPATCH_WORDS {
            (dispatch.words[i], dispatch.targets[i]) = match known.next() {
                Some(known) => known,
                None => (*dispatch.words.get(i.checked_sub(1)?)?, dispatch.targets[i - 1]),
            };
        }
        known.peek().is_none().then_some(dispatch)
    }

    /// The target of a packet, if it has the word.
    #[inline(always)]
    fn find<W: HeaderWords>(&self, words: &W) -> Option<Target> {
        let word = words.word(self.load.base, self.load.offset)? & self.load.mask;
        let mut target = self.default;
        for i in 0..SMALL_DISPATCH_WORDS {
            target = if word == self.words[i] { self.targets[i] } else { target };
        }
        Some(target)
    }
}

/// The first instruction of any program.
#[derive(Clone, Debug)]
pub(crate) enum First {
    Dispatch(SmallDispatch),
    Comparisons(Comparisons),
}

impl First {
    pub(crate) fn new(op: &Op) -> Option<First> {
        match op {
            Op::Comparisons { comparisons, .. } => Some(First::Comparisons(comparisons.clone())),
            op => SmallDispatch::new(op).map(First::Dispatch),
        }
    }

    /// The target of a packet, if it has the words.
    #[inline(always)]
    pub(crate) fn find<W: HeaderWords>(&self, words: &W) -> Option<Target> {
        match self {
            First::Dispatch(dispatch) => dispatch.find(words),
            First::Comparisons(comparisons) => comparisons.find(words),
        }
    }
}
