//! `RandomSample`: samples packets at random.

use castanet_element::args::Names;
use castanet_element::prelude::*;
use castanet_kit::probability::Probability;

/// Samples packets at random, each with the same probability.
///
/// ```click
/// in -> all :: RandomSample(P 1) -> none :: RandomSample(DROP 1) -> out;  none[1] -> rest
/// > in   1.0.0.1 > 2.0.0.2 udp len 60
/// < rest 1.0.0.1 > 2.0.0.2 udp len 60
/// = none.drops 1
/// = none.sampling_prob 0
/// ! none.active false
/// ! all.drop_prob 0.25
/// = all.sampling_prob 0.75
/// ! all.sampling_prob 1
/// = all.drop_prob 0
/// > in  1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = none.drops 1
/// ```
///
/// ```click
/// Idle -> rare :: RandomSample(DROP 0.9) -> Discard
/// = rare.sampling_prob 0.1
/// = rare.drop_prob 0.9
/// ```
///
/// ```click
/// Idle -> half :: RandomSample(SAMPLE 0.5) -> Discard
/// = half.sampling_prob 0.5
/// = half.drop_prob 0.5
/// ! half.active false
/// = half.config SAMPLE 0.5, ACTIVE false
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = RandomSampleArgs, methods)]
pub struct RandomSample {
    sample: Probability,
    /// Whether to sample; all packets pass otherwise.
    #[arg(live)]
    active: bool,
}

#[derive(Args)]
pub struct RandomSampleArgs {
    /// Probability that a packet passes, from 0 to 1.
    #[arg]
    p: Option<f64>,
    /// As P.
    #[arg(keyword)]
    sample: Option<f64>,
    /// Probability that a packet does not pass, from 0 to 1.
    #[arg(keyword)]
    drop: Option<f64>,
    /// Whether to sample; all packets pass otherwise.
    #[arg(keyword, default = true)]
    active: bool,
}

/// The probability `p`. Fails, in Click with these words, unless it is one.
fn probability(p: f64, click: &str) -> Result<Probability, ArgError> {
    let valid = (0.0..=1.0).contains(&p).then(|| Probability::nearest(p));
    let error = || ArgError::new(format!("{p} is no probability: it wants 0 to 1"));
    valid.ok_or_else(|| error().click(click))
}

/// Click's words about an argument that is no probability.
const WRONG_ARGUMENT: &str = "sampling probability must be between 0 and 1";
/// The same about a value that a handler is to set.
const WRONG_VALUE: &str = "Must be given a number between 0.0 and 1.0";

impl Build for RandomSample {
    type Args = RandomSampleArgs;

    fn build(args: RandomSampleArgs, _: &Setup) -> Result<Self, ArgError> {
        let both = "give at most one of SAMPLE and DROP";
        let sample = match (args.sample.or(args.p), args.drop) {
            (Some(p), None) => probability(p, WRONG_ARGUMENT)?,
            (None, Some(q)) => probability(q, WRONG_ARGUMENT)?.complement(),
            (Some(_), Some(_)) => return Err(ArgError::new(both)),
            (None, None) => {
                let error = ArgError::new("no probability").help("give P or DROP");
                return Err(error.click(WRONG_ARGUMENT));
            }
        };
        Ok(RandomSample { sample, active: args.active })
    }
}

#[handlers]
impl RandomSample {
    /// The arguments as they are in effect.
    #[read]
    fn config(&self) -> String {
        format!("SAMPLE {}, ACTIVE {}", self.sampling_prob(), self.active)
    }
    /// Probability that a packet passes, from 0 to 1.
    #[read]
    fn sampling_prob(&self) -> String {
        self.sample.to_string()
    }
    /// Probability that a packet does not pass, from 0 to 1.
    #[read]
    fn drop_prob(&self) -> String {
        self.sample.complement().to_string()
    }
    /// Sets the probability that a packet passes.
    #[write(sampling_prob)]
    fn set_sampling_prob(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomSample {
            sample: probability(f64::from_arg(text, names)?, WRONG_VALUE)?,
            ..self.clone()
        })
    }
    /// Sets the probability that a packet does not pass.
    #[write(drop_prob)]
    fn set_drop_prob(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomSample {
            sample: probability(f64::from_arg(text, names)?, WRONG_VALUE)?.complement(),
            ..self.clone()
        })
    }
}

/// Counter of the packets that did not pass.
#[derive(Default, Local)]
pub struct RandomSampleState {
    /// Number of packets that did not pass.
    #[read]
    #[portable]
    drops: u64,
}

#[derive(Fate)]
pub enum RandomSampleExit {
    /// Packets that are in the sample.
    Sampled,
    /// The other packets.
    #[optional]
    Other,
}

impl PerBatch for RandomSample {
    type On = on::Any;
    type Local = RandomSampleState;
    type Fate = RandomSampleExit;

    fn batch(&self, state: &mut RandomSampleState, _: usize, batch: Batch, cx: &mut Cx) {
        if !self.active {
            return cx.emit_batch(RandomSampleExit::Sampled, batch);
        }
        for packet in batch {
            let passes = self.sample.occurs(cx.random_numbers().number());
            state.drops += u64::from(!passes);
            cx.emit(
                if passes { RandomSampleExit::Sampled } else { RandomSampleExit::Other },
                packet,
            );
        }
    }
}
