//! `BalancedThreadSched`: moves tasks to workers with less load.

use castanet_element::control::Loads;
use castanet_element::prelude::*;
use castanet_kit::balance::{Move, Order, Task, plan_moves};

/// Balances the load of workers: moves tasks from busy workers to others.
///
/// Every INTERVAL it measures the processor time that each task has used since the last
/// measurement. While the loads of workers differ by more than an eighth, it moves tasks from the
/// worker with the highest load to the one with the lowest, as far as that makes the two more
/// equal. No packet is lost: a task moves between two bursts, together with the elements that only
/// its packets reach.
///
/// Tasks that `StaticThreadSched` assigns to a worker do not move, and neither do tasks of devices,
/// which have queues for each worker. `castanet explain` lists the tasks that may move; the handler
/// `home_thread` of a task is the number of its worker.
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
    /// Time between two measurements in milliseconds.
    #[arg(default = 1000, range = 1..)]
    #[read]
    interval: u32,
    /// Whether the tasks with the lowest cost move first, rather than those with the highest.
    #[arg(default = true)]
    #[read]
    increasing: bool,
}

/// The last measurement, and the number of moves.
#[derive(Default, Local)]
pub struct BalancedThreadSchedState {
    last: Option<Loads>,
    /// Number of tasks moved.
    #[read]
    #[portable]
    moves: u64,
}

impl Control for BalancedThreadSched {
    type Local = BalancedThreadSchedState;

    fn step(
        &self,
        state: &mut BalancedThreadSchedState,
        desk: &mut dyn ControlContext,
    ) -> ProgramWait {
        let interval = Duration::from_millis(self.interval.into());
        let now = desk.loads();
        let last = state.last.replace(now.clone()).filter(|last| have_same_tasks(last, &now));
        if let Some(last) = last {
            for Move { task, to } in self.moves(&last, &now, interval) {
                match desk.move_tasks(now.tasks[task].element, to) {
                    Ok(()) => state.moves += 1,
                    Err(e) => desk.chatter(&format!("{}: {e}\n", desk.name())),
                }
            }
        }
        ProgramWait::At(desk.now() + interval)
    }
}

/// Whether both measurements are of the same tasks. After a change of the configuration they are
/// not, and the measurement begins anew.
fn have_same_tasks(last: &Loads, now: &Loads) -> bool {
    let mut tasks = last.tasks.iter().zip(&now.tasks);
    last.tasks.len() == now.tasks.len()
        && tasks.all(|(last, now)| last.element == now.element && last.cost <= now.cost)
}

impl BalancedThreadSched {
    /// The moves that the loads between two measurements call for. Differences of less than a
    /// hundredth of the interval are ignored.
    fn moves(&self, last: &Loads, now: &Loads, interval: Duration) -> Vec<Move> {
        const THRESHOLD_DIVISOR: u32 = 100;
        let between = |last: Duration, now: Duration| now.saturating_sub(last).as_nanos() as u64;
        let tasks = last.tasks.iter().zip(&now.tasks);
        let tasks: Vec<Task> = tasks
            .map(|(last, now)| Task { worker: now.worker, cost: between(last.cost, now.cost) })
            .collect();
        let stays = last.stays.iter().zip(&now.stays).map(|(last, now)| between(*last, *now));
        let order = if self.increasing { Order::Increasing } else { Order::Decreasing };
        let least = (interval / THRESHOLD_DIVISOR).as_nanos() as u64;
        plan_moves(&tasks, &stays.collect::<Vec<_>>(), order, |mean| (mean / 8).max(least))
    }
}
