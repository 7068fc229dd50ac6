//! DPDK: ports of any driver that it has, their mbufs as packets in place.
//!
//! A received mbuf travels as a packet without being copied: its private area
//! is the packet's cold header, and its buffer the packet's bytes. A packet
//! that lies in an mbuf is sent by handing the mbuf over; others are copied
//! into one. Packets that end elsewhere give their mbufs back by the hundred.

mod advice;
mod claims;
mod interrupts;
mod options;
mod ring;
mod transmitter;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::sys::dpdk::{
    self as sys, CopyResult, LinkStatus, Mbufs, Port, PortStats, RxMetadata, TsoRequest, TxCaps,
    TxResult,
};
use castanet_packet::{Batch, Pool};
use claims::Claim;
use interrupts::Interrupts;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use transmitter::{MbufSink, Transmitter};

pub use claims::{MempoolConfig, configure, pools};
pub use options::{Checksums, Options, Pause, RxQueues, TxQueues};
pub use ring::{Ring, RingOptions};
pub use transmitter::Buffers;

/// Whether DPDK was there when this program was built.
pub fn is_built_in() -> bool {
    sys::BUILT_IN
}

/// Starts DPDK with the options of its environment abstraction layer. It runs
/// until the process ends, and does not start twice.
pub fn start(words: &[String]) -> Result<(), IoError> {
    let failed = |why: String| IoError::Unfit { doing: "start DPDK".into(), why };
    sys::start(&options::with_cores(words)).map_err(|why| failed(advice::advice(why, words)))
}

/// Whether there is such a port.
pub fn exists(port: &str) -> bool {
    claims::find(port).is_ok()
}

/// A port as it can be seen without opening it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PortSummary {
    /// The same for each name of the port.
    pub(crate) name: String,
    /// In words.
    pub(crate) how: String,
    /// Most queues to receive from and to send to; no number where only the
    /// driver knows.
    pub(crate) queues: Option<(usize, usize)>,
    pub(crate) numa_node: Option<usize>,
}

/// What can be said of a port without opening it.
pub(crate) fn summarize(port: &str) -> PortSummary {
    let unknown = |how| PortSummary { name: port.to_owned(), how, queues: None, numa_node: None };
    if sys::BUILT_IN && !sys::is_started() {
        let why = "which is not started; give its options with --dpdk to know more";
        return unknown(format!("port {port} of DPDK, {why}"));
    }
    let info = match claims::find(port).map(|it| (it.number(), it.info())) {
        Ok((number, Ok(info))) => (number, info),
        Ok((_, Err(why))) => return unknown(why),
        Err(error) => return unknown(error.to_string()),
    };
    let (number, info) = info;
    let (name, driver) = (info.name(), info.driver());
    PortSummary {
        name: format!("DPDK port {number}"),
        how: format!("{name}: DPDK port {number}, driver {driver}"),
        queues: Some((info.max_rx_queues.into(), info.max_tx_queues.into())),
        numa_node: usize::try_from(info.numa_node).ok(),
    }
}

/// How many cores DPDK was told to use; 0 if it has not been started.
pub fn cores() -> usize {
    sys::cores()
}

/// The words of a line of options; quotes keep words together.
pub fn words(line: &str) -> Vec<String> {
    options::words(line)
}

/// Queues of a port.
pub struct Dpdk {
    /// If they are wanted.
    interrupts: Option<Interrupts>,
    claim: Claim,
    options: Options,
    /// The queue to receive from first.
    next: u16,
    /// The queue to send to, if it is to send.
    tx_queue: Option<u16>,
    stats: DeviceStats,
    /// Packets with wrong checksums, as the port says: of IP, and of what that carries.
    bad_checksums: (u64, u64),
    /// Pieces of a packet that was cut, which are still to go.
    segments: Batch,
    /// When to look after the port again, if it needs that.
    revive_at: Option<Instant>,
    /// How often packets are still asked for until the next look at how many mbufs are left.
    polls_until_check: u8,
}

