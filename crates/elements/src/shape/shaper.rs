//! `Shaper`: limits the rate at which packets can be pulled.

use super::shaped_traffic::ShapedTraffic;
use castanet_element::prelude::*;
use castanet_kit::rate::GapRate;

/// Limits the rate at which packets can be pulled, evenly spread.
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
/// = s.count 3
/// = s.byte_count 180
/// ! s.rate 2
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// < out 1.0.0.4 > 2.0.0.2 udp len 60
/// = q.length 1
/// ! s.reset
/// < out 1.0.0.5 > 2.0.0.2 udp len 60
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
#[element(room = "shape", methods, ports = "1/1-2", processing = "l/l")]
pub struct Shaper {
    /// Rate in packets per second.
    #[arg(live)]
    rate: u64,
}

#[handlers]
impl Shaper {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> u64 {
        self.rate
    }
}

/// When the next packet may be pulled, and the packets so far.
#[derive(Default, Local)]
#[local(methods)]
pub struct ShaperState {
    gap_rate: Option<GapRate>,
    #[flatten]
    #[portable]
    shaped: ShapedTraffic,
}

#[handlers]
impl ShaperState {
    /// Forgets which packets were due: the next one may be pulled at once.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.gap_rate = None;
        Ok(())
    }
}

#[derive(Fate)]
pub enum ShaperExit {
    /// Packets within the rate.
    Within,
    /// Packets beyond the rate.
    #[optional]
    Beyond,
}

impl Source for Shaper {
    type Local = ShaperState;
    type Fate = ShaperExit;

    fn produce(&self, state: &mut ShaperState, n: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now().nanos();
        let gap_rate = state.gap_rate.get_or_insert_with(|| GapRate::new(self.rate));
        gap_rate.set_rate(self.rate, now);
        let due = usize::try_from(gap_rate.allowance(now)).unwrap_or(n);
        if cx.requested_output() > 0 {
            if due == 0 {
                let batch = cx.pull(0, n);
                cx.emit_batch(ShaperExit::Beyond, batch);
            }
            return NextRun::Empty;
        }
        if due == 0 {
            if let Some(next) = gap_rate.expiry() {
                cx.retry_at(Time::from_nanos(next));
            }
            return NextRun::Empty;
        }
        let batch = cx.pull(0, n.min(due));
        gap_rate.update_with(batch.len() as i64);
        state.shaped.add(&batch);
        cx.emit_batch(ShaperExit::Within, batch);
        NextRun::Empty
    }
}
