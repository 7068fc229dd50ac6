//! `ToDPDKDevice`: sends packets on a DPDK port.

use super::device_slot::{DeviceSlot, Tx};
use super::dpdk::{Offloads, PortInfo, count, open, start};
use super::metrics;
use super::rx_placement::{nonnegative, same_shares};
use super::tx_queue::{Room, TxQueue};
use crate::dpdk::{Dpdk, Options, OtherPackets, TxQueues};
use crate::sys::dpdk::PortStats;
use castanet_element::bypass::BytesHandler;
use castanet_element::device as devices;
use castanet_element::device::{Queues, RxThreads};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Sends packets, Ethernet header included, on the DPDK port PORT.
///
/// PORT is a port's number, its PCI address, or the name of a virtual device.
/// The element hands over packets from a DPDK port without a copy; it copies
/// others, and those that share their bytes, into an mbuf. Each worker whose
/// packets can reach the element sends to a queue of its own, or shares one if the
/// port has fewer (`castanet explain` shows it). The element sends the packets of a
/// burst together. Packets for which the port has no room wait, up to IQUEUE
/// of them. With BLOCKING the worker blocks instead of dropping more; once the port
/// has taken nothing for a tenth of a second, the worker blocks again only after the
/// port has taken a packet.
///
/// The element sends a packet that is longer than an mbuf in several, if the port
/// supports that and its MTU (MTU, here or at `FromDPDKDevice`) allows such packets;
/// the handlers `longest` and `how` return the limits.
///
/// The port computes the checksums that `ResetIPChecksum` has left open, if IPCO,
/// TCO or UCO ask for it and the port can; otherwise the element computes them. With
/// TSO, TCP packets longer than the MTU are sent as shorter segments: the port cuts
/// them if it can, otherwise the element does. Both apply to the packets of other
/// elements on the same port too; the handler `how` shows what the port does.
///
/// ```text
/// FromDevice(eth0) -> ToDPDKDevice(0);
/// ... -> ResetIPChecksum(L4 true) -> ToDPDKDevice(1, TCO true, UCO true, TSO true);
/// ```
#[derive(Element)]
#[element(headers = Send, args = ToDPDKDeviceArgs, ports = "1/0")]
pub struct ToDPDKDevice {
    settings: ToDPDKDeviceArgs,
    /// The queues of each worker.
    shares: Vec<QueueShare>,
    /// Number of queues that the port must have, to receive and to send.
    reserved: (u16, u16),
}

/// The arguments of `ToDPDKDevice`.
#[derive(Args)]
pub struct ToDPDKDeviceArgs {
    /// The port to send on.
    #[arg]
    port: String,
    /// The first queue; -1 for 0.
    #[arg(default = -1, range = -1..=65535)]
    queue: i32,
    /// Number of queues; -1 for one a worker.
    #[arg(default = -1, range = -1..=65535)]
    n_queues: i32,
    /// Number of packets of each worker that may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether the worker blocks until there is room, or until the port has taken
    /// nothing for a tenth of a second, instead of dropping packets.
    #[arg(keyword, default = true)]
    blocking: bool,
    /// Number of packets to gather before sending, in FastClick; ignored here.
    #[arg(keyword, default = -1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: i32,
    /// Milliseconds to gather packets for, in FastClick; ignored here, bursts are sent at once.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    timeout: i32,
    /// Number of descriptors of each queue; 0 for 1024, or the driver's limit.
    #[arg(keyword, default = 0)]
    ndesc: u16,
    /// Longest packet without its Ethernet header; 0 for 1500.
    #[arg(keyword, default = 0)]
    mtu: u16,
    /// The checksums that the port computes.
    #[arg(flatten)]
    offloads: Offloads,
    /// Whether TCP packets longer than the MTU are cut into segments.
    #[arg(keyword, default = false)]
    tso: bool,
    /// Whether the port may be missing: then the element drops packets.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// The largest number of workers with a queue of their own; -1 for all whose packets get here.
    #[arg(keyword, default = -1, range = -1..=65535)]
    maxthreads: i32,
    /// The amount of output about queues, in FastClick; ignored here.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    verbose: u32,
}

/// The reasons to drop packets.
#[derive(Fate)]
pub enum ToDPDKDeviceExit {
    /// Packets without a byte, or longer than the port sends.
    #[drop]
    Refused,
    /// Packets for which the port had no room, beyond the IQUEUE packets that may wait. Raise
    /// IQUEUE, or look at the rate at which packets leave.
    #[drop]
    Full,
    /// Packets for a port that is missing.
    #[drop]
    Closed,
}

/// A worker's open queue, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDPDKDeviceState {
    #[flatten]
    device: DeviceSlot<Dpdk, Tx>,
    #[flatten]
    waiting: TxQueue,
    /// Whether this worker reports the port's own values: the other workers report zeros for them.
    is_leader: bool,
}

impl ToDPDKDeviceState {
    /// The port's own counts; zeros unless this worker reports them.
    fn counts(&self) -> PortStats {
        if self.is_leader { self.device.counts() } else { PortStats::default() }
    }
}

