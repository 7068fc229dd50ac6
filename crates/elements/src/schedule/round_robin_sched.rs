//! `RoundRobinSched`: pulls from its inputs round robin.

use castanet_element::packet::IntoIter;
use castanet_element::prelude::*;

/// Schedules its inputs round robin: pulls a packet from each in turn.
///
/// Inputs without packets are skipped.
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
///
/// ```click
/// a -> Queue -> [0] rr :: RRSched(1) -> u :: Unqueue(ACTIVE false) -> out
/// b -> q :: Queue -> [1] rr
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.1.1 > 2.0.0.2 udp len 60
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// = q.length 1
/// ```
#[derive(Element)]
#[element(
    room = "schedule",
    args = RoundRobinSchedArgs,
    ports = "1-/1",
    processing = "l/l",
    alias = "RRSched",
    alias = "SimpleRoundRobinSched",
    alias = "SimpleRRSched"
)]
pub struct RoundRobinSched {
    /// Number of inputs in the rotation.
    inputs: usize,
}

#[derive(Args)]
pub struct RoundRobinSchedArgs {
    /// Uses only the first MAX inputs; all inputs by default.
    #[arg]
    max: Option<usize>,
}

impl Build for RoundRobinSched {
    type Args = RoundRobinSchedArgs;

    fn build(args: RoundRobinSchedArgs, setup: &Setup) -> Result<Self, ArgError> {
        let inputs = args.max.unwrap_or(setup.inputs);
        if inputs > setup.inputs {
            let error = ArgError::new(format!("MAX: {inputs} of {} inputs", setup.inputs));
            return Err(error.help(format!("MAX is at most {}", setup.inputs)));
        }
        Ok(RoundRobinSched { inputs })
    }
}

/// The input whose turn it is, and the bursts that were pulled, by input (empty between calls).
#[derive(Default, Local)]
pub struct RoundRobinSchedState {
    next: usize,
    bursts: Vec<IntoIter>,
}

impl RoundRobinSchedState {
    /// Pulls up to `share` packets from every input with one call per input, and emits them round
    /// robin. Returns the number of packets.
    fn pull_rounds(&mut self, share: usize, inputs: usize, cx: &mut Cx) -> usize {
        for i in 0..inputs {
            self.bursts.push(cx.pull((self.next + i) % inputs, share).into_iter());
        }
        let (first, mut count) = (self.next, 0);
        loop {
            let previous = count;
            for (i, burst) in self.bursts.iter_mut().enumerate() {
                if let Some(packet) = burst.next() {
                    cx.emit((), packet);
                    count += 1;
                    self.next = (first + i + 1) % inputs;
                }
            }
            if count == previous {
                self.bursts.clear();
                return count;
            }
        }
    }
}

impl Source for RoundRobinSched {
    type Local = RoundRobinSchedState;
    type Fate = ();

    fn produce(&self, state: &mut RoundRobinSchedState, n: usize, cx: &mut Cx) -> NextRun {
        let inputs = self.inputs;
        // A hot swap may have made them fewer.
        state.next = if state.next < inputs { state.next } else { 0 };
        let mut left = if inputs > 0 { n } else { 0 };
        while left > 0 {
            let share = left / inputs;
            let count = match share {
                0 => (0..inputs)
                    .map(|_| state.pull_one(inputs, cx))
                    .find(|&count| count > 0)
                    .unwrap_or(0),
                _ => state.pull_rounds(share, inputs, cx),
            };
            if count == 0 {
                break;
            }
            left -= count;
        }
        NextRun::Empty
    }
}

impl RoundRobinSchedState {
    /// Pulls one packet from the input whose turn it is, and advances to the next input. Returns
    /// the number of packets, 0 or 1.
    fn pull_one(&mut self, inputs: usize, cx: &mut Cx) -> usize {
        let batch = cx.pull(self.next, 1);
        self.next = (self.next + 1) % inputs;
        let count = batch.len();
        cx.emit_batch((), batch);
        count
    }
}
