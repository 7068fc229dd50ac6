//! Receiving from some of an interface's queues, while others receive from the rest.

use super::port::{self, Port};
use super::{ForHost, Options, Queues};
use crate::error::IoError;
use crate::intake::Intake;
use crate::interface::Interface;
use crate::offload::{self, Link};
use crate::sys::netlink::Watch;
use crate::sys::packet_socket::PacketSocket;
use crate::sys::xsk::{Program, RING, Socket, Stage};
use crate::sys::{AnyOf, ethtool};
use castanet_packet::{Batch, Packet};
use castanet_wire::{Ethernet, MacAddr};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

/// Drivers of virtual links, whose other end may leave checksums unfinished.
const VIRTUAL: [&str; 3] = ["veth", "tun", "virtio_net"];

/// The share of the free frames that waits on an interface to be filled: of
/// 16 384 frames, 2048 bridge two milliseconds at a million packets a second,
/// and however many interfaces there are, none takes all.
const SHARE: usize = 8;

/// Who receives from an interface: one program leads to the sockets of all.
#[derive(Default)]
pub(super) struct Inlet {
    attached: Weak<Attached>,
    /// The queues that somebody receives from, or is about to.
    taken: Vec<Taken>,
    /// How many claims there have been.
    claims: u64,
}

/// A queue that is taken.
struct Taken {
    queue: usize,
    claim: u64,
    for_host: Option<Arc<ForHost>>,
    /// Whether whoever has it ends before another starts.
    leaving: bool,
}

/// The program on an interface, as long as anybody receives.
struct Attached {
    program: Program,
    /// Why it is not in the driver, if it is not.
    why_generic: Option<String>,
    /// What it leaves to the host.
    for_host: Option<Arc<ForHost>>,
}

/// Queues that are to be received from; packets still go where they went before.
pub(super) struct Claim {
    port: Arc<Port>,
    number: u64,
    queues: Range<usize>,
    /// None where another program takes the place of one that is still there.
    attached: Option<Arc<Attached>>,
}

/// What it takes to receive from some of the queues.
pub(super) struct Reception {
    attached: Arc<Attached>,
    claim: Claim,
    port: Arc<Port>,
    queues: Range<usize>,
    ether: MacAddr,
    /// Whether checksums may come unfinished.
    unfinished: bool,
    /// Whether the driver looks for packets when it is asked.
    busy: bool,
    /// Whether it has just been, and there is nothing.
    asked: bool,
    /// How many frames each queue gets to fill.
    target: usize,
    /// The queue to begin with, counted from the first of ours.
    turn: usize,
    /// Whether a queue has no frame at all.
    starved: bool,
    /// Readable when any of the queues is, or the interface changes.
    any: AnyOf,
    /// An AF_XDP socket whose interface goes has an error, but wakes nobody
    /// who waits for it.
    watch: Watch,
    _promiscuous: Option<PacketSocket>,
    /// The interface is gone for good.
    gone: bool,
}

impl Reception {
    /// Leads the queues to their sockets.
    pub(super) fn begin(mut claim: Claim, options: &Options) -> Result<Reception, IoError> {
        let port = &Arc::clone(&claim.port);
        let Interface { name, index, ether, .. } = &port.interface;
        let failed = |doing: &str| {
            let doing = format!("{doing} {name}");
            move |error| IoError::new(doing, error)
        };
        let queues = claim.queues.clone();
        let watch = Watch::new().map_err(failed("watch"))?;
        let promiscuous = options.promiscuous.then(|| promiscuous(*index)).transpose();
        let sockets = &port.sockets[queues.clone()];
        let fds = sockets.iter().map(Socket::raw_fd).chain([watch.raw_fd()]);
        let any = AnyOf::new(fds).map_err(failed("watch the queues of"))?;
        let driver = ethtool::driver(port.requests()).unwrap_or_default();
        let attached = claim.attached(options)?;
        let mut it = Reception {
            unfinished: attached.why_generic.is_some() || VIRTUAL.contains(&driver.as_str()),
            attached,
            claim,
            busy: options.busy_poll > 0,
            asked: false,
            port: Arc::clone(port),
            queues,
            ether: ether.unwrap_or_default(),
            target: target(port),
            turn: 0,
            starved: false,
            any,
            watch,
            _promiscuous: promiscuous.map_err(failed("set promiscuous mode on"))?,
            gone: false,
        };
        for queue in it.queues.clone() {
            // Frames first: what arrives finds one.
            let socket = &port.sockets[queue];
            if it.busy {
                socket.poll_busily(options.busy_poll).map_err(failed("poll busily on"))?;
            }
            it.starved |= fill(socket, it.target);
            let led = it.attached.program.insert(queue as u32, socket.as_fd());
            led.map_err(failed("lead packets to a socket on"))?;
        }
        Ok(it)
    }

