//! `KernelTun`: IP packets to and from the host's own stack.

use super::host_state::{HostExit, HostState};
use super::kernel::{KernelDevice, KernelDeviceArgs};
use crate::tap::TunTapMode;
use castanet_element::prelude::*;

/// Exchanges IP packets with the host's own stack, through a TUN device.
///
/// The host gets the address and network ADDR on the device; what it routes
/// there comes out of output 0, and packets that come in are received by the
/// host. Packets that are not IP come out of output 1, if it is connected.
/// The device goes away with the router.
///
/// ```text
/// KernelTun(10.0.0.1/24) -> IPPrint(host) -> ICMPPingResponder -> tun;
/// ```
#[derive(Element)]
#[element(args = KernelDeviceArgs, ports = "0-1/1-2")]
pub struct KernelTun(KernelDevice);

impl Build for KernelTun {
    type Args = KernelDeviceArgs;

    fn build(settings: KernelDeviceArgs, _: &Setup) -> Result<Self, ArgError> {
        KernelDevice::new(settings, TunTapMode::Tun).map(KernelTun)
    }
}

impl Source for KernelTun {
    type Local = HostState;
    type Fate = HostExit;

    fn can_take_state(&self, _: &KernelTun) -> bool {
        false // it opens what its arguments name
    }

    fn init(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        self.0.open(local)
    }

    fn start(&self, local: &mut HostState, _: &mut Cx) -> Result<(), ArgError> {
        self.0.start(local)
    }

    fn produce(&self, local: &mut HostState, n: usize, cx: &mut Cx) -> NextRun {
        self.0.receive(local, n, cx)
    }

    fn cleanup(&self, local: &mut HostState, cx: &mut Cx) {
        local.close(HostExit::Full, cx);
    }
}

impl PerBatch for KernelTun {
    type On = on::Any;
    type Local = HostState;
    type Fate = HostExit;

    fn batch(&self, local: &mut HostState, _: usize, batch: Batch, cx: &mut Cx) {
        local.forward(batch, cx);
    }

    fn run_timer(&self, local: &mut HostState, cx: &mut Cx) {
        local.forward(Batch::new(), cx);
    }

    fn held(&self, local: &HostState) -> usize {
        local.held()
    }
}
