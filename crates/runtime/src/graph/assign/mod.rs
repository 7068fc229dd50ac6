//! Step: the worker of each task, the queues of each worker, and the workers that reach each
//! element (FastClick paper, section 5.6).

pub(crate) mod accounts;
mod movable;
mod queues;
mod rx_threads;

use super::order::{self, PacketOrder};
use super::{Flow, Graph};
use crate::cores::Cores;
use crate::graph::target::Target;
use crate::graph::task::{TaskKind, TaskRef};
pub use accounts::AccountPlan;
use castanet_element::class::Role;
use castanet_element::device::{Device, QueueShare};
use castanet_element::element::Facts;
use castanet_element::exec::RandomNumbers;
use queues::User;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// Tasks, homes, queues and thread vectors.
pub struct Assignment {
    /// How many workers.
    pub workers: usize,
    /// By worker: its tasks.
    pub(crate) tasks: Vec<Vec<TaskKind>>,
    /// By worker: tasks of other workers that may move to it.
    pub(crate) away: Vec<Vec<TaskKind>>,
    /// Whether tasks may move at all.
    pub balanced: bool,
    /// By element.
    pub elements: Vec<ElementPlan>,
    /// Accounts of processor time, the router's own first; empty where none is declared.
    pub accounts: Vec<AccountPlan>,
    /// The order of tasks and packets.
    pub order: PacketOrder,
    /// The random numbers of all threads, where a `RandomSeed` seeds them.
    pub random: Option<RandomNumbers>,
}

/// Assignment of one element.
#[derive(Clone)]
pub struct ElementPlan {
    /// The worker that initialises its state, owns its timers and cleans up.
    pub home: usize,
    /// Why that worker is its home, and which others run its tasks.
    pub reason: String,
    /// The worker that `StaticThreadSched` sets for it.
    pub(crate) wished: Option<usize>,
    /// By worker: whether its packets can reach the element (thread vector).
    pub workers: Vec<bool>,
    /// Whether its home is the only worker that uses its state, or that looks at it from elsewhere.
    at_home: bool,
    /// Share of a task's turns, where 1 is the default.
    pub tickets: f64,
    /// Modulus and remainder of the addresses of packets at the first input, where they are declared.
    pub alignment: Option<(u32, u32)>,
    /// The account that pays for its tasks, its timers and its handlers.
    pub account: usize,
    /// Whether its tasks may move to other workers.
    pub movable: bool,
    /// Why its tasks stay, where they may not move.
    stays: Option<&'static str>,
    /// The element with whose tasks it moves, because packets come to it from nowhere else. It has
    /// one state, where these tasks are.
    pub moves_with: Option<usize>,
    /// The device that it stands for.
    pub device: Option<Device>,
    /// For a device: the queues of each worker.
    pub queue_shares: Vec<QueueShare>,
    /// For a device: how many of its queues all elements together receive from and send to, from
    /// queue 0 on.
    pub device_queues: (usize, usize),
    /// Tasks to wake when packets come to rest in it.
    pub waiters: Vec<TaskRef>,
    /// Tasks that pull through it.
    pub pullers: Vec<TaskRef>,
    /// Tasks to wake when packets are taken out of it.
    pub feeders: Vec<TaskRef>,
    /// Stores where all packets that its task pushes come to rest; empty if some go elsewhere.
    pub stores: Vec<usize>,
    /// Stores whose lengths it watches.
    pub watched: Vec<usize>,
    /// Whether packets may leave it with checksums that the sending device computes.
    pub may_leave_checksums: bool,
    /// Whether packets come to it, or its tasks send them, one at a time ([`super::order`]).
    pub single: bool,
    /// Whether its tasks handle one packet in a turn.
    pub one_a_turn: bool,
}

impl ElementPlan {
    fn new(workers: usize) -> ElementPlan {
        ElementPlan {
            home: 0,
            reason: "the first worker, as nothing says otherwise".into(),
            wished: None,
            workers: vec![false; workers],
            at_home: true,
            tickets: 1.0,
            alignment: None,
            account: accounts::OWN,
            movable: false,
            stays: None,
            moves_with: None,
            device: None,
            queue_shares: Vec::new(),
            device_queues: (0, 0),
            waiters: Vec::new(),
            pullers: Vec::new(),
            feeders: Vec::new(),
            stores: Vec::new(),
            watched: Vec::new(),
            may_leave_checksums: false,
            single: false,
            one_a_turn: false,
        }
    }
}

