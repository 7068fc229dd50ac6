//! Moves batches through the elements of one worker.
//!
//! Pushed batches wait on an explicit stack, so that neither long chains nor
//! loops in the graph can exhaust the thread's own; pulls recurse, and the
//! graph check bounds their depth.
//!
//! Functions that run elements are compiled twice, for workers that take down
//! what each element costs (`TIMED`) and for those that do not. The first visit
//! one by one what otherwise runs as one pass.

use super::core::{Core, Hop};
use super::visits::Why;
use super::{calls, pass};
use crate::class::Role;
use crate::cx::Cx;
use crate::element::Asked;
use crate::node::{self, LOOPED, NOTHING, Node, PANICKED, Slot, Target};
use castanet_packet::Batch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How many elements one batch may visit before it counts as going in circles.
const MAX_DEPTH: u32 = 20_000;
/// How many visits one burst may cause in all (a loop through a `Tee`).
const MAX_HOPS: u32 = 1_000_000;
/// When a source that panicked is asked again.
const AFTER_PANIC: Duration = Duration::from_millis(1);

/// Runs everything on the stack to its end, or to a call.
pub(crate) fn drain<const TIMED: bool>(nodes: &mut [Slot], core: &mut Core) {
    core.hops = 0;
    run_down::<TIMED>(nodes, core);
}

/// Runs everything on the stack, down to a call.
pub(crate) fn run_down<const TIMED: bool>(nodes: &mut [Slot], core: &mut Core) {
    while let Some(hop) = core.stack.pop_if(|hop| hop.call.is_none()) {
        follow::<TIMED>(nodes, core, hop);
    }
}

/// Does something at the cost of element `me`.
#[inline(always)]
fn billed<const TIMED: bool, R>(
    core: &mut Core,
    me: usize,
    why: Why,
    act: impl FnOnce(&mut Core) -> R,
) -> R {
    if !TIMED {
        return act(core);
    }
    let payer = core.visits.as_mut().map(|visits| visits.enter(me, why));
    let done = act(core);
    if let (Some(visits), Some(payer)) = (&mut core.visits, payer) {
        visits.leave(payer);
    }
    done
}

/// Follows a batch from element to element for as long as it leaves whole by
/// one output; what parts goes on the stack.
fn follow<const TIMED: bool>(nodes: &mut [Slot], core: &mut Core, hop: Hop) {
    let Hop { node: mut me, mut port, mut depth, mut batch, mut alone, .. } = hop;
    core.mark = 0;
    loop {
        if depth > MAX_DEPTH || core.hops > MAX_HOPS {
            core.ledger[me].input += batch.len() as u64;
            return core.count_drops(me, LOOPED, batch.len() as u64);
        }
        core.hops += 1;
        depth += 1;
        if nodes[me].single && batch.len() > 1 {
            calls::part(core, me, port, depth, &mut batch);
        }
        let fused = match nodes[me].pass {
            // A handler may have given an element of the pass a call: the first is single, too.
            Some(_) if !TIMED && !alone && !nodes[me].single => {
                pass::through(nodes, core, me, depth, &mut batch)
            }
            _ => None,
        };
        alone = false;
        let mut output;
        (me, output) = match fused {
            Some(last) => last,
            None => (me, push_one::<TIMED>(nodes, core, me, port, &mut batch, 0)),
        };
        if !core.emitted.is_empty() {
            if !batch.is_empty() {
                core.emit(output, &mut batch);
            }
            match core.emitted.len() {
                1 if core.calls.is_empty() => {
                    (output, batch) = core.emitted.pop().unwrap_or_default();
                }
                _ => return spread(&nodes[me], core, me, depth, 0),
            }
        }
        let count = batch.len() as u64;
        if count == 0 {
            return;
        }
        let Some(&Some(to)) = nodes[me].outputs.get(usize::from(output)) else {
            return leave_open(core, me, output, count);
        };
        core.ledger[me].output += count;
        (me, port) = (to.node, to.port);
    }
}

/// Counts packets for an output that nothing is connected to.
#[cold]
pub(crate) fn leave_open(core: &mut Core, me: usize, output: u8, count: u64) {
    let open = &mut core.ledger[me].open;
    open.resize(open.len().max(usize::from(output) + 1), 0);
    open[usize::from(output)] += count;
}

