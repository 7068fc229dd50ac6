//! State that several elements share, under the name of the one that owns it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// One state of several elements, lent to one of them at a time: for the length of a burst, not of a
/// packet.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    /// Lends the state for one call. A panic does not poison the state: it is used as the panic has left
    /// it.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A state that no other element has.
impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Shared(Arc::default())
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// The states that elements of a router share, by key.
#[derive(Default)]
pub struct SharedState {
    states: RefCell<States>,
    /// The states of the configuration that this one replaces: a state whose key stays goes on.
    before: States,
}

/// By key: the name of the element that owns the state, or a key of several elements.
type States = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

impl SharedState {
    /// The states of a configuration that replaces the present one.
    pub fn successor(&self) -> SharedState {
        SharedState { states: RefCell::default(), before: self.states.borrow().clone() }
    }

    /// Gives up the states of the replaced configuration that no element has taken over.
    pub fn forget_before(&mut self) {
        self.before.clear();
    }

    /// Whether nothing is shared.
    pub fn is_empty(&self) -> bool {
        self.states.borrow().is_empty()
    }

    /// The state `S`, a [`Shared`] or an [`RwShared`](super::RwShared), of a key; made at the first call,
    /// whichever element calls first. `None` if the key has a state of another type.
    pub fn shared<S: Default + Clone + Send + Sync + 'static>(&self, key: &str) -> Option<S> {
        let mut states = self.states.borrow_mut();
        let state = states.entry(key.to_owned()).or_insert_with(|| {
            let before = self.before.get(key).filter(|state| state.is::<S>());
            before.cloned().unwrap_or_else(|| Arc::new(S::default()))
        });
        state.downcast_ref::<S>().cloned()
    }
}
