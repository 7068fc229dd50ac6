//! Step: which worker runs what, which queues it has of which device, and
//! which workers reach each element (FastClick paper, section 5.6).

mod crews;
mod movable;
mod queues;

use super::devices::{Device, Share};
use super::{Flow, Graph, order};
use crate::class::Role;
use crate::cores::Cores;
use crate::element::Facts;
use crate::node::Target;
use crate::worker::{Job, TaskRef};
use queues::User;
use std::collections::BTreeMap;

/// Tasks, homes, queues and thread vectors.
pub struct Plan {
    /// How many workers.
    pub workers: usize,
    /// By worker: its tasks.
    pub(crate) tasks: Vec<Vec<Job>>,
    /// By worker: tasks of other workers that may move to it.
    pub(crate) away: Vec<Vec<Job>>,
    /// Whether tasks may move at all.
    pub balanced: bool,
    /// By element: whether its tasks may move to other workers.
    pub movable: Vec<bool>,
    /// By element: why its tasks stay.
    stays: Vec<Option<&'static str>>,
    /// By element: the element with whose tasks it moves, because packets come
    /// to it from nowhere else. It has one state, where these tasks are.
    pub with: Vec<Option<usize>>,
    /// By element: the worker whose state begins, ends and owns timers.
    pub homes: Vec<usize>,
    /// By element: why it has that home, and those workers.
    pub reasons: Vec<String>,
    /// By element that stands for a device: what each worker has of it.
    pub shares: Vec<Vec<Share>>,
    /// By element that stands for a device: how many of the device's queues
    /// all elements together receive from and send to, from queue 0 on.
    pub used: Vec<(usize, usize)>,
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
    /// By element: the stores whose lengths it wants to know.
    pub watched: Vec<Vec<usize>>,
    /// By element: whether packets come there, or its tasks send them, one at a time
    /// ([`super::order`]).
    pub single: Vec<bool>,
    /// By element: how many turns its tasks get, where others get one.
    pub tickets: Vec<f64>,
    /// What random numbers follow from, where it was said.
    pub seed: Option<u64>,
}

impl Plan {
    /// How many queues of devices elements use, those that are the program's own sockets aside.
    pub(crate) fn device_queues(&self, devices: &[Option<Device>]) -> usize {
        let mut queues: BTreeMap<&str, usize> = BTreeMap::new();
        for (device, &(receive, send)) in devices.iter().zip(&self.used) {
            if let Some(device) = device.as_ref().filter(|device| !device.queues.sockets) {
                let most = queues.entry(&device.name).or_default();
                *most = receive.max(send).max(*most);
            }
        }
        queues.values().sum()
    }

    fn new(workers: usize, count: usize) -> Plan {
        Plan {
            workers,
            tasks: vec![Vec::new(); workers],
            away: vec![Vec::new(); workers],
            balanced: false,
            movable: vec![false; count],
            stays: vec![None; count],
            with: vec![None; count],
            homes: vec![0; count],
            reasons: vec!["the first worker, as nothing says otherwise".into(); count],
            shares: vec![Vec::new(); count],
            used: vec![(0, 0); count],
            vectors: vec![vec![false; workers]; count],
            waiters: vec![Vec::new(); count],
            pullers: vec![Vec::new(); count],
            feeders: vec![Vec::new(); count],
            stores: vec![Vec::new(); count],
            watched: vec![Vec::new(); count],
            single: vec![false; count],
            tickets: vec![1.0; count],
            seed: None,
        }
    }

    /// Whether every packet stays on one worker from device to device, so
    /// that no count of references need be shared.
    pub fn full_push(&self, graph: &Graph) -> bool {
        graph.elements.iter().all(|e| e.class.role != Role::Store)
    }

    /// The workers that an element begins and ends on, its home first.
    pub(crate) fn begins(&self, graph: &Graph, element: usize) -> Vec<usize> {
        let home = self.homes[element];
        let each = graph.elements[element].class.each;
        let mut all: Vec<usize> = self.reaching(element).filter(|_| each).collect();
        all.sort_by_key(|&worker| worker != home);
        if all.is_empty() { vec![home] } else { all }
    }

    /// Lets `element` watch `stores`, and wakes its tasks when packets are taken
    /// out there.
    pub(crate) fn watch(&mut self, element: usize, stores: Vec<usize>) {
        for (worker, (jobs, away)) in self.tasks.iter().zip(&self.away).enumerate() {
            let mine = |(_, job): &(usize, &Job)| **job == Job::Ask(element);
            for (task, _) in jobs.iter().chain(away).enumerate().filter(mine) {
                let task = TaskRef { worker, task };
                for &store in &stores {
                    if !self.feeders[store].contains(&task) {
                        self.feeders[store].push(task);
                    }
                }
            }
        }
        self.watched[element] = stores;
    }

