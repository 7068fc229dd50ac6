//! Places in a fused chain, and the packets that leave it.

/// The most branches that a chain can have.
pub const MAX_BRANCHES: usize = 16;

/// How many packets of a burst come to each branch, and how many to none.
pub type BranchCounts = [u16; MAX_BRANCHES + 1];

/// Place of an element in a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagePlace {
    /// Its branch, from 1; 0 before the chain divides.
    pub branch: u8,
    /// Its stage there.
    pub stage: u8,
}

impl StagePlace {
    /// The place behind.
    #[inline(always)]
    pub fn next(self) -> StagePlace {
        StagePlace { stage: self.stage + 1, ..self }
    }
}

/// A packet that leaves a fused chain before its end.
#[derive(Clone, Copy, Debug)]
pub struct ChainExit {
    /// Index of the packet in the burst.
    pub index: u16,
    /// The place of the stage at which it leaves.
    pub place: StagePlace,
    /// Its fate there; `None` where the stage's element is to take it as part of a batch.
    pub fate: Option<u8>,
}
