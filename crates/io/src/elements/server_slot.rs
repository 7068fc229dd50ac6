//! The server of an element with clients, and the retries of a socket that could not be opened.

use crate::control::endpoint::Endpoint;
use crate::control::server::{Server, ServerPolicy};
use castanet_element::args::io_error_text;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;
use std::io::ErrorKind;

/// The arguments about retries.
#[derive(Args)]
pub(super) struct RetryArgs {
    /// Number of retries, one a second, if the socket cannot be opened.
    #[arg(keyword, default = 0)]
    retries: u32,
    /// Whether to write a warning about each try that fails.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
}

/// The place of a server that is open, or is to be opened while retries are left.
#[derive(Default)]
pub(super) struct ServerSlot {
    pub(super) server: Option<Server>,
    pub(super) waker: Option<ControlWaker>,
    /// Number of retries that were made.
    retries: u32,
    /// A warning for the element to write at its next step.
    warning: Option<String>,
    /// Whether the first step is over; `init` has tried just before it.
    first_step_done: bool,
}

impl ServerSlot {
    /// Opens the server and returns it; `None` if that failed and a retry is left.
    ///
    /// # Errors
    /// Opening failed, and no retry is left.
    pub(super) fn open(
        &mut self,
        place: &Endpoint,
        policy: ServerPolicy,
        args: &RetryArgs,
    ) -> Result<Option<&Server>, ArgError> {
        let Some(waker) = self.waker.clone() else { return Ok(None) };
        match Server::open(place, policy, waker) {
            Ok(server) => Ok(Some(self.server.insert(server))),
            Err(error) => self.record_failure(place, &error, args).map(|()| None),
        }
    }

    /// Whether a retry is due: not at the first step, because `init` has tried just before.
    pub(super) fn is_due(&mut self) -> bool {
        self.server.is_none() && std::mem::replace(&mut self.first_step_done, true)
    }

    /// Writes the error or the warning of a try; after an error, also asks the router to stop.
    /// Returns whether there was no error.
    pub(super) fn report(
        &mut self,
        outcome: Result<(), ArgError>,
        control: &mut dyn ControlContext,
    ) -> bool {
        let failure = outcome.err().map(|error| control.words(&error));
        if failure.is_some() {
            control.request_stop();
        }
        let is_open = failure.is_none();
        if let Some(text) = failure.or_else(|| self.warning.take()) {
            control.chatter(&format!("{}: {text}\n", control.name()));
        }
        is_open
    }

    /// The wait of a program whose server is not open, or is served by its thread.
    pub(super) fn wait(&self, control: &dyn ControlContext) -> ProgramWait {
        match self.server {
            Some(_) => ProgramWait::Notified,
            None => ProgramWait::At(control.now() + Duration::from_secs(1)),
        }
    }

    /// Records a try that failed; an error if no retry is left.
    fn record_failure(
        &mut self,
        place: &Endpoint,
        error: &std::io::Error,
        args: &RetryArgs,
    ) -> Result<(), ArgError> {
        let (why, left) = (io_error_text(error), args.retries.saturating_sub(self.retries));
        if left == 0 {
            let step = if matches!(place, Endpoint::Socket(_)) { "socket" } else { "bind" };
            let failure = ArgError::new(format!("cannot listen at {place}: {why}"))
                .click(format!("{step}: {why}"));
            return Err(match error.kind() {
                ErrorKind::AddrInUse => failure.help(place.address_in_use_hint()),
                _ => failure,
            });
        }
        if args.retry_warnings {
            let tries = if left == 1 { "try" } else { "tries" };
            self.warning = Some(format!("warning: bind: {why} ({left} {tries} left)"));
        }
        self.retries += 1;
        Ok(())
    }
}
