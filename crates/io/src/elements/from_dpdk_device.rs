//! `FromDPDKDevice`: receives packets from a DPDK port.

use super::device_slot::{DeviceSlot, Rx};
use super::dpdk::{PortInfo, count, open, start};
use super::dpdk_args::{FromDPDKDeviceArgs, Mode};
use super::dpdk_flow_rules::{self, FlowRules};
use super::emit_switch::EmitSwitch;
use super::metrics;
use super::poll_backoff::PollBackoff;
use super::port_bypass::PortBypass;
use super::rss_table;
use super::rx_placement::{AvailableQueues, nonnegative, same_shares};
use crate::device::Device;
use crate::dpdk::{Dpdk, Options, RxQueues};
use crate::error::IoError;
use crate::sys::dpdk::PortStats;
use castanet_element::device as devices;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_kit::flow_rules::FlowRule;

/// Receives packets from the DPDK port PORT.
///
/// PORT is a port's number, its PCI address, or the name of a virtual device.
/// `castanet run --dpdk "OPTIONS"` or `click --dpdk OPTIONS --` starts DPDK. The
/// kernel does not see such a port. Packets stay in their mbufs, without a copy,
/// until a DPDK port has sent them or they end; the element copies only packets in
/// several mbufs, or in another program's.
///
/// With several workers (`-j`) a share of the workers at the port's NUMA node
/// receives, each from a queue of its own; the port spreads packets over the
/// queues by a hash of their addresses and ports. `castanet explain` shows the
/// queues of each worker. Several elements of the same PORT each have queues of
/// their own.
///
/// When no packet has arrived for a millisecond the worker polls less and less
/// often, in the end once a millisecond, unless BUSY is true. The descriptors of a
/// queue (NDESC) must hold the packets that arrive in that time: by default a
/// million packets a second. With RX_INTR the worker sleeps until the port's
/// interrupt, if the port's driver supports interrupts.
///
/// If the next element, or the one behind `Counter` and `AverageCounter` alone, is a `ToDPDKDevice`, bursts go
/// on without inspection of the packets, unless RSS_AGGREGATE, PAINT_QUEUE, TIMESTAMP or checksums require it.
/// Elements between the two that need no annotations of single packets, such as `Classifier`, `IPFilter`, `RadixIPLookup`
/// and `EtherMirror`, get the bytes alone of packets that go on to the `ToDPDKDevice`.
/// `castanet explain` shows where.
///
/// The element checks the lengths that a peer states against the buffers, and counts packets with
/// impossible lengths as `malformed`. A memif peer with `zero-copy=yes` writes to the mbufs
/// themselves, at any time: allow it only for peers that may read this process' memory.
///
/// FLOW_RULES_FILE names a file of rules by which the card assigns packets to queues, drops, marks
/// or counts them, before any worker sees them. A line is a rule in the syntax of `flow create` of
/// DPDK's testpmd, an empty line or one that begins with `#` is none:
///
/// ```text
/// ingress pattern eth / ipv4 src is 10.0.0.1 / udp dst is 53 / end actions queue index 1 / end
/// ingress pattern eth / ipv4 / tcp / end actions count / rss queues 0 2 end / end
/// ```
///
/// A field `is` a value, or has `spec` with `mask`, `prefix` or `last`. The handlers `rule_add`,
/// `rules_del` and `rules_flush` change the rules while packets flow. With FLOW_ISOLATE the port
/// receives nothing else. Which rules work is up to the card's driver.
///
/// A port that verifies checksums (IPCO, TCO, UCO) does not drop packets with
/// wrong ones: the element emits them like others, and counts them.
///
/// ```text
/// FromDPDKDevice(0) -> ToDPDKDevice(1);
/// FromDPDKDevice(0000:03:00.0, QUEUE 1, PROMISC true) -> Discard;
/// ```
#[derive(Clone, Element)]
#[element(args = FromDPDKDeviceArgs, ports = "0/0-1", methods, headers = Gives(FirstHeader::Ethernet, MarkedHeader::Unknown))]
pub struct FromDPDKDevice {
    settings: FromDPDKDeviceArgs,
    /// The rules of FLOW_RULES_FILE.
    flow_rules: Vec<FlowRule>,
    /// The queues of each worker.
    shares: Vec<QueueShare>,
    /// Number of queues that the port must have, to receive and to send.
    reserved: (u16, u16),
}

