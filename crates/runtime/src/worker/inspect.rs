//! Visits of elements whose packets are traced or captured. All of it is off the fast path: batches
//! come here once a trace or a capture is on, and only those that it is about.

use super::Worker;
use super::transfer::{self, emit_rest, push_one, stack_emitted};
use crate::graph::target::Target;
use crate::worker::slot::{PendingBatch, Slot, WorkerGraph};
use castanet_element::exec::{
    CapturePlace, ExecState, Next, TraceVisit, WorkerCapture, WorkerTrace,
};
use castanet_packet::{Batch, Packet};

impl Worker {
    /// Traces and captures from now on what these are about, in place of others. `captured` has the
    /// elements whose packets are captured.
    pub(crate) fn inspect(
        &mut self,
        trace: Option<WorkerTrace>,
        capture: Option<WorkerCapture>,
        captured: &[usize],
    ) {
        let observers = &mut self.exec.observers;
        observers.trace = trace.map(Box::new);
        observers.capture = capture.map(Box::new);
        apply(&mut self.graph, &mut self.exec, captured);
    }
}

/// Has captured elements be visited one by one, past no fused chain, and drops be shown to those who
/// want them.
fn apply(graph: &mut WorkerGraph, exec: &mut ExecState, captured: &[usize]) {
    let observers = &mut exec.observers;
    let is_on = observers.trace.is_some() || observers.capture.is_some();
    observers.examples.want_all(is_on);
    graph.sees_all = is_on;
    for (element, slot) in graph.slots.iter_mut().enumerate() {
        slot.captured = captured.contains(&element);
    }
    for head in 0..graph.slots.len() {
        let is_apart = graph.slots[head]
            .chain
            .as_ref()
            .is_some_and(|chain| chain.elements().any(|member| graph.slots[member].captured));
        graph.slots[head].apart = is_apart;
    }
}

/// Ends traces and captures whose clients have gone.
#[cold]
fn end_expired(graph: &mut WorkerGraph, exec: &mut ExecState) {
    let (now, observers) = (exec.now, &mut exec.observers);
    observers.trace.take_if(|trace| trace.is_over(now));
    observers.capture.take_if(|capture| capture.is_over(now));
    let captured: Vec<usize> = match exec.observers.capture {
        Some(_) => (0..graph.slots.len()).filter(|&it| graph.slots[it].captured).collect(),
        None => Vec::new(),
    };
    apply(graph, exec, &captured);
}

fn has_expired(exec: &ExecState) -> bool {
    let (now, observers) = (exec.now, &exec.observers);
    observers.trace.as_ref().is_some_and(|trace| trace.is_over(now))
        || observers.capture.as_ref().is_some_and(|capture| capture.is_over(now))
}

/// Whether any of these packets has a tag.
fn has_tagged(exec: &ExecState, packets: &[Packet]) -> bool {
    exec.observers.has_tagged() && packets.iter().any(|packet| packet.trace_tag() > 0)
}

/// Takes a batch over that has tagged packets: a tagged packet alone visits the element, otherwise
/// the batch goes on the stack in parts. `false` if there are no tagged packets.
#[cold]
pub(super) fn divert(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    to: Target,
    depth: u32,
    batch: &mut Batch,
    alone: bool,
) -> bool {
    if !has_tagged(exec, batch.as_slice()) {
        return false;
    }
    if batch.len() == 1 {
        exec.outputs.set_mark(0);
        visit(graph, exec, to, depth + 1, batch);
        return true;
    }
    let mut parts = parts(batch);
    while let Some(batch) = parts.pop() {
        let pending = PendingBatch::new(to.node, to.port, depth, batch);
        graph.stack.push(PendingBatch { alone, ..pending });
    }
    true
}

/// Divides a batch into tagged packets, each alone, and those between them, in order.
fn parts(batch: &mut Batch) -> Vec<Batch> {
    let mut parts: Vec<Batch> = Vec::new();
    let mut open = false;
    for packet in std::mem::take(batch) {
        let is_tagged = packet.trace_tag() > 0;
        match parts.last_mut() {
            Some(last) if open && !is_tagged => last.push(packet),
            _ => parts.push(Batch::from(packet)),
        }
        open = !is_tagged;
    }
    parts
}

/// Has an element take a batch, and reports the visit; batches that it emits go on the stack.
#[cold]
pub(super) fn visit(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    to: Target,
    depth: u32,
    batch: &mut Batch,
) {
    if transfer::limits::is_in_circles(graph, depth) {
        return transfer::limits::drop_looped(exec, to.node, batch);
    }
    graph.hops += 1;
    push_reported(graph, exec, to, batch, 0);
    stack_emitted(graph, exec, to.node, depth, 0);
}

