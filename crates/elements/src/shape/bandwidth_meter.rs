//! `BandwidthMeter`: which way, by how many bytes come.

use super::meter::{check, way};
use castanet_engine::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Sends all packets out of the output that stands for their current bandwidth.
///
/// With n rates there are n + 1 outputs: below the first rate, below the
/// second, and so on. The rate is a moving average of bytes a second.
///
/// ```click
/// in -> m :: BandwidthMeter(8bps) -> slow;  m[1] -> fast
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
pub struct BandwidthMeter {
    rates: Vec<u64>,
}

#[derive(Args)]
pub struct Rates {
    /// Bandwidths that separate the outputs, the lowest first.
    #[arg(rest)]
    rates: Vec<Bandwidth>,
}

/// How much comes.
#[derive(Default, Local)]
#[local(methods)]
pub struct Average {
    rate: RateEwma,
    now: u64,
}

#[handlers]
impl Average {
    /// Bytes a second.
    #[read]
    fn rate(&self) -> u64 {
        self.rate.rate()
    }
}

impl Build for BandwidthMeter {
    type Args = Rates;

    fn build(args: Rates, setup: &Setup) -> Result<Self, ArgError> {
        let rates: Vec<u64> = args.rates.into_iter().map(|rate| rate.0).collect();
        check(&rates, setup.outputs)?;
        Ok(BandwidthMeter { rates })
    }
}

impl PerPacket for BandwidthMeter {
    type On = on::Any;
    type Local = Average;
    type Fate = Port;
    const SHARED: bool = true;

    fn burst(&self, average: &mut Average, now: Time) {
        average.now = now.nanos();
    }

    #[inline]
    fn packet(&self, average: &mut Average, packet: &mut Packet) -> Port {
        average.rate.update(packet.len() as u64, average.now);
        way(&self.rates, average.rate.rate())
    }
}