/// The exit of received packets.
#[derive(Fate)]
pub enum FromDPDKDeviceExit {
    /// Packets.
    #[optional]
    Packet,
}

/// A worker's open queues.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDPDKDeviceState {
    #[flatten]
    device: DeviceSlot<Dpdk, Rx>,
    /// The port's flow rules, if this worker leads.
    #[flatten]
    rules: FlowRules,
    /// Whether this worker reports the port's own values: the other workers report zeros for them.
    is_leader: bool,
    /// Number of workers that receive.
    workers: usize,
    #[flatten]
    switch: EmitSwitch,
    backoff: PollBackoff,
    #[flatten]
    bypass: PortBypass,
    /// Whether the port's interrupts have failed, so that the worker polls.
    interrupts_failed: bool,
    /// Number of packets lost for lack of mbufs, as last reported.
    no_frame: u64,
}

#[handlers]
impl FromDPDKDevice {
    /// Number of packets to receive at once; 0 for two of the engine's bursts, or one where accounts bound runs.
    #[read]
    fn burst(&self) -> u32 {
        self.settings.burst
    }

    /// The queues that this element receives from, one a line, each with the worker that does.
    #[read]
    fn queue_workers(&self) -> String {
        rss_table::workers(&self.shares)
    }

    /// Sets the number of packets to receive at once.
    #[write(burst)]
    fn set_burst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut changed = self.clone();
        changed.settings.burst = u32::from_arg(text, names)?;
        Ok(changed)
    }
}

impl FromDPDKDeviceState {
    /// The port's own counts; zeros unless this worker reports them.
    fn counts(&self) -> PortStats {
        if self.is_leader { self.device.counts() } else { PortStats::default() }
    }

    /// The port's RSS redirection table; empty if it has none, or unless this worker reports it.
    fn reta(&self) -> Vec<u16> {
        let leader = self.device.get().filter(|_| self.is_leader);
        leader.and_then(|device| device.reta().ok()).unwrap_or_default()
    }

    fn receive_for(&self, text: &str, add: bool) -> Result<(), ArgError> {
        let address = MacAddr::from_arg(text.trim(), &Names::default())?;
        let Some(device) = self.device.get().filter(|_| self.is_leader) else { return Ok(()) };
        device.receive_for(address.0, add).map_err(|error| ArgError::new(error.to_string()))
    }
}

#[handlers]
impl FromDPDKDeviceState {
    /// The port's number.
    #[read]
    fn device(&self) -> String {
        self.device.port()
    }

    /// The port, its driver and its queues.
    #[read]
    fn how(&self) -> String {
        match (self.device.describe(), self.workers) {
            (text, 0 | 1) => text,
            (text, workers) => format!("{text}; {workers} workers receive"),
        }
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

    /// The link's speed in megabits per second.
    #[read]
    fn speed(&self) -> u32 {
        if self.is_leader { self.device.link().speed } else { 0 }
    }

    /// Number of queues that this element receives from.
    #[read]
    fn nb_rx_queues(&self) -> u32 {
        self.device.get().map_or(0, |it| it.queues().0.into())
    }

    /// Number of queues that the port sends from, for all elements.
    #[read]
    fn nb_tx_queues(&self) -> u16 {
        self.device.get().map_or(0, |it| it.port_queues().1)
    }

    /// Number of descriptors of each receive queue.
    #[read]
    fn nb_rx_desc(&self) -> u16 {
        self.device.get().map_or(0, |it| it.port_queues().2)
    }

    /// The port's driver.
    #[read]
    fn driver(&self) -> String {
        self.device.get().map_or_else(String::new, Dpdk::driver)
    }

    /// The vendor of the port's card; `Unknown` for virtual devices.
    #[read]
    fn vendor(&self) -> &'static str {
        self.device.get().map_or("", Dpdk::vendor)
    }

