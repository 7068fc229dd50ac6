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
    rest: [u8; 160],
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
    let about = ask(interface, Driver { command: GET_DRIVER, name: [0; 32], rest: [0; 160] })?;
    let name = about.name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// How many receive queues there are; one, where the driver does not say.
pub(crate) fn receive_queues(interface: &Interface) -> u32 {
    let none = Channels {
        command: GET_CHANNELS,
        most: [0; 4],
        receive: 0,
        transmit: 0,
        other: 0,
        combined: 0,
    };
    ask(interface, none).map_or(1, |it| (it.receive + it.combined).max(1))
}

/// Whether the kernel joins received packets to super-frames.
pub(crate) fn joins_received(interface: &Interface) -> bool {
    ask(interface, Value { command: GET_GRO, data: 0 }).is_ok_and(|it| it.data != 0)
}
