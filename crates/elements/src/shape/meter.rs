//! `Meter`: chooses an output by the rate of all packets.

use castanet_element::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Classifies packets by the current rate in packets per second.
///
/// With n rates there are n + 1 outputs: output 0 for rates below the first one, output 1 for those
/// below the second, and so on. The rate is a moving average of packets per second.
///
/// ```click
/// in -> m :: Meter(1, 1000000) -> slow;  m[1] -> fast;  m[2] -> faster
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < slow 1.0.0.1 > 2.0.0.2 udp len 60
/// = m.rate 0
/// = m.meters 1\n1000000
/// = m.drops.unmatched 0
/// + 1ms
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < fast 1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Element)]
#[element(room = "shape", args = MeterArgs, methods, processing = "h/h", ports = "1/2-")]
pub struct Meter {
    rates: Vec<u64>,
}

#[derive(Args)]
pub struct MeterArgs {
    /// Rates in packets per second that separate the outputs, in increasing order.
    #[arg(rest)]
    rates: Vec<u64>,
}

/// Moving average of the rate. All workers share it.
#[derive(Default, Local)]
#[local(methods)]
pub struct MeterState {
    rate: RateEwma,
    now: u64,
}

#[handlers]
impl MeterState {
    /// The average rate in packets per second.
    #[read]
    fn rate(&self) -> u64 {
        self.rate.rate()
    }
}

/// The rates as the handler `meters` shows them: one alone, or each on a line.
pub(super) fn meters_text(rates: &[u64]) -> String {
    match rates {
        [rate] => rate.to_string(),
        rates => rates.iter().map(|rate| format!("{rate}\n")).collect(),
    }
}

/// Checks that the rates increase, and that there is one output more than rates.
pub(super) fn check_rates(rates: &[u64], outputs: usize) -> Result<(), ArgError> {
    if rates.is_empty() {
        return Err(ArgError::new("too few arguments").help("it wants one rate or more"));
    }
    if rates.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(ArgError::new("rates must be in increasing order"));
    }
    match outputs == rates.len() + 1 {
        true => Ok(()),
        false => {
            Err(ArgError::new(format!("{} rates want {} outputs", rates.len(), rates.len() + 1)))
        }
    }
}

/// The output for packets at `rate`.
#[inline]
pub(super) fn output_for_rate(rates: &[u64], rate: u64) -> Port {
    Port::nth(rates.iter().take_while(|&&limit| rate >= limit).count() as u8)
}

#[handlers]
impl Meter {
    /// The rates that separate the outputs, one per line.
    #[read]
    fn meters(&self) -> String {
        meters_text(&self.rates)
    }
}

impl Build for Meter {
    type Args = MeterArgs;

    fn build(args: MeterArgs, setup: &Setup) -> Result<Self, ArgError> {
        check_rates(&args.rates, setup.outputs)?;
        Ok(Meter { rates: args.rates })
    }
}

impl PerPacket for Meter {
    type On = on::Any;
    type Local = MeterState;
    type Fate = Port;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut MeterState, now: Time) {
        state.now = now.nanos();
    }

    #[inline]
    fn packet(&self, state: &mut MeterState, _: &mut Packet) -> Port {
        state.rate.update(1, state.now);
        output_for_rate(&self.rates, state.rate.rate())
    }
}
