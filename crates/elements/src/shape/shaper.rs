//! `Shaper`: no more than a rate may be pulled.

use castanet_engine::prelude::*;
use castanet_kit::rate::GapRate;

/// Lets packets be pulled at a rate, evenly spread.
///
/// ```click
/// in -> q :: Queue -> s :: Shaper(2) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// = q.length 2
/// + 0.5s
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = s.rate 2
/// ! s.rate 1000
/// + 1ms
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ```
///
/// Packets beyond the rate can be pulled from its second output:
///
/// ```click
/// in -> q :: Queue -> s :: Shaper(1);  s[0] -> [0] p :: PrioSched -> out;  s[1] -> [1] p
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", ports = "1/1-2", processing = "l/l")]
pub struct Shaper {
    /// Packets a second.
    #[arg(live)]
    rate: u64,
}

/// What was let through.
#[derive(Default, Local)]
pub struct Pace {
    pace: Option<GapRate>,
}

#[derive(Fate)]
pub enum Way {
    /// Packets within the rate.
    Within,
    /// Packets beyond the rate.
    #[optional]
    Beyond,
}

impl Source for Shaper {
    type Local = Pace;
    type Fate = Way;

    fn ask(&self, local: &mut Pace, n: usize, cx: &mut Cx) -> Asked {
        let now = cx.now().nanos();
        let pace = local.pace.get_or_insert_with(|| GapRate::new(self.rate));
        pace.set_rate(self.rate, now);
        let due = usize::try_from(pace.allowance(now)).unwrap_or(n);
        if cx.asked() > 0 {
            if due == 0 {
                let batch = cx.pull(0, n);
                cx.emit_batch(Way::Beyond, batch);
            }
            return Asked::Empty;
        }
        if due == 0 {
            if let Some(next) = pace.expiry() {
                cx.retry_at(Time::from_nanos(next));
            }
            return Asked::Empty;
        }
        let batch = cx.pull(0, n.min(due));
        pace.update_with(batch.len() as i64);
        cx.emit_batch(Way::Within, batch);
        Asked::Empty
    }
}
