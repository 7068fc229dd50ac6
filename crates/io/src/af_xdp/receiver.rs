//! Receives from some of an interface's queues, while other receivers have the rest.

use super::port::{self, Port};
use super::{HostFilter, Options, Queues};
use crate::error::IoError;
use crate::interface::Interface;
use crate::offload::{self, LinkType};
use crate::rx_finisher::RxFinisher;
use crate::sys::netlink::LinkMonitor;
use crate::sys::packet_socket::PacketSocket;
use crate::sys::xsk::{AttachMode, Program, Socket};
use crate::sys::{EpollSet, ethtool};
use castanet_packet::{Batch, Packet, PacketTotals};
use castanet_wire::{Ethernet, MacAddr};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

/// Drivers of virtual links, whose other end may leave checksums unfinished.
const VIRTUAL_DRIVERS: [&str; 3] = ["veth", "tun", "virtio_net"];

/// The share of the free frames that waits on an interface to be filled: of
/// 16 384 frames, 2048 bridge two milliseconds at a million packets a second,
/// and however many interfaces there are, none takes all.
const FILL_SHARE: usize = 8;

/// The claims on an interface's receive queues: one program redirects to the sockets of all.
#[derive(Default)]
pub(super) struct RxClaims {
    attached: Weak<AttachedProgram>,
    /// The queues that a receiver has, or is about to have.
    queues: Vec<ClaimedQueue>,
    /// Number of claims made so far.
    claims: u64,
}

/// A claimed queue.
struct ClaimedQueue {
    queue: usize,
    claim: u64,
    host_filter: Option<Arc<HostFilter>>,
    /// Whether its receiver ends before another starts.
    retiring: bool,
}

/// The program attached to an interface, as long as a receiver exists.
struct AttachedProgram {
    program: Program,
    /// Reason why the program is not in the driver, if it is not.
    why_generic: Option<String>,
    /// The filter for packets that the program leaves to the host.
    host_filter: Option<Arc<HostFilter>>,
}

/// Queues that are to be received from; packets still go where they went before.
pub(super) struct QueueClaim {
    port: Arc<Port>,
    number: u64,
    queues: Range<usize>,
    /// None where another program takes the place of one that is still there.
    attached: Option<Arc<AttachedProgram>>,
}

/// Receives from some of the queues of an interface.
pub(super) struct Receiver {
    attached: Arc<AttachedProgram>,
    claim: QueueClaim,
    port: Arc<Port>,
    queues: Range<usize>,
    ether: MacAddr,
    /// Whether checksums may come unfinished.
    partial_checksums: bool,
    /// Whether the driver looks for packets when it is asked.
    busy_poll: bool,
    /// Whether it has just been, and there is nothing.
    just_polled: bool,
    /// How many frames each queue gets to fill.
    target: usize,
    /// The queue to begin with, counted from the first of ours.
    next_queue: usize,
    /// Whether a queue has no frame at all.
    starved: bool,
    /// Readable when any of the queues is, or the interface changes.
    epoll: EpollSet,
    /// Monitors the interface's removal: an AF_XDP socket then has an error, but does not wake a
    /// worker that waits for it.
    monitor: LinkMonitor,
    _promiscuous: Option<PacketSocket>,
    /// The interface is gone for good.
    gone: bool,
}

