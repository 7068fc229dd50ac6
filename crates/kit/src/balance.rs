//! Load balancing: assignment of tasks to workers by their cost.

/// A task that may move to another worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// The worker that runs it now.
    pub worker: usize,
    /// The processor time that it used.
    pub cost: u64,
}

/// A move of a task to another worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The task's index.
    pub task: usize,
    /// The worker that should run it.
    pub to: usize,
}

/// The order in which an overloaded worker gives its tasks away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Cheapest first.
    Increasing,
    /// Most expensive first.
    Decreasing,
}

/// Plans moves that balance the load. `fixed_load` is the cost of all that cannot move, by worker.
/// `threshold` gets the mean load, and answers the difference from it below which a worker is left alone.
///
/// Each move brings two workers closer together: either the source keeps at least as much load as
/// the destination gets, or the destination's new load is below the source's old load by at least
/// the threshold. So there are no further moves while costs stay the same.
pub fn plan_moves(
    tasks: &[Task],
    fixed_load: &[u64],
    order: Order,
    threshold: impl FnOnce(u64) -> u64,
) -> Vec<Move> {
    let mut load = fixed_load.to_vec();
    tasks.iter().for_each(|task| load[task.worker] += task.cost);
    let mut all = Vec::new();
    let Some(mean) = load.iter().sum::<u64>().checked_div(load.len() as u64) else { return all };
    let worth = threshold(mean).max(1);
    let mut queues: Vec<Vec<usize>> =
        (0..load.len()).map(|it| tasks_of(tasks, it, order)).collect();
    loop {
        let giving = (0..load.len()).filter(|&it| !queues[it].is_empty());
        let Some(from) = giving.max_by_key(|&it| load[it]) else { return all };
        let Some(to) = (0..load.len()).min_by_key(|&it| load[it]) else { return all };
        if load[from] < mean + worth && load[to] + worth > mean {
            return all;
        }
        let (gap, cost) = (load[from] - load[to], |at: &usize| tasks[queues[from][*at]].cost);
        let fits = (0..queues[from].len()).find(|at| cost(at) <= gap / 2);
        // In this case the destination has more than the source, but less than the source had.
        let better =
            || (0..queues[from].len()).filter(|at| cost(at) + worth <= gap).min_by_key(cost);
        match fits.or_else(better) {
            Some(at) => {
                let task = queues[from].remove(at);
                load[from] -= tasks[task].cost;
                load[to] += tasks[task].cost;
                all.push(Move { task, to });
            }
            None => queues[from].clear(),
        }
    }
}

