//! `KernelTun`: exchanges IP packets with the host.

use super::host_state::{HostExit, HostState};
use super::kernel_device::{KernelDevice, KernelDeviceArgs};
use crate::tap::TunTapMode;
use castanet_element::prelude::*;

/// Exchanges IP packets with the host's own stack, through a TUN device.
///
/// The host has the address and network ADDR on the device. The element emits the
/// packets that the host routes there on output 0, and the host receives the
/// element's input. Packets that are not IP leave by output 1, if it is connected.
/// The device disappears when the router ends.
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
        false // a new element opens its device anew
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
