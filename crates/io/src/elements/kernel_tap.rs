//! `KernelTap`: exchanges Ethernet frames with the host.

use super::duplex::impl_duplex;
use super::kernel_device::{KernelDevice, KernelDeviceArgs};
use crate::tap::TunTapMode;
use castanet_element::prelude::*;

/// Exchanges Ethernet frames with the host's own stack, through a TAP device.
///
/// The host has the address and network ADDR on the device. It sends ARP requests
/// there; an element such as `ARPResponder` must answer them. The element emits the
/// frames that the host sends, and the host receives the element's input. The device
/// disappears when the router ends.
///
/// ```text
/// tap :: KernelTap(10.0.0.1/24) -> c :: Classifier(12/0806, 12/0800);
/// c[0] -> ARPResponder(10.0.0.0/24 1:1:1:1:1:1) -> tap;
/// c[1] -> Print(ip) -> Discard;
/// ```
#[derive(Element)]
#[element(args = KernelDeviceArgs, ports = "0-1/1-2")]
pub struct KernelTap(KernelDevice);

impl Build for KernelTap {
    type Args = KernelDeviceArgs;

    fn build(settings: KernelDeviceArgs, _: &Setup) -> Result<Self, ArgError> {
        KernelDevice::new(settings, TunTapMode::Tap).map(KernelTap)
    }
}

impl_duplex!(KernelTap(KernelDevice));
