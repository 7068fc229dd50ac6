//! Interfaces by `AF_XDP`: an XDP program hands packets over before the kernel's stack sees them.

mod port;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::intake::{Arrival, Intake};
use crate::interface::Interface;
use crate::offload;
use crate::sys::netlink::Watch;
use crate::sys::packet_socket::PacketSocket;
use crate::sys::xsk::{Program, RING, Sending, Socket, Stage};
use crate::sys::{AnyOf, ethtool, netif};
use castanet_packet::{Batch, Packet, Pool};
use castanet_wire::{Ethernet, MacAddr};
use port::{LINK, Port};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::SystemTime;

/// What can be chosen about an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether to receive too. Then the kernel's own stack no longer sees
    /// what arrives.
    pub receive: bool,
    /// Whether to take in frames for other hosts too.
    pub promiscuous: bool,
    /// Whether a driver without XDP will do: the kernel then runs the program
    /// after it has made buffers of its own.
    pub generic: bool,
    /// Whether packets carry the time that they were fetched at.
    pub timestamps: bool,
    /// The device number that received packets carry.
    pub device: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options { receive: true, promiscuous: false, generic: true, timestamps: true, device: 0 }
    }
}

/// Drivers of virtual links, whose other end may leave checksums unfinished.
const VIRTUAL: [&str; 3] = ["veth", "tun", "virtio_net"];

/// The share of the free frames that waits on an interface to be filled: of
/// 16 384 frames, 2048 bridge two milliseconds at a million packets a second,
/// and however many interfaces there are, none takes all.
const SHARE: usize = 8;

/// All queues of an interface, by a socket each.
pub struct AfXdp {
    // The program goes before the sockets that it names.
    reception: Option<Reception>,
    port: Arc<Port>,
    intake: Intake,
    options: Options,
    /// The longest packet to send.
    longest: usize,
    /// Whether packets that were taken still wait to be sent.
    unsent: bool,
    /// Whether the interface was down when we last sent.
    down: bool,
}

/// What it takes to receive.
struct Reception {
    _program: Program,
    ether: MacAddr,
    /// Whether checksums may come unfinished.
    unfinished: bool,
    /// Why the program is not in the driver, if it is not.
    why_generic: Option<String>,
    /// How many frames each queue gets to fill.
    target: usize,
    /// The queue to begin with.
    turn: usize,
    /// Whether a queue has no frame at all.
    starved: bool,
    /// Readable when any queue is, or the interface changes.
    any: AnyOf,
    /// An AF_XDP socket whose interface goes has an error, but wakes nobody
    /// who waits for it.
    watch: Watch,
    _promiscuous: Option<PacketSocket>,
    /// The interface is gone for good.
    gone: bool,
}

impl AfXdp {
    /// Opens the interface called `name`; packets will be frames of `pool`.
    ///
    /// Opened again in the same process with the same pool it is the same
    /// interface: one side of it can receive while another sends.
    pub fn open(name: &str, pool: &Pool, options: Options) -> Result<AfXdp, IoError> {
        let interface = Interface::find(name)?;
        let requests = netif::Interface::new(name)
            .map_err(|error| IoError::new(format!("look up interface {name}"), error))?;
        let queues = ethtool::receive_queues(&requests);
        let longest = (interface.mtu + LINK).min(pool.data_capacity());
        let intake = Intake::new(interface.link(), options.device);
        let port = port::open(interface, queues, pool)?;
        let reception =
            options.receive.then(|| Reception::begin(&port, &requests, &options)).transpose()?;
        Ok(AfXdp { reception, port, intake, options, longest, unsent: false, down: false })
    }

    /// The interface as it was when opened.
    pub fn interface(&self) -> &Interface {
        &self.port.interface
    }

    /// Whether a packet can go out here at all.
    fn is_fit(&self, packet: &Packet) -> bool {
        (Ethernet::LEN..=self.longest).contains(&packet.len())
    }

    /// Where to send: one queue, which workers share burst by burst.
    fn outlet(&self) -> Option<&Socket> {
        self.port.sockets.first()
    }

    /// Sends what is waiting in the ring, as far as the kernel takes it.
    fn push(&mut self) {
        let port = Arc::clone(&self.port);
        let Some(socket) = port.sockets.first() else { return };
        let pushed = socket.push(&mut socket.sending());
        self.down = pushed.is_err();
        self.unsent = !pushed.unwrap_or(true);
    }
}