    /// Lets packets come to these elements one at a time. Their tasks stay where they are, for
    /// packets on their way may have to wait for handlers.
    pub(crate) fn send_singly(&mut self, single: Vec<bool>) {
        for ((single, movable), stays) in single.iter().zip(&mut self.movable).zip(&mut self.stays)
        {
            if *single && std::mem::replace(movable, false) {
                *stays = Some("handlers are called in the middle of its packets' way");
            }
        }
        self.single = single;
    }

    /// Lets packets come one at a time to `caller` too, which calls handlers.
    pub(crate) fn send_singly_to(&mut self, graph: &Graph, caller: usize) {
        let mut single = std::mem::take(&mut self.single);
        order::add(graph, caller, &mut single);
        self.send_singly(single);
    }

    /// Whether no more than one worker can reach an element at a time.
    pub(crate) fn alone(&self, element: usize) -> bool {
        self.with[element].is_some() || self.reaching(element).count() < 2
    }

    /// Whose task it is.
    pub(crate) fn element(&self, TaskRef { worker, task }: TaskRef) -> usize {
        let here = &self.tasks[worker];
        let job = here.get(task).unwrap_or_else(|| &self.away[worker][task - here.len()]);
        job.element()
    }

    /// Whether an element has a task.
    pub(crate) fn has_task(&self, element: usize) -> bool {
        self.tasks.iter().flatten().any(|job| job.element() == element)
    }

    /// The elements that go where the tasks of `element` go, and nowhere else.
    pub(crate) fn following(&self, element: usize) -> Vec<usize> {
        (0..self.with.len()).filter(|&it| self.with[it] == Some(element)).collect()
    }

    /// Why the tasks of an element stay where they are.
    pub(crate) fn stays(&self, element: usize) -> &str {
        match (self.balanced, self.stays[element]) {
            (false, _) => "tasks move only where there is a BalancedThreadSched",
            (_, None) => "it has no task",
            (_, Some(why)) => why,
        }
    }

    /// What a worker does, and with which elements.
    pub fn tasks_of(&self, worker: usize) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.tasks[worker].iter().map(|job| (job.verb(), job.element()))
    }

    /// The workers that run or reach an element.
    pub fn reaching(&self, element: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.workers).filter(move |&worker| self.vectors[element][worker])
    }
}

/// Assigns every task, element and queue to workers.
pub fn assign(graph: &Graph, facts: &Facts, devices: &[Option<Device>], cores: &Cores) -> Plan {
    let workers = cores.workers();
    let mut plan = Plan::new(workers, graph.elements.len());
    let jobs = jobs(graph);
    let crews = crews(graph, facts, devices, cores, &jobs);
    let mut load = vec![0; workers];
    crews.iter().flatten().flat_map(|(crew, _)| crew).for_each(|&worker| load[worker] += 1);
    for (job, crew) in jobs.into_iter().zip(crews) {
        let (crew, reason) = crew.unwrap_or_else(|| {
            let least = (0..workers).min_by_key(|&worker| load[worker]).unwrap_or(0);
            load[least] += 1;
            (vec![least], "the worker with the fewest tasks".into())
        });
        plan.homes[job.element()] = crew[0];
        plan.reasons[job.element()] = reason;
        crew.into_iter().for_each(|worker| plan.add(graph, job, worker));
    }
    for (worker, jobs) in plan.tasks.clone().into_iter().enumerate() {
        jobs.into_iter().for_each(|job| reach(graph, &mut plan, job.element(), worker));
    }
    settle_homes(graph, facts, &mut plan);
    for element in 0..graph.elements.len() {
        plan.tickets[element] = said_of(graph, &facts.tickets, element).unwrap_or(1.0);
    }
    plan.seed = facts.seed;
    plan.balanced = facts.balanced;
    if facts.balanced {
        movable::find(graph, facts, devices, &mut plan);
    }
    share_queues(graph, devices, &mut plan);
    plan
}

/// By job: the workers that have it and why, where a user or a device says so.
fn crews(
    graph: &Graph,
    facts: &Facts,
    devices: &[Option<Device>],
    cores: &Cores,
    jobs: &[Job],
) -> Vec<Option<(Vec<usize>, String)>> {
    let mut crews = Vec::new();
    for job in jobs {
        let worker = wished(graph, facts, job.element());
        crews.push(
            worker.map(|it| (vec![it % cores.workers()], "StaticThreadSched says so".into())),
        );
    }
    let taken: Vec<usize> = crews.iter().flatten().flat_map(|(crew, _)| crew.clone()).collect();
    let mut free: Vec<usize> = (0..cores.workers()).filter(|it| !taken.contains(it)).collect();
    if free.is_empty() {
        free = (0..cores.workers()).collect();
    }
    let receives = |n: &usize| crews[*n].is_none() && matches!(jobs[*n], Job::Ask(_));
    let device = |n: usize| Some((n, devices[jobs[n].element()].as_ref()?));
    let automatic: Vec<(usize, &Device)> =
        (0..jobs.len()).filter(receives).filter_map(device).collect();
    let wanted: Vec<&Device> = automatic.iter().map(|(_, device)| *device).collect();
    for ((n, _), crew) in automatic.iter().zip(crews::divide(&wanted, &free, cores)) {
        crews[*n] = Some((crew.workers, crew.why));
    }
    crews
}

