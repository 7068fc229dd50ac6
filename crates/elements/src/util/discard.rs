//! `Discard`: the end of the road.

use castanet_engine::prelude::*;

/// Ends every packet, as somewhere a packet's way has to end.
///
/// Where its input is pulled, it pulls whenever packets are there. What ends
/// here counts as arrived, not as dropped.
///
/// ```click
/// in -> d :: Discard
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.1 > 2.0.0.2 tcp
/// = d.count 2
/// ! d.active false
/// = d.active false
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = d.count 3
/// ! d.reset_counts
/// = d.count 0
/// ```
#[derive(Clone, Element)]
#[element(room = "util", alias = "DiscardNoFree")]
pub struct Discard {
    /// Whether to pull packets; one that is pushed to takes them always.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// How many packets Click pulls at a time; here the engine's burst decides.
    #[arg(keyword, default = 1)]
    #[allow(dead_code)]
    burst: u32,
}

/// What has ended on one worker.
#[derive(Default, Local)]
#[write(reset_counts)]
pub struct Ended {
    /// Packets that ended here.
    #[read]
    count: u64,
}

impl PerBatch for Discard {
    type On = on::Any;
    type Local = Ended;
    type Fate = Never;

    fn batch(&self, ended: &mut Ended, _: usize, batch: Batch, cx: &mut Cx) {
        ended.count += batch.len() as u64;
        cx.consume(batch);
    }

    fn pulls(&self, _: &Ended) -> bool {
        self.active
    }
}
