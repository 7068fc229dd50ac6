//! Which task to give to which worker, so that all workers have as much to do.

/// A task that may go to another worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// Where it runs now.
    pub worker: usize,
    /// The processor time that it took.
    pub cost: u64,
}

/// A task that should go to another worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The task's place among all.
    pub task: usize,
    /// Where it should run.
    pub to: usize,
}

/// Which tasks of a worker that has too much to do go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The cheapest.
    Increasing,
    /// The dearest.
    Decreasing,
}

/// Says which tasks should move, where `stays` is by worker the cost of all
/// that cannot. A difference below `least`, or below an eighth of the mean, is
/// not worth a move.
///
/// Each move makes two workers more alike: the giver keeps as much as the taker
/// gets, or else the one that then has more has less than the giver had, by as
/// much as is worth a move. So it comes to rest as long as costs stay as they are.
pub fn moves(tasks: &[Task], stays: &[u64], order: Order, least: u64) -> Vec<Move> {
    let mut load = stays.to_vec();
    tasks.iter().for_each(|task| load[task.worker] += task.cost);
    let mut all = Vec::new();
    let Some(mean) = load.iter().sum::<u64>().checked_div(load.len() as u64) else { return all };
    let worth = (mean / 8).max(least).max(1);
    let mut here: Vec<Vec<usize>> = (0..load.len()).map(|it| on(tasks, it, order)).collect();
    loop {
        let giving = (0..load.len()).filter(|&it| !here[it].is_empty());
        let Some(from) = giving.max_by_key(|&it| load[it]) else { return all };
        let Some(to) = (0..load.len()).min_by_key(|&it| load[it]) else { return all };
        if load[from] < mean + worth && load[to] + worth > mean {
            return all;
        }
        let (gap, cost) = (load[from] - load[to], |at: &usize| tasks[here[from][*at]].cost);
        let fits = (0..here[from].len()).find(|at| cost(at) <= gap / 2);
        // Then the taker has more than the giver, but less than the giver had.
        let better = || (0..here[from].len()).filter(|at| cost(at) + worth <= gap).min_by_key(cost);
        match fits.or_else(better) {
            Some(at) => {
                let task = here[from].remove(at);
                load[from] -= tasks[task].cost;
                load[to] += tasks[task].cost;
                all.push(Move { task, to });
            }
            None => here[from].clear(),
        }
    }
}

