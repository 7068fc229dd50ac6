//! Selects the backend of a network interface: the user's METHOD, or the fastest that it supports.

use super::method::Method;
use crate::IoError;
use crate::af_packet::{self, AfPacket, Fanout, FanoutGroup, FanoutMode};
use crate::af_xdp::{self, AfXdp, HostFilter, Queues};
use crate::device::{Device, DeviceStats};
use crate::interface::Interface;
use crate::links;
use castanet_element::prelude::*;
use castanet_packet::{PacketTotals, Pool};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// An element's requirements of its device.
#[derive(Clone, PartialEq)]
pub(crate) struct DeviceRequest {
    pub(crate) method: Method,
    /// How to receive; `None` to send only.
    pub(crate) receive: Option<ReceiveRequest>,
    /// The queue to send to, for AF_XDP.
    pub(crate) transmit: u32,
    /// For packet sockets: whether to send past the queueing discipline.
    pub(crate) bypass_qdisc: bool,
}

/// An element's requirements of a device that receives.
#[derive(Clone, PartialEq)]
pub(crate) struct ReceiveRequest {
    /// The queues to receive from, for AF_XDP.
    pub(crate) queues: Queues,
    /// Whether the user has named these queues, so that no other backend will do.
    pub(crate) exactly: bool,
    /// The fanout group of the workers that share a packet socket's packets, and their
    /// number; not used by AF_XDP.
    pub(crate) group: Option<(FanoutGroup, usize)>,
    /// Whether packet sockets share packets by a table that can be changed.
    pub(crate) has_table: bool,
    /// Whether this worker makes the settings that all workers have in common.
    pub(crate) is_leader: bool,
    /// Whether the host must receive the packets too; if the user does not say, it
    /// must if it needs the interface.
    pub(crate) sniffer: Option<bool>,
    pub(crate) promiscuous: bool,
    pub(crate) outbound: bool,
    pub(crate) timestamps: bool,
    /// The packets that only the host receives, with AF_XDP.
    pub(crate) for_host: Option<Arc<HostFilter>>,
    /// Number of packets to poll the driver for at once, with AF_XDP; 0 for interrupts.
    pub(crate) busy_poll: u32,
}

/// The method that was selected for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    Xdp,
    /// A packet socket, for this reason.
    Packet(String),
}

/// An open device.
pub(crate) struct SelectedDevice {
    backend: Backend,
    /// The reason why it is a packet socket, not AF_XDP.
    fallback_reason: Option<String>,
    /// Number of workers that receive.
    workers: usize,
}

/// The device by its method.
enum Backend {
    Xdp(Box<AfXdp>),
    Packet(Box<AfPacket>),
}

/// Opens the interface `devname`, but does not start it; it will receive to frames of `pool`. A device in
/// place of one that is gone has its method, if that is possible.
pub(crate) fn open(
    devname: &str,
    request: &DeviceRequest,
    pool: &Pool,
    before: Option<&Selection>,
) -> Result<SelectedDevice, ArgError> {
    let failed = |error: IoError| ArgError::new(error.to_string());
    let interface = Interface::find(devname).map_err(failed)?;
    if request.receive.is_some() && !interface.up {
        return Err(ArgError::new(format!("interface ‘{devname}’ is down"))
            .click(format!("{devname}: network is down"))
            .help(format!("bring it up with `ip link set {devname} up`")));
    }
    let fallback_reason = match (request.method, find_obstacle(request, &interface)) {
        (Method::Xdp, Obstacle::None | Obstacle::Host(_)) => None,
        (Method::Xdp, Obstacle::Request(why)) => {
            return Err(ArgError::new(format!("METHOD AF_XDP will not do: {why}")));
        }
        (Method::Best, obstacle) => match (before, obstacle) {
            (Some(Selection::Packet(why)), _) => Some(why.clone()),
            (Some(Selection::Xdp), _) => None,
            (None, Obstacle::Request(why) | Obstacle::Host(why)) => Some(why),
            (None, Obstacle::None) => None,
        },
        (Method::Ring | Method::Socket, _) => Some("METHOD says so".into()),
    };
    if fallback_reason.is_none() {
        match (open_xdp(devname, request, pool), request.method) {
            (Ok(device), _) => {
                let (backend, workers) = (Backend::Xdp(Box::new(device)), request.workers());
                return Ok(SelectedDevice { backend, fallback_reason: None, workers });
            }
            // An interface that another program holds hands a packet socket nothing.
            (Err(error), Method::Best)
                if request.receive.is_none() || !matches!(error, IoError::Busy { .. }) =>
            {
                return open_packet(devname, request, Some(error.to_string()));
            }
            (Err(error), _) => return Err(failed(error)),
        }
    }
    open_packet(devname, request, fallback_reason)
}