/// Gives one batch to one element; what it emits lies at `from`, which `core.mark` is, and behind,
/// and what is left in `batch` is for the output that it answers.
#[inline]
fn push_one<const TIMED: bool>(
    slots: &mut [Slot],
    core: &mut Core,
    me: usize,
    port: usize,
    batch: &mut Batch,
    from: usize,
) -> u8 {
    let count = batch.len() as u64;
    core.ledger[me].input += count;
    if !slots[me].watched.is_empty() {
        core.watched = kept(slots, me);
    }
    let Some(node) = node::at_mut(slots, me) else {
        core.count_drops(me, PANICKED, count);
        batch.clear();
        return NOTHING;
    };
    let pushed = billed::<TIMED, _>(core, me, Why::Transfer, |core| {
        let mut cx = Cx { core, me, nodes: None };
        catch_unwind(AssertUnwindSafe(|| node.push(port, batch, &mut cx)))
    });
    let output = pushed.unwrap_or_else(|_| {
        batch.clear();
        lose_burst(core, me, node, count, from);
        NOTHING
    });
    if !slots[me].waiters.is_empty() {
        core.woken.extend_from_slice(&slots[me].waiters);
    }
    output
}

/// After a panic: what did not come out again, was not counted and is not
/// kept is counted as lost to it. Where workers share what is kept, only the
/// burst of `count` packets can be told. What the element has emitted lies at `from` and behind.
#[cold]
fn lose_burst(core: &mut Core, me: usize, node: &dyn Node, count: u64, from: usize) {
    let out: u64 = core.emitted[from..].iter().map(|(_, b)| b.len() as u64).sum();
    let held = catch_unwind(AssertUnwindSafe(|| node.held())).unwrap_or(0) as u64;
    let lost = match node.shares() {
        true => count.saturating_sub(out),
        false => core.ledger[me].inside().saturating_sub(out + held),
    };
    core.count_drops(me, PANICKED, lost);
    core.panics += 1;
}

/// Puts what element `me` has emitted since `from` on the stack, its first output on top.
fn spread(slot: &Slot, core: &mut Core, me: usize, depth: u32, from: usize) {
    if !core.calls.is_empty() {
        calls::spread(slot, core, me, depth, from);
    }
    core.mark = from;
    if core.emitted.len() - from > 1 {
        let first = slot.first_output;
        core.emitted[from..].sort_by_key(|(output, _)| output.wrapping_sub(first));
    }
    while core.emitted.len() > from {
        let Some((output, batch)) = core.emitted.pop() else { break };
        let count = batch.len() as u64;
        match slot.outputs.get(usize::from(output)) {
            Some(Some(to)) => {
                core.ledger[me].output += count;
                core.stack.push(Hop::new(to.node, to.port, depth, batch));
            }
            _ => leave_open(core, me, output, count),
        }
    }
}

/// Asks a source for up to `n` packets and pushes them on; for tasks.
pub(crate) fn ask_and_push<const TIMED: bool>(
    nodes: &mut [Slot],
    core: &mut Core,
    me: usize,
    n: usize,
) -> Asked {
    let mark = core.emitted.len();
    core.mark = mark;
    let asked = ask(nodes, core, me, 0, n);
    let calls = !(core.calls.is_empty() && core.pulled.is_empty());
    if mark == 0
        && !calls
        && core.emitted.len() == 1
        && let Some(Some(to)) = nodes[me].outputs.get(usize::from(core.emitted[0].0))
        && let Some((_, batch)) = core.emitted.pop()
    {
        // One batch, and nothing else waits: it need not either.
        core.ledger[me].output += batch.len() as u64;
        core.hops = 0;
        let hop = Hop::new(to.node, to.port, 0, batch);
        follow::<TIMED>(nodes, core, hop);
        run_down::<TIMED>(nodes, core);
        return asked;
    }
    spread(&nodes[me], core, me, 0, mark);
    if calls {
        calls::stack_pulled(core);
    }
    drain::<TIMED>(nodes, core);
    asked
}

