//! Step: which worker runs what, and which workers reach each element
//! (FastClick paper, section 5.6).

use super::{Flow, Graph};
use crate::class::Role;
use crate::element::Facts;
use crate::node::Target;
use crate::worker::{Job, TaskRef};

/// Tasks, homes and thread vectors.
pub struct Plan {
    /// How many workers.
    pub workers: usize,
    /// By worker: its tasks.
    pub(crate) tasks: Vec<Vec<Job>>,
    /// By element: the worker whose state begins, ends and owns timers.
    pub homes: Vec<usize>,
    /// By element: why it has that home.
    pub reasons: Vec<&'static str>,
    /// By element: the workers whose packets can reach it (thread vector).
    pub vectors: Vec<Vec<bool>>,
    /// By element: the tasks to wake when packets come to rest in it.
    pub waiters: Vec<Vec<TaskRef>>,
    /// By element: the tasks that pull through it.
    pub pullers: Vec<Vec<TaskRef>>,
    /// By element: the tasks to wake when packets are taken out of it.
    pub feeders: Vec<Vec<TaskRef>>,
    /// By element: the stores where all packets that its task pushes come to
    /// rest; empty if some go elsewhere.
    pub stores: Vec<Vec<usize>>,
}

impl Plan {
    /// Whether every packet stays on one worker from device to device, so
    /// that no count of references need be shared.
    pub fn full_push(&self, graph: &Graph) -> bool {
        graph.elements.iter().all(|e| e.class.role != Role::Store)
    }
}

/// Assigns every task and element to workers.
pub fn assign(graph: &Graph, facts: &Facts, workers: usize) -> Plan {
    let workers = workers.max(1);
    let count = graph.elements.len();
    let mut plan = Plan {
        workers,
        tasks: vec![Vec::new(); workers],
        homes: vec![0; count],
        reasons: vec!["the first worker, as nothing says otherwise"; count],
        vectors: vec![vec![false; workers]; count],
        waiters: vec![Vec::new(); count],
        pullers: vec![Vec::new(); count],
        feeders: vec![Vec::new(); count],
        stores: vec![Vec::new(); count],
    };
    let mut next = 0;
    for job in jobs(graph) {
        let element = job.element();
        let (home, reason) = match wished(graph, facts, element) {
            Some(worker) => (worker % workers, "StaticThreadSched says so"),
            None => {
                next += 1;
                ((next - 1) % workers, "tasks are dealt out in turn")
            }
        };
        plan.homes[element] = home;
        plan.reasons[element] = reason;
        let task = TaskRef { worker: home, task: plan.tasks[home].len() };
        plan.tasks[home].push(job);
        wait_upstream(graph, &mut plan, job, task);
        if let Job::Empty(store) = job {
            plan.waiters[store].push(task);
        }
        if let Job::Ask(source) = job {
            feed_downstream(graph, &mut plan, source, task);
        }
    }
    for (worker, jobs) in plan.tasks.clone().into_iter().enumerate() {
        jobs.into_iter().for_each(|job| reach(graph, &mut plan, job.element(), worker));
    }
    settle_homes(graph, facts, &mut plan);
    plan
}

/// The tasks a graph needs: one for each source that pushes, and one for each
/// pull input of an element that has nobody to pull it.
fn jobs(graph: &Graph) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (node, it) in graph.elements.iter().enumerate() {
        let pushes = it.outputs.first() != Some(&Flow::Pull);
        match it.class.role {
            Role::Source if pushes => jobs.push(Job::Ask(node)),
            Role::Store if it.outputs.first() == Some(&Flow::Push) => jobs.push(Job::Empty(node)),
            Role::Duplex | Role::Through => {
                if it.class.role == Role::Duplex && pushes && !it.outputs.is_empty() {
                    jobs.push(Job::Ask(node));
                }
                let pulled = it.outputs.contains(&Flow::Pull);
                let inputs = it.inputs.iter().enumerate();
                let pulls = inputs.filter(|(_, f)| **f == Flow::Pull && !pulled);
                jobs.extend(pulls.map(|(input, _)| Job::Drain { node, input }));
            }
            _ => {}
        }
    }
    jobs
}

/// What `StaticThreadSched` wishes for an element: its own name first, then
/// the compounds around it.
fn wished(graph: &Graph, facts: &Facts, element: usize) -> Option<usize> {
    let mut name = graph.elements[element].name.as_str();
    loop {
        if let Some((_, worker)) = facts.homes.iter().rev().find(|(n, _)| n == name) {
            return Some(*worker);
        }
        name = name.rsplit_once('/')?.0;
    }
}

/// Puts `task` on the list of every store that it may find empty, and marks
/// what lies on the way as this worker's.
fn wait_upstream(graph: &Graph, plan: &mut Plan, job: Job, task: TaskRef) {
    let mut seen = vec![false; graph.elements.len()];
    let mut work = vec![job.element()];
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for edge in graph.in_edges(node).filter(|e| e.flow == Flow::Pull) {
            let up = edge.from.node;
            plan.pullers[up].push(task);
            if graph.elements[up].class.role == Role::Store {
                plan.waiters[up].push(task);
            } else {
                work.push(up);
            }
            reach(graph, plan, up, task.worker);
        }
    }
}

/// Finds the stores where everything that `source` pushes comes to rest, as
/// Click's full notification does, and puts its task on their lists.
fn feed_downstream(graph: &Graph, plan: &mut Plan, source: usize, task: TaskRef) {
    let mut seen = vec![false; graph.elements.len()];
    let (mut work, mut stores) = (vec![source], Vec::new());
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        if graph.elements[node].class.role == Role::Store {
            stores.push(node);
            continue;
        }
        let before = work.len();
        work.extend(graph.out_edges(node).filter(|e| e.flow == Flow::Push).map(|e| e.to.node));
        if work.len() == before {
            return;
        }
    }
    stores.iter().for_each(|&store| plan.feeders[store].push(task));
    plan.stores[source] = stores;
}

/// Marks what packets pushed out of `from` on `worker` can reach; stores end
/// the way, for what is taken out of them travels with whoever takes it.
fn reach(graph: &Graph, plan: &mut Plan, from: usize, worker: usize) {
    let mut work = vec![from];
    plan.vectors[from][worker] = true;
    while let Some(node) = work.pop() {
        if graph.elements[node].class.role == Role::Store && node != from {
            continue;
        }
        for edge in graph.out_edges(node).filter(|e| e.flow != Flow::Pull) {
            let Target { node: to, .. } = edge.to;
            if !std::mem::replace(&mut plan.vectors[to][worker], true) {
                work.push(to);
            }
        }
    }
}

/// Elements without a task live where the first packets come from.
fn settle_homes(graph: &Graph, facts: &Facts, plan: &mut Plan) {
    let has_task = |plan: &Plan, n| plan.tasks.iter().flatten().any(|job| job.element() == n);
    for node in 0..graph.elements.len() {
        if has_task(plan, node) {
            continue;
        }
        if let Some(worker) = wished(graph, facts, node) {
            plan.homes[node] = worker % plan.workers;
            plan.reasons[node] = "StaticThreadSched says so";
        } else if let Some(worker) = plan.vectors[node].iter().position(|&reached| reached) {
            plan.homes[node] = worker;
            plan.reasons[node] = "the first worker whose packets reach it";
        }
    }
}
