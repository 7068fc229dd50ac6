//! `RoundRobinSched`: from each input in turn.

use castanet_engine::packet::IntoIter;
use castanet_engine::prelude::*;

/// Pulls from each input in turn, a packet each; inputs without are passed over.
///
/// ```click
/// a -> Queue -> [0] rr :: RoundRobinSched -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] rr
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > a 1.0.0.2 > 2.0.0.2 udp len 60
/// > a 1.0.0.3 > 2.0.0.2 udp len 60
/// > b 1.0.1.1 > 2.0.0.2 udp len 60
/// > b 1.0.1.2 > 2.0.0.2 udp len 60
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.1.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.1.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ```
#[derive(Element)]
#[element(
    room = "schedule",
    ports = "1-/1",
    processing = "l/l",
    alias = "RRSched",
    alias = "SimpleRoundRobinSched",
    alias = "SimpleRRSched"
)]
pub struct RoundRobinSched;

/// Whose turn it is.
#[derive(Default, Local)]
pub struct Turn {
    next: usize,
    columns: Vec<IntoIter>,
}

impl Turn {
    /// Whole rounds at once: pulls `share` packets from every input and deals
    /// them out in turn. How many there were.
    fn rounds(&mut self, share: usize, inputs: usize, cx: &mut Cx) -> usize {
        for i in 0..inputs {
            self.columns.push(cx.pull((self.next + i) % inputs, share).into_iter());
        }
        let (first, mut got) = (self.next, 0);
        loop {
            let before = got;
            for (i, column) in self.columns.iter_mut().enumerate() {
                if let Some(packet) = column.next() {
                    cx.emit((), packet);
                    got += 1;
                    self.next = (first + i + 1) % inputs;
                }
            }
            if got == before {
                self.columns.clear();
                return got;
            }
        }
    }
}

impl Source for RoundRobinSched {
    type Local = Turn;
    type Fate = ();

    fn ask(&self, turn: &mut Turn, n: usize, cx: &mut Cx) -> Asked {
        let inputs = cx.inputs();
        let mut left = n;
        while left > 0 {
            let share = left / inputs.max(1);
            let got = match share {
                0 => (0..inputs).map(|_| turn.one(inputs, cx)).find(|&got| got > 0).unwrap_or(0),
                _ => turn.rounds(share, inputs, cx),
            };
            if got == 0 {
                break;
            }
            left -= got;
        }
        Asked::Empty
    }
}

impl Turn {
    /// One packet from the input whose turn it is, which then passes.
    fn one(&mut self, inputs: usize, cx: &mut Cx) -> usize {
        let batch = cx.pull(self.next, 1);
        self.next = (self.next + 1) % inputs;
        let got = batch.len();
        cx.emit_batch((), batch);
        got
    }
}
