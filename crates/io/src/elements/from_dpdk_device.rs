//! `FromDPDKDevice`: packets that a DPDK port receives.

use super::device_slot::DeviceSlot;
use super::dpdk::{Hardware, Offloads, count, open, start};
use super::dpdk_words::{Mode, PauseFrames};
use super::poll_backoff::PollBackoff;
use super::rx_placement::{AvailableQueues, RxPlacementArgs, given, same_shares};
use super::to_dpdk_device::ToDPDKDevice;
use crate::device::Device;
use crate::dpdk::{Dpdk, Options, RxQueues};
use crate::sys::dpdk::PortStats;
use castanet_element::device as devices;
use castanet_element::prelude::*;

/// Receives packets from the DPDK port PORT.
///
/// PORT is a port's number, its PCI address, or the name of a virtual device.
/// DPDK is started with `castanet run --dpdk "OPTIONS"`, or `click --dpdk
/// OPTIONS --`. The kernel sees nothing of such a port. Packets travel in
/// their mbufs, without a copy, until they are sent on a DPDK port or end.
///
/// With several workers (`-j`) the port is received from by its share of those
/// at its NUMA node, each from a queue of its own; the port spreads packets over
/// the queues by their addresses and ports. `castanet explain` shows who has
/// what. Several elements of the same PORT have queues of their own each.
///
/// When nothing has come for a millisecond the worker looks less and less often,
/// in the end once a millisecond, unless BUSY is true. In that time the
/// descriptors of a queue (NDESC) must hold what arrives: a million packets a
/// second, by default. With RX_INTR it sleeps until the port's interrupt, if its driver has
/// such.
///
/// Where a `ToDPDKDevice` comes next, bursts go on without a look at the packets, which
/// `castanet explain` shows; unless RSS_AGGREGATE, PAINT_QUEUE or checksums ask for one.
///
/// Lengths that a peer states are checked against the buffers, and packets that cannot be are
/// counted as `malformed`. A peer of memif with `zero-copy=yes` writes to the mbufs themselves, at
/// any time: let only those do that which may read this process' memory.
///
/// A port that checks checksums (IPCO, TCO, UCO) drops nothing for it: packets
/// with wrong ones come like others, and are counted.
///
/// ```text
/// FromDPDKDevice(0) -> ToDPDKDevice(1);
/// FromDPDKDevice(0000:03:00.0, QUEUE 1, PROMISC true) -> Discard;
/// ```
#[derive(Clone, Element)]
#[element(args = FromDPDKDeviceArgs, ports = "0/0-1", methods)]
pub struct FromDPDKDevice {
    settings: FromDPDKDeviceArgs,
    /// What each worker has of the port.
    shares: Vec<QueueShare>,
    /// How many queues the port is to have, each way.
    reserved: (u16, u16),
}

/// What can be set.
#[derive(Args, Clone)]
pub struct FromDPDKDeviceArgs {
    /// The port to receive from.
    #[arg]
    port: String,
    /// The first queue; the first that is free if not given or -1.
    #[arg(default = -1, range = -1..=65535)]
    queue: i32,
    /// How many queues; -1 for one a worker, or one where QUEUE is given.
    #[arg(default = -1, range = -1..=65535)]
    n_queues: i32,
    /// Whether to receive packets for other hosts too.
    #[arg(keyword, default = false)]
    promisc: bool,
    /// How many packets to receive at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// Descriptors of each queue; 0 for 1024, or what the driver has.
    #[arg(keyword, default = 0)]
    ndesc: u16,
    /// Longest packet without its Ethernet header; 0 for 1500.
    #[arg(keyword, default = 0)]
    mtu: u16,
    /// The port's Ethernet address; its own if not given.
    #[arg(keyword)]
    mac: Option<MacAddr>,
    /// Which pause frames (IEEE 802.3) the port obeys (rx), sends (tx), or both (full or on), or
    /// that it does neither (none or off); what it does by itself if not given, or unset.
    #[arg(keyword)]
    pause: Option<PauseFrames>,
    /// Whether a port that is not there is no error: then nothing comes.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// Whether to receive; false only sets the port up.
    #[arg(keyword, default = true)]
    active: bool,
    /// Whether several queues get packets by a hash of their addresses; by
    /// itself, rss.
    #[arg(keyword)]
    mode: Option<Mode>,
    /// To how many queues the hash leads, the first ones; 0 for all.
    #[arg(keyword, default = 0)]
    max_rss: u16,
    /// Whether packets get the port's RSS hash as their annotation AGGREGATE; 0
    /// where the port has none.
    #[arg(keyword, default = false)]
    rss_aggregate: bool,
    /// Whether packets get the number of their queue as their paint.
    #[arg(keyword, default = false)]
    paint_queue: bool,
    /// Checksums that the port sees to.
    #[arg(flatten)]
    offloads: Offloads,
    /// Whether to look for packets all the time, however long none came.
    #[arg(keyword, default = false)]
    busy: bool,
    /// From 0 on, to sleep until the port's interrupt says that packets have come, if none did
    /// for a millisecond; -1 to look now and then instead.
    #[arg(keyword, default = -1)]
    rx_intr: i32,
    /// Whether packets lose their annotations, in FastClick; here they come without.
    #[arg(keyword, default = false)]
    #[expect(dead_code, reason = "for configurations that say so")]
    clear: bool,
    /// Who receives.
    #[arg(flatten)]
    spread: RxPlacementArgs,
}