impl Plan {
    /// Gives a task to a worker.
    fn add(&mut self, graph: &Graph, job: Job, worker: usize) {
        let task = TaskRef { worker, task: self.tasks[worker].len() };
        self.tasks[worker].push(job);
        self.link(graph, job, task);
    }

    /// Makes a place for a task on a worker that it may move to.
    fn add_away(&mut self, graph: &Graph, job: Job, worker: usize) {
        let task = self.tasks[worker].len() + self.away[worker].len();
        self.away[worker].push(job);
        self.link(graph, job, TaskRef { worker, task });
        reach(graph, self, job.element(), worker);
    }

    /// Puts a task on the lists of those that may wake it.
    fn link(&mut self, graph: &Graph, job: Job, task: TaskRef) {
        wait_upstream(graph, self, job, task);
        if let Job::Empty(store) = job {
            self.waiters[store].push(task);
        }
        if let Job::Ask(source) = job {
            feed_downstream(graph, self, source, task);
        }
    }
}

/// Divides the queues of devices among the workers that run or reach the
/// elements that stand for them.
fn share_queues(graph: &Graph, devices: &[Option<Device>], plan: &mut Plan) {
    let is_source = |n: usize| graph.elements[n].class.role != Role::Through;
    for receiving in [true, false] {
        let elements: Vec<usize> = (0..devices.len())
            .filter(|&n| is_source(n) == receiving && plan.reaching(n).next().is_some())
            .collect();
        let user = |&n: &usize| {
            Some(User { device: devices[n].as_ref()?, workers: plan.reaching(n).collect() })
        };
        let users: Vec<User> = elements.iter().filter_map(user).collect();
        let shares = if receiving { queues::to_poll(&users) } else { queues::to_send(&users) };
        let with_device = elements.into_iter().filter(|&n| devices[n].is_some());
        with_device.zip(shares).for_each(|(n, shares)| plan.shares[n] = shares);
    }
    for (n, device) in devices.iter().enumerate() {
        let Some(device) = device else { continue };
        let same = |n: &usize| devices[*n].as_ref().is_some_and(|it| it.name == device.name);
        let end = |receiving| {
            let users = (0..devices.len()).filter(same).filter(|&n| is_source(n) == receiving);
            users.flat_map(|n| &plan.shares[n]).map(|share| share.queues.end).max().unwrap_or(0)
        };
        plan.used[n] = (end(true), end(false));
    }
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

/// What `StaticThreadSched` wishes for an element.
fn wished(graph: &Graph, facts: &Facts, element: usize) -> Option<usize> {
    said_of(graph, &facts.homes, element)
}

/// What is said of an element: of its own name first, then of the compounds around it.
fn said_of<T: Copy>(graph: &Graph, said: &[(String, T)], element: usize) -> Option<T> {
    let mut name = graph.elements[element].name.as_str();
    loop {
        if let Some((_, what)) = said.iter().rev().find(|(n, _)| n == name) {
            return Some(*what);
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
        let class = graph.elements[node].class;
        if class.role == Role::Store {
            if !class.notifies {
                return;
            }
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

/// Marks what packets pushed out of `from` on `worker` can reach. What rests in
/// a store travels with whoever takes it; what finds no room in it goes on.
fn reach(graph: &Graph, plan: &mut Plan, from: usize, worker: usize) {
    let mut work = vec![from];
    plan.vectors[from][worker] = true;
    while let Some(node) = work.pop() {
        let rests = graph.elements[node].class.role == Role::Store && node != from;
        for edge in graph.out_edges(node).filter(|e| e.flow != Flow::Pull) {
            if rests && edge.from.port == 0 {
                continue;
            }
            let Target { node: to, .. } = edge.to;
            if !std::mem::replace(&mut plan.vectors[to][worker], true) {
                work.push(to);
            }
        }
    }
}

/// Elements without a task live where the first packets come from.
fn settle_homes(graph: &Graph, facts: &Facts, plan: &mut Plan) {
    for node in 0..graph.elements.len() {
        if plan.has_task(node) {
            continue;
        }
        if let Some(worker) = wished(graph, facts, node) {
            plan.homes[node] = worker % plan.workers;
            plan.reasons[node] = "StaticThreadSched says so".into();
            // Its timers run there, and what they emit goes on from there.
            if !graph.elements[node].outputs.is_empty() {
                reach(graph, plan, node, plan.homes[node]);
            }
        } else if let Some(worker) = plan.vectors[node].iter().position(|&reached| reached) {
            plan.homes[node] = worker;
            plan.reasons[node] = "the first worker whose packets reach it".into();
        }
    }
}
