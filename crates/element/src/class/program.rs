//! Control programs as values: what the control thread runs.

use crate::control::{ControlContext, ControlWaker, ProgramReference, ProgramWait};
use crate::element::{Control, Local};
use crate::error::ArgError;
use crate::handler::{DeferredWork, ReadRequest, Value};
use crate::node::AnyConfig;
use std::any::Any;
use std::sync::Arc;

/// A control program with its state, type-erased.
pub trait Program: Any + Send {
    /// Opens what it needs.
    fn init(&mut self, waker: ControlWaker) -> Result<(), ArgError>;
    /// Runs until it has to wait.
    fn step(&mut self, control: &mut dyn ControlContext) -> ProgramWait;
    /// Whether it decides what a stop request means.
    fn is_driver(&self) -> bool;
    /// Signals to the process that its handler `run` waits for.
    fn signals(&self) -> &[i32];
    /// Read handlers beside those of its class.
    fn more_handlers(&self) -> Vec<String>;
    /// Whether it answers to a name beside those of its class.
    fn has_handler(&self, name: &str, write: bool) -> bool;
    /// The handlers and elements that its arguments name.
    fn references(&self) -> Vec<ProgramReference>;
    /// Whether it goes on where another, of the same class, stands.
    fn can_take_state(&self, before: &AnyConfig) -> bool;
    /// Its configuration, for [`Program::can_take_state`].
    fn config(&self) -> AnyConfig;
    /// Takes that one's place.
    fn inherit(&mut self, before: &mut dyn Program);
    /// Answers or obeys a handler that needs the control.
    fn call(
        &mut self,
        name: &str,
        text: &str,
        write: bool,
        control: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>>;
    /// Answers a read handler.
    fn read(&self, name: &str, request: &ReadRequest) -> Option<Value>;
    /// Obeys a write handler; `None` if there is none of that name.
    fn write(&mut self, name: &str, text: &str) -> Option<Result<(), ArgError>>;
}

/// A program of one class.
pub(super) struct TypedProgram<E: Control> {
    pub(super) config: Arc<E>,
    pub(super) local: E::Local,
}

impl<E: Control> Program for TypedProgram<E> {
    fn init(&mut self, waker: ControlWaker) -> Result<(), ArgError> {
        self.config.init(&mut self.local, waker)
    }
    fn step(&mut self, control: &mut dyn ControlContext) -> ProgramWait {
        self.config.step(&mut self.local, control)
    }
    fn is_driver(&self) -> bool {
        self.config.is_driver()
    }
    fn signals(&self) -> &[i32] {
        self.config.signals()
    }
    fn more_handlers(&self) -> Vec<String> {
        self.config.more_handlers()
    }
    fn has_handler(&self, name: &str, write: bool) -> bool {
        self.config.has_handler(name, write)
    }
    fn references(&self) -> Vec<ProgramReference> {
        self.config.references()
    }
    fn can_take_state(&self, before: &AnyConfig) -> bool {
        before.downcast_ref::<E>().is_some_and(|before| self.config.can_take_state(before))
    }
    fn config(&self) -> AnyConfig {
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
        control: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        self.config.call(&mut self.local, name, text, write, control)
    }
    fn read(&self, name: &str, request: &ReadRequest) -> Option<Value> {
        let config = E::READS.iter().copied().flatten().find(|h| h.name == name);
        config.map(|h| (h.get)(&self.config, request)).or_else(|| {
            let local = E::Local::READS.iter().copied().flatten().find(|h| h.name == name)?;
            Some((local.get)(&self.local, request))
        })
    }
    fn write(&mut self, name: &str, text: &str) -> Option<Result<(), ArgError>> {
        let change = E::Local::WRITES.iter().copied().flatten().find(|h| h.name == name)?;
        Some((change.apply)(&mut self.local, text).and_then(DeferredWork::run))
    }
}
