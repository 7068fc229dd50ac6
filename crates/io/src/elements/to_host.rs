//! `ToHost`: Ethernet frames for the host's own stack.

use super::host_state::HostState;
use crate::tap::TunTapMode;
use castanet_element::prelude::*;

/// Hands Ethernet frames to the host, as received on the TAP device DEVNAME.
///
/// It is the other direction of the `FromHost` of the same name, which also
/// sets up the host's side.
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

/// Why frames end elsewhere than in the host.
#[derive(Fate)]
pub enum ToHostExit {
    /// Frames that the host's stack refused: malformed, or its side is down.
    #[drop]
    Refused,
    /// Frames that the host's stack had no room for.
    #[drop]
    Full,
}

impl PerBatch for ToHost {
    type On = on::Any;
    type Local = HostState;
    type Fate = ToHostExit;
    // One device, whoever sends.
    const SHARED: bool = true;

    fn can_take_state(&self, _: &ToHost) -> bool {
        false // it opens what its arguments name
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
