//! Interfaces by `AF_XDP`: an XDP program hands packets over before the kernel's stack sees them.

mod code;
mod for_host;
pub mod minimal;
mod passing;
mod port;
mod reception;

pub use for_host::ForHost;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::intake::Intake;
use crate::interface::Interface;
use crate::sys::xsk::Socket;
use crate::sys::{ethtool, netif};
use castanet_packet::{Batch, Pool};
use castanet_wire::Ethernet;
use port::Port;
use reception::{Claim, Reception};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What can be chosen about an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The queues to receive from, if any. The kernel's own stack no longer
    /// sees what arrives there, but for what is chosen for it.
    pub receive: Option<Queues>,
    /// What the host goes on receiving from those queues.
    pub for_host: Option<Arc<ForHost>>,
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
        let (for_host, busy_poll) = (None, 0);
        Options {
            receive,
            for_host,
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
    reception: Option<Reception>,
    /// Until it starts.
    claim: Option<Claim>,
    port: Arc<Port>,
    intake: Intake,
    options: Options,
    /// Whether packets that were taken still wait to be sent.
    unsent: bool,
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
        let requests = netif::Interface::new(name)
            .map_err(|error| IoError::new(format!("look up interface {name}"), error))?;
        let queues = ethtool::receive_queues(&requests);
        let intake = Intake::new(interface.link(), options.device);
        let senders = ethtool::transmit_queues(&requests);
        let port = port::open(interface, requests, (queues, senders), pool)?;
        let claim = options.receive.map(|it| Claim::new(&port, it, &options)).transpose()?;
        let (reception, unsent, down) = (None, false, false);
        Ok(AfXdp { reception, claim, port, intake, options, unsent, down })
    }

    /// Receives from now on.
    pub fn start(&mut self) -> Result<(), IoError> {
        let begun = self.claim.take().map(|claim| Reception::begin(claim, &self.options));
        self.reception = begun.transpose()?;
        Ok(())
    }

    /// Says whether its queues may be claimed by others, which start when it has ended.
    pub fn leave(&mut self, leaving: bool) {
        self.reception.iter().for_each(|it| it.leave(leaving));
    }

    /// The interface as it was when opened.
    pub fn interface(&self) -> &Interface {
        &self.port.interface
    }

    /// The lengths of packets that can go out here at all.
    fn fit(&self) -> RangeInclusive<usize> {
        Ethernet::LEN..=self.port.longest()
    }

    /// Takes packets that cannot go out here off a batch.
    #[cold]
    fn refuse(&mut self, batch: &mut Batch) {
        // They could, if the MTU has been raised.
        self.port.look_at_mtu();
        let (fit, before) = (self.fit(), batch.len());
        *batch = batch.drain().filter(|packet| fit.contains(&packet.len())).collect();
        self.intake.stats.tx_errors += (before - batch.len()) as u64;
    }

    /// Where to send: a queue of its own where there are enough, else one
    /// that workers share burst by burst.
    fn outlet(&self) -> Option<&Socket> {
        outlet(&self.port, &self.options)
    }

    /// Sends what is waiting in the ring, as far as the kernel takes it.
    fn push(&mut self) {
        let Some(socket) = outlet(&self.port, &self.options) else { return };
        let pushed = socket.push(&mut socket.sending());
        self.note_push(pushed);
    }

    /// Notes whether the kernel has sent all that it was given.
    fn note_push(&mut self, pushed: io::Result<bool>) {
        self.down = pushed.is_err();
        self.unsent = !pushed.unwrap_or(true);
    }
}

impl Device for AfXdp {
    fn receive(&mut self, _: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let Some(reception) = &mut self.reception else { return Ok(0) };
        reception.receive(&mut self.intake, self.options.timestamps, batch, max)
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
        let fit = self.fit();
        if !batch.iter().all(|packet| fit.contains(&packet.len())) {
            self.refuse(batch);
        }
        let Some(socket) = self.outlet() else { return Ok(0) };
        let mut sending = socket.sending();
        sending.reclaim();
        let (sent, bytes) = sending.send(batch);
        drop(sending);
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
        self.reception.as_ref().is_some_and(Reception::is_starved)
    }

    fn fd(&self) -> Option<RawFd> {
        let any = self.reception.as_ref().map(Reception::raw_fd);
        any.or_else(|| self.outlet().map(Socket::raw_fd))
    }

    fn no_frame(&self) -> u64 {
        self.intake.stats.no_frame
    }

    fn stats(&self) -> DeviceStats {
        let kernel_drops = self.reception.as_ref().map_or(0, Reception::kernel_drops);
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
        if self.port.segments {
            text += ", packets in several frames";
        }
        if let Some(reception) = &self.reception {
            text += &reception.part();
            if self.options.busy_poll > 0 {
                text += ", polled busily";
            }
            if self.options.for_host.is_some() {
                text += ", chosen packets left to the host";
            }
            match reception.why_generic() {
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

fn outlet<'a>(port: &'a Port, options: &Options) -> Option<&'a Socket> {
    port.sockets.get(options.transmit as usize % port.sending_queues().max(1))
}
