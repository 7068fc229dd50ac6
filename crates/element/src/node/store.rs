//! Runs a `Store` element, which has one state for all workers.

use super::{Instance, Node, PushRole, StoreRole, handlers_of_body};
use crate::cx::Cx;
use crate::element::Store;
use crate::exec::{Next, StoreInput};
use castanet_packet::Batch;

/// A `Store` element, as one worker reaches it.
#[repr(align(128))]
pub struct StoreNode<E: Store> {
    body: Instance<E, E::Local>,
}

impl<E: Store> StoreNode<E> {
    pub(crate) fn new(body: Instance<E, E::Local>) -> Self {
        StoreNode { body }
    }
}

impl<E: Store> PushRole for StoreNode<E> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        let mut batch = std::mem::take(batch);
        let packets = batch.len() as u64;
        self.body.lend(|config, local| {
            cx.keep(&mut batch, || config.held(local));
            config.enqueue_at(local, port, batch, cx);
            if let Some(inputs) = &mut cx.exec.store_inputs {
                let room = config.room(local);
                inputs.push(StoreInput { element: cx.me, packets, room });
            }
        });
        Next::None
    }
}

impl<E: Store> StoreRole for StoreNode<E> {
    fn dequeue(&mut self, n: usize, into: &mut Batch, cx: &mut Cx) {
        self.body.lend(|config, local| config.dequeue(local, n, into, cx));
    }
    fn room(&self) -> usize {
        self.body.peek(E::room)
    }
    fn is_active(&self) -> bool {
        self.body.peek(E::is_active)
    }
}

impl<E: Store> Node for StoreNode<E> {
    fn run_timer(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| config.run_timer(local, cx));
    }
    fn held(&self) -> usize {
        self.body.peek(E::held)
    }
    handlers_of_body!(|config, local| config.held(local), E::can_take_state, |_, _| (), E::shrink);
}