/// How often packets are asked for from one look at how many mbufs are left to the next.
const LOW_CHECK_INTERVAL: u8 = 64;

/// How often a port is looked after whose link is down.
const REVIVE_INTERVAL: Duration = Duration::from_secs(1);

impl Dpdk {
    /// Opens queues of a port: `port` is its number, its PCI address, or the
    /// name of a virtual device.
    pub fn open(port: &str, options: Options) -> Result<Dpdk, IoError> {
        let mut it = Dpdk::prepare(port, options)?;
        it.start(port)?;
        Ok(it)
    }

    /// As [`Dpdk::open`]; if it is dropped before it starts, the port is set up as it was.
    pub fn prepare(port: &str, options: Options) -> Result<Dpdk, IoError> {
        let claim = Claim::new(port, &options)?;
        let tx_queue = claim.tx_queue(&options);
        let (stats, segments) = (DeviceStats::default(), Batch::new());
        let (next, polls_until_check, bad_checksums) = (0, LOW_CHECK_INTERVAL, (0, 0));
        let (interrupts, revive_at) = (None, None);
        Ok(Dpdk {
            interrupts,
            claim,
            options,
            next,
            tx_queue,
            stats,
            bad_checksums,
            segments,
            revive_at,
            polls_until_check,
        })
    }

    /// Uses the queues from now on; `port` is what messages call it.
    pub fn start(&mut self, port: &str) -> Result<(), IoError> {
        let claim = &self.claim;
        claim.start(port, &self.options)?;
        self.revive_at = claim.port.is_memif.then(|| Instant::now() + REVIVE_INTERVAL);
        let interrupts = self.options.interrupts.then(|| Interrupts::new(&claim.port, &claim.rx));
        let interrupts = interrupts.transpose();
        let failed = |error| IoError::new("wait for a port of DPDK", error);
        self.interrupts = interrupts.map_err(failed)?;
        Ok(())
    }

    /// Says whether its queues may be claimed by others, which start when it has ended.
    pub fn set_retiring(&self, retiring: bool) {
        self.claim.set_retiring(retiring);
    }

    /// Has the port call when a packet comes: the descriptor that is readable then, until
    /// [`Dpdk::disarm`]. Who waits for it looks once more before, for what came meanwhile. None
    /// where interrupts were not wanted, or the port does not run now.
    pub fn arm(&mut self) -> Result<Option<RawFd>, IoError> {
        let Some(interrupts) = &mut self.interrupts else { return Ok(None) };
        interrupts.arm().map_err(|why| {
            let doing = format!("be called by {} when packets come", self.claim.info.name());
            IoError::Unfit { doing, why }
        })
    }

