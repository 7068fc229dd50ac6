//! Control programs as values: what the control thread runs.

use super::{Ask, DeferredWork, Value};
use crate::args::ArgError;
use crate::element::{Control, Desk, Local, Step};
use crate::node::Rewritten;
use crate::router::Bell;
use std::any::Any;
use std::sync::Arc;

/// A control program with its state, type-erased.
pub trait Program: Any + Send {
    /// Opens what it needs.
    fn begin(&mut self, bell: Bell) -> Result<(), ArgError>;
    /// Runs until it has to wait.
    fn step(&mut self, desk: &mut dyn Desk) -> Step;
    /// Whether it decides what a stop request means.
    fn drives(&self) -> bool;
    /// Signals to the process that its handler `run` waits for.
    fn signals(&self) -> &[i32];
    /// Read handlers beside those of its class.
    fn more_handlers(&self) -> Vec<String>;
    /// Whether it answers to a name beside those of its class.
    fn answers(&self, name: &str, write: bool) -> bool;
    /// Whether it goes on where another, of the same class, stands.
    fn continues(&self, before: &Rewritten) -> bool;
    /// Its configuration, for [`Program::continues`].
    fn config(&self) -> Rewritten;
    /// Takes that one's place.
    fn inherit(&mut self, before: &mut dyn Program);
    /// Answers or obeys a handler that needs the desk.
    fn call(
        &mut self,
        name: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>>;
    /// Answers a read handler.
    fn read(&self, name: &str, ask: &Ask) -> Option<Value>;
    /// Obeys a write handler; `None` if there is none of that name.
    fn write(&mut self, name: &str, text: &str) -> Option<Result<(), ArgError>>;
}

/// A program of one class.
pub(super) struct Running<E: Control> {
    pub(super) config: Arc<E>,
    pub(super) local: E::Local,
}

impl<E: Control> Program for Running<E> {
    fn begin(&mut self, bell: Bell) -> Result<(), ArgError> {
        self.config.begin(&mut self.local, bell)
    }
    fn step(&mut self, desk: &mut dyn Desk) -> Step {
        self.config.step(&mut self.local, desk)
    }
    fn drives(&self) -> bool {
        self.config.drives()
    }
    fn signals(&self) -> &[i32] {
        self.config.signals()
    }
    fn more_handlers(&self) -> Vec<String> {
        self.config.more_handlers()
    }
    fn answers(&self, name: &str, write: bool) -> bool {
        self.config.answers(name, write)
    }
    fn continues(&self, before: &Rewritten) -> bool {
        before.downcast_ref::<E>().is_some_and(|before| self.config.continues(before))
    }
    fn config(&self) -> Rewritten {
        self.config.clone()
    }
    fn inherit(&mut self, before: &mut dyn Program) {
        if let Some(before) = (before as &mut dyn Any).downcast_mut::<Self>() {
            self.local = std::mem::take(&mut before.local);
        }
    }
    fn call(
        &mut self,
        name: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        self.config.call(&mut self.local, name, text, write, desk)
    }
    fn read(&self, name: &str, ask: &Ask) -> Option<Value> {
        let config = E::READS.iter().copied().flatten().find(|h| h.name == name);
        config.map(|h| (h.get)(&self.config, ask)).or_else(|| {
            let local = E::Local::READS.iter().copied().flatten().find(|h| h.name == name)?;
            Some((local.get)(&self.local, ask))
        })
    }
    fn write(&mut self, name: &str, text: &str) -> Option<Result<(), ArgError>> {
        let change = E::Local::WRITES.iter().copied().flatten().find(|h| h.name == name)?;
        Some((change.apply)(&mut self.local, text).and_then(DeferredWork::run))
    }
}
