//! DPDK: ports of any driver that it has, their mbufs as packets in place.
//!
//! A received mbuf travels as a packet without being copied: its private area
//! is the packet's cold header, and its buffer the packet's bytes. A packet
//! that lies in an mbuf is sent by handing the mbuf over; others are copied
//! into one. Packets that end elsewhere give their mbufs back by the hundred.

mod advice;
mod claims;
mod flow_rules;
mod interrupts;
mod options;
mod port_clock;
mod ring;
mod transmitter;
mod vendor;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::sys::dpdk::{
    self as sys, CopyResult, LinkStatus, Mbufs, Port, PortStats, RxMetadata, TsoRequest, TxCaps,
    TxResult,
};
use castanet_element::bypass::BytesHandler;
use castanet_packet::{Batch, PacketTotals, Pool};
use claims::Claim;
use interrupts::Interrupts;
use port_clock::PortClock;
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use transmitter::{MbufSink, Transmitter};

pub(crate) use crate::sys::dpdk::{MOST_POOLS, OtherPackets};
pub use claims::{MempoolConfig, configure, pools};
pub(crate) use flow_rules::{PortRules, read as read_flow_rules};
pub use options::{Checksums, Options, Pause, RxQueues, TxQueues, Vmdq};
pub use ring::{Ring, RingOptions};
pub use transmitter::Buffers;

/// Whether this program was built with DPDK.
pub fn is_built_in() -> bool {
    sys::BUILT_IN
}

/// Starts DPDK with options of its environment abstraction layer (EAL). DPDK runs until the process
/// ends; a second call returns the result of the first.
pub fn start(words: &[String]) -> Result<(), IoError> {
    let failed = |why: String| IoError::Unfit { doing: "start DPDK".into(), why };
    sys::start(&options::with_cores(words)).map_err(|why| failed(advice::advice(why, words)))
}

/// Whether there is such a port.
pub fn exists(port: &str) -> bool {
    claims::find(port).is_ok()
}

/// Properties of a port that are known without opening it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PortSummary {
    /// Identifies the port: the same for each of its names.
    pub(crate) name: String,
    /// Description for the user.
    pub(crate) how: String,
    /// Most receive and transmit queues; `None` where the driver cannot be asked.
    pub(crate) queues: Option<(usize, usize)>,
    pub(crate) numa_node: Option<usize>,
}

/// Properties of a port, without opening it.
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

/// Number of DPDK's lcores; 0 if DPDK has not been started.
pub fn cores() -> usize {
    sys::cores()
}

/// The words of a line of options; quotes keep words together.
pub fn words(line: &str) -> Vec<String> {
    options::words(line)
}

/// Queues of a port as a device.
pub struct Dpdk {
    /// Receive interrupts, if the options ask for them.
    interrupts: Option<Interrupts>,
    claim: Claim,
    /// The vendor of the card.
    vendor: &'static str,
    options: Options,
    /// The clock of the port's timestamps, if the options ask for them.
    clock: Option<PortClock>,
    /// The queue to receive from first.
    next: u16,
    /// The queue to send to, if the device sends.
    tx_queue: Option<u16>,
    stats: DeviceStats,
    /// Received packets with a wrong checksum according to the port: of IPv4, and of TCP or UDP.
    bad_checksums: (u64, u64),
    /// Segments of a packet that was cut in software, which are still to be sent.
    segments: Batch,
    /// Time of the next attempt to revive the port, if its driver needs that.
    revive_at: Option<Instant>,
    /// Calls of `receive` until the next check of the number of free mbufs.
    polls_until_check: u8,
}

/// Calls of `receive` from one check of the number of free mbufs to the next.
const LOW_CHECK_INTERVAL: u8 = 64;

/// Time between attempts to revive a port whose link is down.
const REVIVE_INTERVAL: Duration = Duration::from_secs(1);

impl Dpdk {
    /// Opens queues of a port: `port` is its number, its PCI address, or the
    /// name of a virtual device.
    pub fn open(port: &str, options: Options) -> Result<Dpdk, IoError> {
        let mut it = Dpdk::prepare(port, options)?;
        it.start(port)?;
        Ok(it)
    }

    /// Claims the queues without using them yet. If the device is dropped before [`Dpdk::start`], the
    /// port gets its earlier configuration back.
    pub fn prepare(port: &str, options: Options) -> Result<Dpdk, IoError> {
        let claim = Claim::new(port, &options)?;
        let tx_queue = claim.tx_queue(&options);
        let vendor = vendor::of_port(&claim.info.name());
        let (stats, segments) = (DeviceStats::default(), Batch::new());
        let (next, polls_until_check, bad_checksums) = (0, LOW_CHECK_INTERVAL, (0, 0));
        let (interrupts, revive_at, clock) = (None, None, None);
        Ok(Dpdk {
            interrupts,
            claim,
            vendor,
            options,
            clock,
            next,
            tx_queue,
            stats,
            bad_checksums,
            segments,
            revive_at,
            polls_until_check,
        })
    }