/// The result that [`open`] would have now, as far as it is known before the device is open.
#[derive(Clone)]
pub(crate) struct DeviceForecast {
    /// A description of the device.
    pub(crate) how: String,
    /// With AF_XDP, the number of queues to receive from and to send to.
    pub(crate) queues: Option<(usize, usize)>,
    pub(crate) numa_node: Option<usize>,
}

/// Predicts the device that [`open`] would select, without opening it.
pub(crate) fn predict(devname: &str, request: &DeviceRequest) -> DeviceForecast {
    let interface = match Interface::find(devname) {
        Ok(interface) => interface,
        Err(error) => {
            let how = error.to_string();
            // A reload while the interface is away distributes the queues that it had.
            return match links::remembered(devname, request.receive.is_some()) {
                Some(had) => DeviceForecast { how, ..had },
                None => DeviceForecast { how, queues: Some((1, 1)), numa_node: None },
            };
        }
    };
    let obstacle = find_obstacle(request, &interface);
    let socket = match (request.method, &obstacle) {
        (Method::Ring | Method::Socket, _) => true,
        (Method::Best, Obstacle::Request(_) | Obstacle::Host(_)) => true,
        (Method::Best | Method::Xdp, _) => false,
    };
    let queues = (!socket).then(|| interface.queues());
    DeviceForecast {
        how: describe_selection(devname, request, obstacle),
        queues,
        numa_node: interface.numa_node(),
    }
}

fn describe_selection(devname: &str, request: &DeviceRequest, obstacle: Obstacle) -> String {
    let socket = |why: &str| format!("{devname} by packet socket; not AF_XDP: {why}");
    match (request.method, obstacle) {
        (Method::Ring | Method::Socket, _) => socket("METHOD says so"),
        (Method::Xdp, Obstacle::Request(why)) => format!("METHOD AF_XDP will not do: {why}"),
        (Method::Best, Obstacle::Request(why) | Obstacle::Host(why)) => socket(&why),
        (Method::Xdp, _) => format!("{devname} by AF_XDP, as METHOD says"),
        (Method::Best, Obstacle::None) => {
            format!("{devname} by AF_XDP where its driver supports it, else by packet socket")
        }
    }
}

/// The reason why AF_XDP cannot be selected.
enum Obstacle {
    None,
    /// The host needs the interface, and the arguments do not say otherwise.
    Host(String),
    /// AF_XDP does not support an argument.
    Request(String),
}

fn find_obstacle(request: &DeviceRequest, interface: &Interface) -> Obstacle {
    let receive = request.receive.as_ref();
    let (sniffer, outbound) = receive.map_or((None, false), |it| (it.sniffer, it.outbound));
    match (sniffer, interface.needed_by_host()) {
        _ if outbound => Obstacle::Request("it does not see what the host sends (OUTBOUND)".into()),
        _ if receive.is_some_and(|it| it.has_table) => {
            Obstacle::Request("its packets are spread by no table (RSS_AGGREGATE)".into())
        }
        (Some(true), _) => Obstacle::Request("it keeps packets from the host (SNIFFER)".into()),
        // A user who selects packets for the host has decided that the host may lose the others.
        (None, Some(why)) if receive.is_none_or(|it| it.for_host.is_none()) => {
            Obstacle::Host(format!("the host needs {}, {why}", interface.name))
        }
        _ => Obstacle::None,
    }
}

