//! Moves batches through the elements of one worker.
//!
//! Pushed batches wait on an explicit stack, so that neither long chains nor loops in the graph can
//! exhaust the thread's own stack; pulls recurse, and the graph check bounds their depth.
//!
//! Functions that run elements are compiled twice: for workers that count the cycles of each
//! element (`TIMED`), and for others. The first run the elements of fused chains one by one.

pub(super) mod limits;
mod pull;

use super::calls;
use super::chain::{self, ChainEnd};
use super::inspect;
use crate::graph::target::Target;
use crate::worker::slot;
use crate::worker::slot::{PendingBatch, WorkerGraph};
use castanet_element::cx::Cx;
use castanet_element::element::NextRun;
use castanet_element::exec::{Destination, ExecState, Next, RunKind};
use castanet_element::fate::PANICKED;
use castanet_element::node::{Node, PushRole, RoleNode};
use castanet_packet::Batch;
use limits::{MAX_DEPTH, drop_looped, is_in_circles, may_go_on};
use pull::take;
pub(super) use pull::{has_nothing_else, pull_input};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Time after which a source that panicked runs again.
const AFTER_PANIC: Duration = Duration::from_millis(1);

/// Pushes all batches on the stack to their end, or down to a call.
pub(crate) fn drain<const TIMED: bool>(graph: &mut WorkerGraph, exec: &mut ExecState) {
    graph.hops = 0;
    run_down::<TIMED>(graph, exec);
}

/// The same, with the cycles of elements counted where they are.
pub(crate) fn drain_all(graph: &mut WorkerGraph, exec: &mut ExecState) {
    match exec.cycles {
        None => drain::<false>(graph, exec),
        Some(_) => drain::<true>(graph, exec),
    }
}

/// Pushes all batches on the stack, down to a call.
pub(crate) fn run_down<const TIMED: bool>(graph: &mut WorkerGraph, exec: &mut ExecState) {
    while !graph.is_cut
        && let Some(hop) = graph.stack.pop_if(|hop| hop.call.is_none())
    {
        let to = Target { node: hop.node, port: hop.port };
        follow::<TIMED>(graph, exec, to, hop.depth, hop.batch, hop.alone);
    }
}

/// Charges the cycles of `act` to element `me`.
#[inline(always)]
fn charged<const TIMED: bool, R>(
    exec: &mut ExecState,
    me: usize,
    why: RunKind,
    act: impl FnOnce(&mut ExecState) -> R,
) -> R {
    if !TIMED {
        return act(exec);
    }
    let charged = exec.cycles.as_mut().map(|cycles| cycles.enter(me, why));
    let done = act(exec);
    if let (Some(cycles), Some(charged)) = (&mut exec.cycles, charged) {
        cycles.leave(charged);
    }
    done
}

/// Counts a batch that comes to element `me`, or that a source has made, where cycles are counted.
#[inline(always)]
fn count_traffic<const TIMED: bool>(exec: &mut ExecState, me: usize, batch: &Batch) {
    if TIMED && let Some(cycles) = &mut exec.cycles {
        cycles.count(me, batch);
    }
}

/// A batch on its way from element to element.
struct Journey {
    /// The element that has the batch, or is to get it.
    me: usize,
    port: usize,
    /// Elements that it has visited.
    depth: u32,
    /// Whether it is for this element alone, not for the chain that begins with it.
    alone: bool,
    batch: Batch,
    /// Packets that the element got.
    count: u64,
}

/// Pushes a batch from element to element for as long as it leaves whole by one output; otherwise
/// its parts go on the stack.
fn follow<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    to: Target,
    depth: u32,
    mut batch: Batch,
    alone: bool,
) {
    if exec.observers.has_tagged() && inspect::divert(graph, exec, to, depth, &mut batch, alone) {
        return;
    }
    exec.outputs.set_mark(0);
    let (Target { node: me, port }, count) = (to, 0);
    let mut journey = Journey { me, port, depth, alone, batch, count };
    // Panics are caught once for all elements on the way: to catch them takes as long as a visit.
    while catch_unwind(AssertUnwindSafe(|| travel::<TIMED>(graph, exec, &mut journey))).is_err() {
        if !recover(graph, exec, &mut journey) {
            return;
        }
    }
}

