//! Runs a `Store` element: one state for all workers, locked per burst.

use super::{Instance, Node, StoreRole, handlers_of_body};
use crate::cx::Cx;
use crate::element::Store;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `Store` element, as one worker reaches it.
#[repr(align(128))]
pub struct StoreNode<E: Store> {
    body: Instance<E, E::Local>,
}

impl<E: Store> StoreNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        StoreNode { body: Instance::new(config, local) }
    }
}

impl<E: Store> StoreRole for StoreNode<E> {
    fn enqueue(&mut self, port: usize, mut batch: Batch, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| {
            cx.keep(&mut batch, || config.held(local));
            config.enqueue_at(local, port, batch, cx);
        });
    }
    fn dequeue(&mut self, n: usize, into: &mut Batch, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.dequeue(local, n, into, cx));
    }
    fn room(&self) -> usize {
        self.body.local.peek(|local| self.body.config.room(local))
    }
    fn is_active(&self) -> bool {
        self.body.local.peek(|local| self.body.config.is_active(local))
    }
}

impl<E: Store> Node for StoreNode<E> {
    fn held(&self) -> usize {
        self.body.local.peek(|local| self.body.config.held(local))
    }
    handlers_of_body!(|config, local| config.held(local), E::can_take_state, |_, _| (), E::shrink);
}