impl Receiver {
    /// Redirects the claimed queues to their sockets.
    pub(super) fn start(mut claim: QueueClaim, options: &Options) -> Result<Receiver, IoError> {
        let port = &Arc::clone(&claim.port);
        let Interface { name, index, ether, .. } = &port.interface;
        let failed = |doing: &str| {
            let doing = format!("{doing} {name}");
            move |error| IoError::new(doing, error)
        };
        let queues = claim.queues.clone();
        let monitor = LinkMonitor::new().map_err(failed("watch"))?;
        let promiscuous = options.promiscuous.then(|| promiscuous(*index)).transpose();
        let sockets = &port.sockets[queues.clone()];
        let fds = sockets.iter().map(Socket::raw_fd).chain([monitor.raw_fd()]);
        let epoll = EpollSet::new(fds).map_err(failed("watch the queues of"))?;
        let driver = ethtool::driver(port.ioctls()).unwrap_or_default();
        let attached = claim.attached(options)?;
        let mut it = Receiver {
            partial_checksums: attached.why_generic.is_some()
                || VIRTUAL_DRIVERS.contains(&driver.as_str()),
            attached,
            claim,
            busy_poll: options.busy_poll > 0,
            just_polled: false,
            port: Arc::clone(port),
            queues,
            ether: ether.unwrap_or_default(),
            target: target(port),
            next_queue: 0,
            starved: false,
            epoll,
            monitor,
            _promiscuous: promiscuous.map_err(failed("set promiscuous mode on"))?,
            gone: false,
        };
        for queue in it.queues.clone() {
            // Frames first: what arrives finds one.
            let socket = &port.sockets[queue];
            if it.busy_poll {
                socket.set_busy_poll(options.busy_poll).map_err(failed("poll busily on"))?;
            }
            it.starved |= refill(socket, it.target);
            let inserted = it.attached.program.insert(queue as u32, socket.as_fd());
            inserted.map_err(failed("lead packets to a socket on"))?;
        }
        Ok(it)
    }

    /// Adds up to `max` packets of our queues to `batch`; says how many.
    pub(super) fn receive(
        &mut self,
        finisher: &mut RxFinisher,
        timestamps: bool,
        batch: &mut Batch,
        max: usize,
    ) -> io::Result<usize> {
        let sockets = &self.port.sockets[self.queues.clone()];
        let (mut count, mut starved) = (0, false);
        let asks = self.busy_poll && !std::mem::take(&mut self.just_polled);
        for socket in sockets.iter().cycle().skip(self.next_queue).take(sockets.len()) {
            if asks {
                socket.wake_rx();
            }
            count += receive_from(socket, self, finisher, timestamps, batch, max - count);
            if refill(socket, self.target) {
                port::reclaim_all();
                starved |= refill(socket, self.target);
            }
        }
        if count == 0 && self.monitor.has_changed() {
            self.gone |= sockets.iter().any(|socket| socket.take_error().is_err());
            self.port.refresh_mtu();
        }
        self.next_queue = (self.next_queue + 1) % self.queues.len();
        self.starved = starved;
        if self.gone {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the interface is gone"));
        }
        Ok(count)
    }

    /// Hands up to `max` packets to `tx_socket`, if their lengths `fit`, without making packets of
    /// them: those of one queue, the first from the one whose turn it is on that has any. Says how
    /// many packets and bytes, and, if any, whether the kernel has sent them all.
    pub(super) fn forward(
        &mut self,
        tx_socket: &Socket,
        tx_lengths: &RangeInclusive<usize>,
        max: usize,
        link: LinkType,
    ) -> (PacketTotals, io::Result<bool>) {
        let sockets = &self.port.sockets[self.queues.clone()];
        let all = sockets.iter().enumerate().cycle().skip(self.next_queue).take(sockets.len());
        let mut ready = all.filter_map(|(queue, socket)| {
            if self.busy_poll {
                socket.wake_rx();
            }
            let mut rx = socket.rx();
            (!rx.is_empty()).then_some((queue, socket, rx))
        });
        let Some((queue, socket, mut rx)) = ready.next() else {
            self.just_polled = self.busy_poll;
            return (PacketTotals::default(), Ok(true));
        };
        let mut tx = tx_socket.tx();
        if tx.reclaim_for(&mut rx, self.target) {
            socket.wake_rx();
        }
        let (count, bytes) = rx.forward(&mut tx, max, tx_lengths, |packet| {
            if self.partial_checksums {
                offload::finish_if_partial(packet, link);
            }
        });
        let totals = PacketTotals { packets: count as u64, bytes };
        if count == 0 {
            return (totals, Ok(true)); // `receive` is to take these
        }
        let kicked = tx_socket.kick_tx_with(&mut tx, |tx| {
            if tx.reclaim_for(&mut rx, self.target) {
                socket.wake_rx();
            }
        });
        if rx.refill(self.target) {
            socket.wake_rx();
        }
        drop((rx, tx));
        self.next_queue = (queue + 1) % self.queues.len();
        (totals, kicked)
    }