impl Reception {
    /// Puts the program on the interface and leads its queues to the sockets.
    fn begin(
        port: &Port,
        requests: &netif::Interface,
        options: &Options,
    ) -> Result<Reception, IoError> {
        let Interface { name, index, ether, .. } = &port.interface;
        let failed = |doing: &str| {
            let doing = format!("{doing} {name}");
            move |error| IoError::new(doing, error)
        };
        let queues = port.sockets.len();
        let (program, why_generic) = attach(*index, queues as u32, options.generic)
            .map_err(failed("put an XDP program on"))
            .map_err(|error| match error {
                IoError::NotPermitted { doing, .. } => {
                    IoError::NotPermitted { doing, needs: "CAP_NET_ADMIN and CAP_BPF" }
                }
                other => other,
            })?;
        let stage = if why_generic.is_some() { Stage::Generic } else { Stage::Driver };
        let pool = port.pool.stats();
        let free = pool.frames.saturating_sub(pool.in_use);
        let target = (free / SHARE / queues.max(1)).clamp(1, RING as usize);
        let mut starved = false;
        for (queue, socket) in (0..).zip(&port.sockets) {
            // Frames first: what arrives finds one.
            starved |= fill(socket, target);
            program.insert(queue, socket).map_err(failed("lead packets to a socket on"))?;
        }
        let watch = Watch::new().map_err(failed("watch"))?;
        let promiscuous = options.promiscuous.then(|| promiscuous(*index)).transpose();
        let fds = port.sockets.iter().map(Socket::raw_fd).chain([watch.raw_fd()]);
        let any = AnyOf::new(fds).map_err(failed("watch the queues of"))?;
        let driver = ethtool::driver(requests).unwrap_or_default();
        let why_generic = why_generic.map(|why| match ethtool::joins_received(requests) {
            true => {
                format!("{why}; what the kernel joins is lost, see `ethtool -K {name} gro off`")
            }
            false => why,
        });
        Ok(Reception {
            _program: program,
            ether: ether.unwrap_or_default(),
            unfinished: stage == Stage::Generic || VIRTUAL.contains(&driver.as_str()),
            why_generic,
            target,
            turn: 0,
            starved,
            any,
            watch,
            _promiscuous: promiscuous.map_err(failed("set promiscuous mode on"))?,
            gone: false,
        })
    }

    /// Whom the link meant a frame for.
    fn kind(&self, packet: &Packet) -> u8 {
        let Some((header, _)) = Ethernet::from_prefix(packet.bytes()) else { return 0 };
        let dst = header.dst();
        if dst == self.ether {
            libc::PACKET_HOST
        } else if dst == MacAddr([0xff; 6]) {
            libc::PACKET_BROADCAST
        } else if dst.0[0] & 1 != 0 {
            libc::PACKET_MULTICAST
        } else {
            libc::PACKET_OTHERHOST
        }
    }
}

/// Attaches the program in the driver, or else where any driver will do and
/// that is allowed; then says why.
fn attach(index: u32, queues: u32, generic: bool) -> io::Result<(Program, Option<String>)> {
    match Program::new(index, queues, Stage::Driver) {
        Ok(program) => Ok((program, None)),
        Err(error) if generic && error.raw_os_error() != Some(libc::EBUSY) => {
            let why = match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => "it cannot".to_owned(),
                _ => error.to_string(),
            };
            Program::new(index, queues, Stage::Generic).map(|program| (program, Some(why)))
        }
        Err(error) => Err(error),
    }
}

/// A socket that keeps the interface in promiscuous mode while it is open.
fn promiscuous(index: u32) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open(index)?;
    socket.set_promiscuous()?;
    Ok(socket)
}

/// Gives the kernel frames to fill; says whether it has none.
fn fill(socket: &Socket, target: usize) -> bool {
    let mut receiving = socket.receiving();
    if receiving.refill(target) {
        socket.wake_receiving();
    }
    receiving.lent() == 0
}

