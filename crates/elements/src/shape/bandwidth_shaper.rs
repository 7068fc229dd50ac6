//! `BandwidthShaper`: no more than a bandwidth may be pulled.

use castanet_engine::prelude::*;
use castanet_kit::rate::GapRate;

/// Lets packets be pulled at a bandwidth, evenly spread.
///
/// ```click
/// in -> q :: Queue -> s :: BandwidthShaper(100) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 100
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// = q.length 2
/// = s.rate 800bps
/// + 1s
/// < out 1.0.0.2 > 2.0.0.2 udp len 100
/// + 1s
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
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
#[element(room = "shape", ports = "1/1-2", processing = "l/l")]
pub struct BandwidthShaper {
    /// Bytes a second, or a bandwidth.
    #[arg(live)]
    rate: Bandwidth,
}

/// What was let through.
#[derive(Default, Local)]
pub struct Pace {
    pace: Option<GapRate>,
}

#[derive(Fate)]
pub enum Way {
    /// Packets within the bandwidth.
    Within,
    /// Packets beyond the bandwidth.
    #[optional]
    Beyond,
}

impl Source for BandwidthShaper {
    type Local = Pace;
    type Fate = Way;

    fn ask(&self, local: &mut Pace, n: usize, cx: &mut Cx) -> Asked {
        let now = cx.now().nanos();
        let pace = local.pace.get_or_insert_with(|| GapRate::new(self.rate.0));
        pace.set_rate(self.rate.0, now);
        if cx.asked() > 0 {
            if !pace.need_update(now) {
                let batch = cx.pull(0, n);
                cx.emit_batch(Way::Beyond, batch);
            }
            return Asked::Empty;
        }
        for _ in 0..n {
            if !pace.need_update(now) {
                if let Some(next) = pace.expiry() {
                    cx.retry_at(Time::from_nanos(next));
                }
                break;
            }
            let batch = cx.pull(0, 1);
            let Some(length) = batch.iter().next().map(|packet| packet.len()) else { break };
            pace.update_with(length as i64);
            cx.emit_batch(Way::Within, batch);
        }
        Asked::Empty
    }
}
