//! The switch of a source that reads a file or a device.

use castanet_element::prelude::*;

/// Whether a source emits packets now, and the handlers that say and change it.
#[derive(Default)]
pub(super) struct EmitSwitch {
    pub(super) is_on: bool,
    /// The value of the argument ACTIVE that counted last.
    configured: Option<bool>,
}

impl EmitSwitch {
    /// Follows the argument ACTIVE if it is another one than before; else what a handler has set stays.
    pub(super) fn follow(&mut self, active: bool) {
        if self.configured.replace(active) != Some(active) {
            self.is_on = active;
        }
    }
}

#[handlers]
impl EmitSwitch {
    /// Whether to emit packets now.
    #[read]
    fn active(&self) -> bool {
        self.is_on
    }

    /// Starts or stops emitting packets.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.is_on = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }

    /// Stops emitting packets, and asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        self.is_on = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_of_the_argument_counts_and_the_same_leaves_what_was_set() {
        let mut switch = EmitSwitch::default();
        switch.follow(true);
        assert!(switch.is_on);
        switch.set_active("false").expect("is a truth value");
        switch.follow(true);
        assert!(!switch.is_on);
        switch.follow(false);
        switch.set_active("true").expect("is a truth value");
        switch.follow(true);
        assert!(switch.is_on);
        switch.follow(false);
        assert!(!switch.is_on);
    }
}