impl Index<usize> for Assignment {
    type Output = ElementPlan;
    fn index(&self, element: usize) -> &ElementPlan {
        &self.elements[element]
    }
}

impl IndexMut<usize> for Assignment {
    fn index_mut(&mut self, element: usize) -> &mut ElementPlan {
        &mut self.elements[element]
    }
}

impl Assignment {
    /// Queues of devices that elements use; sockets of the program itself do not count.
    pub(crate) fn device_queues(&self) -> usize {
        let mut queues: BTreeMap<&str, usize> = BTreeMap::new();
        for element in &self.elements {
            let (receive, send) = element.device_queues;
            if let Some(device) = element.device.as_ref().filter(|device| !device.queues.sockets) {
                let most = queues.entry(&device.name).or_default();
                *most = receive.max(send).max(*most);
            }
        }
        queues.values().sum()
    }

    fn new(workers: usize, count: usize) -> Assignment {
        Assignment {
            workers,
            tasks: vec![Vec::new(); workers],
            away: vec![Vec::new(); workers],
            balanced: false,
            elements: vec![ElementPlan::new(workers); count],
            accounts: Vec::new(),
            order: PacketOrder::Bursts,
            random: None,
        }
    }

    /// Whether every packet stays on one worker from device to device.
    pub fn full_push(&self, graph: &Graph) -> bool {
        graph.elements.iter().all(|e| e.class.role != Role::Store)
    }

    /// The workers on which an element is initialised and cleaned up, its home first.
    pub(crate) fn begins(&self, graph: &Graph, element: usize) -> Vec<usize> {
        let home = self[element].home;
        let each = graph.elements[element].class.per_worker;
        let mut all: Vec<usize> = self.reaching(element).filter(|_| each).collect();
        all.sort_by_key(|&worker| worker != home);
        if all.is_empty() { vec![home] } else { all }
    }

    /// Has `element` watch `stores`, and its tasks woken when packets are taken out there.
    pub(crate) fn watch(&mut self, element: usize, stores: Vec<usize>) {
        for (worker, (kinds, away)) in self.tasks.iter().zip(&self.away).enumerate() {
            let mine = |(_, kind): &(usize, &TaskKind)| **kind == TaskKind::Source(element);
            for (task, _) in kinds.iter().chain(away).enumerate().filter(mine) {
                let task = TaskRef { worker, task };
                for &store in &stores {
                    let feeders = &mut self.elements[store].feeders;
                    if !feeders.contains(&task) {
                        feeders.push(task);
                    }
                }
            }
        }
        // It looks at the store's node of its own worker.
        for &store in &stores {
            let home = self[store].home;
            let at_home = self.reaching(element).all(|worker| worker == home);
            self[store].at_home &= at_home;
        }
        self[element].watched = stores;
    }

    /// Has packets come to these elements one at a time. Their tasks stay where they are, for
    /// packets on their way may have to wait for handlers.
    pub(crate) fn send_singly(&mut self, single: Vec<bool>) {
        for (element, single) in self.elements.iter_mut().zip(single) {
            if single && std::mem::replace(&mut element.movable, false) {
                element.stays = Some("handlers are called in the middle of its packets' way");
            }
            element.single = single;
        }
    }

    /// Has tasks and packets take the order that the user wants.
    pub(crate) fn set_order(&mut self, graph: &Graph, order: PacketOrder) {
        self.order = order;
        let all = order::all_single(graph, order).into_iter().zip(order::one_a_turn(graph, order));
        for (element, (single, one_a_turn)) in self.elements.iter_mut().zip(all) {
            element.single |= single;
            element.one_a_turn = one_a_turn;
        }
    }

    /// By element: whether packets come to it one at a time.
    pub(crate) fn single(&self) -> Vec<bool> {
        self.elements.iter().map(|element| element.single).collect()
    }

    /// Has packets come one at a time to `caller` too, which calls handlers.
    pub(crate) fn send_singly_to(&mut self, graph: &Graph, caller: usize) {
        let mut single = self.single();
        order::add(graph, caller, &mut single);
        self.send_singly(single);
    }