/// Has an element take a batch, and reports that. Batches that it emits lie at index `from`, which is
/// the mark, and behind.
fn push_reported(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    to: Target,
    batch: &mut Batch,
    from: usize,
) {
    let Target { node: me, port } = to;
    let now = exec.now;
    if graph.slots[me].captured
        && let Some(capture) = &mut exec.observers.capture
    {
        capture.take(me, &CapturePlace::Input(port), batch.as_slice(), now);
    }
    let traced = match (&mut exec.observers.trace, batch.as_slice()) {
        (Some(trace), [packet]) => trace.begin_visit(port, packet, &exec.counters[me]),
        _ => None,
    };
    let next: Next = match exec.cycles {
        None => push_one::<false>(graph, exec, me, port, batch, from),
        Some(_) => push_one::<true>(graph, exec, me, port, batch, from),
    };
    emit_rest(exec, next, batch);
    report(&graph.slots[me], exec, me, traced, from);
    if has_expired(exec) {
        end_expired(graph, exec);
    }
}

/// Reports what an element has emitted from index `from` on.
fn report(slot: &Slot, exec: &mut ExecState, me: usize, traced: Option<TraceVisit>, from: usize) {
    let ExecState { observers, outputs, counters, now, pulls, .. } = exec;
    let is_pulled = *pulls > 0;
    if let (Some(trace), Some(visit)) = (&mut observers.trace, traced) {
        let is_connected =
            |output: u8| slot.outputs.get(usize::from(output)).is_some_and(Option::is_some);
        // Outputs that are pulled have no target to push to.
        let emitted = outputs
            .batches_from(from)
            .map(|(output, batch)| (output, is_pulled || is_connected(output), batch));
        trace.end_visit(visit, me, *now, &counters[me], emitted);
    }
    if slot.captured
        && let Some(capture) = &mut observers.capture
    {
        for (output, batch) in outputs.batches_from(from) {
            capture.take(me, &CapturePlace::Output(output.into()), batch.as_slice(), *now);
        }
    }
}

/// Has a pulled element take a batch; batches that it emits lie at index `mark` and behind.
#[cold]
pub(super) fn push_pulled(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    to: Target,
    batch: &mut Batch,
    mark: usize,
) {
    let parts = match has_tagged(exec, batch.as_slice()) {
        true => parts(batch),
        false => vec![std::mem::take(batch)],
    };
    for mut part in parts {
        let from = exec.outputs.len();
        exec.outputs.set_mark(from);
        push_reported(graph, exec, to, &mut part, from);
    }
    exec.outputs.set_mark(mark);
}

/// Looks at the packets that source `me` has emitted from index `from` on: chooses among those that
/// begin here, and reports those that were chosen before.
#[cold]
pub(super) fn produced(graph: &mut WorkerGraph, exec: &mut ExecState, me: usize, from: usize) {
    let is_first = graph.slots[me].upstream.iter().all(Option::is_none);
    let ExecState { observers, outputs, now, .. } = exec;
    if let Some(trace) = &mut observers.trace {
        match is_first {
            true => trace.choose(me, *now, outputs.batches_from(from)),
            false if trace.has_tagged() => outputs
                .batches_from(from)
                .for_each(|(_, batch)| trace.take(me, *now, batch.as_slice())),
            false => {}
        }
    }
    report(&graph.slots[me], exec, me, None, from);
    if has_expired(exec) {
        end_expired(graph, exec);
    }
}

/// Looks at packets that were taken out of store `me`.
#[cold]
pub(super) fn taken(graph: &WorkerGraph, exec: &mut ExecState, me: usize, packets: &[Packet]) {
    let ExecState { observers, now, .. } = exec;
    if let Some(trace) = &observers.trace
        && trace.has_tagged()
    {
        trace.take(me, *now, packets);
    }
    if graph.slots[me].captured
        && let Some(capture) = &mut observers.capture
    {
        capture.take(me, &CapturePlace::Output(0), packets, *now);
    }
}

/// Looks at the packets that an element has emitted outside a burst.
#[cold]
pub(super) fn acted(graph: &WorkerGraph, exec: &mut ExecState, me: usize, from: usize) {
    let ExecState { observers, outputs, now, .. } = exec;
    if let Some(trace) = &observers.trace
        && trace.has_tagged()
    {
        let emitted = outputs.batches_from(from);
        emitted.for_each(|(_, batch)| trace.take(me, *now, batch.as_slice()));
    }
    report(&graph.slots[me], exec, me, None, from);
}
