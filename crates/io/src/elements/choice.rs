//! Which way packets come and go: as the user says, or the best that the interface has.

use super::method::Method;
use crate::IoError;
use crate::af_packet::{self, AfPacket};
use crate::af_xdp::{self, AfXdp};
use crate::device::{Device, DeviceStats};
use crate::interface::Interface;
use castanet_engine::prelude::*;
use castanet_packet::Pool;
use std::io;
use std::os::fd::RawFd;

/// What an element wants of its device.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub(super) method: Method,
    /// Whether to receive, and how.
    pub(super) receive: Option<Receive>,
    /// For packet sockets: whether to send past the queueing discipline.
    pub(super) bypass_qdisc: bool,
}

/// How to receive.
#[derive(Clone, Copy)]
pub(super) struct Receive {
    /// Whether the host must go on receiving; if the user does not say, it
    /// must where it has a use for the interface.
    pub(super) sniffer: Option<bool>,
    pub(super) promiscuous: bool,
    pub(super) outbound: bool,
    pub(super) timestamps: bool,
}

/// An open device, and why it is not a better one.
pub(super) struct Chosen {
    device: Box<dyn Device>,
    pub(super) ethernet: bool,
    why_not_better: Option<String>,
}

/// Opens the interface `devname`; packets received will be of `pool`.
pub(super) fn open(devname: &str, wish: &Wish, pool: &Pool) -> Result<Chosen, ArgError> {
    let failed = |error: IoError| ArgError::new(error.to_string());
    let interface = Interface::find(devname).map_err(failed)?;
    let ethernet = interface.ether.is_some();
    if wish.receive.is_some() && !interface.up {
        return Err(ArgError::new(format!("interface ‘{devname}’ is down"))
            .click(format!("{devname}: network is down"))
            .help(format!("bring it up with `ip link set {devname} up`")));
    }
    let why_not_better = match (wish.method, obstacle(wish, &interface)) {
        (Method::Xdp, Obstacle::None | Obstacle::Host(_)) => None,
        (Method::Xdp, Obstacle::Wish(why)) => {
            return Err(ArgError::new(format!("METHOD AF_XDP will not do: {why}")));
        }
        (Method::Best, Obstacle::Wish(why) | Obstacle::Host(why)) => Some(why),
        (Method::Best, Obstacle::None) => None,
        (Method::Ring | Method::Socket, _) => Some("METHOD says so".into()),
    };
    if why_not_better.is_none() {
        match (open_xdp(devname, wish, pool), wish.method) {
            (Ok(device), _) => {
                return Ok(Chosen { device: Box::new(device), ethernet, why_not_better: None });
            }
            // Who holds it gets all that arrives: a packet socket would wait in vain.
            (Err(error), Method::Best)
                if wish.receive.is_none() || !matches!(error, IoError::Busy { .. }) =>
            {
                return open_packet(devname, wish, ethernet, Some(error.to_string()));
            }
            (Err(error), _) => return Err(failed(error)),
        }
    }
    open_packet(devname, wish, ethernet, why_not_better)
}

/// What [`open`] would do now, as far as that can be told without opening anything.
pub(super) fn foresee(devname: &str, wish: &Wish) -> String {
    let interface = match Interface::find(devname) {
        Ok(interface) => interface,
        Err(error) => return error.to_string(),
    };
    let socket = |why: &str| format!("{devname} by packet socket; not AF_XDP: {why}");
    match (wish.method, obstacle(wish, &interface)) {
        (Method::Ring | Method::Socket, _) => socket("METHOD says so"),
        (Method::Xdp, Obstacle::Wish(why)) => format!("METHOD AF_XDP will not do: {why}"),
        (Method::Best, Obstacle::Wish(why) | Obstacle::Host(why)) => socket(&why),
        (Method::Xdp, _) => format!("{devname} by AF_XDP, as METHOD says"),
        (Method::Best, Obstacle::None) => {
            format!("{devname} by AF_XDP where its driver supports it, else by packet socket")
        }
    }
}

/// Why AF_XDP is not an option.
enum Obstacle {
    None,
    /// The host needs the interface, and the user has not said that it does not.
    Host(String),
    /// What the user wants cannot be had with it.
    Wish(String),
}

fn obstacle(wish: &Wish, interface: &Interface) -> Obstacle {
    let (sniffer, outbound) = wish.receive.map_or((None, false), |it| (it.sniffer, it.outbound));
    match (sniffer, interface.needed_by_host()) {
        _ if outbound => Obstacle::Wish("it does not see what the host sends (OUTBOUND)".into()),
        (Some(true), _) => Obstacle::Wish("it keeps packets from the host (SNIFFER)".into()),
        (None, Some(why)) => Obstacle::Host(format!("the host needs {}, {why}", interface.name)),
        _ => Obstacle::None,
    }
}

fn open_xdp(devname: &str, wish: &Wish, pool: &Pool) -> Result<AfXdp, IoError> {
    let options = af_xdp::Options {
        receive: wish.receive.is_some(),
        promiscuous: wish.receive.is_some_and(|it| it.promiscuous),
        timestamps: wish.receive.is_some_and(|it| it.timestamps),
        // A packet socket does better than a program behind the driver.
        generic: wish.method == Method::Xdp,
        device: 0,
    };
    AfXdp::open(devname, pool, options)
}

fn open_packet(
    devname: &str,
    wish: &Wish,
    ethernet: bool,
    why_not_better: Option<String>,
) -> Result<Chosen, ArgError> {
    let receive = wish.receive;
    let options = af_packet::Options {
        method: match (receive, wish.method) {
            (None, _) => af_packet::Method::SendOnly,
            (_, Method::Socket) => af_packet::Method::Socket,
            _ => af_packet::Method::Ring,
        },
        promiscuous: receive.is_some_and(|it| it.promiscuous),
        outbound: receive.is_some_and(|it| it.outbound),
        exclusive: receive.is_some_and(|it| it.sniffer == Some(false)),
        bypass_qdisc: wish.bypass_qdisc,
        ..af_packet::Options::default()
    };
    let device =
        AfPacket::open(devname, options).map_err(|error| ArgError::new(error.to_string()))?;
    Ok(Chosen { device: Box::new(device), ethernet, why_not_better })
}

impl Device for Chosen {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        self.device.receive(pool, batch, max)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        self.device.transmit(batch)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn unsent(&self) -> bool {
        self.device.unsent()
    }

    fn starved(&self) -> bool {
        self.device.starved()
    }

    fn fd(&self) -> Option<RawFd> {
        self.device.fd()
    }

    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }

    fn describe(&self) -> String {
        let text = self.device.describe();
        match &self.why_not_better {
            None => text,
            Some(why) => format!("{text}; not AF_XDP: {why}"),
        }
    }
}
