//! Interfaces by `AF_XDP`: an XDP program redirects packets before the kernel's stack sees them.

mod forward;
mod host_filter;
mod minimal_forwarder;
mod port;
mod receiver;

pub use host_filter::HostFilter;
pub use minimal_forwarder::MinimalForwarder;
pub(crate) use port::set_descriptors;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::interface::Interface;
use crate::rx_finisher::RxFinisher;
use crate::sys::xsk::Socket;
use crate::sys::{ethtool, netif};
use castanet_packet::{Batch, Pool};
use castanet_wire::Ethernet;
use port::Port;
use receiver::{QueueClaim, Receiver};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Options of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The queues to receive from, if any. The kernel's own stack no longer
    /// sees what arrives there, but for what is chosen for it.
    pub receive: Option<Queues>,
    /// Packets of those queues that the host continues to receive.
    pub host_filter: Option<Arc<HostFilter>>,
    /// How many packets the driver is asked for at once, rather than it
    /// interrupting; 0 to leave it to interrupts.
    pub busy_poll: u32,
    /// The queue to send to, counted around.
    pub transmit: u32,
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
        let receive = Some(Queues::ALL);
        let (promiscuous, generic, timestamps) = (false, true, true);
        let (host_filter, busy_poll) = (None, 0);
        Options {
            receive,
            host_filter,
            busy_poll,
            transmit: 0,
            promiscuous,
            generic,
            timestamps,
            device: 0,
        }
    }
}

/// Queues of an interface, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// The first.
    pub first: u32,
    /// How many; beyond the last there are none.
    pub count: u32,
}

impl Queues {
    /// All that there are.
    pub const ALL: Queues = Queues { first: 0, count: u32::MAX };
}

/// An interface: some of its queues to receive from, and one to send to.
pub struct AfXdp {
    // The program goes before the sockets that it names.
    receiver: Option<Receiver>,
    /// Until it starts.
    claim: Option<QueueClaim>,
    port: Arc<Port>,
    finisher: RxFinisher,
    options: Options,
    /// Whether packets that were taken still wait to be sent.
    tx_pending: bool,
    /// Whether the interface was down when we last sent.
    down: bool,
}

impl AfXdp {
    /// Opens the interface called `name`; packets will be frames of `pool`.
    ///
    /// Opened again in the same process with the same pool it is the same
    /// interface: one may receive while another sends, and several may receive,
    /// each from queues of its own.
    pub fn open(name: &str, pool: &Pool, options: Options) -> Result<AfXdp, IoError> {
        let mut it = AfXdp::prepare(name, pool, options)?;
        it.start()?;
        Ok(it)
    }

    /// As [`AfXdp::open`], but packets go where they went until it starts.
    pub fn prepare(name: &str, pool: &Pool, options: Options) -> Result<AfXdp, IoError> {
        let interface = Interface::find(name)?;
        let ioctls = netif::IoctlSocket::new(name)
            .map_err(|error| IoError::new(format!("look up interface {name}"), error))?;
        let queues = ethtool::rx_queues(&ioctls);
        let finisher = RxFinisher::new(interface.link(), options.device);
        let tx_queues = ethtool::tx_queues(&ioctls);
        let port = port::open(interface, ioctls, (queues, tx_queues), pool)?;
        let claim = options.receive.map(|it| QueueClaim::new(&port, it, &options)).transpose()?;
        let (receiver, tx_pending, down) = (None, false, false);
        Ok(AfXdp { receiver, claim, port, finisher, options, tx_pending, down })
    }

    /// Receives from now on.
    pub fn start(&mut self) -> Result<(), IoError> {
        let receiver = self.claim.take().map(|claim| Receiver::start(claim, &self.options));
        self.receiver = receiver.transpose()?;
        Ok(())
    }

    /// Sets whether other devices may claim its queues; they start after this one has ended.
    pub fn set_retiring(&mut self, retiring: bool) {
        self.receiver.iter().for_each(|it| it.set_retiring(retiring));
    }