    /// Sets whether other receivers may claim the same queues, because this one ends before they
    /// start.
    pub(super) fn set_retiring(&self, retiring: bool) {
        self.claim.set_retiring(retiring);
    }

    /// Whether a queue has no frame to be filled.
    pub(super) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Readable when there may be packets.
    pub(super) fn raw_fd(&self) -> RawFd {
        self.epoll.raw_fd()
    }

    /// Packets of our queues that the kernel dropped.
    pub(super) fn kernel_drops(&self) -> u64 {
        let sockets = self.port.sockets[self.queues.clone()].iter();
        let stats = sockets.filter_map(|socket| socket.stats().ok());
        stats.map(|it| it.dropped + it.invalid).sum()
    }

    /// Why the program is not in the driver, if it is not.
    pub(super) fn why_generic(&self) -> Option<&str> {
        self.attached.why_generic.as_deref()
    }

    /// Which of the queues these are, where they are not all.
    pub(super) fn describe_queues(&self) -> String {
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

impl Drop for Receiver {
    fn drop(&mut self) {
        for queue in self.queues.clone() {
            // While others receive, what comes here is the kernel's again.
            drop(self.attached.program.remove(queue as u32));
        }
    }
}

/// The wanted queues, if there are such.
fn select_queues(wanted: Queues, port: &Port) -> Result<Range<usize>, IoError> {
    let (first, most) = (wanted.first as usize, port.rx_queues());
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

impl QueueClaim {
    /// Claims queues that no other receiver has, except retiring ones. The first claim attaches the
    /// program to the interface; without queues the program leaves all packets to the host.
    pub(super) fn new(
        port: &Arc<Port>,
        wanted: Queues,
        options: &Options,
    ) -> Result<QueueClaim, IoError> {
        let queues = select_queues(wanted, port)?;
        let mut rx_claims = port.rx_claims();
        let name = &port.interface.name;
        let remaining = || rx_claims.queues.iter().filter(|claimed| !claimed.retiring);
        if let Some(claimed) = remaining().find(|claimed| queues.contains(&claimed.queue)) {
            let doing = format!("receive from queue {} of {name}", claimed.queue);
            let why = "another element of this configuration does".into();
            return Err(IoError::Unfit { doing, why });
        }
        if remaining().any(|claimed| claimed.host_filter != options.host_filter) {
            let doing = format!("choose what the host receives from {name}");
            let why = "another element of this configuration chooses otherwise".into();
            return Err(IoError::Unfit { doing, why });
        }
        let attached = match rx_claims.attached.upgrade() {
            Some(attached) => Some(attached).filter(|it| it.host_filter == options.host_filter),
            None => Some(Arc::new(attach(port, options)?)),
        };
        if let Some(attached) = &attached {
            rx_claims.attached = Arc::downgrade(attached);
        }
        rx_claims.claims += 1;
        let number = rx_claims.claims;
        rx_claims.queues.extend(queues.clone().map(|queue| {
            let host_filter = options.host_filter.clone();
            ClaimedQueue { queue, claim: number, host_filter, retiring: false }
        }));
        drop(rx_claims);
        Ok(QueueClaim { port: Arc::clone(port), number, queues, attached })
    }

    /// The program, attached now if one that chose otherwise was there before.
    fn attached(&mut self, options: &Options) -> Result<Arc<AttachedProgram>, IoError> {
        let mut rx_claims = self.port.rx_claims();
        let current = self.attached.take().or_else(|| rx_claims.attached.upgrade());
        let attached = match current.filter(|it| it.host_filter == options.host_filter) {
            Some(attached) => attached,
            None => Arc::new(attach(&self.port, options)?),
        };
        rx_claims.attached = Arc::downgrade(&attached);
        Ok(attached)
    }

    fn set_retiring(&self, retiring: bool) {
        let mut rx_claims = self.port.rx_claims();
        let mine = rx_claims.queues.iter_mut().filter(|claimed| claimed.claim == self.number);
        mine.for_each(|claimed| claimed.retiring = retiring);
    }
}

impl Drop for QueueClaim {
    fn drop(&mut self) {
        self.port.rx_claims().queues.retain(|claimed| claimed.claim != self.number);
    }
}

/// Attaches the program in the driver, or else where any driver will do and
/// that is allowed; then says why.
fn attach(port: &Port, options: &Options) -> Result<AttachedProgram, IoError> {
    let Interface { name, index, .. } = &port.interface;
    let queues = port.sockets.len() as u32;
    let host_filter = options.host_filter.clone();
    let first = host_filter.as_deref().map_or(&[][..], HostFilter::code);
    let attach = |mode| Program::new(*index, queues, mode, port.multi_buffer, first);
    let (mode, why) = match attach(AttachMode::Driver) {
        Ok(program) => return Ok(AttachedProgram { program, why_generic: None, host_filter }),
        Err(error) if options.generic && error.raw_os_error() != Some(libc::EBUSY) => {
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => {
                    (Ok(AttachMode::Generic), "it cannot".into())
                }
                _ => (Ok(AttachMode::Generic), error.to_string()),
            }
        }
        Err(error) => (Err(error), String::new()),
    };
    let program = mode.and_then(attach);
    let program = program.map_err(|error| {
        match IoError::new(format!("put an XDP program on {name}"), error) {
            IoError::NotPermitted { doing, .. } => {
                IoError::NotPermitted { doing, needs: "CAP_NET_ADMIN and CAP_BPF" }
            }
            other => other,
        }
    })?;
    let why_generic = Some(match ethtool::gro_enabled(port.ioctls()) {
        true => format!("{why}; what the kernel joins is lost, see `ethtool -K {name} gro off`"),
        false => why,
    });
    Ok(AttachedProgram { program, why_generic, host_filter })
}

/// How many frames each queue gets to fill.
fn target(port: &Port) -> usize {
    let pool = port.pool.stats();
    let free = pool.frames.saturating_sub(pool.in_use);
    (free / FILL_SHARE / port.rx_queues().max(1)).clamp(1, port.rx_ring)
}

/// A socket that keeps the interface in promiscuous mode while it is open.
fn promiscuous(index: u32) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open(index)?;
    socket.set_promiscuous()?;
    Ok(socket)
}

/// Gives the kernel frames to fill; says whether it has none.
fn refill(socket: &Socket, target: usize) -> bool {
    let mut rx = socket.rx();
    if rx.refill(target) {
        socket.wake_rx();
    }
    rx.frames_in_kernel() == 0
}

/// Wall-clock time: the kernel does not say when a packet arrived.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Makes packets of up to `max` frames of one queue.
fn receive_from(
    socket: &Socket,
    receiver: &Receiver,
    finisher: &mut RxFinisher,
    timestamps: bool,
    batch: &mut Batch,
    max: usize,
) -> usize {
    let first = batch.len();
    socket.rx().receive(batch, max);
    let packets = batch.iter_mut().skip(first);
    let count = packets.len();
    let time = if timestamps && count > 0 { now() } else { 0 };
    for packet in packets {
        if receiver.partial_checksums {
            offload::finish_if_partial(packet.bytes_mut(), finisher.link);
        }
        finisher.record(packet, receiver.kind(packet), time);
    }
    count
}