    /// Uses the queues from now on; `port` is the port's name in error messages.
    pub fn start(&mut self, port: &str) -> Result<(), IoError> {
        let claim = &self.claim;
        claim.start(port, &self.options)?;
        let clock = self.options.timestamps.then(|| PortClock::new(&claim.port, &claim.info));
        let failed = |why| IoError::Unfit { doing: format!("stamp packets of port {port}"), why };
        self.clock = clock.transpose().map_err(failed)?;
        self.revive_at = claim.port.is_memif.then(|| Instant::now() + REVIVE_INTERVAL);
        let interrupts = self.options.interrupts.then(|| Interrupts::new(&claim.port, &claim.rx));
        let interrupts = interrupts.transpose();
        let failed = |error| IoError::new("wait for a port of DPDK", error);
        self.interrupts = interrupts.map_err(failed)?;
        Ok(())
    }

    /// Marks whether other devices may claim its queues; they start after this device has ended.
    pub fn set_retiring(&self, retiring: bool) {
        self.claim.set_retiring(retiring);
    }

    /// Enables receive interrupts until [`Dpdk::disarm`]; returns the descriptor that is readable
    /// after one. The caller must poll the queues once more before it sleeps, for packets that came
    /// meanwhile. `None` without the option `interrupts`, or if the port does not run now.
    pub fn arm(&mut self) -> Result<Option<RawFd>, IoError> {
        let Some(interrupts) = &mut self.interrupts else { return Ok(None) };
        interrupts.arm().map_err(|why| {
            let doing = format!("be called by {} when packets come", self.claim.info.name());
            IoError::Unfit { doing, why }
        })
    }