    /// Whether a packet lies at the port that its driver does not hand out yet, nor calls for it
    /// again: whoever waited would sleep beside it.
    pub fn is_behind(&self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::is_behind)
    }

    /// Has it call no longer; whether it was to.
    #[inline]
    pub fn disarm(&mut self) -> bool {
        self.interrupts.as_mut().is_some_and(Interrupts::disarm)
    }

    /// Has packets come to the port's first queues only, chosen by their hash.
    pub fn spread(&self, queues: u16) -> Result<(), IoError> {
        let port = &self.claim.port;
        let spread = match port.config().is_some_and(|config| config.rss) {
            true => port.spread(queues),
            false => Err("they come by no hash; say MODE rss".into()),
        };
        let doing = || format!("spread packets of {} over {queues} queues", self.claim.info.name());
        spread.map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// The port's number.
    pub fn port(&self) -> u16 {
        self.claim.port.number()
    }

    /// Longest packet that can be sent, its Ethernet header included.
    pub fn longest(&self) -> u32 {
        self.claim.longest()
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.claim.port.info().map_or(self.claim.info.mac, |info| info.mac)
    }

    /// What the hardware has counted.
    pub(crate) fn hardware_stats(&self) -> PortStats {
        self.claim.port.hardware_stats()
    }

    /// The state of the link.
    pub(crate) fn link(&self) -> LinkStatus {
        self.claim.port.link()
    }

    /// Received packets with a wrong checksum, as the port says: of IP, and of
    /// what that carries.
    pub fn bad_checksums(&self) -> (u64, u64) {
        self.bad_checksums
    }

    /// The port's driver.
    pub fn driver(&self) -> String {
        self.claim.info.driver()
    }

    /// Longest packet without its Ethernet header.
    pub fn mtu(&self) -> u16 {
        self.claim.port.info().map_or(0, |info| info.mtu)
    }

    /// All that the port counts, in its driver's words.
    pub fn xstats(&self) -> Vec<(String, u64)> {
        self.claim.port.xstats()
    }

    /// How many packets wait in each queue of the port, if the driver knows.
    pub fn waiting(&self) -> Vec<(u16, Option<u32>)> {
        let port = &self.claim.port;
        (0..port.queues().0).map(|queue| (queue, port.waiting(queue))).collect()
    }

    /// How many queues the port has for all, to receive from and to send to, and
    /// how many descriptors each to receive from.
    pub fn port_queues(&self) -> (u16, u16, u16) {
        self.claim.port.queues()
    }

    /// Receives packets for another address, too, or no longer.
    pub fn receive_for(&self, mac: [u8; 6], add: bool) -> Result<(), IoError> {
        let doing = || {
            format!(
                "have packets for {} on {}",
                castanet_wire::MacAddr(mac),
                self.claim.info.name()
            )
        };
        self.claim.port.receive_for(mac, add).map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// How many queues of the port this is, to receive from and to send to.
    pub fn queues(&self) -> (u16, u16) {
        (self.claim.rx.len() as u16, self.claim.tx.len() as u16)
    }

    /// Has packets handed to the queue to send to, if there is one.
    #[inline]
    fn with_transmitter<A>(
        &mut self,
        action: impl FnOnce(&mut Transmitter<'_, PortTxQueue<'_>>) -> A,
    ) -> Option<A> {
        let number = u32::from(self.tx_queue?);
        let Claim { port, mbufs, .. } = &self.claim;
        let (stats, segments) = (&mut self.stats, &mut self.segments);
        let sink = PortTxQueue { port, number };
        Some(action(&mut Transmitter { sink, mbufs, stats, segments }))
    }

    /// Whether what this port receives can be sent on without anybody looking at it.
    pub fn can_forward(&self) -> bool {
        let Options { aggregate, paint_queue, rx_checksums, .. } = self.options;
        !aggregate && !paint_queue && rx_checksums == Checksums::default()
    }

    /// Receives up to `max` packets and sends them by another port as they are, which
    /// [`Dpdk::is_plain`] allows; how many. What needs a second look, or finds no room, is
    /// added to `batch`, and is to go behind these. Who finds nothing has still to ask
    /// [`Device::receive`], which looks after ports that need it.
    pub fn forward(&mut self, to: &mut Dpdk, pool: &Pool, batch: &mut Batch, max: usize) -> usize {
        let Some(to_queue) = to.tx_queue.filter(|_| to.segments.is_empty()) else {
            return 0;
        };
        let Claim { port, rx, mbufs, .. } = &self.claim;
        let queues = rx.end - rx.start;
        let mut count = 0;
        for _ in 0..queues {
            let queue = rx.start + next_round_robin(&mut self.next, queues);
            let onto = (&*to.claim.port, to_queue);
            let (tx_result, rx_result) =
                port.forward(queue, onto, (mbufs, pool), batch, max - count);
            count += tx_result.packets;
            to.stats.sent_bytes += tx_result.bytes;
            self.stats.received_bytes += tx_result.bytes + rx_result.bytes;
            self.stats.received += rx_result.packets as u64;
            self.stats.no_frame += rx_result.lost as u64;
            self.stats.malformed += rx_result.malformed as u64;
            if count == max || !batch.is_empty() {
                break;
            }
        }
        self.stats.received += count as u64;
        to.stats.sent += count as u64;
        count
    }

    /// Looks after a port over which nothing goes.
    #[cold]
    fn revive_port(&mut self) {
        let now = Instant::now();
        if self.revive_at.is_some_and(|time| time <= now) {
            self.revive_at = Some(now + REVIVE_INTERVAL);
            self.claim.port.revive();
        }
    }
}

/// Which of so many is next; and the one behind it from then on.
#[inline]
fn next_round_robin(next: &mut u16, count: u16) -> u16 {
    let behind = if *next + 1 < count { *next + 1 } else { 0 };
    std::mem::replace(next, behind)
}

/// A queue to send to.
struct PortTxQueue<'a> {
    port: &'a Port,
    /// Below 65536. Of 32 bits, for the compiler reads as many to pass it on: a processor does not
    /// forward a store of 16 bits to a load of 32.
    number: u32,
}

