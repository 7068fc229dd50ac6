//! `FromDPDKDevice`: packets that a DPDK port receives.

use super::dpdk::{Hardware, open};
use super::opened::Opened;
use crate::device::Device;
use crate::dpdk::{Dpdk, Options, Receive};
use castanet_engine::prelude::*;

/// Receives packets from the DPDK port PORT.
///
/// PORT is a port's number, its PCI address, or the name of a virtual device.
/// DPDK is started with `castanet run --dpdk "OPTIONS"`, or `click --dpdk
/// OPTIONS --`. The kernel sees nothing of such a port. Packets travel in
/// their mbufs, without a copy, until they are sent on a DPDK port or end.
///
/// Each element has queues of its own, which one worker polls: with several
/// of the same PORT the port spreads packets over them by their addresses and
/// ports. When nothing has come for a millisecond the worker looks only every
/// 50 µs, unless BUSY is true.
///
/// ```text
/// FromDPDKDevice(0) -> ToDPDKDevice(1);
/// FromDPDKDevice(0000:03:00.0, QUEUE 1, PROMISC true) -> Discard;
/// ```
#[derive(Clone, Element)]
#[element(ports = "0/0-1")]
pub struct FromDPDKDevice {
    /// The port to receive from.
    #[arg]
    port: String,
    /// The first queue; the first that is free if not given or -1.
    #[arg(default = -1, range = -1..=65535)]
    queue: i32,
    /// How many queues; -1 for one.
    #[arg(default = -1, range = -1..=65535)]
    n_queues: i32,
    /// Whether to receive packets for other hosts too.
    #[arg(keyword, default = false)]
    promisc: bool,
    /// How many packets to receive at once; 0 for the engine's burst.
    #[arg(keyword, live, default = 0)]
    burst: u32,
    /// Descriptors of each queue; 0 for 1024, or what the driver has.
    #[arg(keyword, default = 0)]
    ndesc: u16,
    /// Longest packet without its Ethernet header; 0 for 1500.
    #[arg(keyword, default = 0)]
    mtu: u16,
    /// Whether a port that is not there is no error: then nothing comes.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// Whether to receive; false only sets the port up.
    #[arg(keyword, default = true)]
    active: bool,
    /// Whether to look for packets all the time, however long none came.
    #[arg(keyword, default = false)]
    busy: bool,
    /// Most workers to receive with, in FastClick; here one does.
    #[arg(keyword, default = -1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    maxthreads: i32,
    /// The first worker to receive with, in FastClick; `StaticThreadSched` says it.
    #[arg(keyword, default = -1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    threadoffset: i32,
    /// Whether memory is the port's NUMA node's; it always is.
    #[arg(keyword, default = true)]
    #[expect(dead_code, reason = "for configurations that say so")]
    numa: bool,
    /// How much to say about queues, in FastClick.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    verbose: u32,
}

/// Where received packets go.
#[derive(Fate)]
pub enum Received {
    /// Packets.
    #[optional]
    Packet,
}

/// The open queues.
#[derive(Default, Local)]
#[local(methods)]
pub struct Receiving {
    device: Opened<Dpdk>,
    /// Since when nothing has come.
    idle: Option<Time>,
}

#[handlers]
impl Receiving {
    /// Packets received since the last reset.
    #[read]
    fn count(&self) -> u64 {
        self.device.since(|it| it.received)
    }

    /// Bytes received since the last reset.
    #[read]
    fn byte_count(&self) -> u64 {
        self.device.since(|it| it.received_bytes)
    }

    /// Packets dropped because there was no frame to copy them to: those that
    /// came in several mbufs, or in another program's.
    #[read]
    fn no_frame_drops(&self) -> u64 {
        self.device.stats().no_frame
    }

    /// The port's number.
    #[read]
    fn device(&self) -> String {
        self.device.port()
    }

    /// How packets are received: port, driver, queues.
    #[read]
    fn how(&self) -> String {
        self.device.describe()
    }

    /// Whether the port is open.
    #[read]
    fn active(&self) -> bool {
        self.device.get().is_some()
    }