    /// Whether no more than one worker at a time, which is then its home, uses an element's state.
    pub(crate) fn alone(&self, element: usize) -> bool {
        self[element].moves_with.is_some() || self[element].at_home
    }

    /// The element of a task.
    pub(crate) fn element(&self, TaskRef { worker, task }: TaskRef) -> usize {
        let here = &self.tasks[worker];
        let kind = here.get(task).unwrap_or_else(|| &self.away[worker][task - here.len()]);
        kind.element()
    }

    /// Whether an element has a task.
    pub(crate) fn has_task(&self, element: usize) -> bool {
        self.tasks.iter().flatten().any(|kind| kind.element() == element)
    }

    /// The elements that go where the tasks of `element` go, and nowhere else.
    pub(crate) fn following(&self, element: usize) -> Vec<usize> {
        (0..self.elements.len()).filter(|&it| self[it].moves_with == Some(element)).collect()
    }

    /// Why the tasks of an element stay where they are.
    pub(crate) fn stays(&self, element: usize) -> &str {
        match (self.balanced, self[element].stays) {
            (false, _) => "tasks move only where there is a BalancedThreadSched",
            (_, None) => "it has no task",
            (_, Some(why)) => why,
        }
    }

    /// The tasks of a worker: verb and element.
    pub fn tasks_of(&self, worker: usize) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.tasks[worker].iter().map(|kind| (kind.verb(), kind.element()))
    }

    /// The workers that run or reach an element.
    pub fn reaching(&self, element: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.workers).filter(move |&worker| self[element].workers[worker])
    }
}

/// The worker of a task that neither the user nor a device assigns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskPlacement {
    /// The worker with the fewest tasks.
    FewestTasks,
    /// Worker 0, as in Click.
    FirstWorker,
}

impl TaskPlacement {
    /// The worker, and the reason; `load` has the number of tasks of each worker.
    fn choose(self, load: &[usize]) -> (usize, &'static str) {
        match self {
            TaskPlacement::FewestTasks => {
                let least = (0..load.len()).min_by_key(|&worker| load[worker]).unwrap_or(0);
                (least, "the worker with the fewest tasks")
            }
            TaskPlacement::FirstWorker => (0, "worker 0, as in Click"),
        }
    }
}

/// Assigns every task, element and queue to workers.
pub fn assign(
    graph: &Graph,
    facts: &Facts,
    devices: &[Option<Device>],
    cores: &Cores,
    placement: TaskPlacement,
) -> Assignment {
    let workers = cores.workers();
    let mut plan = Assignment::new(workers, graph.elements.len());
    let kinds = kinds(graph);
    let assigned = rx_workers(graph, facts, devices, cores, &kinds);
    let mut load = vec![0; workers];
    assigned
        .iter()
        .flatten()
        .flat_map(|(workers_of_job, _)| workers_of_job)
        .for_each(|&worker| load[worker] += 1);
    for (kind, workers_of_job) in kinds.into_iter().zip(assigned) {
        let (workers_of_job, reason) = workers_of_job.unwrap_or_else(|| {
            let (worker, reason) = placement.choose(&load);
            load[worker] += 1;
            (vec![worker], reason.into())
        });
        plan[kind.element()].home = workers_of_job[0];
        plan[kind.element()].reason = reason;
        workers_of_job.into_iter().for_each(|worker| plan.add(graph, kind, worker));
    }
    for (worker, kinds) in plan.tasks.clone().into_iter().enumerate() {
        kinds.into_iter().for_each(|kind| reach(graph, &mut plan, kind.element(), worker));
    }
    settle_homes(graph, facts, &mut plan);
    for element in 0..graph.elements.len() {
        plan[element].tickets = said_of(graph, &facts.tickets, element).unwrap_or(1.0);
        plan[element].wished = wished(graph, facts, element, workers);
        plan[element].alignment = said_of(graph, &facts.alignments, element);
    }
    accounts::find(graph, facts, &mut plan);
    plan.random = facts.seed.map(RandomNumbers::seeded);
    plan.balanced = facts.balanced;
    if facts.balanced {
        movable::find(graph, facts, devices, &mut plan);
    }
    find_at_home(graph, &mut plan);
    share_queues(graph, devices, &mut plan);
    for (element, device) in plan.elements.iter_mut().zip(devices) {
        element.device.clone_from(device);
    }
    plan
}

