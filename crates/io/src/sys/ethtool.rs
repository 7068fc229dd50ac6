//! What an interface's driver says about itself (`SIOCETHTOOL`).

use super::netif::Interface;
use std::io;

// From linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER: u32 = 0x3;
const GET_GRO: u32 = 0x2b;
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
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
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

const _: () = assert!(size_of::<Driver>() == 196 && size_of::<Channels>() == 36);

/// Requests, as the structures of this file.
trait Request {}
impl Request for Driver {}
impl Request for Channels {}
impl Request for Value {}

fn ask<T: Request>(interface: &Interface, mut about: T) -> io::Result<T> {
    let mut request = interface.request();
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut about).cast();
    // The structures are as the kernel expects for their commands, and live.
    interface.ioctl(SIOCETHTOOL, &mut request)?;
    Ok(about)
}

/// The driver's name.
pub(crate) fn driver(interface: &Interface) -> io::Result<String> {
    about_driver(interface).map(|about| text(&about.name))
}

/// The NUMA node that the interface's device is at, if it is on a PCI bus and
/// the machine knows. The bus is the same in all network namespaces, where
/// `/sys/class/net` may be another's.
pub(crate) fn numa_node(interface: &Interface) -> Option<usize> {
    let address = text(&about_driver(interface).ok()?.bus);
    if address.is_empty() || address.contains('/') {
        return None;
    }
    let path = format!("/sys/bus/pci/devices/{address}/numa_node");
    // -1 where nobody knows.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn about_driver(interface: &Interface) -> io::Result<Driver> {
    let (name, versions, bus, rest) = ([0; 32], [0; 64], [0; 32], [0; 64]);
    ask(interface, Driver { command: GET_DRIVER, name, versions, bus, rest })
}

/// Text up to the first zero.
fn text(bytes: &[u8]) -> String {
    let used = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(used).into_owned()
}

/// How many receive queues there are; one, where the driver does not say.
pub(crate) fn receive_queues(interface: &Interface) -> u32 {
    channels(interface).map_or(1, |it| (it.receive + it.combined).max(1))
}

/// How many transmit queues there are; one, where the driver does not say.
pub(crate) fn transmit_queues(interface: &Interface) -> u32 {
    channels(interface).map_or(1, |it| (it.transmit + it.combined).max(1))
}

fn channels(interface: &Interface) -> io::Result<Channels> {
    let none = Channels {
        command: GET_CHANNELS,
        most: [0; 4],
        receive: 0,
        transmit: 0,
        other: 0,
        combined: 0,
    };
    ask(interface, none)
}

/// Whether the kernel joins received packets to super-frames.
pub(crate) fn joins_received(interface: &Interface) -> bool {
    ask(interface, Value { command: GET_GRO, data: 0 }).is_ok_and(|it| it.data != 0)
}