/// Visits element after element until the batch has ended or is on the stack.
fn travel<const TIMED: bool>(graph: &mut WorkerGraph, exec: &mut ExecState, it: &mut Journey) {
    loop {
        let me = it.me;
        if (it.depth > MAX_DEPTH || graph.hops > graph.most_hops) && !may_go_on(graph, it.depth) {
            return stop(graph, exec, it);
        }
        graph.hops += 1;
        it.depth += 1;
        if graph.slots[me].single && it.batch.len() > 1 {
            calls::part(graph, me, it.port, it.depth, &mut it.batch);
        }
        if graph.slots[me].captured {
            let to = Target { node: me, port: it.port };
            return inspect::visit(graph, exec, to, it.depth, &mut it.batch);
        }
        let fused = match graph.slots[me].chain {
            Some(_) if !TIMED && !it.alone && !graph.slots[me].is_apart() => {
                chain::run(graph, exec, me, it.depth, &mut it.batch)
            }
            _ => None,
        };
        it.alone = false;
        let next;
        (it.me, next) = match fused {
            Some(ChainEnd::Leaves(last, next)) => (last, next),
            Some(ChainEnd::Goes(to)) => {
                (it.me, it.port) = (to.node, to.port);
                continue;
            }
            None if TIMED => (me, push_one::<true>(graph, exec, me, it.port, &mut it.batch, 0)),
            None => {
                it.count = it.batch.len() as u64;
                let push = |node: &mut dyn PushRole, exec: &mut ExecState, batch: &mut Batch| {
                    node.push(it.port, batch, &mut Cx { exec, me, peers: None })
                };
                (me, visit(graph, exec, me, &mut it.batch, push))
            }
        };
        if !go_on(graph, exec, it, next) {
            return;
        }
    }
}

/// Ends the way of a batch that has visited as many elements as it may: drops it if it goes in circles, else
/// cuts the run.
#[cold]
fn stop(graph: &mut WorkerGraph, exec: &mut ExecState, it: &mut Journey) {
    if is_in_circles(graph, it.depth) {
        return drop_looped(exec, it.me, &mut it.batch);
    }
    let mut rest = PendingBatch::new(it.me, it.port, it.depth, std::mem::take(&mut it.batch));
    rest.alone = it.alone;
    graph.stack.push(rest);
    graph.is_cut = true;
}

/// Sends the batch on that an element has left or emitted, if there is one and no others; those go
/// on the stack.
#[inline(always)]
fn go_on(graph: &mut WorkerGraph, exec: &mut ExecState, it: &mut Journey, mut next: Next) -> bool {
    let me = it.me;
    if !exec.outputs.is_empty() {
        emit_rest(exec, next, &mut it.batch);
        // Kept packets that an element lets go may be traced.
        let is_traced = exec.observers.has_tagged();
        if exec.outputs.len() > 1 || exec.outputs.has_calls() || is_traced {
            stack_emitted(graph, exec, me, it.depth, 0);
            return false;
        }
        if let Some((Destination::Output(output), emitted)) = exec.outputs.pop() {
            (next, it.batch) = (Next::Output(output), emitted);
        }
    }
    let count = it.batch.len() as u64;
    let Next::Output(output) = next else { return false };
    if count == 0 {
        return false;
    }
    let Some(&Some(to)) = graph.slots[me].outputs.get(usize::from(output)) else {
        leave_open(exec, me, output, &it.batch);
        return false;
    };
    exec.counters[me].output += count;
    (it.me, it.port) = (to.node, to.port);
    true
}

/// After a panic of the element that had the batch: counts what was lost there. `true` if a batch
/// that it had emitted is to go on.
#[cold]
fn recover(graph: &mut WorkerGraph, exec: &mut ExecState, it: &mut Journey) -> bool {
    if let Some(node) = slot::push_at_mut(&mut graph.slots, it.me) {
        lose_burst(exec, it.me, node, it.count, 0, &it.batch);
    }
    it.batch.clear();
    graph.woken.extend_from_slice(&graph.slots[it.me].waiters);
    go_on(graph, exec, it, Next::None)
}

/// Emits the packets that an element has left in its batch.
#[inline]
pub(super) fn emit_rest(exec: &mut ExecState, next: Next, batch: &mut Batch) {
    if let Next::Output(output) = next
        && !batch.is_empty()
    {
        exec.outputs.emit(output, batch);
    }
}

