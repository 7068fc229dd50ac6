//! `ToDPDKDevice`: packets for a DPDK port to send.

use super::device_slot::DeviceSlot;
use super::dpdk::{Hardware, Offloads, count, open, start};
use super::rx_placement::{given, same_shares};
use super::tx_queue::TxQueue;
use crate::dpdk::{Dpdk, Options, TxQueues};
use crate::sys::dpdk::PortStats;
use castanet_element::device as devices;
use castanet_element::device::{Queues, RxThreads};
use castanet_element::prelude::*;

/// Sends packets, Ethernet header included, on the DPDK port PORT.
///
/// PORT is a port's number, its PCI address, or the name of a virtual device.
/// Packets that came from a DPDK port are handed over as they are; others, and
/// those that share their bytes, are copied into an mbuf. Each worker whose
/// packets can come here sends to a queue of its own, or shares one where the
/// port has fewer (`castanet explain` shows it). What a burst
/// brings is sent at once; what the port has no room for waits, up to IQUEUE
/// packets, and with BLOCKING the worker waits with them; but not again before
/// something has gone, if it has waited for a tenth of a second in vain.
///
/// A packet that is longer than an mbuf goes in several, if the port can do so
/// and its MTU (MTU, here or at `FromDPDKDevice`) allows such packets; the
/// handlers `longest` and `how` say what is refused.
///
/// Checksums that `ResetIPChecksum` has left open are computed by the port, as
/// far as IPCO, TCO and UCO say so and it can, else here. With TSO, TCP packets
/// that are longer than the MTU go as segments that are not: the port cuts them,
/// if it can, else they are cut here. Both holds for what other elements send
/// on the same port, too; `how` says what the port does.
///
/// ```text
/// FromDevice(eth0) -> ToDPDKDevice(0);
/// ... -> ResetIPChecksum(L4 true) -> ToDPDKDevice(1, TCO true, UCO true, TSO true);
/// ```
#[derive(Element)]
#[element(args = ToDPDKDeviceArgs, ports = "1/0")]
pub struct ToDPDKDevice {
    settings: ToDPDKDeviceArgs,
    /// What each worker has of the port.
    shares: Vec<QueueShare>,
    /// How many queues the port is to have, each way.
    reserved: (u16, u16),
}

/// What can be set.
#[derive(Args)]
pub struct ToDPDKDeviceArgs {
    /// The port to send on.
    #[arg]
    port: String,
    /// The first queue; 0 if not given or -1.
    #[arg(default = -1, range = -1..=65535)]
    queue: i32,
    /// How many queues; -1 for one a worker.
    #[arg(default = -1, range = -1..=65535)]
    n_queues: i32,
    /// How many packets of each worker may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether to wait for room, until none has gone for a tenth of a second,
    /// rather than to drop.
    #[arg(keyword, default = true)]
    blocking: bool,
    /// Packets to gather before sending, in FastClick; here a burst brings them.
    #[arg(keyword, default = -1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: i32,
    /// Milliseconds until fewer are sent, in FastClick; here nothing waits for more.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    timeout: i32,
    /// Descriptors of each queue; 0 for 1024, or what the driver has.
    #[arg(keyword, default = 0)]
    ndesc: u16,
    /// Longest packet without its Ethernet header; 0 for 1500.
    #[arg(keyword, default = 0)]
    mtu: u16,
    /// Checksums that the port sees to.
    #[arg(flatten)]
    offloads: Offloads,
    /// Whether TCP packets longer than the MTU are cut into segments.
    #[arg(keyword, default = false)]
    tso: bool,
    /// Whether a port that is not there is no error: then packets are dropped.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// Most workers to have a queue of their own; -1 for all that can come here.
    #[arg(keyword, default = -1, range = -1..=65535)]
    maxthreads: i32,
    /// How much to say about queues, in FastClick.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    verbose: u32,
}