/// How many bursts go on at once to a port next to this one: nothing between has to hold them, and
/// a turn of the worker costs less a packet.
const STRAIGHT: usize = 8;

/// Where received packets go.
#[derive(Fate)]
pub enum FromDPDKDeviceExit {
    /// Packets.
    #[optional]
    Packet,
}

/// The open queues.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDPDKDeviceState {
    device: DeviceSlot<Dpdk>,
    /// Whether this is the worker that says what is the port's, not a queue's.
    leads: bool,
    /// How many workers receive.
    workers: usize,
    wait: PollBackoff,
    /// Whether the port's interrupts could not be had any more.
    deaf: bool,
    /// How many packets had been lost for want of mbufs.
    no_frame: u64,
}

#[handlers]
impl FromDPDKDevice {
    /// How many packets to receive at once; 0 for the engine's burst.
    #[read]
    fn burst(&self) -> u32 {
        self.settings.burst
    }

    /// Sets how many packets to receive at once.
    #[write(burst)]
    fn set_burst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut changed = self.clone();
        changed.settings.burst = u32::from_arg(text, names)?;
        Ok(changed)
    }
}

impl FromDPDKDeviceState {
    /// What the port has counted, for one of the workers to say.
    fn counts(&self) -> PortStats {
        if self.leads { self.device.counts() } else { PortStats::default() }
    }

    fn receive_for(&self, text: &str, add: bool) -> Result<(), ArgError> {
        let address = MacAddr::from_arg(text.trim(), &Names::default())?;
        let Some(device) = self.device.get().filter(|_| self.leads) else { return Ok(()) };
        device.receive_for(address.0, add).map_err(|error| ArgError::new(error.to_string()))
    }
}

#[handlers]
impl FromDPDKDeviceState {
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

    /// Packets dropped because a peer says that they have bytes outside of their buffers.
    #[read]
    fn malformed(&self) -> u64 {
        self.device.stats().malformed
    }

    /// The port's number.
    #[read]
    fn device(&self) -> String {
        self.device.port()
    }

    /// How packets are received: port, driver, queues.
    #[read]
    fn how(&self) -> String {
        match (self.device.describe(), self.workers) {
            (text, 0 | 1) => text,
            (text, workers) => format!("{text}; {workers} workers receive"),
        }
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
        if self.leads { self.device.link().speed } else { 0 }
    }

    /// How many queues this element receives from.
    #[read]
    fn nb_rx_queues(&self) -> u32 {
        self.device.get().map_or(0, |it| it.queues().0.into())
    }

    /// How many queues to send to the port has, for all elements.
    #[read]
    fn nb_tx_queues(&self) -> u16 {
        self.device.get().map_or(0, |it| it.port_queues().1)
    }

    /// How many descriptors each queue to receive from has.
    #[read]
    fn nb_rx_desc(&self) -> u16 {
        self.device.get().map_or(0, |it| it.port_queues().2)
    }

    /// The port's driver.
    #[read]
    fn driver(&self) -> String {
        self.device.get().map_or_else(String::new, Dpdk::driver)
    }

    /// Longest packet without its Ethernet header.
    #[read]
    fn mtu(&self) -> u16 {
        self.device.get().map_or(0, Dpdk::mtu)
    }

