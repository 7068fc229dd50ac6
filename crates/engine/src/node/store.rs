//! Runs a `Store` element: one state for all workers, locked per burst.

use super::{Body, NOTHING, Node, handlers_of_body};
use crate::cx::Cx;
use crate::element::Store;
use castanet_packet::Batch;
use std::sync::{Arc, Mutex};

/// A `Store` element, as one worker reaches it.
#[repr(align(128))]
pub struct StoreNode<E: Store> {
    body: Body<E, E::Local>,
}

impl<E: Store> StoreNode<E> {
    pub(crate) fn new(config: Arc<E>, local: &Option<Arc<Mutex<E::Local>>>) -> Self {
        StoreNode { body: Body::new(config, local) }
    }
}

impl<E: Store> Node for StoreNode<E> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> u8 {
        let config = &*self.body.config;
        let mut batch = std::mem::take(batch);
        self.body.local.with(|local| {
            cx.keep(&mut batch, || config.held(local));
            config.put_at(local, port, batch, cx);
        });
        NOTHING
    }
    fn take(&mut self, n: usize, into: &mut Batch, cx: &mut Cx) {
        let config = &*self.body.config;
        self.body.local.with(|local| config.take(local, n, into, cx));
    }
    fn pulls(&self) -> bool {
        self.body.local.peek(|local| self.body.config.active(local))
    }
    fn held(&self) -> usize {
        self.body.local.peek(|local| self.body.config.held(local))
    }
    fn room(&self) -> usize {
        self.body.local.peek(|local| self.body.config.room(local))
    }
    handlers_of_body!(|config, local| config.held(local), E::continues, |_, _| (), E::shrink);
}