/// Why packets do not go.
#[derive(Fate)]
pub enum ToDPDKDeviceExit {
    /// Packets without a byte, or longer than the port sends.
    #[drop]
    Refused,
    /// Packets that found no place to wait.
    #[drop]
    Full,
    /// Packets for a port that is not there.
    #[drop]
    Closed,
}

/// The worker's queue, and what waits for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDPDKDeviceState {
    device: DeviceSlot<Dpdk>,
    waiting: TxQueue,
    /// Packets that were dropped since the last reset.
    dropped: u64,
    /// Whether this is the worker that says what is the port's, not a queue's.
    leads: bool,
}

impl ToDPDKDeviceState {
    /// What the port has counted, for one of the workers to say.
    fn counts(&self) -> PortStats {
        if self.leads { self.device.counts() } else { PortStats::default() }
    }
}

#[handlers]
impl ToDPDKDeviceState {
    /// Packets sent since the last reset.
    #[read]
    fn count(&self) -> u64 {
        self.device.since(|it| it.sent)
    }

    /// Bytes sent since the last reset.
    #[read]
    fn byte_count(&self) -> u64 {
        self.device.since(|it| it.sent_bytes)
    }

    /// Packets dropped since the last reset.
    #[read]
    fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The same as `count`.
    #[read]
    fn n_sent(&self) -> u64 {
        self.count()
    }

    /// The same as `dropped`.
    #[read]
    fn n_dropped(&self) -> u64 {
        self.dropped
    }

    /// The port's number.
    #[read]
    fn device(&self) -> String {
        self.device.port()
    }

    /// How packets are sent: port, driver, queues.
    #[read]
    fn how(&self) -> String {
        self.device.describe()
    }

    /// Longest packet that can be sent, its Ethernet header included: the
    /// port's MTU, or what an mbuf holds if the port takes no more than one a
    /// packet. What is longer is refused.
    #[read]
    fn longest(&self) -> u32 {
        if self.leads { self.device.get().map_or(0, Dpdk::longest) } else { 0 }
    }

    /// Packets that the port has sent.
    #[read]
    fn hw_count(&self) -> u64 {
        self.counts().tx_packets
    }

    /// Their bytes.
    #[read]
    fn hw_bytes(&self) -> u64 {
        self.counts().tx_bytes
    }

    /// Packets that the port could not send.
    #[read]
    fn hw_errors(&self) -> u64 {
        self.counts().tx_errors
    }

    /// The port's Ethernet address.
    #[read]
    fn mac(&self) -> String {
        self.device.mac()
    }

    /// Starts the counts again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        self.dropped = 0;
        Ok(())
    }
}

impl Build for ToDPDKDevice {
    type Args = ToDPDKDeviceArgs;

    fn build(settings: ToDPDKDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        let reserved = (count(setup.device_queues.0), count(setup.device_queues.1));
        Ok(ToDPDKDevice { settings, shares: setup.queue_shares.to_vec(), reserved })
    }
}

/// The port, and what is wanted of it.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <ToDPDKDeviceArgs as Args>::parse(config, names).ok()?;
    let found = crate::dpdk::summarize(&it.port);
    let first = given(it.queue);
    let left = found
        .queues
        .map_or(usize::MAX, |(_, transmit)| transmit.saturating_sub(first.unwrap_or(0)));
    let limits = [it.n_queues, it.maxthreads].map(|limit| given(limit).unwrap_or(usize::MAX));
    let most = limits.into_iter().fold(left, usize::min).max(1);
    let queues = Queues { first, least: 1, most, sockets: false };
    let (name, how, node) = (found.name, found.how, found.numa_node);
    Some(devices::Device { name, how, node, queues, rx_threads: RxThreads::default() })
}

