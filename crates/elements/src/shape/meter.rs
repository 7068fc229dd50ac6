//! `Meter`: which way, by how many packets come.

use castanet_engine::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Sends all packets out of the output that stands for their current rate.
///
/// With n rates there are n + 1 outputs: below the first rate, below the
/// second, and so on. The rate is a moving average of packets a second.
///
/// ```click
/// in -> m :: Meter(1, 1000000) -> slow;  m[1] -> fast;  m[2] -> faster
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < slow 1.0.0.1 > 2.0.0.2 udp len 60
/// = m.rate 0
/// = m.drops.unmatched 0
/// + 1ms
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < fast 1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Element)]
#[element(room = "shape", args = Rates, processing = "h/h", ports = "1/2-")]
pub struct Meter {
    rates: Vec<u64>,
}

#[derive(Args)]
pub struct Rates {
    /// Packets a second that separate the outputs, the lowest first.
    #[arg(rest)]
    rates: Vec<u64>,
}

/// How many come.
#[derive(Default, Local)]
#[local(methods)]
pub struct Average {
    rate: RateEwma,
    now: u64,
}

#[handlers]
impl Average {
    /// Packets a second.
    #[read]
    fn rate(&self) -> u64 {
        self.rate.rate()
    }
}

/// What is wrong with a list of rates.
pub(super) fn check(rates: &[u64], outputs: usize) -> Result<(), ArgError> {
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

/// The output that stands for `rate`.
#[inline]
pub(super) fn way(rates: &[u64], rate: u64) -> Port {
    Port::nth(rates.iter().take_while(|&&limit| rate >= limit).count() as u8)
}

impl Build for Meter {
    type Args = Rates;

    fn build(args: Rates, setup: &Setup) -> Result<Self, ArgError> {
        check(&args.rates, setup.outputs)?;
        Ok(Meter { rates: args.rates })
    }
}

impl PerPacket for Meter {
    type On = on::Any;
    type Local = Average;
    type Fate = Port;
    const SHARED: bool = true;

    fn burst(&self, average: &mut Average, now: Time) {
        average.now = now.nanos();
    }

    #[inline]
    fn packet(&self, average: &mut Average, _: &mut Packet) -> Port {
        average.rate.update(1, average.now);
        way(&self.rates, average.rate.rate())
    }
}
