//! The order of the digests of a row.

use crate::private::{MatchId, PrivateFunction};
use std::ops::Range;

/// The columns of a row, one for each match: those of one projection are neighbours.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// By column: the match.
    pub(super) matches: Vec<MatchId>,
    /// By match: the column.
    pub(super) column_of: Vec<u32>,
    /// By projection: its columns.
    pub(super) columns: Vec<Range<usize>>,
}

impl Layout {
    pub(super) fn new(function: &PrivateFunction) -> Layout {
        let projection = |id: MatchId| function.matches()[id as usize];
        let mut matches: Vec<MatchId> = (0..function.matches().len() as MatchId).collect();
        matches.sort_by_key(|&id| projection(id));
        let mut column_of = vec![0; matches.len()];
        matches.iter().zip(0..).for_each(|(&id, column)| column_of[id as usize] = column);
        let end = |of: usize| matches.partition_point(|&id| projection(id) < of);
        let columns = (0..function.projections().len()).map(|of| end(of)..end(of + 1)).collect();
        Layout { matches, column_of, columns }
    }

    /// The number of digests of a row.
    pub(super) fn width(&self) -> usize {
        self.matches.len()
    }
}