impl PerBatch for ToDPDKDevice {
    type On = on::Any;
    type Local = ToDPDKDeviceState;
    type Fate = ToDPDKDeviceExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &ToDPDKDevice) -> bool {
        // Of the same shares, what is right for one worker is so for all.
        same_shares(&before.shares, &self.shares)
            && before.settings.port == self.settings.port
            && before.settings.allow_nonexistent == self.settings.allow_nonexistent
            && before.options(0).serve(&self.options(0))
    }

    fn init(&self, local: &mut ToDPDKDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        local.leads = self.shares.first().is_none_or(|share| share.worker == cx.worker());
        let (settings, options) = (&self.settings, self.options(cx.worker()));
        if let Some(device) = open(&settings.port, options, settings.allow_nonexistent)? {
            local.device.set(device);
        }
        Ok(())
    }

    fn start(&self, local: &mut ToDPDKDeviceState, _: &mut Cx) -> Result<(), ArgError> {
        start(&self.settings.port, &mut local.device)
    }

    fn offer_claims(&self, local: &mut ToDPDKDeviceState, leaving: bool) {
        local.device.get().into_iter().for_each(|device| device.set_retiring(leaving));
    }

    fn batch(&self, local: &mut ToDPDKDeviceState, _: usize, batch: Batch, cx: &mut Cx) {
        self.send(local, batch, cx);
    }

    fn run_timer(&self, local: &mut ToDPDKDeviceState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
    }

    fn cleanup(&self, local: &mut ToDPDKDeviceState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
        let rest = local.waiting.take();
        local.dropped += rest.len() as u64;
        cx.emit_batch(ToDPDKDeviceExit::Full, rest);
        local.device.close();
    }

    fn held(&self, local: &ToDPDKDeviceState) -> usize {
        local.waiting.len()
    }
}

impl ToDPDKDevice {
    /// What a worker opens.
    fn options(&self, worker: usize) -> Options {
        let settings = &self.settings;
        let mine = self.shares.iter().find(|share| share.worker == worker);
        let first = mine.map_or(0, |share| count(share.queues.start));
        let transmit = TxQueues { first, queues: 1, mine: 0 };
        let reserved = self.reserved;
        Options {
            transmit: Some(transmit),
            reserved,
            descriptors: settings.ndesc,
            mtu: settings.mtu,
            tx_checksums: settings.offloads.sums(),
            tso: settings.tso,
            ..Options::default()
        }
    }

    fn send(&self, local: &mut ToDPDKDeviceState, mut batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            local.dropped += batch.len() as u64;
            cx.emit_batch(ToDPDKDeviceExit::Closed, batch);
            return;
        };
        let ToDPDKDeviceArgs { iqueue, blocking, .. } = self.settings;
        let outcome = local.waiting.send(device, &mut batch, iqueue as usize, blocking, cx);
        cx.count_consumed(outcome.sent);
        let dropped = outcome.refused + batch.len();
        if dropped > 0 {
            local.dropped += dropped as u64;
            cx.count_dropped(ToDPDKDeviceExit::Refused, outcome.refused);
            cx.emit_batch(ToDPDKDeviceExit::Full, batch);
        }
        if let Some(error) = outcome.error {
            self.report(&error, cx);
        }
    }

    /// Sends up to `max` packets that a port receives without a look at them; how many came.
    pub(super) fn pass(
        &self,
        local: &mut ToDPDKDeviceState,
        from: &mut Dpdk,
        max: usize,
        cx: &mut Cx,
    ) -> usize {
        let mut batch = Batch::new();
        let device = local.device.get_mut().filter(|_| local.waiting.len() == 0);
        let passed = device.map_or(0, |to| from.forward(to, cx.pool(), &mut batch, max));
        cx.count_consumed(passed);
        let rest = batch.len();
        if rest > 0 {
            self.send(local, batch, cx);
        }
        passed + rest
    }

    fn report(&self, what: &dyn std::fmt::Display, cx: &mut Cx) {
        cx.chatter(&format!("ToDPDKDevice({}): {what}", self.settings.port));
    }
}