    /// The link's medium: `fiber` whatever it is, as in FastClick.
    #[read]
    fn r#type(&self) -> &'static str {
        self.device.get().map_or("", |_| "fiber")
    }

    /// Number of the port's pools for virtual machines.
    #[read]
    fn nb_vf_pools(&self) -> usize {
        self.device.get().filter(|_| self.is_leader).map_or(0, |it| it.pool_macs().len())
    }

    /// Ethernet addresses of the pools, as a JSON array.
    #[read]
    fn vf_mac_addr(&self) -> String {
        let macs = self.device.get().map(Dpdk::pool_macs).unwrap_or_default();
        let quoted = macs
            .into_iter()
            .map(|mac| format!("\"{}\"", castanet_wire::MacAddr(mac).with_colons()));
        format!("[{}]", quoted.collect::<Vec<_>>().join(","))
    }

    /// Longest packet without its Ethernet header.
    #[read]
    fn mtu(&self) -> u16 {
        self.device.get().map_or(0, Dpdk::mtu)
    }

    /// Packets whose IP checksum the port found wrong.
    #[read]
    fn bad_ip_checksums(&self) -> u64 {
        self.device.get().map_or(0, |it| it.bad_checksums().0)
    }

    /// Packets whose TCP or UDP checksum the port found wrong.
    #[read]
    fn bad_transport_checksums(&self) -> u64 {
        self.device.get().map_or(0, |it| it.bad_checksums().1)
    }

    /// The port's extended statistics, with the driver's names; the value of one,
    /// if its name is given.
    #[read]
    fn xstats(&self, ask: &ReadRequest) -> String {
        let all =
            self.device.get().filter(|_| self.is_leader).map(Dpdk::xstats).unwrap_or_default();
        match ask.param.trim() {
            "" => {
                all.iter().zip(0..).map(|((name, n), id)| format!("{name}[{id}] = {n}\n")).collect()
            }
            name => {
                all.iter().find(|it| it.0 == name).map_or_else(String::new, |it| it.1.to_string())
            }
        }
    }

    /// Number of packets that wait in each of the port's queues, `-` if the driver
    /// cannot tell; in one queue, if its number is given.
    #[read]
    fn queue_count(&self, ask: &ReadRequest) -> String {
        let show = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let all = self.device.get().map(Dpdk::waiting).unwrap_or_default();
        match ask.param.trim() {
            "" => all.iter().map(|(queue, n)| format!("Queue {queue}: {}\n", show(*n))).collect(),
            queue => {
                let one = all.iter().find(|(number, _)| number.to_string() == queue);
                one.map_or_else(String::new, |(_, n)| show(*n))
            }
        }
    }

    /// Packets that the port has received.
    #[read]
    fn hw_count(&self) -> u64 {
        self.counts().rx_packets
    }

    /// Bytes that the port has received.
    #[read]
    fn hw_bytes(&self) -> u64 {
        self.counts().rx_bytes
    }

    /// Packets that the port dropped because the worker did not fetch them in time.
    #[read]
    #[metric(metrics::KERNEL_DROPS)]
    fn hw_dropped(&self) -> u64 {
        self.counts().rx_missed
    }

    /// Packets that the port dropped for lack of mbufs.
    #[read]
    #[metric(metrics::NO_FRAME)]
    fn nombufs(&self) -> u64 {
        self.counts().rx_no_mbuf
    }

    /// Packets that the port found damaged.
    #[read]
    #[metric(metrics::RECEIVE_ERRORS)]
    fn hw_errors(&self) -> u64 {
        self.counts().rx_errors
    }

    /// Packets that the port has sent.
    #[read]
    fn tx_count(&self) -> u64 {
        self.counts().tx_packets
    }

    /// Bytes that the port has sent.
    #[read]
    fn tx_bytes(&self) -> u64 {
        self.counts().tx_bytes
    }

    /// Packets that the port could not send.
    #[read]
    fn tx_errors(&self) -> u64 {
        self.counts().tx_errors
    }

    /// Makes the port receive packets for another Ethernet address too.
    #[write]
    fn add_mac(&mut self, text: &str) -> Result<(), ArgError> {
        self.receive_for(text, true)
    }

    /// Removes an Ethernet address that `add_mac` has added.
    #[write]
    fn remove_mac(&mut self, text: &str) -> Result<(), ArgError> {
        self.receive_for(text, false)
    }

    /// Spreads packets over this number of the port's first queues, until the port is set up anew.
    #[write]
    fn max_rss(&mut self, text: &str) -> Result<(), ArgError> {
        let queues = u16::from_arg(text.trim(), &Names::default())?;
        let Some(device) = self.device.get().filter(|_| self.is_leader) else { return Ok(()) };
        let most = device.port_queues().0;
        if !(1..=most).contains(&queues) {
            return Err(ArgError::new(format!("expected 1 to {most}, the port's queues")));
        }
        device.spread(queues).map_err(|error| ArgError::new(error.to_string()))
    }

    /// The queue of each entry of the port's RSS redirection table: the entry of a packet is the
    /// lower bits of its hash.
    #[read]
    fn rss_reta(&self) -> String {
        rss_table::text(&self.reta())
    }

    /// Number of entries of the port's RSS redirection table; 0 if it has none.
    #[read]
    fn rss_reta_size(&self) -> usize {
        self.reta().len()
    }

    /// Sets the queue of each entry of the port's RSS redirection table, until the port is set up anew.
    #[write(rss_reta)]
    fn set_rss_reta(&mut self, text: &str) -> Result<(), ArgError> {
        let Some(device) = self.device.get().filter(|_| self.is_leader) else { return Ok(()) };
        let failed = |error: IoError| ArgError::new(error.to_string());
        let entries = device.reta().map_err(failed)?.len();
        let table = rss_table::parse(text, entries, device.port_queues().0)?;
        device.set_reta(&table).map_err(failed)
    }

    /// Resets `count` and `byte_count` to zero.
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
        settings.pools.vmdq(settings.mode)?;
        let reserved = (count(setup.device_queues.0), count(setup.device_queues.1));
        let flow_rules = dpdk_flow_rules::read(settings.flow_rules_file.as_deref())?;
        let shares = setup.queue_shares.to_vec();
        Ok(FromDPDKDevice { settings, flow_rules, shares, reserved })
    }
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromDPDKDeviceArgs| {
        let port = super::dpdk::resources(crate::dpdk::summarize(&it.port).name);
        let rules = Resource::input(it.flow_rules_file.as_deref(), "reads flow rules");
        port.into_iter().chain(rules).collect()
    })
}