impl MbufSink for PortTxQueue<'_> {
    #[inline]
    fn transmit(&mut self, batch: &mut Batch, length_checked: bool) -> TxResult {
        self.port.transmit(self.number as u16, batch, length_checked)
    }

    fn tx_caps(&self, _: &Mbufs) -> Option<TxCaps> {
        self.port.tx_caps()
    }

    fn transmit_copy(&mut self, mbufs: &Mbufs, bytes: &[u8], cut: &TsoRequest) -> CopyResult {
        self.port.transmit_long(self.number as u16, mbufs, bytes, cut)
    }
}

impl Device for Dpdk {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let Claim { port, rx, mbufs, .. } = &self.claim;
        let queues = rx.end - rx.start;
        let Options { aggregate, paint_queue, rx_checksums, .. } = self.options;
        let metadata = RxMetadata { hash: aggregate, checks: rx_checksums != Checksums::default() };
        let mut count = 0;
        for _ in 0..queues {
            let queue = rx.start + next_round_robin(&mut self.next, queues);
            let before = batch.len();
            let rx_result = port.receive(queue, mbufs, pool, batch, max - count, metadata);
            if paint_queue {
                let fresh = &mut batch.as_mut_slice()[before..];
                fresh.iter_mut().for_each(|packet| packet.set_paint(queue as u8));
            }
            count += rx_result.packets;
            self.stats.received_bytes += rx_result.bytes;
            self.stats.no_frame += rx_result.lost as u64;
            self.stats.malformed += rx_result.malformed as u64;
            self.bad_checksums.0 += rx_result.bad_ip;
            self.bad_checksums.1 += rx_result.bad_transport;
            if count == max {
                break;
            }
        }
        self.stats.received += count as u64;
        self.polls_until_check -= 1;
        if self.polls_until_check == 0 {
            self.polls_until_check = LOW_CHECK_INTERVAL;
            mbufs.update_low_flag();
        }
        if count == 0 && self.revive_at.is_some() {
            self.revive_port();
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let sent = self.with_transmitter(|transmitter| transmitter.transmit(batch)).unwrap_or(0);
        if sent == 0 && self.revive_at.is_some() {
            self.revive_port();
        }
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.unsent() {
            self.with_transmitter(|transmitter| transmitter.flush());
        }
        Ok(())
    }

    fn unsent(&self) -> bool {
        !self.segments.is_empty()
    }

    fn fd(&self) -> Option<RawFd> {
        None
    }

    fn no_frame(&self) -> u64 {
        self.stats.no_frame
    }

    fn stats(&self) -> DeviceStats {
        let counts = self.claim.port.hardware_stats();
        let kernel_drops = match self.claim.rx.is_empty() {
            true => 0,
            false => counts.rx_missed + counts.rx_no_mbuf,
        };
        DeviceStats { kernel_drops, ..self.stats }
    }

    fn describe(&self) -> String {
        self.claim.describe()
    }
}