#[handlers]
impl ToDPDKDeviceState {
    /// The same as `count`.
    #[read]
    fn n_sent(&self) -> u64 {
        self.device.count()
    }

    /// The port's number.
    #[read]
    fn device(&self) -> String {
        self.device.port()
    }

    /// The port, its driver and its queues.
    #[read]
    fn how(&self) -> String {
        self.device.describe()
    }

    /// Longest packet that the port can send, its Ethernet header included: the port's
    /// MTU, or the size of an mbuf if the port takes one mbuf a packet. Longer packets
    /// are refused.
    #[read]
    fn longest(&self) -> u32 {
        if self.is_leader { self.device.get().map_or(0, Dpdk::longest) } else { 0 }
    }

    /// Packets that the port has sent.
    #[read]
    fn hw_count(&self) -> u64 {
        self.counts().tx_packets
    }

    /// Bytes that the port has sent.
    #[read]
    fn hw_bytes(&self) -> u64 {
        self.counts().tx_bytes
    }

    /// Packets that the port could not send.
    #[read]
    #[metric(metrics::SEND_ERRORS)]
    fn hw_errors(&self) -> u64 {
        self.counts().tx_errors
    }

    /// The port's Ethernet address.
    #[read]
    fn mac(&self) -> String {
        self.device.mac()
    }

    /// Resets the counts to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        self.waiting.dropped = 0;
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

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ToDPDKDeviceArgs| {
        super::dpdk::resources(crate::dpdk::summarize(&it.port).name)
    })
}

/// The port and the queues that the arguments ask for; `None` if they are wrong.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <ToDPDKDeviceArgs as Args>::parse(config, names).ok()?;
    let summary = crate::dpdk::summarize(&it.port);
    let first = nonnegative(it.queue);
    let left = summary
        .queues
        .map_or(usize::MAX, |(_, transmit)| transmit.saturating_sub(first.unwrap_or(0)));
    let limits = [it.n_queues, it.maxthreads].map(|limit| nonnegative(limit).unwrap_or(usize::MAX));
    let most = limits.into_iter().fold(left, usize::min).max(1);
    let queues = Queues { first, least: 1, most, sockets: false };
    let (name, how, node) = (summary.name, summary.how, summary.numa_node);
    Some(devices::Device { name, how, node, queues, rx_threads: RxThreads::default() })
}

impl PerBatch for ToDPDKDevice {
    type On = on::Any;
    type Local = ToDPDKDeviceState;
    type Fate = ToDPDKDeviceExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &ToDPDKDevice) -> bool {
        // With the same shares, the options of all workers agree if those of one do.
        same_shares(&before.shares, &self.shares)
            && before.settings.port == self.settings.port
            && before.settings.allow_nonexistent == self.settings.allow_nonexistent
            && before.options(0).serve(&self.options(0))
    }

    fn init(&self, local: &mut ToDPDKDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        local.is_leader = self.shares.first().is_none_or(|share| share.worker == cx.worker());
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
        local.waiting.discard(ToDPDKDeviceExit::Full, cx);
        local.device.close();
    }

    fn held(&self, local: &ToDPDKDeviceState) -> usize {
        local.waiting.len()
    }
}

impl ToDPDKDevice {
    /// The options with which `worker` opens the port.
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
            tx_checksums: settings.offloads.checksums(),
            tso: settings.tso,
            ..Options::default()
        }
    }

    fn send(&self, local: &mut ToDPDKDeviceState, batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            return local.waiting.drop_batch(batch, ToDPDKDeviceExit::Closed, cx);
        };
        let room = Room { limit: self.settings.iqueue as usize, blocking: self.settings.blocking };
        let exits = (ToDPDKDeviceExit::Refused, ToDPDKDeviceExit::Full);
        let outcome = local.waiting.send(device, batch, room, exits, cx);
        if let Some(error) = outcome.error {
            self.report(&error, cx);
        }
    }

    /// Forwards up to `max` packets from the port `from` without making packets of them, but for their bytes
    /// that `handler` handles; how many went this way. Those that `handler` refuses are added to `refused`.
    /// Receives none while packets wait, which would be overtaken. `None` while the device is missing.
    pub(super) fn pass(
        &self,
        local: &mut ToDPDKDeviceState,
        (from, refused): (&mut Dpdk, &mut Batch),
        max: usize,
        handler: Option<BytesHandler>,
        cx: &mut Cx,
    ) -> Option<PacketTotals> {
        let mut unsent = Batch::new();
        let to = local.device.get_mut()?;
        if local.waiting.len() > 0 {
            return Some(PacketTotals::default());
        }
        let others = OtherPackets { unsent: &mut unsent, refused };
        let mut totals = from.forward(to, cx.pool(), others, max, handler);
        cx.count_consumed(totals.packets as usize);
        if !unsent.is_empty() {
            totals += unsent.totals();
            self.send(local, unsent, cx);
        }
        Some(totals)
    }

    fn report(&self, what: &dyn std::fmt::Display, cx: &mut Cx) {
        cx.chatter(&format!("ToDPDKDevice({}): {what}", self.settings.port));
    }
}
