//! Sockets that are tried again until they can be had.

use crate::control::endpoint::Endpoint;
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use std::io::ErrorKind;

/// How often it may still be tried.
#[derive(Default)]
pub(super) struct BindRetries {
    /// Tries that are left.
    pub(super) left: u32,
    /// What is to be written when it can be.
    pub(super) warning: Option<String>,
    /// It has been tried before the router ran.
    waited: bool,
}

impl BindRetries {
    /// Whether the next try is due: not at the first look, for one was made before.
    pub(super) fn is_due(&mut self) -> bool {
        std::mem::replace(&mut self.waited, true)
    }

    /// Notes a try that failed; an error if none is left.
    pub(super) fn failed(
        &mut self,
        place: &Endpoint,
        error: &std::io::Error,
        warn: bool,
    ) -> Result<(), ArgError> {
        let why = io_error_text(error);
        if self.left == 0 {
            let step = if matches!(place, Endpoint::Socket(_)) { "socket" } else { "bind" };
            let failed = ArgError::new(format!("cannot listen at {place}: {why}"))
                .click(format!("{step}: {why}"));
            return Err(match error.kind() {
                ErrorKind::AddrInUse => failed.help(place.address_in_use_hint()),
                _ => failed,
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