    /// The interface as it was when opened.
    pub fn interface(&self) -> &Interface {
        &self.port.interface
    }

    /// The lengths of packets that can go out here at all.
    fn tx_lengths(&self) -> RangeInclusive<usize> {
        Ethernet::LEN..=self.port.max_packet_len()
    }

    /// Removes packets that are too short or too long from a batch, and counts them as errors.
    #[cold]
    fn drop_unsendable(&mut self, batch: &mut Batch) {
        // They could, if the MTU has been raised.
        self.port.refresh_mtu();
        let (tx_lengths, before) = (self.tx_lengths(), batch.len());
        *batch = batch.drain().filter(|packet| tx_lengths.contains(&packet.len())).collect();
        self.finisher.stats.tx_errors += (before - batch.len()) as u64;
    }

    /// The socket to send to: a queue of its own where there are enough queues, else one that
    /// workers share burst by burst.
    fn tx_socket(&self) -> Option<&Socket> {
        tx_socket(&self.port, &self.options)
    }

    /// Sends what is waiting in the ring, as far as the kernel takes it.
    fn kick_tx(&mut self) {
        let Some(socket) = tx_socket(&self.port, &self.options) else { return };
        let kicked = socket.kick_tx(&mut socket.tx());
        self.note_kick(kicked);
    }

    /// Notes whether the kernel has sent all that it was given.
    fn note_kick(&mut self, kicked: io::Result<bool>) {
        self.down = kicked.is_err();
        self.tx_pending = !kicked.unwrap_or(true);
    }
}

impl Device for AfXdp {
    fn receive(&mut self, _: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let Some(receiver) = &mut self.receiver else { return Ok(0) };
        receiver.receive(&mut self.finisher, self.options.timestamps, batch, max)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if self.down {
            self.kick_tx();
        }
        if self.down {
            // Like any interface that is down it refuses packets, rather than
            // send them when they are old.
            self.finisher.stats.tx_errors += batch.len() as u64;
            batch.clear();
            return Ok(0);
        }
        let tx_lengths = self.tx_lengths();
        if !batch.iter().all(|packet| tx_lengths.contains(&packet.len())) {
            self.drop_unsendable(batch);
        }
        let Some(socket) = self.tx_socket() else { return Ok(0) };
        let mut tx = socket.tx();
        tx.reclaim();
        let (sent, bytes) = tx.send(batch);
        drop(tx);
        let stats = &mut self.finisher.stats;
        stats.sent += sent as u64;
        stats.sent_bytes += bytes;
        stats.tx_full += u64::from(!batch.is_empty());
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.kick_tx();
        Ok(())
    }

    fn unsent(&self) -> bool {
        self.tx_pending
    }

    fn starved(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_starved)
    }

    fn fd(&self) -> Option<RawFd> {
        let rx_fd = self.receiver.as_ref().map(Receiver::raw_fd);
        rx_fd.or_else(|| self.tx_socket().map(Socket::raw_fd))
    }

    fn no_frame(&self) -> u64 {
        self.finisher.stats.no_frame
    }

    fn stats(&self) -> DeviceStats {
        let kernel_drops = self.receiver.as_ref().map_or(0, Receiver::kernel_drops);
        DeviceStats { kernel_drops, ..self.finisher.stats }
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
        if self.port.multi_buffer {
            text += ", packets in several frames";
        }
        if let Some(receiver) = &self.receiver {
            text += &receiver.describe_queues();
            if self.options.busy_poll > 0 {
                text += ", polled busily";
            }
            if self.options.host_filter.is_some() {
                text += ", chosen packets left to the host";
            }
            match receiver.why_generic() {
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

fn tx_socket<'a>(port: &'a Port, options: &Options) -> Option<&'a Socket> {
    port.sockets.get(options.transmit as usize % port.tx_queues().max(1))
}
