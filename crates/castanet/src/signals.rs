//! Ctrl-C and its kin end a router in good order.

use castanet_element::control::ControlWaker;
use castanet_runtime::router::Router;
use castanet_runtime::worker::driver::DriverEvent;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGIO, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has SIGHUP read the configuration's file again.
pub(crate) struct Hangup {
    /// Set at the signal.
    flag: Arc<AtomicBool>,
    waker: ControlWaker,
    /// Whether the process was started from a terminal.
    has_terminal: bool,
}

impl Hangup {
    /// Sets a flag and wakes the services of a router.
    pub(crate) fn new(flag: Arc<AtomicBool>, router: &Router) -> Hangup {
        Hangup { flag, waker: router.service_waker(), has_terminal: is_on_terminal() }
    }

    /// Whether the signal means that the terminal has gone, of which the process is a part.
    fn terminal_has_gone(&self) -> bool {
        self.has_terminal && !is_on_terminal()
    }

    fn reload(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// Whether the process has a controlling terminal.
fn is_on_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Tells the driver when the user wants to end; the second Ctrl-C ends the process at once. Signals
/// that programs of the router wait for are theirs. SIGHUP ends the router, too, unless it reloads.
pub(crate) fn forward(router: &mut Router, hangup: Option<Hangup>) -> std::io::Result<()> {
    // The next one after a script has ended ends the process, as without the script.
    router.default_action(|signal| _ = signal_hook::low_level::emulate_default_handler(signal));
    let (line, mut wanted) = (router.line(), router.signals());
    if router.is_replaceable() {
        // Another configuration may have scripts that wait for these.
        wanted.extend([SIGALRM, SIGIO, SIGUSR1, SIGUSR2]);
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].iter().chain(&wanted))?;
    crate::messages::router_runs();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ends = 0;
        for signal in signals.forever() {
            if let (SIGHUP, Some(hangup), false) = (signal, &hangup, wanted.contains(&signal))
                && !hangup.terminal_has_gone()
            {
                hangup.reload();
                continue;
            }
            let notice = match wanted.contains(&signal) {
                true => DriverEvent::Signal(signal),
                false => DriverEvent::Interrupted,
            };
            ends += i32::from(notice == DriverEvent::Interrupted);
            if ends > 0 {
                // An element that writes data to a stopped reader gives up, and the router can end.
                castanet_element::streams::interrupt();
            }
            if ends > 1 || line.send(notice).is_err() {
                std::process::exit(crate::exit::INTERRUPTED);
            }
        }
    })?;
    Ok(())
}
