//! Prints each step from a configuration to running workers.

use super::bypass::Bypass;
use super::{Flow, Graph, assign, carries, fuse, order};
use crate::cores::{Cores, CpuCore};
use castanet_element::class::{Role, StateSharing, ports};
use castanet_element::device::{Device, QueueShare, Queues};
use castanet_element::memory;
use castanet_element::node::fused::ChainMember;
use std::fmt::Write;

/// Elements with their classes, ports and processing.
pub fn elements(graph: &Graph) -> String {
    let mut out = String::new();
    for it in &graph.elements {
        let flows =
            |flows: &[Flow]| flows.iter().map(|f| &f.word()[..4]).collect::<Vec<_>>().join(" ");
        let (inputs, outputs) = (flows(&it.inputs), flows(&it.outputs));
        let dash = |s: String| if s.is_empty() { "-".to_owned() } else { s };
        _ = writeln!(
            out,
            "  {} :: {}  [{}]  in: {}  out: {}",
            it.name,
            it.class.spec.class,
            ports::code(it.class),
            dash(inputs),
            dash(outputs)
        );
    }
    out
}

/// Kinds of packets on each edge, and where headers are checked.
pub fn edges(graph: &Graph, carries: &[carries::Carries]) -> String {
    let mut out = String::new();
    for (edge, carried) in graph.edges.iter().zip(carries) {
        let (from, to) = (&graph.elements[edge.from.node], &graph.elements[edge.to.node]);
        let look = match to.class.on {
            "any" => String::new(),
            "ip" if carried.are("ip") => format!("; known to be ip: {} tests a flag", to.name),
            on if carried.are(on) => format!("; known to be {on}, {} looks again", to.name),
            on => format!("; {} looks: what is not {on} is dropped and counted", to.name),
        };
        _ = writeln!(
            out,
            "  {}[{}] -> [{}]{}  {}, carries {}{look}",
            from.name,
            edge.from.port,
            edge.to.port,
            to.name,
            edge.flow.word(),
            carried.word(),
        );
    }
    out
}

/// Tasks by worker, with the reasons.
pub fn workers(graph: &Graph, plan: &assign::Assignment, cores: &Cores) -> String {
    let mut out = String::new();
    for (worker, kinds) in plan.tasks.iter().enumerate() {
        let CpuCore { number, node } = cores.of(worker);
        let tasks = format!("{} task{}", kinds.len(), s(kinds.len()));
        _ = writeln!(out, "  worker {worker}: {tasks}; core {number}, NUMA node {node}");
        for kind in kinds {
            let (label, reason) = (graph.label(kind.element()), &plan[kind.element()].reason);
            let moves = moves(plan, kind.element());
            _ = writeln!(out, "    {} {label}  ({reason}{moves})", kind.verb());
        }
    }
    out
}

/// Accounts of processor time and memory with the tasks that they pay for; empty if there are none.
pub fn accounts(graph: &Graph, plan: &assign::Assignment) -> String {
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let mut out = String::new();
    for (n, account) in plan.accounts.iter().enumerate() {
        let name = if n == assign::accounts::OWN { "the router's own" } else { &account.name };
        let limit = account
            .share
            .limit
            .map_or("no limit".to_owned(), |it| "at most ".to_owned() + &percent(it));
        let delay = account.delay.map(|it| format!(", waits at most {it:?} for a run of another"));
        let (least, delay) = (percent(account.share.guarantee), delay.unwrap_or_default());
        let limits = account.limits.as_ref();
        let heap = limits.and_then(|limits| limits.heap).map(memory::in_words);
        let heap = heap.map(|heap| format!(", {heap} on the heap"));
        let packets = limits.and_then(|limits| limits.packets);
        let packets = packets.map(|packets| format!(", {packets} kept packets"));
        let (heap, packets) = (heap.unwrap_or_default(), packets.unwrap_or_default());
        _ = writeln!(
            out,
            "  {name}: at least {least} of each worker, {limit}{heap}{packets}{delay}"
        );
        for kind in plan.tasks.iter().flatten().filter(|kind| plan[kind.element()].account == n) {
            _ = writeln!(out, "    {} {}", kind.verb(), graph.label(kind.element()));
        }
    }
    out
}

/// Whether a task may move, where any may, and why not.
fn moves(plan: &assign::Assignment, element: usize) -> String {
    match (plan.balanced, plan[element].movable) {
        (false, _) => String::new(),
        (true, true) => "; may move".into(),
        (true, false) if plan[element].reason == plan.stays(element) => "; stays".into(),
        (true, false) => format!("; stays: {}", plan.stays(element)),
    }
}

/// Devices: the chosen backend and why; the queues of each worker, and where workers share a lock.
pub fn devices(graph: &Graph, plan: &assign::Assignment) -> String {
    let mut out = String::new();
    for (node, element) in plan.elements.iter().enumerate() {
        let Some(device) = &element.device else { continue };
        _ = writeln!(out, "  {}: {}", graph.label(node), device.how);
        let at = device.node.map_or("unknown".to_owned(), |node| node.to_string());
        _ = writeln!(out, "    NUMA node {at}; {}", offers(device));
        for share in &plan[node].queue_shares {
            let does = match graph.elements[node].class.role {
                Role::Through => sends(device, share),
                _ => receives(device, share),
            };
            _ = writeln!(out, "    worker {} {does}", share.worker);
        }
    }
    out
}