    /// Packets that had a wrong checksum of IP, as the port says.
    #[read]
    fn bad_ip_checksums(&self) -> u64 {
        self.device.get().map_or(0, |it| it.bad_checksums().0)
    }

    /// Packets that had a wrong checksum of TCP or UDP, as the port says.
    #[read]
    fn bad_transport_checksums(&self) -> u64 {
        self.device.get().map_or(0, |it| it.bad_checksums().1)
    }

    /// All that the port counts, in its driver's words; with the name of a
    /// count, that.
    #[read]
    fn xstats(&self, ask: &ReadRequest) -> String {
        let all = self.device.get().filter(|_| self.leads).map(Dpdk::xstats).unwrap_or_default();
        match ask.param.trim() {
            "" => {
                all.iter().zip(0..).map(|((name, n), id)| format!("{name}[{id}] = {n}\n")).collect()
            }
            name => {
                all.iter().find(|it| it.0 == name).map_or_else(String::new, |it| it.1.to_string())
            }
        }
    }

    /// How many packets wait in each of the port's queues, if the driver knows;
    /// with the number of a queue, in that.
    #[read]
    fn queue_count(&self, ask: &ReadRequest) -> String {
        let said = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let all = self.device.get().map(Dpdk::waiting).unwrap_or_default();
        match ask.param.trim() {
            "" => all.iter().map(|(queue, n)| format!("Queue {queue}: {}\n", said(*n))).collect(),
            queue => {
                let one = all.iter().find(|(number, _)| number.to_string() == queue);
                one.map_or_else(String::new, |(_, n)| said(*n))
            }
        }
    }

    /// Packets that the port has received.
    #[read]
    fn hw_count(&self) -> u64 {
        self.counts().rx_packets
    }

    /// Their bytes.
    #[read]
    fn hw_bytes(&self) -> u64 {
        self.counts().rx_bytes
    }

    /// Packets that the port dropped because they were not fetched in time.
    #[read]
    fn hw_dropped(&self) -> u64 {
        self.counts().rx_missed
    }

    /// Packets that the port dropped for want of mbufs.
    #[read]
    fn nombufs(&self) -> u64 {
        self.counts().rx_no_mbuf
    }

    /// Packets that the port found damaged.
    #[read]
    fn hw_errors(&self) -> u64 {
        self.counts().rx_errors
    }

    /// Packets that the port has sent.
    #[read]
    fn tx_count(&self) -> u64 {
        self.counts().tx_packets
    }

    /// Their bytes.
    #[read]
    fn tx_bytes(&self) -> u64 {
        self.counts().tx_bytes
    }

    /// Packets that the port could not send.
    #[read]
    fn tx_errors(&self) -> u64 {
        self.counts().tx_errors
    }

    /// Receives packets for another Ethernet address, too.
    #[write]
    fn add_mac(&mut self, text: &str) -> Result<(), ArgError> {
        self.receive_for(text, true)
    }

    /// Receives no more packets for an address that was added.
    #[write]
    fn remove_mac(&mut self, text: &str) -> Result<(), ArgError> {
        self.receive_for(text, false)
    }

