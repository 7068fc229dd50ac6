//! `RandomSample`: samples packets at random.

use castanet_element::args::Names;
use castanet_element::prelude::*;

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
/// Idle -> half :: RandomSample(SAMPLE 0.5) -> Discard
/// = half.sampling_prob 0.5
/// = half.drop_prob 0.5
/// ! half.active false
/// = half.config SAMPLE 0.5, ACTIVE false
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = RandomSampleArgs, methods)]
pub struct RandomSample {
    sample: f64,
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

/// Returns `p`. Fails unless it is a probability.
fn check_probability(p: f64) -> Result<f64, ArgError> {
    let valid = (0.0..=1.0).contains(&p).then_some(p);
    valid.ok_or_else(|| ArgError::new(format!("{p} is no probability: it wants 0 to 1")))
}

impl Build for RandomSample {
    type Args = RandomSampleArgs;

    fn build(args: RandomSampleArgs, _: &Setup) -> Result<Self, ArgError> {
        let both = "give at most one of SAMPLE and DROP";
        let sample = match (args.sample.or(args.p), args.drop) {
            (Some(p), None) => check_probability(p)?,
            (None, Some(q)) => 1.0 - check_probability(q)?,
            (Some(_), Some(_)) => return Err(ArgError::new(both)),
            (None, None) => {
                let error = ArgError::new("no probability").help("give P or DROP");
                return Err(error.click("sampling probability must be between 0 and 1"));
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
        format!("SAMPLE {}, ACTIVE {}", self.sample, self.active)
    }
    /// Probability that a packet passes, from 0 to 1.
    #[read]
    fn sampling_prob(&self) -> f64 {
        self.sample
    }
    /// Probability that a packet does not pass, from 0 to 1.
    #[read]
    fn drop_prob(&self) -> f64 {
        1.0 - self.sample
    }
    /// Sets the probability that a packet passes.
    #[write(sampling_prob)]
    fn set_sampling_prob(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomSample { sample: check_probability(f64::from_arg(text, names)?)?, ..self.clone() })
    }
    /// Sets the probability that a packet does not pass.
    #[write(drop_prob)]
    fn set_drop_prob(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomSample {
            sample: 1.0 - check_probability(f64::from_arg(text, names)?)?,
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
        /// One, with the 28 fraction bits that Click's draws and probabilities have.
        const ONE: u32 = 1 << 28;
        if !self.active {
            return cx.emit_batch(RandomSampleExit::Sampled, batch);
        }
        let limit = (self.sample * f64::from(ONE)).round() as u32;
        for packet in batch {
            let passes = cx.random_numbers().number() % ONE < limit;
            state.drops += u64::from(!passes);
            cx.emit(
                if passes { RandomSampleExit::Sampled } else { RandomSampleExit::Other },
                packet,
            );
        }
    }
}
