//! Pulls: packets out of stores, through the elements on the way.

use super::{charged, emit_rest, produce, push_one, stack_emitted};
use crate::graph::target::Target;
use crate::worker::slot::{self, WorkerGraph};
use crate::worker::{calls, inspect};
use castanet_element::class::Role;
use castanet_element::cx::Cx;
use castanet_element::exec::{Destination, ExecState, RunKind};
use castanet_element::node::RoleNode;
use castanet_packet::Batch;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Pulls up to `n` packets for input `input` of element `me`.
#[inline]
pub(crate) fn pull_input<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    input: usize,
    n: usize,
    into: &mut Batch,
) {
    let Some(&Some(from)) = graph.slots[me].upstream.get(input) else { return };
    if !graph.pulled.is_empty() {
        // Calls are made before the next pull.
        return;
    }
    let (before, n) = (into.len(), n.min(graph.most));
    pull::<TIMED>(graph, exec, from, n, into);
    exec.counters[me].input += (into.len() - before) as u64;
}

/// Pulls up to `n` packets out of output `from.port` of element `from.node`.
fn pull<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    from: Target,
    n: usize,
    into: &mut Batch,
) {
    let me = from.node;
    if exec.pulls > graph.slots.len() {
        // Deeper than any path without a circle: there can be no packets.
        return;
    }
    exec.pulls += 1;
    let mark = exec.outputs.len();
    let (outer, requested) = (exec.outputs.set_mark(mark), exec.requested_output);
    match graph.slots[me].role {
        Role::Store => charged::<TIMED, _>(exec, me, RunKind::Transfer, |exec| {
            take(graph, exec, me, n, into);
        }),
        Role::Source | Role::Duplex => {
            charged::<TIMED, _>(exec, me, RunKind::Transfer, |exec| {
                produce(graph, exec, me, from.port, n);
            });
            graph.is_drained = false;
        }
        _ => {
            // Where several paths run side by side, each has its own input.
            let behind =
                slot::through_at(&graph.slots, me).and_then(|node| node.pull_input(from.port));
            let side =
                behind.map_or(usize::MAX, |it| it.min(graph.slots[me].upstream.len().max(1) - 1));
            let mut batch = Batch::new();
            let has_decided = graph.slots[me].decides && emit_decided(graph, exec, me, n, mark);
            if !has_decided && let Some(&Some(up)) = graph.slots[me].upstream.get(side) {
                pull::<TIMED>(graph, exec, up, n, &mut batch);
            }
            if !batch.is_empty() {
                exec.requested_output = from.port;
                if graph.sees_all {
                    let to = Target { node: me, port: side };
                    inspect::push_pulled(graph, exec, to, &mut batch, mark);
                } else {
                    let next = push_one::<TIMED>(graph, exec, me, side, &mut batch, mark);
                    emit_rest(exec, next, &mut batch);
                }
            }
            graph.is_drained = graph.is_drained && has_nothing_else(graph, me);
        }
    }
    collect(graph, exec, from, mark, into);
    exec.outputs.set_mark(outer);
    exec.requested_output = requested;
    exec.pulls -= 1;
}

/// Has an element emit packets about which its program has decided since the last pull; returns whether
/// there were any.
#[cold]
fn emit_decided(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    n: usize,
    mark: usize,
) -> bool {
    let node = graph.slots[me].node.as_mut().and_then(RoleNode::through_mut);
    let Some(node) = node.filter(|node| node.held() > 0) else { return false };
    let mut cx = Cx { exec: &mut *exec, me, peers: None };
    if catch_unwind(AssertUnwindSafe(|| node.emit_decided(n, &mut cx))).is_err() {
        exec.count_panic(me);
    }
    if graph.sees_all {
        inspect::acted(graph, exec, me, mark);
    }
    true
}

/// Takes up to `n` packets out of a store.
#[inline]
pub(super) fn take(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    n: usize,
    into: &mut Batch,
) {
    let before = into.len();
    if let Some(store) = graph.slots[me].node.as_mut().and_then(RoleNode::store_mut) {
        debug_assert!(exec.at_home[me] || !store.is_at_home(), "{}", exec.labels[me]);
        let mut cx = Cx { exec: &mut *exec, me, peers: None };
        if catch_unwind(AssertUnwindSafe(|| store.dequeue(n, into, &mut cx))).is_err() {
            exec.count_panic(me);
        }
        // Where workers share its packets, others may come at any time. Without accounts, tasks have their turns
        // one after another, and looking again costs less than a rest.
        graph.is_drained = exec.store_inputs.is_some()
            && store.held() == 0
            && (store.is_at_home() || !store.is_shared());
    }
    let taken = (into.len() - before) as u64;
    exec.counters[me].output += taken;
    graph.progress += taken;
    if graph.sees_all {
        inspect::taken(graph, exec, me, &into.as_slice()[before..]);
    }
    if taken > 0 && !graph.slots[me].feeders.is_empty() {
        graph.woken.extend_from_slice(&graph.slots[me].feeders);
    }
}

/// Whether all packets of an element come from one store: it has one input, and keeps none itself.
#[inline]
pub(in crate::worker) fn has_nothing_else(graph: &WorkerGraph, me: usize) -> bool {
    let upstream = graph.slots[me].upstream.len();
    upstream == 1 && slot::at(&graph.slots, me).is_some_and(|node| node.held() == 0)
}

/// Moves the batches that a pulled element has emitted for its pulled output into `into`; all
/// others are pushed on once the pull is over.
fn collect(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    from: Target,
    mark: usize,
    into: &mut Batch,
) {
    if exec.outputs.has_calls() {
        calls::set_aside(graph, exec, from.node, mark);
    }
    let mut at = mark;
    while at < exec.outputs.len() {
        if exec.outputs.destination(at) == Destination::Output(from.port as u8) {
            let mut batch = exec.outputs.remove(at);
            exec.counters[from.node].output += batch.len() as u64;
            graph.progress += batch.len() as u64;
            into.append(&mut batch);
        } else {
            at += 1;
        }
    }
    stack_emitted(graph, exec, from.node, 0, mark);
}
