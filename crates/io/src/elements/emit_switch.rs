//! The switch of a source that reads a file or a device.

use castanet_element::prelude::*;

/// Whether a source emits packets now, and the handlers that say and change it.
#[derive(Default)]
pub(super) struct EmitSwitch {
    pub(super) is_on: bool,
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
