//! `Unqueue2`: pulls packets while the queues downstream have room.

use castanet_element::prelude::*;

/// Pulls packets and pushes them on while the queues downstream have room.
///
/// It watches the queues downstream, or those that QUEUES names, and never pulls more packets than
/// fit into the fullest of them; without a queue there is no such limit. `Unqueue` does the same, as
/// sources wait for room in a `Queue`; without QUIET there is a warning that says so.
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue2(32, QUIET true) -> r :: Queue(2) -> v :: Unqueue(ACTIVE false) -> out
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
///
/// ```click
/// in -> Queue -> Unqueue2(QUIET true) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "queue", args = Unqueue2Args, ports = "1/1", processing = "l/h")]
pub struct Unqueue2 {
    burst: u32,
}

#[derive(Args)]
pub struct Unqueue2Args {
    /// Maximum number of packets per pull; the burst size of the engine if 0.
    #[arg(default = 1)]
    burst: u32,
    /// The queues to watch; those downstream if it is empty.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
    /// Whether the warning is left out that `Unqueue` replaces it.
    #[arg(keyword, default = false)]
    quiet: bool,
}

impl Build for Unqueue2 {
    type Args = Unqueue2Args;

    fn build(args: Unqueue2Args, setup: &Setup) -> Result<Self, ArgError> {
        if !args.quiet {
            (setup.warn)("Unqueue2 is deprecated, you should probably use Unqueue".into());
        }
        Ok(Unqueue2 { burst: args.burst })
    }
}

impl Unqueue2 {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(Unqueue2Args::parse(config, names).ok()?.queues)
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
