//! Handler writes that elements make in the middle of a path.
//!
//! Between two hops no element is borrowed. So a call stands on the stack of hops, between the
//! packets that left its element before it and those that leave afterwards. A worker that comes to
//! a call runs nothing but the commands in its inbox until the router has made it
//! (`Router::make_calls`); then the call's packets go on, and what waits below it.

use super::core::{Core, Hop};
use super::{Worker, exec};
use crate::element::{DROP, MAX_OUTPUTS};
use crate::node::{NOTHING, Slot};
use crate::router::Notice;
use castanet_packet::Batch;

/// The place of a call among what an element emits.
pub(crate) const CALL: u8 = NOTHING;

/// Where the packets of a call go when it has been made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// There are none.
    Nothing,
    /// They leave by the output that the handler answers.
    Leave,
    /// They come to this input of the element again.
    Return(usize),
}

/// How far a call has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// The control thread has been told.
    Announced,
    /// The control thread makes it.
    Taken,
}

/// A call on its way.
pub(crate) struct Call {
    handler: String,
    value: String,
    then: Then,
    stage: Stage,
}

impl Call {
    pub(crate) fn new(handler: &str, value: &str, then: Then) -> Box<Call> {
        let (handler, value) = (handler.to_owned(), value.to_owned());
        Box::new(Call { handler, value, then, stage: Stage::New })
    }
}

/// A handler write that the router is to make for an element.
pub(crate) struct Request {
    /// The element that calls.
    pub(crate) element: usize,
    /// `element.handler`, or a global handler.
    pub(crate) handler: String,
    /// What to write.
    pub(crate) value: String,
    /// Whether the element's own program answers by which output packets leave.
    pub(crate) decides: bool,
}

impl Worker {
    /// Whether packets wait for a call to be made.
    pub(crate) fn is_calling(&self) -> bool {
        // All else on the stack has been run.
        !self.core.stack.is_empty()
    }

    /// Tells the control thread, once, that there is a call to be made.
    pub(crate) fn announce(&mut self) {
        let top = self.core.stack.last_mut().and_then(|hop| hop.call.as_mut());
        if let Some(call) = top.filter(|call| call.stage == Stage::New) {
            call.stage = Stage::Announced;
            // The driver is gone only when everything is being torn down.
            _ = self.stop_line.send(Notice::Call(self.index));
        }
    }

    /// The call to be made next; it stays on the stack, and what is below it waits, until
    /// [`Worker::go_on`].
    pub(crate) fn next_call(&mut self) -> Option<Request> {
        let hop = self.core.stack.last_mut()?;
        let call = hop.call.as_mut().filter(|call| call.stage != Stage::Taken)?;
        call.stage = Stage::Taken;
        let (handler, value) = (call.handler.clone(), call.value.clone());
        Some(Request { element: hop.node, handler, value, decides: call.then == Then::Leave })
    }

    /// After the call that was taken last: its packets go on, by `output` if they waited for
    /// that, then those below it; up to the next call.
    pub(crate) fn go_on(&mut self, output: Option<usize>) -> Option<Request> {
        let taken = |hop: &mut Hop| hop.call.as_ref().is_some_and(|it| it.stage == Stage::Taken);
        if let Some(hop) = self.core.stack.pop_if(taken) {
            resume(&mut self.slots, &mut self.core, hop, output);
            match self.core.visits {
                None => exec::run_down::<false>(&mut self.slots, &mut self.core),
                Some(_) => exec::run_down::<true>(&mut self.slots, &mut self.core),
            }
            self.after();
        }
        self.next_call()
    }
}

/// Puts the packets of a call that was made back on their way.
fn resume(slots: &mut [Slot], core: &mut Core, hop: Hop, output: Option<usize>) {
    let Hop { node: me, depth, batch, call, .. } = hop;
    let count = batch.len() as u64;
    match call.map(|call| call.then) {
        Some(Then::Leave) => {
            let output = output.and_then(|it| u8::try_from(it).ok());
            let output =
                output.filter(|&it| usize::from(it) < slots[me].outputs.len().min(MAX_OUTPUTS));
            match output {
                Some(output) => leave(&slots[me], core, me, depth, output, batch),
                None => core.count_drops(me, DROP, count),
            }
        }
        Some(Then::Return(port)) => {
            // They will be counted as coming in when they come in.
            core.ledger[me].input -= count;
            core.stack.push(Hop::new(me, port, depth, batch));
        }
        Some(Then::Nothing) | None => {}
    }
}

fn leave(slot: &Slot, core: &mut Core, me: usize, depth: u32, output: u8, batch: Batch) {
    let count = batch.len() as u64;
    match slot.outputs.get(usize::from(output)) {
        Some(Some(to)) => {
            core.ledger[me].output += count;
            core.stack.push(Hop::new(to.node, to.port, depth, batch));
        }
        _ => exec::leave_open(core, me, output, count),
    }
}

/// Puts what element `me` has emitted since `from` on the stack, where calls are among it:
/// between two calls, output 0 on top.
#[cold]
pub(crate) fn spread(slot: &Slot, core: &mut Core, me: usize, depth: u32, from: usize) {
    let mut emitted = core.emitted.split_off(from);
    let between = emitted.split_mut(|(output, _)| *output == CALL);
    between.for_each(|part| part.sort_by_key(|(output, _)| *output));
    let bottom = core.stack.len();
    for (output, batch) in emitted {
        match (output == CALL).then(|| core.calls.pop_front()).flatten() {
            Some(call) => {
                let hop = Hop::new(me, 0, depth, batch);
                core.stack.push(Hop { call: Some(call), ..hop });
            }
            None => leave(slot, core, me, depth, output, batch),
        }
    }
    core.stack[bottom..].reverse();
}

/// Sets aside the calls of an element that was pulled: they are made when the pull is over,
/// before anything that was pulled goes on.
#[cold]
pub(crate) fn set_aside(core: &mut Core, me: usize, from: usize) {
    // The last ones: those before are of elements that pulled it, and called before that.
    let count = core.emitted[from..].iter().filter(|(output, _)| *output == CALL).count();
    let mut calls = core.calls.split_off(core.calls.len() - count);
    let mut at = from;
    while at < core.emitted.len() {
        if core.emitted[at].0 == CALL {
            let (_, batch) = core.emitted.remove(at);
            let hop = Hop::new(me, 0, 0, batch);
            core.pulled.push(Hop { call: calls.pop_front(), ..hop });
        } else {
            at += 1;
        }
    }
}

/// Puts the calls that pulled elements have made on top of the stack.
#[cold]
pub(crate) fn stack_pulled(core: &mut Core) {
    let pulled = std::mem::take(&mut core.pulled);
    core.stack.extend(pulled.into_iter().rev());
}

/// Leaves the first packet of a batch that comes where packets come one at a time; the others
/// wait on the stack until its way has ended.
#[cold]
pub(crate) fn part(core: &mut Core, me: usize, port: usize, depth: u32, batch: &mut Batch) {
    let mut others = batch.split_off(1);
    while let Some(packet) = others.pop() {
        core.stack.push(Hop::new(me, port, depth, Batch::from(packet)));
    }
}