/// The queues of a device that an element may use.
fn offers(device: &Device) -> String {
    let Queues { first, least, most, sockets } = device.queues;
    let from =
        first.filter(|&first| first > 0).map_or(String::new(), |it| format!(" from {it} on"));
    match (sockets, most) {
        (true, _) => "as many sockets as workers".to_owned(),
        (false, usize::MAX) => format!("as many queues as the driver has{from}"),
        (false, most) if least == most => format!("{most} queue{}{from}", s(most)),
        (false, most) => format!("up to {most} queue{}{from}", s(most)),
    }
}

fn receives(device: &Device, share: &QueueShare) -> String {
    let queues = &share.queues;
    match (device.queues.sockets, queues.len()) {
        (true, _) => "receives from a socket of its own; flows are spread over them".to_owned(),
        (false, 1) => format!("receives from queue {}", queues.start),
        (false, _) => format!("receives from queues {} to {}", queues.start, queues.end - 1),
    }
}

fn sends(device: &Device, share: &QueueShare) -> String {
    let queue = share.queues.start;
    if device.queues.sockets {
        return "sends by a socket of its own: no lock".to_owned();
    }
    if share.with.is_empty() {
        return format!("sends to queue {queue}, alone: it never waits for a lock");
    }
    let others: Vec<String> = share.with.iter().map(ToString::to_string).collect();
    let (others, s) = (others.join(", "), s(share.with.len()));
    format!("sends to queue {queue}, locked for each burst: so does worker{s} {others}")
}

/// Note on an element whose workers take turns.
const LOCKED: &str = "several workers: they have one state, locked per burst";

/// Thread vectors: the workers that reach each element, and what follows from them.
pub fn vectors(graph: &Graph, plan: &assign::Assignment) -> String {
    let mut out = String::new();
    for (i, it) in graph.elements.iter().enumerate() {
        let workers: Vec<String> =
            (0..plan.workers).filter(|&w| plan[i].workers[w]).map(|w| w.to_string()).collect();
        let note = match (it.class.role, workers.len()) {
            (Role::Info, _) => "declares facts; nothing runs",
            (Role::Control, _) => "runs on the control thread",
            (_, 0) => "no packet reaches it",
            _ if plan[i].moves_with.is_some() => "one of them at a time: it moves with its task",
            _ if plan.alone(i) => "one worker: nothing is shared",
            (Role::Store, _) => "one state for all workers, locked per burst",
            (_, 1) if it.class.sharing == StateSharing::PerWorker => {
                "one worker: nothing is shared"
            }
            // An element whose counts call handlers has one state, so that each call is made once.
            _ if !it.class.called_by.is_empty() && order::calls(graph, i) => LOCKED,
            _ => match it.class.sharing {
                StateSharing::PerWorker => {
                    "several workers: each has its own state, handlers add them up"
                }
                StateSharing::Locked => LOCKED,
                StateSharing::ReadShared => {
                    "several workers: all read one state at a time, one changes it"
                }
            },
        };
        let set = if workers.is_empty() { "-".into() } else { workers.join(",") };
        _ = writeln!(out, "  {}  {{{set}}}  {note}", it.name);
    }
    let verdict = match plan.full_push(graph) {
        true => "full push: every packet stays on the worker that received it",
        false => "not full push: packets rest in a Queue and may change workers",
    };
    _ = writeln!(out, "  {verdict}");
    let counts = "packets with one owner count nothing, clones count theirs atomically";
    _ = writeln!(out, "  {counts}");
    out
}

/// Elements to which packets come one at a time, because handlers are called on their way; empty if
/// there are none.
pub fn order(graph: &Graph, plan: &assign::Assignment) -> String {
    let single = (0..graph.elements.len()).filter(|&it| plan[it].single);
    single.fold(String::new(), |out, it| out + &format!("  {}\n", graph.label(it)))
}

/// Fused chains, each branch in a line of its own.
pub fn passes(graph: &Graph, plan: &fuse::FusionPlan) -> String {
    let mut out = String::new();
    let name = |member: &ChainMember| {
        let name = &graph.elements[member.node].name;
        if member.next_port > 0 { format!("{name}[{}]", member.next_port) } else { name.clone() }
    };
    for chain in &plan.chains {
        let mut fork = String::new();
        for part in chain.members.chunk_by(|a, b| a.place.branch == b.place.branch) {
            let names = part.iter().map(name).collect::<Vec<_>>().join(" -> ");
            _ = match part[0].place.branch {
                0 => writeln!(out, "  {names}"),
                n => writeln!(
                    out,
                    "    {fork}[{}] -> {names}",
                    chain.branch_ports[usize::from(n) - 1]
                ),
            };
            if part[0].place.branch == 0 {
                fork = part.last().map(name).unwrap_or_default();
            }
        }
    }
    for Bypass { from, ways, are_all } in &plan.bypasses {
        for path in ways {
            let elements = std::iter::once(*from).chain(path.elements());
            let names: Vec<_> = elements.map(|at| graph.elements[at].name.as_str()).collect();
            let names = names.join(" -> ");
            let how = match path.handles_bytes() {
                true => "by the bytes of the packets where devices allow it",
                false => "without a look at the packets where devices allow it",
            };
            _ = writeln!(out, "  {names}, {how}");
        }
        if !are_all {
            let (name, count) = (&graph.elements[*from].name, ways.len());
            _ = writeln!(out, "  {name}: no more than these {count} ways are known");
        }
    }
    if out.is_empty() {
        out += "  none: each element is visited by itself\n";
    }
    out
}

fn s(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
