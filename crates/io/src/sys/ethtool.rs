//! Properties of an interface's driver (`SIOCETHTOOL`).

use super::netif::IoctlSocket;
use std::io;

// From linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x3;
const ETHTOOL_GLINK: u32 = 0xa;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    name: [u8; 32],
    /// Of the driver and of the firmware.
    versions: [u8; 64],
    /// The device's place on its bus.
    bus: [u8; 32],
    rest: [u8; 64],
}

/// `struct ethtool_channels`: the most there can be, then how many there are.
#[repr(C)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

const _: () = assert!(size_of::<DriverInfo>() == 196 && size_of::<Channels>() == 36);

/// Requests, as the structures of this file.
trait EthtoolCommand {}
impl EthtoolCommand for DriverInfo {}
impl EthtoolCommand for Channels {}
impl EthtoolCommand for Value {}

fn query<T: EthtoolCommand>(socket: &IoctlSocket, mut info: T) -> io::Result<T> {
    let mut request = socket.request();
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut info).cast();
    // The structures are as the kernel expects for their commands, and live.
    socket.ioctl(SIOCETHTOOL, &mut request)?;
    Ok(info)
}

/// The driver's name.
pub(crate) fn driver(socket: &IoctlSocket) -> io::Result<String> {
    driver_info(socket).map(|info| c_text(&info.name))
}

/// The NUMA node that the interface's device is at, if it is on a PCI bus and
/// the machine knows. The bus is the same in all network namespaces, where
/// `/sys/class/net` may be another's.
pub(crate) fn numa_node(socket: &IoctlSocket) -> Option<usize> {
    let address = c_text(&driver_info(socket).ok()?.bus);
    if address.is_empty() || address.contains('/') {
        return None;
    }
    let path = format!("/sys/bus/pci/devices/{address}/numa_node");
    // The file holds -1 if the node is unknown.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn driver_info(socket: &IoctlSocket) -> io::Result<DriverInfo> {
    let (name, versions, bus, rest) = ([0; 32], [0; 64], [0; 32], [0; 64]);
    query(socket, DriverInfo { command: ETHTOOL_GDRVINFO, name, versions, bus, rest })
}

/// Text up to the first zero.
fn c_text(bytes: &[u8]) -> String {
    let used = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(used).into_owned()
}

/// Number of receive queues; one if the driver does not report them.
pub(crate) fn rx_queues(socket: &IoctlSocket) -> u32 {
    channels(socket).map_or(1, |it| (it.rx + it.combined).max(1))
}

/// Number of transmit queues; one if the driver does not report them.
pub(crate) fn tx_queues(socket: &IoctlSocket) -> u32 {
    channels(socket).map_or(1, |it| (it.tx + it.combined).max(1))
}

fn channels(socket: &IoctlSocket) -> io::Result<Channels> {
    let none =
        Channels { command: ETHTOOL_GCHANNELS, max: [0; 4], rx: 0, tx: 0, other: 0, combined: 0 };
    query(socket, none)
}

/// Whether the interface has a carrier; an error if the driver does not report it.
pub(crate) fn has_carrier(socket: &IoctlSocket) -> io::Result<bool> {
    query(socket, Value { command: ETHTOOL_GLINK, data: 0 }).map(|it| it.data != 0)
}

/// Whether the kernel joins received packets to super-frames (generic receive offload).
pub(crate) fn gro_enabled(socket: &IoctlSocket) -> bool {
    query(socket, Value { command: ETHTOOL_GGRO, data: 0 }).is_ok_and(|it| it.data != 0)
}
