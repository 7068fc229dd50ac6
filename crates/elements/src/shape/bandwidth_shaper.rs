//! `BandwidthShaper`: limits the bandwidth at which packets can be pulled.

use super::shaped_traffic::ShapedTraffic;
use castanet_element::prelude::*;
use castanet_kit::rate::GapRate;

/// Limits the rate of bytes at which packets can be pulled, the bandwidth, evenly spread.
///
/// ```click
/// in -> q :: Queue -> s :: BandwidthShaper(100) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 100
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// = q.length 2
/// = s.rate 800bps
/// = s.config 800bps
/// + 1s
/// < out 1.0.0.2 > 2.0.0.2 udp len 100
/// + 1s
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
/// = s.count 3
/// = s.byte_count 300
/// > in 1.0.0.4 > 2.0.0.2 udp len 100
/// = q.length 1
/// ! s.reset
/// < out 1.0.0.4 > 2.0.0.2 udp len 100
/// ```
///
/// Packets beyond the bandwidth can be pulled from its second output:
///
/// ```click
/// in -> q :: Queue -> s :: BandwidthShaper(8bps);  s[0] -> [0] p :: PrioSched -> out;  s[1] -> [1] p
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", methods, ports = "1/1-2", processing = "l/l")]
pub struct BandwidthShaper {
    /// Bandwidth, in bytes per second or with a unit.
    #[arg(live)]
    rate: Bandwidth,
}

#[handlers]
impl BandwidthShaper {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> Bandwidth {
        self.rate
    }
}

/// When the next packet may be pulled, and the packets so far.
#[derive(Default, Local)]
#[local(methods)]
pub struct BandwidthShaperState {
    gap_rate: Option<GapRate>,
    #[flatten]
    #[portable]
    shaped: ShapedTraffic,
}

#[handlers]
impl BandwidthShaperState {
    /// Forgets which packets were due: the next one may be pulled at once.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.gap_rate = None;
        Ok(())
    }
}

#[derive(Fate)]
pub enum BandwidthShaperExit {
    /// Packets within the bandwidth.
    Within,
    /// Packets beyond the bandwidth.
    #[optional]
    Beyond,
}

impl Source for BandwidthShaper {
    type Local = BandwidthShaperState;
    type Fate = BandwidthShaperExit;

    fn produce(&self, state: &mut BandwidthShaperState, n: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now().nanos();
        let gap_rate = state.gap_rate.get_or_insert_with(|| GapRate::new(self.rate.0));
        gap_rate.set_rate(self.rate.0, now);
        if cx.requested_output() > 0 {
            if !gap_rate.need_update(now) {
                let batch = cx.pull(0, n);
                cx.emit_batch(BandwidthShaperExit::Beyond, batch);
            }
            return NextRun::Empty;
        }
        for _ in 0..n {
            if !gap_rate.need_update(now) {
                if let Some(next) = gap_rate.expiry() {
                    cx.retry_at(Time::from_nanos(next));
                }
                break;
            }
            let batch = cx.pull(0, 1);
            let Some(length) = batch.iter().next().map(|packet| packet.len()) else { break };
            gap_rate.update_with(length as i64);
            state.shaped.add(&batch);
            cx.emit_batch(BandwidthShaperExit::Within, batch);
        }
        NextRun::Empty
    }
}
