//! `QuitWatcher`: stops the router when a task sleeps.

use castanet_element::prelude::*;

/// Stops the router as soon as the task of one of the elements is not scheduled.
///
/// The element looks every 10 milliseconds. Elements without a task, and so without the handler
/// `scheduled`, are an error.
///
/// ```click
/// in -> Queue -> u :: Unqueue -> out;  QuitWatcher(u)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "script")]
pub struct QuitWatcher {
    /// Names of elements.
    #[arg(rest)]
    elements: Vec<String>,
}

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(10);

impl QuitWatcher {
    /// The handlers that say whether the tasks are scheduled.
    fn handlers(&self) -> impl Iterator<Item = String> {
        self.elements.iter().map(|element| format!("{element}.scheduled"))
    }
}

/// Whether the element has looked for the handlers.
#[derive(Default, Local)]
pub struct QuitWatcherState {
    has_begun: bool,
}

impl Control for QuitWatcher {
    type Local = QuitWatcherState;

    fn references(&self) -> Vec<ProgramReference> {
        self.handlers().map(ProgramReference::Read).collect()
    }

    fn step(&self, state: &mut QuitWatcherState, control: &mut dyn ControlContext) -> ProgramWait {
        let begins = !std::mem::replace(&mut state.has_begun, true);
        for handler in self.handlers() {
            match control.read(&handler) {
                Ok(scheduled) if begins || scheduled.starts_with('t') => continue,
                Ok(_) => {}
                Err(error) => {
                    let words = control.words(&error);
                    control.chatter(&format!("{}: {words}\n", control.name()));
                }
            }
            control.request_stop();
            return ProgramWait::Ended;
        }
        ProgramWait::At(control.now() + INTERVAL)
    }
}