/// The tasks of a worker with a cost, in the order in which they are given away.
fn tasks_of(tasks: &[Task], worker: usize, order: Order) -> Vec<usize> {
    let own = |&it: &usize| tasks[it].worker == worker && tasks[it].cost > 0;
    let mut queues: Vec<usize> = (0..tasks.len()).filter(own).collect();
    queues.sort_by_key(|&it| tasks[it].cost);
    if order == Order::Decreasing {
        queues.reverse();
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(all: &[(usize, u64)]) -> Vec<Task> {
        all.iter().map(|&(worker, cost)| Task { worker, cost }).collect()
    }

    /// An eighth of the mean, or this if it is more.
    fn eighth_or(least: u64) -> impl Fn(u64) -> u64 {
        move |mean| (mean / 8).max(least)
    }

    /// The tasks after all moves.
    fn apply_moves(tasks: &[Task], fixed_load: &[u64], order: Order) -> Vec<Task> {
        let mut tasks = tasks.to_vec();
        for Move { task, to } in plan_moves(&tasks.clone(), fixed_load, order, eighth_or(1)) {
            tasks[task].worker = to;
        }
        tasks
    }

    fn loads(tasks: &[Task], fixed_load: &[u64]) -> Vec<u64> {
        let mut loads = fixed_load.to_vec();
        tasks.iter().for_each(|task| loads[task.worker] += task.cost);
        loads
    }

    fn workers(tasks: &[Task]) -> Vec<usize> {
        tasks.iter().map(|task| task.worker).collect()
    }

    #[test]
    fn work_moves_to_the_least_loaded_worker() {
        let three = tasks(&[(0, 33), (0, 33), (0, 33)]);
        assert_eq!(workers(&apply_moves(&three, &[0, 0], Order::Increasing)), [1, 0, 0]);
        let two = tasks(&[(0, 50), (0, 50), (1, 1)]);
        assert_eq!(workers(&apply_moves(&two, &[0, 0], Order::Increasing)), [1, 0, 1]);
        // The cost that cannot move counts, too.
        let one = tasks(&[(0, 40)]);
        assert_eq!(workers(&apply_moves(&one, &[50, 10], Order::Increasing)), [1]);
        assert_eq!(workers(&apply_moves(&one, &[10, 40], Order::Increasing)), [0]);
    }

    #[test]
    fn the_cheapest_or_the_most_expensive_move_first() {
        let all = tasks(&[(0, 10), (0, 20), (0, 30), (0, 40)]);
        assert_eq!(workers(&apply_moves(&all, &[0, 0], Order::Increasing)), [1, 1, 1, 0]);
        assert_eq!(workers(&apply_moves(&all, &[0, 0], Order::Decreasing)), [1, 0, 0, 1]);
    }

    #[test]
    fn one_task_alone_stays() {
        assert!(
            plan_moves(&tasks(&[(0, 100)]), &[0, 0], Order::Increasing, eighth_or(1)).is_empty()
        );
        assert!(plan_moves(&[], &[], Order::Increasing, eighth_or(1)).is_empty());
        assert!(
            plan_moves(&tasks(&[(0, 0), (0, 0)]), &[0, 0], Order::Increasing, eighth_or(1))
                .is_empty()
        );
    }

    #[test]
    fn a_worker_without_movable_tasks_does_not_block_others() {
        // No task can leave worker 0, which has the highest load.
        let all = tasks(&[(1, 40), (1, 40)]);
        assert_eq!(workers(&apply_moves(&all, &[100, 0, 0], Order::Increasing)), [2, 1]);
    }

    #[test]
    fn small_differences_are_not_worth_a_move() {
        let all = tasks(&[(0, 3), (0, 50), (1, 50)]);
        assert!(plan_moves(&all, &[0, 0], Order::Increasing, eighth_or(1)).is_empty());
        let idle = tasks(&[(0, 3), (0, 5)]);
        assert!(plan_moves(&idle, &[0, 0], Order::Increasing, eighth_or(10)).is_empty());
        assert!(!plan_moves(&idle, &[0, 0], Order::Increasing, eighth_or(1)).is_empty());
    }

    type Case = (Vec<u64>, Vec<Task>);

    fn case() -> impl Strategy<Value = Case> {
        (1usize..9).prop_flat_map(|workers| {
            let task = (0..workers, prop_oneof![0u64..20, 0u64..10_000])
                .prop_map(|(worker, cost)| Task { worker, cost });
            let fixed_load = proptest::collection::vec(prop_oneof![Just(0), 0u64..5000], workers);
            (fixed_load, proptest::collection::vec(task, 0..40))
        })
    }

    fn order() -> impl Strategy<Value = Order> {
        prop_oneof![Just(Order::Increasing), Just(Order::Decreasing)]
    }

    fn squares(loads: &[u64]) -> u64 {
        loads.iter().map(|load| load * load).sum()
    }

    proptest! {
        #[test]
        fn the_highest_load_never_grows((fixed_load, tasks) in case(), order in order()) {
            let (before, after) = (loads(&tasks, &fixed_load), loads(&apply_moves(&tasks, &fixed_load, order), &fixed_load));
            prop_assert!(after.iter().max() <= before.iter().max());
            prop_assert!(after.iter().min() >= before.iter().min());
        }

        #[test]
        fn moves_make_workers_more_alike((fixed_load, tasks) in case(), order in order()) {
            let after = apply_moves(&tasks, &fixed_load, order);
            if after != tasks {
                prop_assert!(squares(&loads(&after, &fixed_load)) < squares(&loads(&tasks, &fixed_load)));
            }
        }

        #[test]
        fn equal_loads_stay((workers, cost, each) in (1usize..9, 0u64..1000, 1usize..5),
                            order in order()) {
            let all: Vec<Task> =
                (0..workers * each).map(|it| Task { worker: it % workers, cost }).collect();
            prop_assert!(plan_moves(&all, &vec![7; workers], order, eighth_or(1)).is_empty());
        }

        #[test]
        fn it_converges((fixed_load, tasks) in case(), order in order()) {
            let mut now = tasks;
            for _ in 0..100 {
                let next = apply_moves(&now, &fixed_load, order);
                if next == now {
                    return Ok(());
                }
                now = next;
            }
            prop_assert!(false, "still moving after a hundred looks");
        }

        #[test]
        fn noise_causes_no_oscillation(
            costs in proptest::collection::vec(1u64..10_000, 1..12),
            noise in proptest::collection::vec(980u64..=1020, 240),
            order in order(),
        ) {
            let mut noise = noise.into_iter().cycle();
            let mut now: Vec<Task> =
                costs.iter().map(|&cost| Task { worker: 0, cost: cost * 1000 }).collect();
            let mut times = vec![0; now.len()];
            for _ in 0..60 {
                let measured: Vec<Task> = now
                    .iter()
                    .map(|it| Task { cost: it.cost / 1000 * noise.next().unwrap_or(1000), ..*it })
                    .collect();
                for Move { task, to } in plan_moves(&measured, &[0, 0], order, eighth_or(1)) {
                    times[task] += 1;
                    prop_assert!(times[task] < 4, "task {} goes to and fro", task);
                    now[task].worker = to;
                }
            }
        }
    }
}
