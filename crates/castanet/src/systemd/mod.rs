//! Messages to the service manager by the protocol of `sd_notify`: ready, reloading, stopping, alive.

mod status;

pub(crate) use status::{ServiceStatus, sentence};

use crate::terminal::complain;
use sd_notify::NotifyState;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends messages, if `$NOTIFY_SOCKET` names a receiver. The first failure is printed.
fn send(messages: &[NotifyState<'_>]) {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    if let Err(error) = sd_notify::notify(messages)
        && !IS_REPORTED.swap(true, Ordering::Relaxed)
    {
        let why = crate::load::io_error_text(&error);
        complain(format_args!("castanet: cannot notify the service manager: {why}"));
    }
}

/// Packets can flow, in the first configuration or in the one behind a reload.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A reload begins; [`ready`] ends it, whatever its outcome.
pub(crate) fn reloading() {
    // Without the time, systemd 253 and later take a reload for a failed one.
    let Ok(time) = NotifyState::monotonic_usec_now() else { return };
    send(&[NotifyState::Reloading, time, NotifyState::Status("reads its configuration again")]);
}

/// The router ends.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("lets the last packets out")]);
}