    /// The port's Ethernet address.
    #[read]
    fn mac(&self) -> String {
        self.device.mac()
    }

    /// Whether the link is up.
    #[read]
    fn carrier(&self) -> u8 {
        self.device.link().is_up().into()
    }

    /// Whether the link is full duplex; -1 if it is down.
    #[read]
    fn duplex(&self) -> i64 {
        let link = self.device.link();
        if link.is_up() { link.is_full_duplex().into() } else { -1 }
    }

    /// Whether the link's speed was negotiated.
    #[read]
    fn autoneg(&self) -> u8 {
        self.device.link().is_negotiated().into()
    }

    /// The link's speed in megabits a second.
    #[read]
    fn speed(&self) -> u32 {
        self.device.link().speed
    }

    /// How many queues this element receives from.
    #[read]
    fn nb_rx_queues(&self) -> u16 {
        self.device.get().map_or(0, |it| it.queues().0)
    }

    /// Packets that the port has received.
    #[read]
    fn hw_count(&self) -> u64 {
        self.device.counts().rx_packets
    }

    /// Their bytes.
    #[read]
    fn hw_bytes(&self) -> u64 {
        self.device.counts().rx_bytes
    }

    /// Packets that the port dropped because they were not fetched in time.
    #[read]
    fn hw_dropped(&self) -> u64 {
        self.device.counts().rx_missed
    }

    /// Packets that the port found damaged.
    #[read]
    fn hw_errors(&self) -> u64 {
        self.device.counts().rx_errors
    }

    /// Packets that the port has sent.
    #[read]
    fn tx_count(&self) -> u64 {
        self.device.counts().tx_packets
    }

    /// Their bytes.
    #[read]
    fn tx_bytes(&self) -> u64 {
        self.device.counts().tx_bytes
    }

    /// Packets that the port could not send.
    #[read]
    fn tx_errors(&self) -> u64 {
        self.device.counts().tx_errors
    }

    /// Starts `count` and `byte_count` again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }

    /// The same as `reset_counts`.
    #[write]
    fn reset_count(&mut self, text: &str) -> Result<(), ArgError> {
        self.reset_counts(text)
    }
}

/// How long to look all the time after a packet came.
const ALERT: Duration = Duration::from_millis(1);

/// How long to sleep between two looks after that: what the descriptors of a
/// queue hold at ten gigabits a second.
const NAP: Duration = Duration::from_micros(50);

impl Source for FromDPDKDevice {
    type Local = Receiving;
    type Fate = Received;

    fn begin(&self, local: &mut Receiving, _: &mut Cx) -> Result<(), ArgError> {
        let receive = Receive {
            first: u16::try_from(self.queue).ok(),
            queues: u16::try_from(self.n_queues).unwrap_or(1).max(1),
        };
        let options = Options {
            receive: Some(receive),
            descriptors: self.ndesc,
            promiscuous: self.promisc,
            mtu: self.mtu,
            ..Options::default()
        };
        if let Some(device) = open(&self.port, options, self.allow_nonexistent)? {
            local.device.set(device);
        }
        Ok(())
    }

    fn ask(&self, local: &mut Receiving, n: usize, cx: &mut Cx) -> Asked {
        let Some(device) = local.device.get_mut().filter(|_| self.active) else {
            return Asked::Done;
        };
        let n = if self.burst > 0 { self.burst as usize } else { n };
        let mut batch = Batch::new();
        if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
            cx.chatter(&format!("FromDPDKDevice({}): {error}", self.port));
            return Asked::At(cx.now() + Duration::from_secs(1));
        }
        if !batch.is_empty() {
            local.idle = None;
            cx.received(batch.len());
            cx.emit_batch(Received::Packet, batch);
            return Asked::Again;
        }
        let since = *local.idle.get_or_insert(cx.now());
        if self.busy || cx.now() < since + ALERT {
            return Asked::Again;
        }
        Asked::At(cx.now() + NAP)
    }

    fn end(&self, local: &mut Receiving, _: &mut Cx) {
        local.device.close();
    }
}