    /// Has the port's hash lead to its first queues only, so many, until the port is set up anew.
    #[write]
    fn max_rss(&mut self, text: &str) -> Result<(), ArgError> {
        let queues = u16::from_arg(text.trim(), &Names::default())?;
        let Some(device) = self.device.get().filter(|_| self.leads) else { return Ok(()) };
        let most = device.port_queues().0;
        if !(1..=most).contains(&queues) {
            return Err(ArgError::new(format!("expected 1 to {most}, the port's queues")));
        }
        device.spread(queues).map_err(|error| ArgError::new(error.to_string()))
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

impl Build for FromDPDKDevice {
    type Args = FromDPDKDeviceArgs;

    fn build(settings: FromDPDKDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        if settings.mode == Some(Mode::none) && settings.max_rss > 0 {
            return Err(ArgError::new("MAX_RSS is about a hash, and MODE none wants none"));
        }
        let reserved = (count(setup.device_queues.0), count(setup.device_queues.1));
        Ok(FromDPDKDevice { settings, shares: setup.queue_shares.to_vec(), reserved })
    }
}

/// The port, and what is wanted of it.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <FromDPDKDeviceArgs as Args>::parse(config, names).ok()?;
    let found = crate::dpdk::summarize(&it.port);
    let most = found.queues.map_or(usize::MAX, |(receive, _)| receive);
    Some(devices::Device {
        name: found.name,
        how: found.how,
        node: it.spread.node(found.numa_node),
        queues: it.spread.queues(given(it.queue), given(it.n_queues), AvailableQueues::UpTo(most)),
        rx_threads: it.spread.rx_threads(),
    })
}

impl FromDPDKDevice {
    /// What a worker opens.
    fn options(&self, worker: usize) -> Options {
        let settings = &self.settings;
        let mine = self.shares.iter().find(|share| share.worker == worker);
        let receive = RxQueues {
            first: mine.map(|share| count(share.queues.start)),
            queues: mine.map_or(1, |share| count(share.queues.len())),
        };
        Options {
            receive: Some(receive),
            reserved: self.reserved,
            descriptors: settings.ndesc,
            promiscuous: settings.promisc,
            mtu: settings.mtu,
            rss: settings.mode.map(|mode| mode == Mode::rss),
            aggregate: settings.rss_aggregate,
            paint_queue: settings.paint_queue,
            rx_checksums: settings.offloads.sums(),
            mac: settings.mac.map(|mac| mac.0),
            pause: settings.pause.and_then(|frames| frames.0),
            spread: settings.max_rss,
            interrupts: settings.rx_intr >= 0,
            ..Options::default()
        }
    }
}

impl Source for FromDPDKDevice {
    type Local = FromDPDKDeviceState;
    type Fate = FromDPDKDeviceExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &FromDPDKDevice) -> bool {
        // Of the same shares, what is right for one worker is so for all.
        same_shares(&before.shares, &self.shares)
            && before.settings.port == self.settings.port
            && before.settings.allow_nonexistent == self.settings.allow_nonexistent
            && before.options(0).serve(&self.options(0))
    }

    fn init(&self, local: &mut FromDPDKDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        (local.leads, local.workers) = (cx.is_home(), self.shares.len());
        let options = self.options(cx.worker());
        let port = &self.settings.port;
        if let Some(device) = open(port, options, self.settings.allow_nonexistent)? {
            local.device.set(device);
        }
        Ok(())
    }

    fn start(&self, local: &mut FromDPDKDeviceState, _: &mut Cx) -> Result<(), ArgError> {
        start(&self.settings.port, &mut local.device)
    }

    fn offer_claims(&self, local: &mut FromDPDKDeviceState, leaving: bool) {
        local.device.get().into_iter().for_each(|device| device.set_retiring(leaving));
    }

    fn produce(&self, local: &mut FromDPDKDeviceState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(device) = local.device.get_mut().filter(|_| self.settings.active) else {
            return NextRun::Done;
        };
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        if device.disarm() {
            // Drivers may need a moment after the interrupt.
            local.wait.over();
        }
        if device.can_forward() {
            let went = cx.bypass(|to: &ToDPDKDevice, sending, cx| {
                to.pass(sending, device, STRAIGHT * n, cx)
            });
            if went.is_some_and(|went| went > 0) {
                local.wait.over();
                return NextRun::Again;
            }
        }
        let mut alarm = None;
        loop {
            let mut batch = Batch::new();
            if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
                cx.chatter(&format!("FromDPDKDevice({}): {error}", self.settings.port));
                return NextRun::At(cx.now() + Duration::from_secs(1));
            }
            cx.report_missed(&mut local.no_frame, device.no_frame());
            if !batch.is_empty() {
                local.wait.over();
                cx.count_received(batch.len());
                cx.emit_batch(FromDPDKDeviceExit::Packet, batch);
                return NextRun::Again;
            }
            if let Some(alarm) = alarm {
                if device.is_behind() {
                    break;
                }
                return NextRun::Readable(alarm);
            }
            let looks = self.settings.busy || self.settings.rx_intr < 0 || local.deaf;
            if looks || local.wait.is_short(cx.now()) {
                break;
            }
            // What comes before the port is to call is found by another look.
            alarm = match device.arm() {
                Ok(Some(alarm)) => Some(alarm),
                Ok(None) => break,
                Err(error) => {
                    local.deaf = true;
                    cx.chatter(&format!("FromDPDKDevice({}): {error}", self.settings.port));
                    break;
                }
            };
        }
        local.wait.longer(cx.now(), self.settings.busy)
    }

    fn cleanup(&self, local: &mut FromDPDKDeviceState, _: &mut Cx) {
        local.device.close();
    }
}