/// The tasks of a worker that cost anything, those first that should go first.
fn on(tasks: &[Task], worker: usize, order: Order) -> Vec<usize> {
    let own = |&it: &usize| tasks[it].worker == worker && tasks[it].cost > 0;
    let mut here: Vec<usize> = (0..tasks.len()).filter(own).collect();
    here.sort_by_key(|&it| tasks[it].cost);
    if order == Order::Decreasing {
        here.reverse();
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(all: &[(usize, u64)]) -> Vec<Task> {
        all.iter().map(|&(worker, cost)| Task { worker, cost }).collect()
    }

    /// Where each task is once all moves are made.
    fn moved(tasks: &[Task], stays: &[u64], order: Order) -> Vec<Task> {
        let mut tasks = tasks.to_vec();
        for Move { task, to } in moves(&tasks.clone(), stays, order, 1) {
            tasks[task].worker = to;
        }
        tasks
    }

    fn loads(tasks: &[Task], stays: &[u64]) -> Vec<u64> {
        let mut loads = stays.to_vec();
        tasks.iter().for_each(|task| loads[task.worker] += task.cost);
        loads
    }

    fn workers(tasks: &[Task]) -> Vec<usize> {
        tasks.iter().map(|task| task.worker).collect()
    }

    #[test]
    fn work_goes_to_who_has_least() {
        let three = tasks(&[(0, 33), (0, 33), (0, 33)]);
        assert_eq!(workers(&moved(&three, &[0, 0], Order::Increasing)), [1, 0, 0]);
        let two = tasks(&[(0, 50), (0, 50), (1, 1)]);
        assert_eq!(workers(&moved(&two, &[0, 0], Order::Increasing)), [1, 0, 1]);
        // What stays counts too.
        let one = tasks(&[(0, 40)]);
        assert_eq!(workers(&moved(&one, &[50, 10], Order::Increasing)), [1]);
        assert_eq!(workers(&moved(&one, &[10, 40], Order::Increasing)), [0]);
    }

    #[test]
    fn the_cheapest_or_the_dearest_go_first() {
        let all = tasks(&[(0, 10), (0, 20), (0, 30), (0, 40)]);
        assert_eq!(workers(&moved(&all, &[0, 0], Order::Increasing)), [1, 1, 1, 0]);
        assert_eq!(workers(&moved(&all, &[0, 0], Order::Decreasing)), [1, 0, 0, 1]);
    }

    #[test]
    fn one_task_alone_stays() {
        assert!(moves(&tasks(&[(0, 100)]), &[0, 0], Order::Increasing, 1).is_empty());
        assert!(moves(&[], &[], Order::Increasing, 1).is_empty());
        assert!(moves(&tasks(&[(0, 0), (0, 0)]), &[0, 0], Order::Increasing, 1).is_empty());
    }

    #[test]
    fn a_worker_that_has_only_what_stays_hinders_nobody() {
        // Nothing can leave worker 0, which has most.
        let all = tasks(&[(1, 40), (1, 40)]);
        assert_eq!(workers(&moved(&all, &[100, 0, 0], Order::Increasing)), [2, 1]);
    }

    #[test]
    fn small_differences_are_not_worth_a_move() {
        let all = tasks(&[(0, 3), (0, 50), (1, 50)]);
        assert!(moves(&all, &[0, 0], Order::Increasing, 1).is_empty());
        let idle = tasks(&[(0, 3), (0, 5)]);
        assert!(moves(&idle, &[0, 0], Order::Increasing, 10).is_empty());
        assert!(!moves(&idle, &[0, 0], Order::Increasing, 1).is_empty());
    }

    type Case = (Vec<u64>, Vec<Task>);

    fn case() -> impl Strategy<Value = Case> {
        (1usize..9).prop_flat_map(|workers| {
            let task = (0..workers, prop_oneof![0u64..20, 0u64..10_000])
                .prop_map(|(worker, cost)| Task { worker, cost });
            let stays = proptest::collection::vec(prop_oneof![Just(0), 0u64..5000], workers);
            (stays, proptest::collection::vec(task, 0..40))
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
        fn the_highest_load_never_grows((stays, tasks) in case(), order in order()) {
            let (before, after) = (loads(&tasks, &stays), loads(&moved(&tasks, &stays, order), &stays));
            prop_assert!(after.iter().max() <= before.iter().max());
            prop_assert!(after.iter().min() >= before.iter().min());
        }

        #[test]
        fn moves_make_workers_more_alike((stays, tasks) in case(), order in order()) {
            let after = moved(&tasks, &stays, order);
            if after != tasks {
                prop_assert!(squares(&loads(&after, &stays)) < squares(&loads(&tasks, &stays)));
            }
        }

        #[test]
        fn equal_loads_stay((workers, cost, each) in (1usize..9, 0u64..1000, 1usize..5),
                            order in order()) {
            let all: Vec<Task> =
                (0..workers * each).map(|it| Task { worker: it % workers, cost }).collect();
            prop_assert!(moves(&all, &vec![7; workers], order, 1).is_empty());
        }

        #[test]
        fn it_comes_to_rest((stays, tasks) in case(), order in order()) {
            let mut now = tasks;
            for _ in 0..100 {
                let next = moved(&now, &stays, order);
                if next == now {
                    return Ok(());
                }
                now = next;
            }
            prop_assert!(false, "still moving after a hundred looks");
        }

        #[test]
        fn noise_moves_nothing_to_and_fro(
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
                for Move { task, to } in moves(&measured, &[0, 0], order, 1) {
                    times[task] += 1;
                    prop_assert!(times[task] < 4, "task {} goes to and fro", task);
                    now[task].worker = to;
                }
            }
        }
    }
}
