//! `ToHost`: hands Ethernet frames to the host on a TAP device.

use super::host_state::HostState;
use crate::tap::TunTapMode;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Hands Ethernet frames to the host, as received on the TAP device DEVNAME.
///
/// A `FromHost` of the same name receives the frames that the host sends, and
/// configures the host's side of the device.
///
/// ```text
/// FromDevice(eth0) -> ToHost(fake0);
/// FromHost(fake0, 192.0.2.1/24) -> ToDevice(eth0);
/// ```
#[derive(Element)]
#[element(ports = "1/0", processing = "a/a")]
pub struct ToHost {
    /// The device's name.
    #[arg]
    devname: String,
}

/// The reasons to drop frames.
#[derive(Fate)]
pub enum ToHostExit {
    /// Frames that the host's stack refused: malformed, or its side is down.
    #[drop]
    Refused,
    /// Frames that the host's stack had no room for.
    #[drop]
    Full,
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ToHost| super::host_state::resources(&it.devname))
}

impl PerBatch for ToHost {
    type On = on::Any;
    type Local = HostState;
    type Fate = ToHostExit;
    // All workers send to one device.
    const SHARED: bool = true;

    fn can_take_state(&self, _: &ToHost) -> bool {
        false // a new element opens its device anew
    }

    fn init(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        local.open(&self.devname, TunTapMode::Tap, None)
    }

    fn batch(&self, local: &mut HostState, _: usize, batch: Batch, cx: &mut Cx) {
        local.send(batch, ToHostExit::Refused, ToHostExit::Full, cx);
    }

    fn run_timer(&self, local: &mut HostState, cx: &mut Cx) {
        local.send(Batch::new(), ToHostExit::Refused, ToHostExit::Full, cx);
    }

    fn cleanup(&self, local: &mut HostState, cx: &mut Cx) {
        local.close(ToHostExit::Full, cx);
    }

    fn held(&self, local: &HostState) -> usize {
        local.held()
    }
}
