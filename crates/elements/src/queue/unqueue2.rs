//! `Unqueue2`: from pull to push, while there is room.

use castanet_engine::prelude::*;

/// Pulls packets as they come, and pushes them on as far as queues have room.
///
/// It watches the queues downstream, or those that QUEUES names, and never
/// pulls more packets than the fullest of them has room for.
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue2(32) -> r :: Queue(2) -> v :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// = q.length 1
/// = r.length 2
/// = r.drops 0
/// = u.packets 2 packets
/// ! v.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// = u.packets 3 packets
/// ```
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue2(BURST 0, QUEUES other) -> out
/// more -> other :: Queue(1) -> v :: Unqueue(ACTIVE false) -> Discard
/// > more 1.0.0.9 > 2.0.0.2 udp
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = q.length 1
/// ! v.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "queue", ports = "1/1", processing = "l/h")]
pub struct Unqueue2 {
    /// How many packets to pull at a time; as many as there are if 0.
    #[arg(default = 32)]
    burst: u32,
    /// The queues to watch; those downstream if there are none.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
}

impl Unqueue2 {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(Unqueue2::parse(config, names).ok()?.queues)
    }
}

/// What has passed so far.
#[derive(Default, Local)]
#[local(methods)]
pub struct Passed {
    count: u64,
}

#[handlers]
impl Passed {
    /// Packets that have passed.
    #[read]
    fn packets(&self) -> String {
        format!("{} packets", self.count)
    }
}

impl Source for Unqueue2 {
    type Local = Passed;
    type Fate = ();

    fn ask(&self, passed: &mut Passed, n: usize, cx: &mut Cx) -> Asked {
        let burst = if self.burst == 0 { n } else { n.min(self.burst as usize) };
        let batch = match burst.min(cx.watched_room()) {
            0 => Batch::new(),
            n => cx.pull(0, n),
        };
        if batch.is_empty() {
            return Asked::Empty;
        }
        passed.count += batch.len() as u64;
        cx.emit_batch((), batch);
        Asked::Again
    }
}