/// Drops packets for an output that nothing is connected to: counts them, and keeps one as an example
/// if one is wanted. The caller lets them go.
#[cold]
pub(crate) fn leave_open(exec: &mut ExecState, me: usize, output: u8, packets: &Batch) {
    let open = &mut exec.counters[me].open;
    open.resize(open.len().max(usize::from(output) + 1), 0);
    open[usize::from(output)] += packets.len() as u64;
    if let Some(packet) = packets.iter().next() {
        exec.keep_example(me, output, packet);
    }
}

/// Pushes one batch into one element. Batches that it emits lie at index `from`, which is the mark,
/// and behind; packets left in `batch` leave by the returned output.
#[inline]
pub(super) fn push_one<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    port: usize,
    batch: &mut Batch,
    from: usize,
) -> Next {
    let count = batch.len() as u64;
    count_traffic::<TIMED>(exec, me, batch);
    visit(graph, exec, me, batch, |node, exec, batch| {
        let pushed = charged::<TIMED, _>(exec, me, RunKind::Transfer, |exec| {
            let mut cx = Cx { exec, me, peers: None };
            catch_unwind(AssertUnwindSafe(|| node.push(port, batch, &mut cx)))
        });
        pushed.unwrap_or_else(|_| {
            lose_burst(exec, me, node, count, from, batch);
            batch.clear();
            Next::None
        })
    })
}

/// Has an element take a batch by `push`, and keeps the books of the visit.
#[inline(always)]
fn visit(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    batch: &mut Batch,
    push: impl FnOnce(&mut dyn PushRole, &mut ExecState, &mut Batch) -> Next,
) -> Next {
    let count = batch.len() as u64;
    exec.counters[me].input += count;
    if !graph.slots[me].watched.is_empty() {
        exec.watched = graph.stores(&graph.slots[me].watched).map(|store| store.held()).sum();
    }
    let Some(node) = slot::push_at_mut(&mut graph.slots, me) else {
        exec.drop_packets(me, PANICKED, batch.as_slice());
        batch.clear();
        return Next::None;
    };
    debug_assert!(exec.at_home[me] || !node.is_at_home(), "{}", exec.labels[me]);
    let next = push(node, exec, batch);
    if !graph.slots[me].waiters.is_empty() {
        graph.woken.extend_from_slice(&graph.slots[me].waiters);
    }
    next
}

/// After a panic: packets that did not come out again, were not counted and are not kept are
/// counted as lost to it. Where workers share the kept packets, only the burst of `count` packets
/// can be counted. Batches that the element has emitted lie at index `from` and behind. The first of the
/// packets that it has `left` in its batch becomes the example.
#[cold]
fn lose_burst(
    exec: &mut ExecState,
    me: usize,
    node: &dyn Node,
    count: u64,
    from: usize,
    left: &Batch,
) {
    let out = exec.outputs.packets_from(from);
    let held = catch_unwind(AssertUnwindSafe(|| node.held())).unwrap_or(0) as u64;
    let lost = match node.is_shared() {
        true => count.saturating_sub(out),
        false => exec.counters[me].inside().saturating_sub(out + held),
    };
    exec.count_drops(me, PANICKED, lost);
    if let Some(packet) = left.iter().next().filter(|_| lost > 0) {
        exec.keep_example(me, PANICKED, packet);
    }
    exec.count_panic(me);
}

/// Stacks the batches that element `me` has emitted since `from`, its first output on top.
pub(super) fn stack_emitted(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    depth: u32,
    from: usize,
) {
    if exec.outputs.has_calls() {
        calls::stack_emitted(graph, exec, me, depth, from);
    }
    exec.outputs.set_mark(from);
    if exec.outputs.len() - from > 1 {
        let first = graph.slots[me].first_output;
        exec.outputs.sort_from(from, |output| output.wrapping_sub(first));
    }
    while exec.outputs.len() > from {
        let Some((Destination::Output(output), batch)) = exec.outputs.pop() else { break };
        let count = batch.len() as u64;
        match graph.slots[me].outputs.get(usize::from(output)) {
            Some(Some(to)) => {
                exec.counters[me].output += count;
                graph.stack.push(PendingBatch::new(to.node, to.port, depth, batch));
            }
            _ => leave_open(exec, me, output, &batch),
        }
    }
}