    /// Whether the port holds a packet that its driver has not delivered yet and for which it raises
    /// no other interrupt: a worker must not sleep then.
    pub fn is_behind(&self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::is_behind)
    }

    /// Disables receive interrupts; returns whether they were enabled.
    #[inline]
    pub fn disarm(&mut self) -> bool {
        self.interrupts.as_mut().is_some_and(Interrupts::disarm)
    }

    /// Makes RSS spread packets over the port's first `queues` queues only.
    pub fn spread(&self, queues: u16) -> Result<(), IoError> {
        let doing = || format!("spread packets of {} over {queues} queues", self.claim.info.name());
        let spread = self.with_rss(|port| port.spread(queues));
        spread.map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// The queue of each entry of the port's RSS redirection table.
    pub(crate) fn reta(&self) -> Result<Vec<u16>, IoError> {
        let doing = || format!("read the redirection table of {}", self.claim.info.name());
        self.with_rss(Port::reta).map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// Sets the queue of each entry of the port's RSS redirection table, until the port is set up anew.
    pub(crate) fn set_reta(&self, table: &[u16]) -> Result<(), IoError> {
        let doing = || format!("set the redirection table of {}", self.claim.info.name());
        let set = self.with_rss(|port| port.set_reta(table));
        set.map_err(|why| IoError::Unfit { doing: doing(), why })
    }

    /// Calls `act` if the port spreads packets by a hash.
    fn with_rss<A>(&self, act: impl FnOnce(&Port) -> Result<A, String>) -> Result<A, String> {
        match self.claim.port.config().is_some_and(|config| config.rss) {
            true => act(&self.claim.port),
            false => Err("they come by no hash; say MODE rss".into()),
        }
    }

    /// Ethernet addresses of the port's pools of VMDq.
    pub(crate) fn pool_macs(&self) -> Vec<[u8; 6]> {
        let config = self.claim.port.config().unwrap_or_default();
        let pools = 0..config.vmdq.map_or(0, |vmdq| vmdq.pools);
        pools.map(|pool| config.pool_mac(self.port(), pool)).collect()
    }

    /// The port's flow rules.
    pub(crate) fn rules(&self) -> PortRules {
        PortRules::new(self.claim.port.clone(), &self.claim.info)
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

    /// Statistics of the hardware.
    pub(crate) fn hardware_stats(&self) -> PortStats {
        self.claim.port.hardware_stats()
    }

    /// The state of the link.
    pub(crate) fn link(&self) -> LinkStatus {
        self.claim.port.link()
    }

    /// Received packets with a wrong checksum according to the port: of IPv4, and of TCP or UDP.
    pub fn bad_checksums(&self) -> (u64, u64) {
        self.bad_checksums
    }

    /// The port's driver.
    pub fn driver(&self) -> String {
        self.claim.info.driver()
    }

    /// The vendor of the port's card, `Unknown` for virtual devices and others that are not known.
    pub fn vendor(&self) -> &'static str {
        self.vendor
    }

    /// Longest packet without its Ethernet header.
    pub fn mtu(&self) -> u16 {
        self.claim.port.info().map_or(0, |info| info.mtu)
    }

    /// Extended statistics of the port, with the driver's names.
    pub fn xstats(&self) -> Vec<(String, u64)> {
        self.claim.port.xstats()
    }

    /// Each receive queue of the port with its number of waiting packets, if the driver knows it.
    pub fn waiting(&self) -> Vec<(u16, Option<u32>)> {
        let port = &self.claim.port;
        (0..port.queues().0).map(|queue| (queue, port.waiting(queue))).collect()
    }

    /// Numbers of the port's receive queues, its transmit queues, and descriptors of each receive
    /// queue, of all claims.
    pub fn port_queues(&self) -> (u16, u16, u16) {
        self.claim.port.queues()
    }

    /// Adds (`add`) or removes a further Ethernet address whose packets the port receives.
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

    /// Numbers of receive and of transmit queues of this device.
    pub fn queues(&self) -> (u16, u16) {
        (self.claim.rx.len() as u16, self.claim.tx.len() as u16)
    }

    /// Calls `action` with a transmitter for the transmit queue; `None` if there is no such queue.
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

    /// Whether received packets can be forwarded without being made packets: no option needs their
    /// annotations or checksums.
    pub fn can_forward(&self) -> bool {
        let Options { aggregate, paint_queue, rx_checksums, timestamps, .. } = self.options;
        !aggregate && !timestamps && !paint_queue && rx_checksums == Checksums::default()
    }

    /// Receives up to `max` packets and sends them by another port, unchanged or as `handler` leaves their
    /// bytes, where [`Dpdk::can_forward`] allows it; says how many. Of the other packets that were received, the
    /// unsent ones are to be sent after these, and those that `handler` refuses are to go their usual way. If
    /// nothing was received, the caller must still call [`Device::receive`], which revives ports.
    pub(crate) fn forward(
        &mut self,
        to: &mut Dpdk,
        pool: &Pool,
        mut others: OtherPackets,
        max: usize,
        mut handler: Option<BytesHandler>,
    ) -> PacketTotals {
        let Some(to_queue) = to.tx_queue.filter(|_| to.segments.is_empty()) else {
            return PacketTotals::default();
        };
        let Claim { port, rx, mbufs, .. } = &self.claim;
        let queues = rx.end - rx.start;
        let (mut count, mut bytes) = (0, 0);
        for _ in 0..queues {
            let queue = rx.start + next_round_robin(&mut self.next, queues);
            let (onto, left) = ((&*to.claim.port, to_queue), max - count);
            let handler = handler.as_mut().map(|it| &mut **it as _);
            let again = others.again();
            let result = port.forward(queue, onto, (mbufs, pool), again, left, handler);
            count += result.sent.packets;
            bytes += result.sent.bytes;
            self.stats.received_bytes += result.rest.bytes + result.cut;
            self.stats.received += result.rest.packets as u64;
            self.stats.no_frame += result.rest.lost as u64;
            self.stats.malformed += result.rest.malformed as u64;
            if count == max || !others.are_none() {
                break;
            }
        }
        if !others.are_none() {
            self.check_free_mbufs();
        }
        let sent = PacketTotals { packets: count as u64, bytes };
        self.stats.received += sent.packets;
        self.stats.received_bytes += bytes;
        to.stats.sent += sent.packets;
        to.stats.sent_bytes += bytes;
        sent
    }

    /// Finds out whether few mbufs are free, at some of the calls.
    #[inline]
    fn check_free_mbufs(&mut self) {
        self.polls_until_check -= 1;
        if self.polls_until_check == 0 {
            self.polls_until_check = LOW_CHECK_INTERVAL;
            self.claim.mbufs.update_low_flag();
        }
    }

    /// Revives a port without traffic, if its next attempt is due.
    #[cold]
    fn revive_port(&mut self) {
        let now = Instant::now();
        if self.revive_at.is_some_and(|time| time <= now) {
            self.revive_at = Some(now + REVIVE_INTERVAL);
            self.claim.port.revive();
        }
    }
}

/// The current index of a round robin over `count` queues; advances `next`.
#[inline]
fn next_round_robin(next: &mut u16, count: u16) -> u16 {
    let behind = if *next + 1 < count { *next + 1 } else { 0 };
    std::mem::replace(next, behind)
}

/// A port's transmit queue.
struct PortTxQueue<'a> {
    port: &'a Port,
    /// Below 65536. It has 32 bits since the compiler loads 32 bits to pass the number on: a CPU
    /// cannot forward a 16-bit store to a 32-bit load.
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
        let metadata = RxMetadata {
            hash: aggregate,
            checks: rx_checksums != Checksums::default(),
            timestamps: self.clock.is_some(),
        };
        let mut count = 0;
        for _ in 0..queues {
            let queue = rx.start + next_round_robin(&mut self.next, queues);
            let before = batch.len();
            let rx_result = port.receive(queue, mbufs, pool, batch, max - count, metadata);
            if paint_queue {
                let fresh = &mut batch.as_mut_slice()[before..];
                fresh.iter_mut().for_each(|packet| packet.set_paint(queue as u8));
            }
            if let Some(clock) = &mut self.clock {
                clock.stamp(port, &mut batch.as_mut_slice()[before..]);
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
        self.check_free_mbufs();
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