/// Wall-clock time: the kernel does not say when a packet arrived.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Makes packets of up to `max` frames of one queue.
fn take(
    socket: &Socket,
    reception: &Reception,
    intake: &mut Intake,
    timestamps: bool,
    batch: &mut Batch,
    max: usize,
) -> usize {
    let mut receiving = socket.receiving();
    let (mut count, mut time) = (0, 0);
    while count < max
        && let Some(mut packet) = receiving.next()
    {
        if reception.unfinished {
            offload::finish_if_partial(packet.bytes_mut(), intake.link);
        }
        if timestamps && time == 0 {
            time = now();
        }
        let (wire_len, kind) = (packet.len(), reception.kind(&packet));
        let arrival = Arrival { wire_len, kind, time, ..Arrival::default() };
        count += intake.keep(packet, &arrival, batch);
    }
    receiving.release();
    count
}

impl Device for AfXdp {
    fn receive(&mut self, _: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let Some(reception) = &mut self.reception else { return Ok(0) };
        let sockets = &self.port.sockets;
        let (first, mut count) = (reception.turn, 0);
        reception.turn = (first + 1) % sockets.len().max(1);
        reception.starved = false;
        for socket in sockets.iter().cycle().skip(first).take(sockets.len()) {
            let (timestamps, left) = (self.options.timestamps, max - count);
            count += take(socket, reception, &mut self.intake, timestamps, batch, left);
            if fill(socket, reception.target) {
                port::reclaim_all();
                reception.starved |= fill(socket, reception.target);
            }
        }
        if count == 0 && reception.watch.has_changed() {
            reception.gone |= sockets.iter().any(|socket| socket.take_error().is_err());
        }
        if reception.gone {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the interface is gone"));
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if self.down {
            self.push();
        }
        if self.down {
            // Like any interface that is down it refuses packets, rather than
            // send them when they are old.
            self.intake.stats.tx_errors += batch.len() as u64;
            batch.clear();
            return Ok(0);
        }
        let refused = batch.iter().filter(|packet| !self.is_fit(packet)).count();
        if refused > 0 {
            self.intake.stats.tx_errors += refused as u64;
            *batch = batch.drain().filter(|packet| self.is_fit(packet)).collect();
        }
        let Some(socket) = self.outlet() else { return Ok(0) };
        let (sent, bytes) = send(&mut socket.sending(), batch);
        let stats = &mut self.intake.stats;
        stats.sent += sent as u64;
        stats.sent_bytes += bytes;
        stats.tx_full += u64::from(!batch.is_empty());
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push();
        Ok(())
    }

    fn unsent(&self) -> bool {
        self.unsent
    }

    fn starved(&self) -> bool {
        self.reception.as_ref().is_some_and(|it| it.starved)
    }

    fn fd(&self) -> Option<RawFd> {
        let any = self.reception.as_ref().map(|it| it.any.raw_fd());
        any.or_else(|| self.outlet().map(Socket::raw_fd))
    }

    fn stats(&self) -> DeviceStats {
        let counts = self.port.sockets.iter().filter_map(|socket| socket.counts().ok());
        let kernel_drops = counts.map(|it| it.dropped + it.invalid).sum();
        DeviceStats { kernel_drops, ..self.intake.stats }
    }

    fn describe(&self) -> String {
        let Interface { name, up, .. } = &self.port.interface;
        let mut text = format!("{name}: AF_XDP ");
        match &self.port.why_copy {
            None => text += "without copies",
            Some(why) => text += &format!("in copy mode (without copies {why})"),
        }
        text += &match self.port.sockets.len() {
            1 => ", one queue".to_owned(),
            n => format!(", {n} queues"),
        };
        if let Some(reception) = &self.reception {
            match &reception.why_generic {
                None => text += ", XDP program in the driver",
                Some(why) => text += &format!(", generic XDP program (in the driver {why})"),
            }
        }
        if !up {
            text += " (the interface is down)";
        }
        text
    }
}

/// Sends from the front of `batch` what there is room for; says how many
/// packets and bytes.
fn send(sending: &mut Sending, batch: &mut Batch) -> (usize, u64) {
    sending.reclaim();
    let mut rest = batch.split_off(sending.room(batch.len()));
    let (mut sent, mut bytes) = (0, 0);
    let mut kept = Batch::new();
    for packet in batch.drain() {
        let len = packet.len() as u64;
        // Without a frame to copy it to, a packet stays, and those behind it.
        match if kept.is_empty() { sending.send(packet) } else { Err(packet) } {
            Ok(()) => (sent, bytes) = (sent + 1, bytes + len),
            Err(packet) => kept.push(packet),
        }
    }
    sending.publish();
    kept.append(&mut rest);
    *batch = kept;
    (sent, bytes)
}