/// Runs the task of a source: produces up to `n` packets and pushes them on.
pub(crate) fn run_source<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    n: usize,
) -> NextRun {
    let mark = exec.outputs.len();
    exec.outputs.set_mark(mark);
    let asked = produce(graph, exec, me, 0, n);
    let calls = exec.outputs.has_calls() || !graph.pulled.is_empty();
    if mark == 0
        && !calls
        && exec.outputs.len() == 1
        && let Destination::Output(output) = exec.outputs.destination(0)
        && let Some(&Some(to)) = graph.slots[me].outputs.get(usize::from(output))
        && let Some((_, batch)) = exec.outputs.pop()
    {
        // One batch, and no other waits: it need not wait either.
        exec.counters[me].output += batch.len() as u64;
        send::<TIMED>(graph, exec, me, to, batch);
        return asked;
    }
    let stacked = graph.stack.len();
    stack_emitted(graph, exec, me, 0, mark);
    if TIMED {
        let made = graph.stack.get(stacked..).unwrap_or_default();
        made.iter().for_each(|pending| count_traffic::<TIMED>(exec, me, &pending.batch));
    }
    if calls {
        calls::stack_pulled(graph);
    }
    drain::<TIMED>(graph, exec);
    asked
}

/// Sends the one batch of a task's run on its way, before those that wait.
#[inline]
fn send<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    to: Target,
    batch: Batch,
) {
    count_traffic::<TIMED>(exec, me, &batch);
    graph.hops = 0;
    follow::<TIMED>(graph, exec, to, 0, batch, false);
    run_down::<TIMED>(graph, exec);
}

/// Runs the task of a store: dequeues a burst and pushes it on.
pub(crate) fn run_store<const TIMED: bool>(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
) -> NextRun {
    let store = graph.slots[me].node.as_ref().and_then(RoleNode::store);
    if !store.is_some_and(|store| store.is_active()) {
        return NextRun::Done;
    }
    let mut batch = Batch::new();
    let n = exec.burst;
    exec.outputs.set_mark(exec.outputs.len());
    take(graph, exec, me, n, &mut batch);
    let Some(&Some(to)) = graph.slots[me].outputs.first() else { return NextRun::Done };
    if batch.is_empty() {
        drain::<TIMED>(graph, exec);
        return NextRun::Empty;
    }
    send::<TIMED>(graph, exec, me, to, batch);
    NextRun::More
}

/// Has `me` produce for an output; it may pull its inputs meanwhile.
fn produce(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    output: usize,
    n: usize,
) -> NextRun {
    let Some(mut node) = graph.slots[me].node.take() else { return NextRun::Done };
    let entered = |exec: &ExecState| exec.counters[me].input + exec.counters[me].made;
    let (before, from) = (entered(exec), exec.outputs.mark());
    exec.requested_output = output;
    let from_storage = std::mem::replace(&mut exec.from_storage, false);
    let mut cx = Cx { exec: &mut *exec, me, peers: Some(&mut *graph) };
    let asked = catch_unwind(AssertUnwindSafe(|| match node.source_mut() {
        Some(source) => source.produce(n, &mut cx),
        None => NextRun::Done,
    }));
    exec.from_storage = from_storage;
    let asked = match asked {
        Ok(asked) => asked,
        Err(_) => {
            lose_burst(exec, me, node.node(), entered(exec) - before, from, &Batch::new());
            NextRun::At(exec.now + AFTER_PANIC)
        }
    };
    graph.slots[me].node = Some(node);
    if graph.sees_all {
        inspect::produced(graph, exec, me, from);
    }
    asked
}

/// Runs the timer of element `me`.
pub(crate) fn wake(graph: &mut WorkerGraph, exec: &mut ExecState, me: usize) {
    call(graph, exec, me, |node, cx| node.run_timer(cx));
}

/// Calls element `me` outside a burst, and pushes the batches that it emits.
pub(crate) fn call(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    f: impl FnOnce(&mut dyn Node, &mut Cx),
) {
    act(graph, exec, me, f);
    drain_all(graph, exec);
}

/// Calls element `me` outside a burst; batches that it emits wait on the stack.
pub(crate) fn act(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    f: impl FnOnce(&mut dyn Node, &mut Cx),
) {
    let mark = exec.outputs.len();
    exec.outputs.set_mark(mark);
    if let Some(node) = slot::at_mut(&mut graph.slots, me) {
        let mut cx = Cx { exec: &mut *exec, me, peers: None };
        if catch_unwind(AssertUnwindSafe(|| f(node, &mut cx))).is_err() {
            lose_burst(exec, me, node, 0, mark, &Batch::new());
        }
    }
    if graph.sees_all {
        inspect::acted(graph, exec, me, mark);
    }
    stack_emitted(graph, exec, me, 0, mark);
}