/// The resources that [`open`] needs.
pub(crate) fn resources(devname: &str, request: &DeviceRequest) -> Vec<Resource> {
    let capability =
        |name: &str, does: &str| Resource::capability(name, format!("{does} {devname}"));
    let use_of = if request.receive.is_some() { "receives from it" } else { "sends to it" };
    let mut all = vec![
        Resource::new(ResourceKind::Interface, devname, use_of),
        capability("CAP_NET_RAW", "opens a socket on"),
    ];
    let is_xdp = match Interface::find(devname) {
        Ok(interface) => match (request.method, find_obstacle(request, &interface)) {
            (Method::Ring | Method::Socket, _) => false,
            (Method::Xdp, _) => true,
            (Method::Best, obstacle) => matches!(obstacle, Obstacle::None),
        },
        // It may be there when the router starts.
        Err(_) => matches!(request.method, Method::Best | Method::Xdp),
    };
    if is_xdp {
        all.extend([
            capability("CAP_NET_ADMIN", "attaches an XDP program to"),
            capability("CAP_BPF", "loads an XDP program for"),
            capability("CAP_IPC_LOCK", "locks the frames in memory, beyond `ulimit -l`, for"),
        ]);
    } else if request.receive.as_ref().is_some_and(|it| it.has_table) {
        all.push(capability("CAP_BPF", "loads the program that spreads the packets of"));
    }
    if !is_xdp && request.receive.as_ref().is_some_and(|it| it.sniffer == Some(false)) {
        all.extend([
            capability("CAP_NET_ADMIN", "keeps packets from the host, by a program on"),
            capability("CAP_BPF", "loads the program that keeps packets from the host on"),
        ]);
    }
    all
}

fn open_xdp(devname: &str, request: &DeviceRequest, pool: &Pool) -> Result<AfXdp, IoError> {
    let options = af_xdp::Options {
        receive: request.receive.as_ref().map(|it| it.queues),
        host_filter: request.receive.as_ref().and_then(|it| it.for_host.clone()),
        busy_poll: request.receive.as_ref().map_or(0, |it| it.busy_poll),
        transmit: request.transmit,
        promiscuous: request.receive.as_ref().is_some_and(|it| it.promiscuous),
        timestamps: request.receive.as_ref().is_some_and(|it| it.timestamps),
        // Generic mode is slower than a packet socket, so only METHOD AF_XDP selects it.
        generic: request.method == Method::Xdp,
        device: 0,
    };
    AfXdp::prepare(devname, pool, options)
}

fn open_packet(
    devname: &str,
    request: &DeviceRequest,
    fallback_reason: Option<String>,
) -> Result<SelectedDevice, ArgError> {
    let receive = request.receive.as_ref();
    if receive.is_some_and(|it| it.exactly) {
        let why = fallback_reason.unwrap_or_default();
        return Err(ArgError::new(format!("QUEUE takes AF_XDP, and that will not do: {why}")));
    }
    if receive.is_some_and(|it| it.for_host.is_some()) {
        let why = fallback_reason.unwrap_or_default();
        let what = "HOST_IP and HOST_FRAMES take AF_XDP";
        return Err(ArgError::new(format!("{what}, and that will not do: {why}"))
            .help("a packet socket leaves all packets to the host, unless SNIFFER is false"));
    }
    let options = af_packet::Options {
        method: match (receive, request.method) {
            (None, _) => af_packet::Method::SendOnly,
            (_, Method::Socket) => af_packet::Method::Socket,
            _ => af_packet::Method::Ring,
        },
        promiscuous: receive.is_some_and(|it| it.promiscuous),
        outbound: receive.is_some_and(|it| it.outbound),
        exclusive: receive.is_some_and(|it| it.is_leader && it.sniffer == Some(false)),
        bypass_qdisc: request.bypass_qdisc,
        fanout: receive.and_then(ReceiveRequest::fanout),
        ..af_packet::Options::default()
    };
    let device =
        AfPacket::prepare(devname, options).map_err(|error| ArgError::new(error.to_string()))?;
    let (backend, workers) = (Backend::Packet(Box::new(device)), request.workers());
    Ok(SelectedDevice { backend, fallback_reason, workers })
}

