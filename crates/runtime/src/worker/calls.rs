//! Handler writes that elements make in the middle of a path.
//!
//! Between two elements no element is borrowed. So a call stands on the stack of pending batches,
//! between the packets that left its element before it and those that leave afterwards. A worker
//! that comes to a call runs nothing but the commands in its inbox until the router has made the
//! call (`Router::make_calls`); then the call's packets go on, and the batches below it.

use super::{Worker, transfer};
use crate::worker::driver::DriverEvent;
use crate::worker::slot::{PendingBatch, WorkerGraph};
use castanet_element::exec::{AfterCall, CallState, Destination, ExecState};
use castanet_element::fate::{DROP, MAX_OUTPUTS};
use castanet_packet::Batch;

/// A handler write that the router is to make for an element.
pub(crate) struct CallRequest {
    /// The calling element.
    pub(crate) element: usize,
    /// `element.handler`, or a global handler.
    pub(crate) handler: String,
    /// The value to write.
    pub(crate) value: String,
    /// Whether the element's own program answers by which output the packets leave.
    pub(crate) decides: bool,
}

impl Worker {
    /// Whether packets wait for a call to be made.
    pub(crate) fn is_calling(&self) -> bool {
        // All other pending batches have been pushed.
        !self.graph.stack.is_empty()
    }

    /// Tells the control thread, once, that there is a call to make.
    pub(crate) fn announce(&mut self) {
        let top = self.graph.stack.last_mut().and_then(|hop| hop.call.as_mut());
        if let Some(call) = top.filter(|call| call.state == CallState::New) {
            call.state = CallState::Announced;
            // The driver is gone only while the router is torn down.
            _ = self.driver.send(DriverEvent::CallPending(self.index));
        }
    }

    /// The call to make next. It stays on the stack, and all below it waits, until
    /// [`Worker::go_on`].
    pub(crate) fn next_call(&mut self) -> Option<CallRequest> {
        let hop = self.graph.stack.last_mut()?;
        let call = hop.call.as_mut().filter(|call| call.state != CallState::Taken)?;
        call.state = CallState::Taken;
        let (handler, value) = (call.handler.clone(), call.value.clone());
        Some(CallRequest {
            element: hop.node,
            handler,
            value,
            decides: call.then == AfterCall::Leave,
        })
    }

    /// After the last taken call was made: pushes its packets on, by `output` if they waited for
    /// that, then the batches below it, down to the next call.
    pub(crate) fn go_on(&mut self, output: Option<usize>) -> Option<CallRequest> {
        let taken = |hop: &mut PendingBatch| {
            hop.call.as_ref().is_some_and(|it| it.state == CallState::Taken)
        };
        if let Some(hop) = self.graph.stack.pop_if(taken) {
            resume(&mut self.graph, &mut self.exec, hop, output);
            match self.exec.cycles {
                None => transfer::run_down::<false>(&mut self.graph, &mut self.exec),
                Some(_) => transfer::run_down::<true>(&mut self.graph, &mut self.exec),
            }
            self.after();
            // Tasks that calls have woken stand before it in the queue, as in Click.
            if !self.is_calling()
                && let Some(task) = self.calling_task.take()
            {
                self.tasks.put_behind(task);
            }
        }
        self.next_call()
    }
}

/// Pushes the packets of a call that was made.
fn resume(graph: &mut WorkerGraph, exec: &mut ExecState, hop: PendingBatch, output: Option<usize>) {
    let PendingBatch { node: me, depth, batch, call, .. } = hop;
    let count = batch.len() as u64;
    match call.map(|call| call.then) {
        Some(AfterCall::Leave) => {
            let output = output.and_then(|it| u8::try_from(it).ok());
            let output = output
                .filter(|&it| usize::from(it) < graph.slots[me].outputs.len().min(MAX_OUTPUTS));
            match output {
                Some(0) if !graph.slots[me].pullers.is_empty() => {
                    exec.counters[me].input -= count;
                    graph.woken.extend_from_slice(&graph.slots[me].pullers);
                    let decided = graph.slots[me].upstream.len();
                    graph.stack.push(PendingBatch::new(me, decided, depth, batch));
                }
                Some(output) => leave(graph, exec, me, depth, output, batch),
                None => exec.drop_packets(me, DROP, batch.as_slice()),
            }
        }
        Some(AfterCall::Return(port)) => {
            // They are counted again when they come in.
            exec.counters[me].input -= count;
            graph.stack.push(PendingBatch::new(me, port, depth, batch));
        }
        Some(AfterCall::Nothing) | None => {}
    }
}

fn leave(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    depth: u32,
    output: u8,
    batch: Batch,
) {
    let count = batch.len() as u64;
    match graph.slots[me].outputs.get(usize::from(output)) {
        Some(Some(to)) => {
            exec.counters[me].output += count;
            graph.stack.push(PendingBatch::new(to.node, to.port, depth, batch));
        }
        _ => transfer::leave_open(exec, me, output, &batch),
    }
}

/// Stacks the batches and calls that element `me` has emitted since `from`: between two calls,
/// output 0 on top.
#[cold]
pub(crate) fn stack_emitted(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    me: usize,
    depth: u32,
    from: usize,
) {
    let mut emitted = exec.outputs.split_off(from);
    let between_calls = emitted.split_mut(|(to, _)| *to == Destination::Call);
    between_calls.for_each(|batches| batches.sort_by_key(|(to, _)| *to));
    let bottom = graph.stack.len();
    for (to, batch) in emitted {
        match to {
            Destination::Output(output) => leave(graph, exec, me, depth, output, batch),
            Destination::Call => {
                let call = exec.outputs.take_call();
                let pending = PendingBatch::new(me, 0, depth, batch);
                graph.stack.push(PendingBatch { call, ..pending });
            }
        }
    }
    graph.stack[bottom..].reverse();
}

/// Sets the calls of a pulled element aside: they are made when the pull is over, before the pulled
/// packets go on.
#[cold]
pub(crate) fn set_aside(graph: &mut WorkerGraph, exec: &mut ExecState, me: usize, from: usize) {
    // The last ones: earlier calls are of elements that pulled it.
    let mut calls = exec.outputs.take_calls_from(from);
    let mut at = from;
    while at < exec.outputs.len() {
        if exec.outputs.destination(at) == Destination::Call {
            let batch = exec.outputs.remove(at);
            let hop = PendingBatch::new(me, 0, 0, batch);
            graph.pulled.push(PendingBatch { call: calls.pop_front(), ..hop });
        } else {
            at += 1;
        }
    }
}

/// Stacks the calls of pulled elements.
#[cold]
pub(crate) fn stack_pulled(graph: &mut WorkerGraph) {
    let pulled = std::mem::take(&mut graph.pulled);
    graph.stack.extend(pulled.into_iter().rev());
}

/// Leaves the first packet in a batch for an element to which packets come one at a time; the
/// others wait on the stack until its path has ended.
#[cold]
pub(crate) fn part(graph: &mut WorkerGraph, me: usize, port: usize, depth: u32, batch: &mut Batch) {
    let mut others = batch.split_off(1);
    while let Some(packet) = others.pop() {
        graph.stack.push(PendingBatch::new(me, port, depth, Batch::from(packet)));
    }
}
