//! `CoDel`: drops packets that have waited in the queue for too long.

use castanet_element::packet::anno::FIRST_TIMESTAMP;
use castanet_element::prelude::*;
use castanet_kit::codel::{CoDel as DelayControl, DelayLimits};

/// Drops packets that have waited in a queue for too long: controlled delay (CoDel).
///
/// The delay of a packet is the time since its first timestamp annotation, which
/// `SetTimestamp(FIRST true)` sets before the queue; packets without one are not
/// dropped. When delays have been above TARGET for INTERVAL, packets are dropped,
/// ever more often, until a packet waits for less than TARGET. The lengths of the
/// nearest queues upstream, or of QUEUES, are only shown.
///
/// ```click
/// in -> SetTimestamp(FIRST true) -> q :: Queue -> c :: CoDel -> RatedUnqueue(10) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// > in 1.0.0.4 > 2.0.0.2 udp
/// > in 1.0.0.5 > 2.0.0.2 udp
/// > in 1.0.0.6 > 2.0.0.2 udp
/// > in 1.0.0.7 > 2.0.0.2 udp
/// > in 1.0.0.8 > 2.0.0.2 udp
/// > in 1.0.0.9 > 2.0.0.2 udp
/// + 0.45s
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.5 > 2.0.0.2 udp
/// < out 1.0.0.7 > 2.0.0.2 udp
/// = c.drops 2
/// = c.drops.delayed 2
/// = c.queues q
/// = c.stats 2 current queue\n2 drops
/// = c.codel_target 0.005
/// = c.codel_interval 0.1
/// ! c.codel_target 1s
/// ! c.codel_interval 200ms
/// = c.codel_interval 0.2
/// + 0.2s
/// < out 1.0.0.8 > 2.0.0.2 udp
/// < out 1.0.0.9 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> q :: Queue -> c :: CoDel(0, 0, QUEUES q) -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// + 5s
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = c.drops 0
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", args = CoDelArgs, methods, ports = "1/1", processing = "l/l")]
pub struct CoDel {
    target: Duration,
    interval: Duration,
    /// Names of the queues, one per line.
    queues: String,
}

#[derive(Args)]
pub struct CoDelArgs {
    /// The delay that is good.
    #[arg(default = Duration::from_millis(5))]
    target: Duration,
    /// The time for which delays may be above TARGET before the first drop.
    #[arg(default = Duration::from_millis(100))]
    interval: Duration,
    /// The queues whose length `stats` shows; the nearest ones if it is empty.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
}

impl CoDel {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(CoDelArgs::parse(config, names).ok()?.queues)
    }
}

impl Build for CoDel {
    type Args = CoDelArgs;

    fn build(args: CoDelArgs, setup: &Setup) -> Result<Self, ArgError> {
        let queues = setup.stores.iter().fold(String::new(), |all, name| all + name + "\n");
        Ok(CoDel { target: args.target, interval: args.interval, queues })
    }
}

#[handlers]
impl CoDel {
    /// Names of the queues, one per line.
    #[read(queues)]
    fn queue_names(&self) -> String {
        self.queues.clone()
    }
    /// The delay that is good, in seconds.
    #[read]
    fn codel_target(&self) -> f64 {
        self.target.as_secs_f64()
    }
    /// Sets the delay that is good.
    #[write(codel_target)]
    fn set_codel_target(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(CoDel { target: Duration::from_arg(text, names)?, ..self.clone() })
    }
    /// The time for which delays may be above the target before the first drop, in seconds.
    #[read]
    fn codel_interval(&self) -> f64 {
        self.interval.as_secs_f64()
    }
    /// Sets the time for which delays may be above the target.
    #[write(codel_interval)]
    fn set_codel_interval(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(CoDel { interval: Duration::from_arg(text, names)?, ..self.clone() })
    }
}

/// The state of the delay, and the drops.
#[derive(Default, Local)]
#[local(methods)]
pub struct CoDelState {
    control: DelayControl,
    /// Total length of the queues after the last pull.
    length: usize,
    /// Packets dropped.
    #[read]
    #[portable]
    drops: u64,
}

#[handlers]
impl CoDelState {
    /// The length of the queues after the last pull, and the number of drops, one per line.
    #[read]
    fn stats(&self) -> String {
        format!("{} current queue\n{} drops\n", self.length, self.drops)
    }
}

#[derive(Fate)]
pub enum CoDelExit {
    /// Packets that are not dropped.
    Passed,
    /// Packets that have waited for too long. If there are many, look for what slows the element
    /// that pulls, or for a sender that does not react to loss.
    #[drop]
    Delayed,
}

impl Source for CoDel {
    type Local = CoDelState;
    type Fate = CoDelExit;

    fn produce(&self, state: &mut CoDelState, n: usize, cx: &mut Cx) -> NextRun {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let limits = DelayLimits { target: nanos(self.target), interval: nanos(self.interval) };
        let (now, mut delayed) = (cx.now().0, Batch::new());
        for _ in 0..n {
            let dequeue = || {
                cx.pull(0, 1).pop().map(|packet| {
                    let since = packet.anno_u64(FIRST_TIMESTAMP) as i64;
                    (packet, Some(since).filter(|since| *since >= SECOND))
                })
            };
            let next = state.control.next(&limits, now, dequeue, |packet| delayed.push(packet));
            let Some(packet) = next else { break };
            cx.emit(CoDelExit::Passed, packet);
        }
        state.drops += delayed.len() as u64;
        delayed.drain().for_each(|packet| cx.emit(CoDelExit::Delayed, packet));
        state.length = cx.watched_held();
        NextRun::Empty
    }
}

/// A first timestamp below one second means that there is none.
const SECOND: i64 = 1_000_000_000;
