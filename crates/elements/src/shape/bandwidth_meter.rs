//! `BandwidthMeter`: chooses an output by the bandwidth of all packets.

use super::meter::{check_rates, meters_text, output_for_rate};
use castanet_element::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Classifies packets by the current bandwidth in bytes per second.
///
/// With n rates there are n + 1 outputs: output 0 for bandwidths below the first rate, output 1 for
/// those below the second, and so on. The bandwidth is a moving average of bytes per second.
///
/// ```click
/// in -> m :: BandwidthMeter(8bps) -> slow;  m[1] -> fast
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < slow 1.0.0.1 > 2.0.0.2 udp len 60
/// = m.rate 0
/// = m.meters 1
/// = m.drops.unmatched 0
/// + 1ms
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < fast 1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Element)]
#[element(room = "shape", args = BandwidthMeterArgs, methods, processing = "h/h", ports = "1/2-")]
pub struct BandwidthMeter {
    rates: Vec<u64>,
}

#[derive(Args)]
pub struct BandwidthMeterArgs {
    /// Bandwidths that separate the outputs, in increasing order.
    #[arg(rest)]
    rates: Vec<Bandwidth>,
}

/// Moving average of the bandwidth. All workers share it.
#[derive(Default, Local)]
#[local(methods)]
pub struct BandwidthMeterState {
    rate: RateEwma,
    now: u64,
}

#[handlers]
impl BandwidthMeterState {
    /// The average bandwidth in bytes per second.
    #[read]
    fn rate(&self) -> u64 {
        self.rate.rate()
    }
}

#[handlers]
impl BandwidthMeter {
    /// The rates that separate the outputs, one per line.
    #[read]
    fn meters(&self) -> String {
        meters_text(&self.rates)
    }
}

impl Build for BandwidthMeter {
    type Args = BandwidthMeterArgs;

    fn build(args: BandwidthMeterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let rates: Vec<u64> = args.rates.into_iter().map(|rate| rate.0).collect();
        check_rates(&rates, setup.outputs)?;
        Ok(BandwidthMeter { rates })
    }
}

impl PerPacket for BandwidthMeter {
    type On = on::Any;
    type Local = BandwidthMeterState;
    type Fate = Port;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut BandwidthMeterState, now: Time) {
        state.now = now.nanos();
    }

    #[inline]
    fn packet(&self, state: &mut BandwidthMeterState, packet: &mut Packet) -> Port {
        state.rate.update(packet.len() as u64, state.now);
        output_for_rate(&self.rates, state.rate.rate())
    }
}