/// Takes a burst out of a store and pushes it on; for tasks.
pub(crate) fn take_and_push<const TIMED: bool>(
    nodes: &mut [Slot],
    core: &mut Core,
    me: usize,
) -> Asked {
    if !node::at(nodes, me).is_some_and(|node| node.pulls()) {
        return Asked::Done;
    }
    let mut batch = Batch::new();
    let n = core.burst;
    core.mark = core.emitted.len();
    take(&mut nodes[me], core, me, n, &mut batch);
    let Some(&Some(to)) = nodes[me].outputs.first() else { return Asked::Done };
    let taken = !batch.is_empty();
    if taken {
        let (node, port) = (to.node, to.port);
        core.stack.push(Hop::new(node, port, 0, batch));
    }
    drain::<TIMED>(nodes, core);
    if taken { Asked::Again } else { Asked::Empty }
}

/// Lets `me` emit for `output` while it may pull its inputs through `nodes`.
fn ask(nodes: &mut [Slot], core: &mut Core, me: usize, output: usize, n: usize) -> Asked {
    let Some(mut node) = nodes[me].node.take() else { return Asked::Done };
    let entered = |core: &Core| core.ledger[me].input + core.ledger[me].made;
    let (before, from) = (entered(core), core.mark);
    core.asked = output;
    let from_storage = std::mem::replace(&mut core.from_storage, false);
    let mut cx = Cx { core: &mut *core, me, nodes: Some(&mut *nodes) };
    let asked = catch_unwind(AssertUnwindSafe(|| node.ask(n, &mut cx)));
    core.from_storage = from_storage;
    let asked = asked.unwrap_or_else(|_| {
        lose_burst(core, me, &*node, entered(core) - before, from);
        Asked::At(core.now + AFTER_PANIC)
    });
    nodes[me].node = Some(node);
    asked
}

/// Calls the home worker's timer of element `me`.
pub(crate) fn wake(nodes: &mut [Slot], core: &mut Core, me: usize) {
    call(nodes, core, me, |node, cx| node.wake(cx));
}

/// Lets element `me` do something outside a burst, and runs what it emits.
pub(crate) fn call(
    nodes: &mut [Slot],
    core: &mut Core,
    me: usize,
    f: impl FnOnce(&mut dyn Node, &mut Cx),
) {
    act(nodes, core, me, f);
    match core.visits {
        None => drain::<false>(nodes, core),
        Some(_) => drain::<true>(nodes, core),
    }
}

/// Lets element `me` do something outside a burst; what it emits waits on the stack.
pub(crate) fn act(
    nodes: &mut [Slot],
    core: &mut Core,
    me: usize,
    f: impl FnOnce(&mut dyn Node, &mut Cx),
) {
    let mark = core.emitted.len();
    core.mark = mark;
    if let Some(node) = node::at_mut(nodes, me) {
        let mut cx = Cx { core: &mut *core, me, nodes: None };
        if catch_unwind(AssertUnwindSafe(|| f(node, &mut cx))).is_err() {
            lose_burst(core, me, node, 0, mark);
        }
    }
    spread(&nodes[me], core, me, 0, mark);
}

/// Pulls up to `n` packets for input `input` of element `me`.
pub(crate) fn pull_input<const TIMED: bool>(
    nodes: &mut [Slot],
    core: &mut Core,
    me: usize,
    input: usize,
    n: usize,
    into: &mut Batch,
) {
    let Some(&Some(from)) = nodes[me].upstream.get(input) else { return };
    if !core.pulled.is_empty() {
        // What is pulled next is to find the calls made.
        return;
    }
    let (before, n) = (into.len(), n.min(core.most));
    pull::<TIMED>(nodes, core, from, n, into);
    core.ledger[me].input += (into.len() - before) as u64;
}

