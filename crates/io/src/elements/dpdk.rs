//! Functions and arguments common to the elements of DPDK ports.

use super::device_slot::DeviceSlot;
use crate::dpdk::{Checksums, Dpdk, Options, is_built_in};
use crate::error::IoError;
use crate::sys::dpdk::{LinkStatus, PortStats};
use castanet_element::prelude::*;

/// Opens a port, but does not start it; `None` if the port is missing and may be.
pub(super) fn open(
    port: &str,
    options: Options,
    may_be_missing: bool,
) -> Result<Option<Dpdk>, ArgError> {
    match Dpdk::prepare(port, options) {
        Ok(device) => Ok(Some(device)),
        Err(_) if may_be_missing && !crate::dpdk::exists(port) => Ok(None),
        Err(error) => {
            let shown = ArgError::new(error.to_string());
            Err(match crate::dpdk::exists(port) {
                true => shown,
                false => shown
                    .click(format!("{port} : Unknown or invalid PORT"))
                    .help(if is_built_in() { HELP } else { INSTALL }),
            })
        }
    }
}

/// Starts a port that [`open`] has opened, if any.
pub(super) fn start<Direction>(
    port: &str,
    device: &mut DeviceSlot<Dpdk, Direction>,
) -> Result<(), ArgError> {
    let started = device.get_mut().map_or(Ok(()), |device| device.start(port));
    started.map_err(|error| ArgError::new(error.to_string()))
}

/// A number of queues as DPDK's type; 65535 for larger numbers.
pub(super) fn count(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// The arguments that select the checksums that a port verifies in received packets, and
/// computes in packets to send that leave them open.
#[derive(Args, Clone, Copy)]
pub(super) struct Offloads {
    /// Whether the port handles the checksums of IPv4 headers, if it can.
    #[arg(keyword, default = false)]
    ipco: bool,
    /// Whether the port handles the checksums of TCP and of IPv4 headers, if it can.
    #[arg(keyword, default = false)]
    tco: bool,
    /// Whether the port handles the checksums of UDP and of IPv4 headers, if it can.
    #[arg(keyword, default = false)]
    uco: bool,
}

impl Offloads {
    pub(super) fn checksums(self) -> Checksums {
        let Offloads { ipco, tco, uco } = self;
        Checksums { ip: ipco | tco | uco, tcp: tco, udp: uco }
    }
}

/// The error of an element that uses DPDK without a port.
pub(super) fn to_arg_error(error: &IoError) -> ArgError {
    ArgError::new(error.to_string()).help(if is_built_in() { HELP } else { INSTALL })
}

const HELP: &str = "for a try without hardware: castanet run --dpdk \"--no-huge -m 512 --no-pci --vdev net_null0\"";
const INSTALL: &str = "on Debian: apt-get install dpdk-dev";

/// Properties of a port; zeros and empty texts if it is not open.
pub(super) trait PortInfo {
    fn counts(&self) -> PortStats;
    fn link(&self) -> LinkStatus;
    fn mac(&self) -> String;
    /// The port's number as FastClick's `device` handlers show it.
    fn port(&self) -> String;
}

impl<Direction> PortInfo for DeviceSlot<Dpdk, Direction> {
    fn counts(&self) -> PortStats {
        self.get().map_or_else(PortStats::default, Dpdk::hardware_stats)
    }

    fn link(&self) -> LinkStatus {
        self.get().map_or_else(LinkStatus::default, Dpdk::link)
    }

    fn mac(&self) -> String {
        let address = self.get().map(|device| castanet_wire::MacAddr(device.mac()));
        address.map_or_else(String::new, |it| it.to_string())
    }

    fn port(&self) -> String {
        self.get().map_or_else(|| "undefined".into(), |it| it.port().to_string())
    }
}

/// The resources that a port needs, whose driver is DPDK's: beside the port, those of its environment.
pub(super) fn resources(port: String) -> Vec<Resource> {
    let huge = "keeps frames in huge pages, as the options of DPDK say";
    vec![
        Resource::new(ResourceKind::Interface, port, "opens it by DPDK, which needs root or VFIO"),
        Resource::new(ResourceKind::WriteFile, "/dev/hugepages", huge),
    ]
}
