//! `KernelTun`: exchanges IP packets with the host.

use super::duplex::impl_duplex;
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

impl_duplex!(KernelTun(KernelDevice));