/// The port and the queues that the arguments ask for; `None` if they are wrong.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <FromDPDKDeviceArgs as Args>::parse(config, names).ok()?;
    let summary = crate::dpdk::summarize(&it.port);
    let most = summary.queues.map_or(usize::MAX, |(receive, _)| receive);
    Some(devices::Device {
        name: summary.name,
        how: summary.how,
        node: it.placement.node(summary.numa_node),
        queues: it.placement.queues(
            nonnegative(it.queue),
            nonnegative(it.n_queues),
            AvailableQueues::UpTo(most),
        ),
        rx_threads: it.placement.rx_threads(),
    })
}

impl FromDPDKDevice {
    /// Number of packets to receive at once, where a run takes `n`.
    fn receive_burst(&self, n: usize, cx: &Cx) -> usize {
        if self.settings.burst > 0 { n } else { cx.long_burst(n) }
    }

    /// The options with which `worker` opens the port.
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
            rss: settings.mode.map(|mode| matches!(mode, Mode::rss | Mode::vmdq_rss)),
            aggregate: settings.rss_aggregate,
            paint_queue: settings.paint_queue,
            rx_checksums: settings.offloads.checksums(),
            mac: settings.mac.map(|mac| mac.0),
            pause: settings.pause.and_then(|frames| frames.0),
            spread: settings.max_rss,
            // Wrong ones were refused when the element was built.
            vmdq: settings.pools.vmdq(settings.mode).ok().flatten(),
            isolated: settings.flow_isolate,
            timestamps: settings.timestamp,
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
        // With the same shares, the options of all workers agree if those of one do.
        same_shares(&before.shares, &self.shares)
            && before.settings.port == self.settings.port
            && before.flow_rules == self.flow_rules
            && before.settings.allow_nonexistent == self.settings.allow_nonexistent
            && before.options(0).serve(&self.options(0))
    }

    fn init(&self, local: &mut FromDPDKDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        (local.is_leader, local.workers) = (cx.is_home(), self.shares.len());
        let options = self.options(cx.worker());
        let port = &self.settings.port;
        if let Some(device) = open(port, options, self.settings.allow_nonexistent)? {
            local.device.set(device);
        } else {
            local.switch.is_on = false;
        }
        Ok(())
    }

    fn start(&self, local: &mut FromDPDKDeviceState, _: &mut Cx) -> Result<(), ArgError> {
        start(&self.settings.port, &mut local.device)?;
        let leader = local.device.get().filter(|_| local.is_leader);
        leader.map_or(Ok(()), |device| local.rules.start(device.rules(), &self.flow_rules))
    }

    fn offer_claims(&self, local: &mut FromDPDKDeviceState, leaving: bool) {
        local.device.get().into_iter().for_each(|device| device.set_retiring(leaving));
    }

    fn apply_config(&self, local: &mut FromDPDKDeviceState) {
        local.switch.follow(self.settings.active);
    }

    fn is_active(&self, local: &FromDPDKDeviceState) -> bool {
        local.switch.is_on
    }

    fn produce(&self, local: &mut FromDPDKDeviceState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(device) = local.device.get_mut() else { return NextRun::Done };
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        if device.disarm() {
            // A driver may deliver packets a moment after its interrupt: keeps polling.
            local.backoff.reset();
        }
        if local.bypass.run(device, n, FromDPDKDeviceExit::Packet, cx) {
            cx.report_missed(&mut local.no_frame, device.no_frame());
            local.backoff.reset();
            return NextRun::Again;
        }
        let mut interrupt = None;
        loop {
            let mut batch = Batch::new();
            if let Err(error) = device.receive(cx.pool(), &mut batch, self.receive_burst(n, cx)) {
                cx.chatter(&format!("FromDPDKDevice({}): {error}", self.settings.port));
                return NextRun::At(cx.now() + Duration::from_secs(1));
            }
            cx.report_missed(&mut local.no_frame, device.no_frame());
            if !batch.is_empty() {
                local.backoff.reset();
                cx.count_received(batch.len());
                cx.emit_batch(FromDPDKDeviceExit::Packet, batch);
                return NextRun::Again;
            }
            if let Some(interrupt) = interrupt {
                if device.is_behind() {
                    break;
                }
                return NextRun::Readable(interrupt);
            }
            let polls = self.settings.busy || self.settings.rx_intr < 0 || local.interrupts_failed;
            if polls || local.backoff.is_short(cx.now()) {
                break;
            }
            // Polls once more: packets may have arrived before the interrupt was armed.
            interrupt = match device.arm() {
                Ok(Some(interrupt)) => Some(interrupt),
                Ok(None) => break,
                Err(error) => {
                    local.interrupts_failed = true;
                    cx.chatter(&format!("FromDPDKDevice({}): {error}", self.settings.port));
                    break;
                }
            };
        }
        local.backoff.next_run(cx.now(), self.settings.busy)
    }

    fn cleanup(&self, local: &mut FromDPDKDeviceState, _: &mut Cx) {
        local.rules.end();
        local.device.close();
    }
}
