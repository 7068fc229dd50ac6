//! Retries of sockets that could not be opened.

use crate::control::endpoint::Endpoint;
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use std::io::ErrorKind;

/// The retries of an element's socket that are left.
#[derive(Default)]
pub(super) struct BindRetries {
    /// Number of retries left.
    pub(super) left: u32,
    /// A warning for the element to write at its next step.
    pub(super) warning: Option<String>,
    /// Whether the first step is over; `init` has tried just before it.
    first_step_done: bool,
}

impl BindRetries {
    /// Whether a retry is due: not at the first step, because `init` has tried just before.
    pub(super) fn is_due(&mut self) -> bool {
        std::mem::replace(&mut self.first_step_done, true)
    }

    /// Records a try that failed; an error if no retry is left.
    pub(super) fn record_failure(
        &mut self,
        place: &Endpoint,
        error: &std::io::Error,
        warn: bool,
    ) -> Result<(), ArgError> {
        let why = io_error_text(error);
        if self.left == 0 {
            let step = if matches!(place, Endpoint::Socket(_)) { "socket" } else { "bind" };
            let failure = ArgError::new(format!("cannot listen at {place}: {why}"))
                .click(format!("{step}: {why}"));
            return Err(match error.kind() {
                ErrorKind::AddrInUse => failure.help(place.address_in_use_hint()),
                _ => failure,
            });
        }
        if warn {
            let left = self.left;
            let tries = if left == 1 { "try" } else { "tries" };
            self.warning = Some(format!("warning: bind: {why} ({left} {tries} left)"));
        }
        self.left -= 1;
        Ok(())
    }
}
