//! `castanet explain --json`: tasks of workers, devices and frames as JSON.

use castanet_element::class::Role;
use castanet_element::device::QueueShare;
use castanet_element::frames::PoolSizes;
use castanet_runtime::graph::assign::{AccountPlan, ElementPlan};
use castanet_runtime::router::ConfigPlan;
use serde::Serialize;

/// Tasks, devices, threads and frames of a configuration on this machine.
#[derive(Serialize)]
pub(crate) struct Explanation {
    workers: Vec<Worker>,
    devices: Vec<DeviceUse>,
    frames: Frames,
    elements: Vec<ElementThreads>,
    /// Whether every packet stays on the worker that received it.
    full_push: bool,
    /// Accounts of processor time and memory; none where none is declared.
    accounts: Vec<Account>,
}

/// An account of processor time and memory.
#[derive(Serialize)]
struct Account {
    /// The element or compound that it pays for; empty for the router's own.
    account: String,
    /// The part of each worker's processor that it has whenever it has work.
    guarantee: f64,
    /// The part that it gets at most.
    limit: Option<f64>,
    /// The longest wait for a run of another account, in seconds.
    delay: Option<f64>,
    /// Bytes on the heap at most.
    heap_limit: Option<u64>,
    /// Packets that its elements keep at most.
    packet_limit: Option<usize>,
    /// Elements with tasks that it pays for.
    tasks: Vec<String>,
}

/// The pools.
#[derive(Serialize)]
struct Frames {
    /// Frames for devices.
    devices: usize,
    /// Number of these that stay free for devices, ARP and errors.
    reserve: usize,
    /// The most frames of packets that are kept.
    storage: usize,
    /// Bytes of one frame, with its header.
    bytes: u64,
}

/// A worker, and what it does.
#[derive(Serialize)]
struct Worker {
    worker: usize,
    core: usize,
    numa_node: usize,
    tasks: Vec<Task>,
}

#[derive(Serialize)]
struct Task {
    does: &'static str,
    element: String,
    why: String,
    /// Whether it may move to other workers.
    may_move: bool,
}

/// A device, as one element uses it.
#[derive(Serialize)]
struct DeviceUse {
    element: String,
    class: &'static str,
    device: String,
    how: String,
    numa_node: Option<usize>,
    receives: bool,
    /// Whether workers have sockets of their own rather than queues.
    sockets: bool,
    workers: Vec<Queues>,
}

/// Queues of a device that one worker serves.
#[derive(Serialize)]
struct Queues {
    worker: usize,
    /// Absent where workers have sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Vec<usize>>,
    /// Whether a burst waits for others that send to the same queue.
    locked: bool,
    /// The workers that do.
    with: Vec<usize>,
}

/// An element and its thread vector.
#[derive(Serialize)]
struct ElementThreads {
    element: String,
    home: usize,
    workers: Vec<usize>,
    /// The element with whose task it moves, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    moves_with: Option<String>,
}

/// The plan as data.
pub(crate) fn explain(planned: &ConfigPlan, sizes: PoolSizes) -> Explanation {
    let (graph, plan) = (&planned.graph, &planned.assigned);
    let worker = |worker| {
        let core = planned.cores.of(worker);
        let tasks = plan.tasks_of(worker).map(|(does, element)| Task {
            does,
            element: graph.elements[element].name.clone(),
            why: plan[element].reason.clone(),
            may_move: plan[element].movable,
        });
        Worker { worker, core: core.number, numa_node: core.node, tasks: tasks.collect() }
    };
    let of_element = |(n, element): (usize, &ElementPlan)| {
        let (device, it) = (element.device.as_ref()?, &graph.elements[n]);
        let sockets = device.queues.sockets;
        Some(DeviceUse {
            element: it.name.clone(),
            class: it.class.spec.class,
            device: device.name.clone(),
            how: device.how.clone(),
            numa_node: device.node,
            receives: it.class.role != Role::Through,
            sockets,
            workers: element.queue_shares.iter().map(|share| queues(share, sockets)).collect(),
        })
    };
    let reached = |(n, it): (usize, &castanet_runtime::graph::Element)| ElementThreads {
        element: it.name.clone(),
        home: plan[n].home,
        workers: plan.reaching(n).collect(),
        moves_with: plan[n].moves_with.map(|with| graph.elements[with].name.clone()),
    };
    let PoolSizes { devices, reserve, storage, frame: bytes } = sizes;
    Explanation {
        frames: Frames { devices, reserve, storage, bytes },
        workers: (0..plan.workers).map(worker).collect(),
        devices: plan.elements.iter().enumerate().filter_map(of_element).collect(),
        elements: graph.elements.iter().enumerate().map(reached).collect(),
        full_push: plan.full_push(graph),
        accounts: accounts(planned),
    }
}

fn accounts(planned: &ConfigPlan) -> Vec<Account> {
    let plan = &planned.assigned;
    let tasks = || (0..plan.workers).flat_map(|worker| plan.tasks_of(worker));
    let account = |(n, account): (usize, &AccountPlan)| Account {
        account: account.name.clone(),
        guarantee: account.share.guarantee,
        limit: account.share.limit,
        delay: account.delay.map(|delay| delay.as_secs_f64()),
        heap_limit: account.limits.as_ref().and_then(|limits| limits.heap),
        packet_limit: account.limits.as_ref().and_then(|limits| limits.packets),
        tasks: tasks()
            .filter(|&(_, element)| plan[element].account == n)
            .map(|(_, element)| planned.graph.elements[element].name.clone())
            .collect(),
    };
    plan.accounts.iter().enumerate().map(account).collect()
}

fn queues(share: &QueueShare, sockets: bool) -> Queues {
    Queues {
        worker: share.worker,
        queues: (!sockets).then(|| share.queues.clone().collect()),
        locked: !sockets && !share.with.is_empty(),
        with: share.with.clone(),
    }
}
