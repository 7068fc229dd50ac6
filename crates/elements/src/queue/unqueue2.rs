//! `Unqueue2`: pulls packets while the queues downstream have room.

use castanet_element::prelude::*;

/// Pulls packets and pushes them on while the queues downstream have room.
///
/// It watches the queues downstream, or those that QUEUES names, and never pulls more packets than
/// fit into the fullest of them.
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
/// in -> q :: Queue -> u :: Unqueue2(BURST 0, QUEUES other, QUIET true) -> out
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
    /// Maximum number of packets per pull; the burst size of the engine if 0.
    #[arg(default = 32)]
    burst: u32,
    /// The queues to watch; those downstream if it is empty.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
    /// An argument of Click without effect: missing queues downstream are never reported.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    quiet: bool,
}

impl Unqueue2 {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(Unqueue2::parse(config, names).ok()?.queues)
    }
}

/// Counter of the pulled packets.
#[derive(Default, Local)]
#[local(methods)]
pub struct Unqueue2State {
    #[portable]
    count: u64,
}

#[handlers]
impl Unqueue2State {
    /// Number of packets pulled, as `N packets`.
    #[read]
    fn packets(&self) -> String {
        format!("{} packets", self.count)
    }
}

impl Source for Unqueue2 {
    type Local = Unqueue2State;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        self.burst as usize
    }

    fn produce(&self, state: &mut Unqueue2State, n: usize, cx: &mut Cx) -> NextRun {
        let burst = if self.burst == 0 { n } else { cx.burst().min(self.burst as usize) };
        let batch = match burst.min(cx.watched_room()) {
            0 => Batch::new(),
            n => cx.pull(0, n),
        };
        if batch.is_empty() {
            return NextRun::Empty;
        }
        state.count += batch.len() as u64;
        cx.emit_batch((), batch);
        NextRun::More
    }
}