    /// Adds up to `max` packets of our queues to `batch`; says how many.
    pub(super) fn receive(
        &mut self,
        intake: &mut Intake,
        timestamps: bool,
        batch: &mut Batch,
        max: usize,
    ) -> io::Result<usize> {
        let sockets = &self.port.sockets[self.queues.clone()];
        let (mut count, mut starved) = (0, false);
        let asks = self.busy && !std::mem::take(&mut self.asked);
        for socket in sockets.iter().cycle().skip(self.turn).take(sockets.len()) {
            if asks {
                socket.wake_receiving();
            }
            count += take(socket, self, intake, timestamps, batch, max - count);
            if fill(socket, self.target) {
                port::reclaim_all();
                starved |= fill(socket, self.target);
            }
        }
        if count == 0 && self.watch.has_changed() {
            self.gone |= sockets.iter().any(|socket| socket.take_error().is_err());
            self.port.look_at_mtu();
        }
        self.turn = (self.turn + 1) % self.queues.len();
        self.starved = starved;
        if self.gone {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the interface is gone"));
        }
        Ok(count)
    }

    /// Hands up to `max` packets to `outlet`, if their lengths `fit`, without making packets of
    /// them: those of one queue, the first from the one whose turn it is on that has any. Says how
    /// many packets and bytes, and, if any, whether the kernel has sent them all.
    pub(super) fn pass(
        &mut self,
        outlet: &Socket,
        fit: &RangeInclusive<usize>,
        max: usize,
        link: Link,
    ) -> (usize, u64, io::Result<bool>) {
        let sockets = &self.port.sockets[self.queues.clone()];
        let all = sockets.iter().enumerate().cycle().skip(self.turn).take(sockets.len());
        let mut full = all.filter_map(|(queue, socket)| {
            if self.busy {
                socket.wake_receiving();
            }
            let mut receiving = socket.receiving();
            (!receiving.is_empty()).then_some((queue, socket, receiving))
        });
        let Some((queue, socket, mut receiving)) = full.next() else {
            self.asked = self.busy;
            return (0, 0, Ok(true));
        };
        let mut sending = outlet.sending();
        if sending.reclaim_for(&mut receiving, self.target) {
            socket.wake_receiving();
        }
        let (count, bytes) = receiving.pass(&mut sending, max, fit, |packet| {
            if self.unfinished {
                offload::finish_if_partial(packet, link);
            }
        });
        if count == 0 {
            return (0, 0, Ok(true)); // `receive` is to take these
        }
        let pushed = outlet.push_reclaiming(&mut sending, |sending| {
            if sending.reclaim_for(&mut receiving, self.target) {
                socket.wake_receiving();
            }
        });
        if receiving.refill(self.target) {
            socket.wake_receiving();
        }
        drop((receiving, sending));
        self.turn = (queue + 1) % self.queues.len();
        (count, bytes, pushed)
    }

    /// Says whether others may claim the same queues, for this ends before they start.
    pub(super) fn leave(&self, leaving: bool) {
        self.claim.leave(leaving);
    }

    /// Whether a queue has no frame to be filled.
    pub(super) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Readable when there may be packets.
    pub(super) fn raw_fd(&self) -> RawFd {
        self.any.raw_fd()
    }

    /// Packets of our queues that the kernel dropped.
    pub(super) fn kernel_drops(&self) -> u64 {
        let sockets = self.port.sockets[self.queues.clone()].iter();
        let counts = sockets.filter_map(|socket| socket.counts().ok());
        counts.map(|it| it.dropped + it.invalid).sum()
    }

    /// Why the program is not in the driver, if it is not.
    pub(super) fn why_generic(&self) -> Option<&str> {
        self.attached.why_generic.as_deref()
    }