/// By task: its workers and the reason, where the user or a device decides them.
fn rx_workers(
    graph: &Graph,
    facts: &Facts,
    devices: &[Option<Device>],
    cores: &Cores,
    kinds: &[TaskKind],
) -> Vec<Option<(Vec<usize>, String)>> {
    let mut assigned = Vec::new();
    for kind in kinds {
        let worker = wished(graph, facts, kind.element(), cores.workers());
        assigned.push(worker.map(|it| (vec![it], "StaticThreadSched says so".into())));
    }
    let taken: Vec<usize> =
        assigned.iter().flatten().flat_map(|(workers_of_job, _)| workers_of_job.clone()).collect();
    let mut free: Vec<usize> = (0..cores.workers()).filter(|it| !taken.contains(it)).collect();
    if free.is_empty() {
        free = (0..cores.workers()).collect();
    }
    let receives = |n: &usize| assigned[*n].is_none() && matches!(kinds[*n], TaskKind::Source(_));
    let device = |n: usize| Some((n, devices[kinds[n].element()].as_ref()?));
    let automatic: Vec<(usize, &Device)> =
        (0..kinds.len()).filter(receives).filter_map(device).collect();
    let wanted: Vec<&Device> = automatic.iter().map(|(_, device)| *device).collect();
    for ((n, _), workers_of_job) in automatic.iter().zip(rx_threads::divide(&wanted, &free, cores))
    {
        assigned[*n] = Some((workers_of_job.workers, workers_of_job.why));
    }
    assigned
}

impl Assignment {
    /// Gives a task to a worker.
    fn add(&mut self, graph: &Graph, kind: TaskKind, worker: usize) {
        let task = TaskRef { worker, task: self.tasks[worker].len() };
        self.tasks[worker].push(kind);
        self.link(graph, kind, task);
    }

    /// Makes a place for a task on a worker to which it may move.
    fn add_away(&mut self, graph: &Graph, kind: TaskKind, worker: usize) {
        let task = self.tasks[worker].len() + self.away[worker].len();
        self.away[worker].push(kind);
        self.link(graph, kind, TaskRef { worker, task });
        reach(graph, self, kind.element(), worker);
    }

    /// Adds a task to the lists of the stores that may wake it.
    fn link(&mut self, graph: &Graph, kind: TaskKind, task: TaskRef) {
        wait_upstream(graph, self, kind, task);
        if let TaskKind::Store(store) = kind {
            self[store].waiters.push(task);
        }
        if let TaskKind::Source(source) = kind {
            feed_downstream(graph, self, source, task);
        }
    }
}

/// Divides the queues of devices among the workers that run or reach the
/// elements that stand for them.
fn share_queues(graph: &Graph, devices: &[Option<Device>], plan: &mut Assignment) {
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
        with_device.zip(shares).for_each(|(n, shares)| plan[n].queue_shares = shares);
    }
    for (n, device) in devices.iter().enumerate() {
        let Some(device) = device else { continue };
        let same = |n: &usize| devices[*n].as_ref().is_some_and(|it| it.name == device.name);
        let end = |receiving| {
            let users = (0..devices.len()).filter(same).filter(|&n| is_source(n) == receiving);
            users
                .flat_map(|n| &plan[n].queue_shares)
                .map(|share| share.queues.end)
                .max()
                .unwrap_or(0)
        };
        plan[n].device_queues = (end(true), end(false));
    }
}

/// The tasks that a graph needs: one for each source that pushes, and one for each pull input of an
/// element that no element downstream pulls.
fn kinds(graph: &Graph) -> Vec<TaskKind> {
    let mut kinds = Vec::new();
    for (node, it) in graph.elements.iter().enumerate() {
        let pushes = it.outputs.first() != Some(&Flow::Pull);
        match it.class.role {
            Role::Source if pushes => kinds.push(TaskKind::Source(node)),
            Role::Store if it.outputs.first() == Some(&Flow::Push) => {
                kinds.push(TaskKind::Store(node))
            }
            Role::Duplex | Role::Through => {
                if it.class.role == Role::Duplex && pushes && !it.outputs.is_empty() {
                    kinds.push(TaskKind::Source(node));
                }
                let pulled = it.outputs.contains(&Flow::Pull);
                let inputs = it.inputs.iter().enumerate();
                let pulls = inputs.filter(|(_, f)| **f == Flow::Pull && !pulled);
                kinds.extend(pulls.map(|(input, _)| TaskKind::Sink { node, input }));
            }
            _ => {}
        }
    }
    kinds
}

