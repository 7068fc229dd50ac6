//! `BalancedThreadSched`: tasks move to workers that have less to do.

use castanet_engine::prelude::*;
use castanet_engine::router::Loads;
use castanet_kit::balance::{Move, Order, Task, plan_moves};

/// Moves tasks between workers, so that all of them have as much to do.
///
/// Every INTERVAL it looks how much processor time each task has taken since
/// the last look. While workers differ by more than an eighth, tasks of the one
/// that had most to do go to the one that had least, as far as that makes the
/// two more alike. Nobody loses a packet: a task moves between two bursts, and
/// elements to which only its packets come move with it.
///
/// Tasks that `StaticThreadSched` gives to a worker stay there, and so do those
/// of devices, which have queues for each worker. `castanet explain` says which
/// may move; each task's handler `home_thread` says where it is.
///
/// ```click
/// sched :: BalancedThreadSched(500)
/// in -> q :: Queue -> u :: Unqueue -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 2s
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 2s
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = sched.interval 500
/// = sched.moves 0
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct BalancedThreadSched {
    /// Milliseconds from one look to the next.
    #[arg(default = 1000, range = 1..)]
    #[read]
    interval: u32,
    /// Whether the tasks that cost least move first, rather than those that cost most.
    #[arg(default = true)]
    #[read]
    increasing: bool,
}

/// What has been seen and done.
#[derive(Default, Local)]
pub struct Seen {
    last: Option<Loads>,
    /// Tasks moved so far.
    #[read]
    moves: u64,
}

impl Control for BalancedThreadSched {
    type Local = Seen;

    fn step(&self, seen: &mut Seen, desk: &mut dyn Desk) -> Step {
        let interval = Duration::from_millis(self.interval.into());
        let now = desk.loads();
        let last = seen.last.replace(now.clone()).filter(|last| goes_on(last, &now));
        if let Some(last) = last {
            for Move { task, to } in self.moves(&last, &now, interval) {
                match desk.move_tasks(now.tasks[task].element, to) {
                    Ok(()) => seen.moves += 1,
                    Err(e) => desk.chatter(&format!("{}: {e}\n", desk.name())),
                }
            }
        }
        Step::At(desk.now() + interval)
    }
}

/// Whether both looks saw the same tasks: another configuration has others, and
/// counts from the start.
fn goes_on(last: &Loads, now: &Loads) -> bool {
    let mut tasks = last.tasks.iter().zip(&now.tasks);
    last.tasks.len() == now.tasks.len()
        && tasks.all(|(last, now)| last.element == now.element && last.cost <= now.cost)
}

impl BalancedThreadSched {
    /// What to move after what was done between two looks; differences of less
    /// than a hundredth of the time between them are left alone.
    fn moves(&self, last: &Loads, now: &Loads, interval: Duration) -> Vec<Move> {
        const LEAST: u32 = 100;
        let between = |last: Duration, now: Duration| now.saturating_sub(last).as_nanos() as u64;
        let tasks = last.tasks.iter().zip(&now.tasks);
        let tasks: Vec<Task> = tasks
            .map(|(last, now)| Task { worker: now.worker, cost: between(last.cost, now.cost) })
            .collect();
        let stays = last.stays.iter().zip(&now.stays).map(|(last, now)| between(*last, *now));
        let order = if self.increasing { Order::Increasing } else { Order::Decreasing };
        plan_moves(&tasks, &stays.collect::<Vec<_>>(), order, (interval / LEAST).as_nanos() as u64)
    }
}