    /// Which of the queues these are, where they are not all.
    pub(super) fn part(&self) -> String {
        match self.queues.len() {
            n if n == self.port.sockets.len() => String::new(),
            1 => format!(", receives from queue {}", self.queues.start),
            _ => format!(", receives from queues {} to {}", self.queues.start, self.queues.end - 1),
        }
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

impl Drop for Reception {
    fn drop(&mut self) {
        for queue in self.queues.clone() {
            // While others receive, what comes here is the kernel's again.
            drop(self.attached.program.remove(queue as u32));
        }
    }
}

/// The wanted queues, if there are such.
fn within(wanted: Queues, port: &Port) -> Result<Range<usize>, IoError> {
    let (first, most) = (wanted.first as usize, port.receiving_queues());
    if wanted == Queues::ALL {
        return Ok(0..most);
    }
    let queues = first..first.saturating_add(wanted.count as usize);
    if queues.is_empty() || queues.end > most {
        let name = &port.interface.name;
        let why = match most {
            1 => "it has one, which is number 0".to_owned(),
            _ => format!("it has {most}, from 0 to {}", most - 1),
        };
        let last = queues.end.saturating_sub(1);
        let doing = format!("receive from queue {last} of {name}");
        return Err(IoError::Unfit { doing, why });
    }
    Ok(queues)
}

impl Claim {
    /// Claims queues that nobody has, or only who leaves, and puts the program on the interface
    /// for the first who does: without queues it leaves all packets to the host.
    pub(super) fn new(
        port: &Arc<Port>,
        wanted: Queues,
        options: &Options,
    ) -> Result<Claim, IoError> {
        let queues = within(wanted, port)?;
        let mut inlet = port.inlet();
        let name = &port.interface.name;
        let stays = || inlet.taken.iter().filter(|taken| !taken.leaving);
        if let Some(taken) = stays().find(|taken| queues.contains(&taken.queue)) {
            let doing = format!("receive from queue {} of {name}", taken.queue);
            let why = "another element of this configuration does".into();
            return Err(IoError::Unfit { doing, why });
        }
        if stays().any(|taken| taken.for_host != options.for_host) {
            let doing = format!("choose what the host receives from {name}");
            let why = "another element of this configuration chooses otherwise".into();
            return Err(IoError::Unfit { doing, why });
        }
        let attached = match inlet.attached.upgrade() {
            Some(attached) => Some(attached).filter(|it| it.for_host == options.for_host),
            None => Some(Arc::new(attach(port, options)?)),
        };
        if let Some(attached) = &attached {
            inlet.attached = Arc::downgrade(attached);
        }
        inlet.claims += 1;
        let number = inlet.claims;
        inlet.taken.extend(queues.clone().map(|queue| {
            let for_host = options.for_host.clone();
            Taken { queue, claim: number, for_host, leaving: false }
        }));
        drop(inlet);
        Ok(Claim { port: Arc::clone(port), number, queues, attached })
    }

    /// The program, attached now if one that chose otherwise was there before.
    fn attached(&mut self, options: &Options) -> Result<Arc<Attached>, IoError> {
        let mut inlet = self.port.inlet();
        let there = self.attached.take().or_else(|| inlet.attached.upgrade());
        let attached = match there.filter(|it| it.for_host == options.for_host) {
            Some(attached) => attached,
            None => Arc::new(attach(&self.port, options)?),
        };
        inlet.attached = Arc::downgrade(&attached);
        Ok(attached)
    }

    fn leave(&self, leaving: bool) {
        let mut inlet = self.port.inlet();
        let mine = inlet.taken.iter_mut().filter(|taken| taken.claim == self.number);
        mine.for_each(|taken| taken.leaving = leaving);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.port.inlet().taken.retain(|taken| taken.claim != self.number);
    }
}

/// Attaches the program in the driver, or else where any driver will do and
/// that is allowed; then says why.
fn attach(port: &Port, options: &Options) -> Result<Attached, IoError> {
    let Interface { name, index, .. } = &port.interface;
    let queues = port.sockets.len() as u32;
    let for_host = options.for_host.clone();
    let first = for_host.as_deref().map_or(&[][..], ForHost::code);
    let attach = |stage| Program::new(*index, queues, stage, port.segments, first);
    let (stage, why) = match attach(Stage::Driver) {
        Ok(program) => return Ok(Attached { program, why_generic: None, for_host }),
        Err(error) if options.generic && error.raw_os_error() != Some(libc::EBUSY) => {
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => (Ok(Stage::Generic), "it cannot".into()),
                _ => (Ok(Stage::Generic), error.to_string()),
            }
        }
        Err(error) => (Err(error), String::new()),
    };
    let program = stage.and_then(attach);
    let program = program.map_err(|error| {
        match IoError::new(format!("put an XDP program on {name}"), error) {
            IoError::NotPermitted { doing, .. } => {
                IoError::NotPermitted { doing, needs: "CAP_NET_ADMIN and CAP_BPF" }
            }
            other => other,
        }
    })?;
    let why_generic = Some(match ethtool::joins_received(port.requests()) {
        true => format!("{why}; what the kernel joins is lost, see `ethtool -K {name} gro off`"),
        false => why,
    });
    Ok(Attached { program, why_generic, for_host })
}

/// How many frames each queue gets to fill.
fn target(port: &Port) -> usize {
    let pool = port.pool.stats();
    let free = pool.frames.saturating_sub(pool.in_use);
    (free / SHARE / port.receiving_queues().max(1)).clamp(1, RING as usize)
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
    let first = batch.len();
    socket.receiving().take(batch, max);
    let packets = batch.iter_mut().skip(first);
    let count = packets.len();
    let time = if timestamps && count > 0 { now() } else { 0 };
    for packet in packets {
        if reception.unfinished {
            offload::finish_if_partial(packet.bytes_mut(), intake.link);
        }
        intake.note(packet, reception.kind(packet), time);
    }
    count
}