/// The worker, of so many, that `StaticThreadSched` sets for an element.
fn wished(graph: &Graph, facts: &Facts, element: usize, workers: usize) -> Option<usize> {
    let thread = said_of(graph, &facts.homes, element)?;
    let is_context = facts.contexts.iter().any(|(context, _)| *context == thread);
    Some(if thread < workers || is_context { thread % workers } else { 0 })
}

/// The declaration about an element: about its own name first, then about the compounds around it.
fn said_of<T: Copy>(graph: &Graph, said: &[(String, T)], element: usize) -> Option<T> {
    let mut name = graph.elements[element].name.as_str();
    loop {
        if let Some((_, what)) = said.iter().rev().find(|(n, _)| n == name) {
            return Some(*what);
        }
        name = name.rsplit_once('/')?.0;
    }
}

/// Adds `task` to the list of each store that it may find empty, and marks the elements on the way
/// as reached by its worker.
fn wait_upstream(graph: &Graph, plan: &mut Assignment, kind: TaskKind, task: TaskRef) {
    let mut seen = vec![false; graph.elements.len()];
    let mut work = vec![kind.element()];
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for edge in graph.in_edges(node).filter(|e| e.flow == Flow::Pull) {
            let up = edge.from.node;
            plan[up].pullers.push(task);
            if graph.elements[up].class.role == Role::Store {
                plan[up].waiters.push(task);
            } else {
                work.push(up);
            }
            reach(graph, plan, up, task.worker);
        }
    }
}

/// Finds the stores in which all packets that `source` pushes come to rest, as Click's full
/// notification does, and adds its task to their lists.
fn feed_downstream(graph: &Graph, plan: &mut Assignment, source: usize, task: TaskRef) {
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
    stores.iter().for_each(|&store| plan[store].feeders.push(task));
    plan[source].stores = stores;
}

/// Marks the elements that packets pushed out of `from` on `worker` can reach. Packets that rest in
/// a store go on with the worker that takes them out; packets that find no room in it go on at
/// once.
fn reach(graph: &Graph, plan: &mut Assignment, from: usize, worker: usize) {
    let mut work = vec![from];
    plan[from].workers[worker] = true;
    while let Some(node) = work.pop() {
        let rests = graph.elements[node].class.role == Role::Store && node != from;
        for edge in graph.out_edges(node).filter(|e| e.flow != Flow::Pull) {
            if rests && edge.from.port == 0 {
                continue;
            }
            let Target { node: to, .. } = edge.to;
            if !std::mem::replace(&mut plan[to].workers[worker], true) {
                work.push(to);
            }
        }
    }
}

/// Gives elements without a task the home from which the first packets come.
fn settle_homes(graph: &Graph, facts: &Facts, plan: &mut Assignment) {
    for node in 0..graph.elements.len() {
        if plan.has_task(node) {
            continue;
        }
        if let Some(worker) = wished(graph, facts, node, plan.workers) {
            plan[node].home = worker;
            plan[node].reason = "StaticThreadSched says so".into();
            // Its timers run there, and the packets that it emits go on from there.
            if !graph.elements[node].outputs.is_empty() {
                reach(graph, plan, node, plan[node].home);
            }
        } else if let Some(worker) = plan[node].workers.iter().position(|&reached| reached) {
            plan[node].home = worker;
            plan[node].reason = "the first worker whose packets reach it".into();
        }
    }
}

/// Finds the elements whose state no worker uses but their home.
fn find_at_home(graph: &Graph, plan: &mut Assignment) {
    let vectors: Vec<Vec<bool>> = plan.elements.iter().map(|it| it.workers.clone()).collect();
    // An element to which no packets come may emit some by a timer.
    for element in 0..vectors.len() {
        if !vectors[element].contains(&true) {
            reach(graph, plan, element, plan[element].home);
        }
    }
    for (element, vector) in vectors.into_iter().enumerate() {
        let home = plan[element].home;
        let at_home = plan.reaching(element).all(|worker| worker == home);
        (plan[element].at_home, plan[element].workers) = (at_home, vector);
    }
}