/// Pulls up to `n` packets out of output `from.port` of element `from.node`.
fn pull<const TIMED: bool>(
    nodes: &mut [Slot],
    core: &mut Core,
    from: Target,
    n: usize,
    into: &mut Batch,
) {
    let me = from.node;
    if core.pulls > nodes.len() {
        // Longer than any path without a circle, where nothing can come from.
        return;
    }
    core.pulls += 1;
    let mark = core.emitted.len();
    let (outer, asked) = (std::mem::replace(&mut core.mark, mark), core.asked);
    match nodes[me].role {
        Role::Store => billed::<TIMED, _>(core, me, Why::Transfer, |core| {
            take(&mut nodes[me], core, me, n, into);
        }),
        Role::Source | Role::Duplex => billed::<TIMED, _>(core, me, Why::Transfer, |core| {
            ask(nodes, core, me, from.port, n);
        }),
        _ => {
            // Where several paths run side by side, each has its own input.
            let behind = node::at(nodes, me).and_then(|node| node.behind(from.port));
            let side = behind.map_or(usize::MAX, |it| it.min(nodes[me].upstream.len().max(1) - 1));
            let mut batch = Batch::new();
            if let Some(&Some(up)) = nodes[me].upstream.get(side) {
                pull::<TIMED>(nodes, core, up, n, &mut batch);
            }
            if !batch.is_empty() {
                core.asked = from.port;
                let output = push_one::<TIMED>(nodes, core, me, side, &mut batch, mark);
                if !batch.is_empty() {
                    core.emit(output, &mut batch);
                }
            }
        }
    }
    collect(&nodes[me], core, from, mark, into);
    (core.mark, core.asked) = (outer, asked);
    core.pulls -= 1;
}

fn take(slot: &mut Slot, core: &mut Core, me: usize, n: usize, into: &mut Batch) {
    let before = into.len();
    if let Some(node) = slot.node.as_mut() {
        let mut cx = Cx { core: &mut *core, me, nodes: None };
        if catch_unwind(AssertUnwindSafe(|| node.take(n, into, &mut cx))).is_err() {
            core.panics += 1;
        }
    }
    let taken = (into.len() - before) as u64;
    core.ledger[me].output += taken;
    core.progress += taken;
    if taken > 0 && !slot.feeders.is_empty() {
        core.woken.extend_from_slice(&slot.feeders);
    }
}

/// How many packets the stores that `me` pushes into have room for: as many
/// as the emptiest; no limit if a way leads elsewhere.
pub(crate) fn room_below(nodes: &[Slot], me: usize) -> usize {
    let stores = nodes[me].stores.iter();
    let rooms = stores.filter_map(|&store| nodes[store].node.as_ref()).map(|node| node.room());
    rooms.max().unwrap_or(usize::MAX)
}

/// How many packets the emptiest of the stores keeps that `me` pushes into; `None` if a way leads
/// elsewhere.
pub(crate) fn least_held_below(nodes: &[Slot], me: usize) -> Option<usize> {
    let stores = nodes[me].stores.iter();
    stores.filter_map(|&store| nodes[store].node.as_ref()).map(|node| node.held()).min()
}

/// How many packets the stores that `me` watches keep.
pub(crate) fn kept(nodes: &[Slot], me: usize) -> usize {
    let stores = nodes[me].watched.iter();
    stores.filter_map(|&store| nodes[store].node.as_ref()).map(|node| node.held()).sum()
}

/// How many packets the fullest store that `me` watches has room for.
pub(crate) fn watched_room(nodes: &[Slot], me: usize) -> usize {
    let stores = nodes[me].watched.iter();
    let rooms = stores.filter_map(|&store| nodes[store].node.as_ref()).map(|node| node.room());
    rooms.min().unwrap_or(usize::MAX)
}

/// Sorts what a pulled element emitted: its pulled output into `into`, the
/// rest pushed on once the pull is over.
fn collect(slot: &Slot, core: &mut Core, from: Target, mark: usize, into: &mut Batch) {
    if !core.calls.is_empty() {
        calls::set_aside(core, from.node, mark);
    }
    let mut at = mark;
    while at < core.emitted.len() {
        if usize::from(core.emitted[at].0) == from.port {
            let (_, mut batch) = core.emitted.remove(at);
            core.ledger[from.node].output += batch.len() as u64;
            core.progress += batch.len() as u64;
            into.append(&mut batch);
        } else {
            at += 1;
        }
    }
    spread(slot, core, from.node, 0, mark);
}