impl ReceiveRequest {
    /// The fanout group of packet sockets, and the place in it.
    fn fanout(&self) -> Option<Fanout> {
        let (group, workers) = self.group.as_ref()?;
        let mode = if self.has_table { FanoutMode::Table } else { FanoutMode::Hash };
        let queue = (self.queues.first as u16, *workers as u16);
        Some(Fanout { group: group.clone(), mode, queue })
    }
}

impl DeviceRequest {
    /// The request without its fanout group: sockets that are open stay in the group they joined.
    pub(crate) fn without_group(mut self) -> DeviceRequest {
        self.receive.iter_mut().for_each(|receive| receive.group = None);
        self
    }

    /// Number of workers that share the received packets.
    fn workers(&self) -> usize {
        self.receive.as_ref().and_then(|it| it.group.as_ref()).map_or(1, |it| it.1)
    }
}

impl SelectedDevice {
    /// Starts to receive; takes the queues over from a device that is retiring.
    pub(crate) fn start(&mut self) -> Result<(), ArgError> {
        let started = match &mut self.backend {
            Backend::Xdp(device) => device.start(),
            Backend::Packet(device) => device.start(),
        };
        started.map_err(|error| ArgError::new(error.to_string()))
    }

    /// Sets whether another device may claim its queues, which then starts once this one is closed.
    pub(crate) fn set_retiring(&mut self, leaving: bool) {
        if let Backend::Xdp(device) = &mut self.backend {
            device.set_retiring(leaving);
        }
    }

    /// The interface as it was when opened.
    pub(crate) fn interface(&self) -> &Interface {
        match &self.backend {
            Backend::Xdp(device) => device.interface(),
            Backend::Packet(device) => device.interface(),
        }
    }

    /// The packet sockets that share the received packets, if they do by a table.
    pub(crate) fn table_group(&self) -> Option<&FanoutGroup> {
        match &self.backend {
            Backend::Xdp(_) => None,
            Backend::Packet(device) => device.table_group(),
        }
    }

    /// The method that was selected.
    pub(crate) fn selection(&self) -> Selection {
        self.fallback_reason.clone().map_or(Selection::Xdp, Selection::Packet)
    }

    fn device(&self) -> &dyn Device {
        match &self.backend {
            Backend::Xdp(device) => &**device,
            Backend::Packet(device) => &**device,
        }
    }

    fn device_mut(&mut self) -> &mut dyn Device {
        match &mut self.backend {
            Backend::Xdp(device) => &mut **device,
            Backend::Packet(device) => &mut **device,
        }
    }

    /// Forwards up to `max` received packets to `to` without inspection, if both are AF_XDP, and
    /// says how many. Packets that need more wait for [`Device::receive`].
    pub(crate) fn pass(&mut self, to: &mut SelectedDevice, max: usize) -> PacketTotals {
        match (&mut self.backend, &mut to.backend) {
            (Backend::Xdp(from), Backend::Xdp(to)) => from.forward(to, max),
            _ => PacketTotals::default(),
        }
    }
}

impl Device for SelectedDevice {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        self.device_mut().receive(pool, batch, max)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        self.device_mut().transmit(batch)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device_mut().flush()
    }

    fn unsent(&self) -> bool {
        self.device().unsent()
    }

    fn starved(&self) -> bool {
        self.device().starved()
    }

    fn no_frame(&self) -> u64 {
        self.device().no_frame()
    }

    fn fd(&self) -> Option<RawFd> {
        self.device().fd()
    }

    fn stats(&self) -> DeviceStats {
        self.device().stats()
    }

    fn describe(&self) -> String {
        let mut text = self.device().describe();
        if self.workers > 1 {
            text += &format!("; {} workers receive", self.workers);
        }
        match &self.fallback_reason {
            None => text,
            Some(why) => format!("{text}; not AF_XDP: {why}"),
        }
    }
}
