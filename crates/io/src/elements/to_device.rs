//! `ToDevice`: sends packets on a network interface.

use super::attached_device::AttachedDevice;
use super::device_selection::{self, DeviceRequest};
use super::device_slot::{DeviceSlot, Tx};
use super::link_handlers::LinkHandlers;
use super::method::Method;
use super::metrics;
use super::rx_placement::{nonnegative, same_shares};
use super::tx_queue::{Room, TxQueue};
use crate::af_xdp::set_descriptors;
use crate::device::Device;
use castanet_element::device as devices;
use castanet_element::device::{Queues, RxThreads};
use castanet_element::handler::Sums;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Sends packets, link header included, on the network interface DEVNAME.
///
/// The input may be push or pull. The element sends the packets of a burst
/// together. Packets for which the interface has no room wait, up to IQUEUE of
/// them on each worker. The element chooses its method as `FromDevice` does, and
/// the handler `device` returns the method and the reason: with AF_XDP it sends
/// without a copy, and the queueing discipline and `tcpdump` do not see the
/// packets. Each worker whose packets can reach the element has a hardware queue of
/// its own, or shares one if the interface has fewer, as `castanet explain` shows;
/// with packet sockets each has a socket of its own. If outputs are connected,
/// packets that were sent go to output 0 and packets that were refused to output 1.
///
/// ```text
/// FromDevice(eth0) -> Queue -> ToDevice(eth1);
/// FromDevice(eth1) -> ToDevice(eth0);
/// ```
#[derive(Clone, Element)]
#[element(args = ToDeviceArgs, ports = "1/0-2", processing = "a/h", headers = Send)]
pub struct ToDevice {
    settings: ToDeviceArgs,
    /// Whether to write a line when the interface refuses packets.
    #[arg(keyword, live, default = false)]
    debug: bool,
    #[flatten]
    link: LinkHandlers,
    /// Number of connected outputs.
    outputs: usize,
    /// The queues of each worker.
    shares: Vec<QueueShare>,
}

/// The arguments of `ToDevice`.
#[derive(Clone, Args)]
pub struct ToDeviceArgs {
    /// The interface to send on.
    #[arg]
    devname: String,
    /// Number of packets to pull at once, in Click; ignored here, the engine's burst applies.
    #[arg(keyword, default = 1)]
    burst: i32,
    /// The method by which the element sends: AF_XDP, or `sendmmsg` on a packet socket.
    #[arg(keyword, default = Method::Best, shown = "default")]
    method: Method,
    /// Number of packets of each worker that may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether a worker blocks when more than IQUEUE packets wait, until the
    /// interface has taken none for a tenth of a second, instead of dropping packets.
    #[arg(keyword, default = false)]
    blocking: bool,
    /// With AF_XDP, the first queue to send to; -1 for 0.
    #[arg(keyword, default = -1, range = -1..=65535)]
    queue: i32,
    /// With AF_XDP, the number of queues to send to; -1 for one a worker.
    #[arg(keyword, default = -1, range = -1..=65535)]
    n_queues: i32,
    /// With AF_XDP, number of descriptors of each queue, rounded up to a power of two; 0 for 2048. It counts
    /// where no other element has the interface open already.
    #[arg(keyword, default = 0, range = 0..=32768)]
    ndesc: u16,
    /// Whether packets bypass the interface's queueing discipline and `tcpdump`.
    #[arg(keyword, default = false)]
    bypass_qdisc: bool,
    /// Whether to write a line when the interface refuses packets.
    #[arg(keyword, default = false)]
    debug: bool,
}

impl ToDeviceArgs {
    /// The device to open in order to send to the queue `transmit`.
    fn request(&self, transmit: u32) -> DeviceRequest {
        let (method, bypass_qdisc) = (self.method, self.bypass_qdisc);
        DeviceRequest { method, receive: None, transmit, bypass_qdisc }
    }
}

/// The interface and the queues that the arguments ask for; `None` if they are wrong.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <ToDeviceArgs as Args>::parse(config, names).ok()?;
    let forecast = device_selection::predict(&it.devname, &it.request(0));
    let first = nonnegative(it.queue);
    let most = forecast.queues.map_or(usize::MAX, |(_, transmit)| {
        let left = transmit.saturating_sub(first.unwrap_or(0));
        nonnegative(it.n_queues).unwrap_or(left).min(left)
    });
    let queues = Queues { first, least: 1, most: most.max(1), sockets: forecast.queues.is_none() };
    let (name, how, node) = (it.devname, forecast.how, forecast.numa_node);
    Some(devices::Device { name, how, node, queues, rx_threads: RxThreads::default() })
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ToDeviceArgs| {
        device_selection::resources(&it.devname, &it.request(0))
    })
}

/// The exits of packets, and the reasons to drop them.
#[derive(Fate)]
pub enum ToDeviceExit {
    /// Packets that were sent.
    #[optional]
    Sent,
    /// Packets that were refused.
    #[optional]
    Failed,
    /// Packets that the interface refused: too long, or the link is down. Check the link and its
    /// MTU.
    #[drop]
    Refused,
    /// Packets for which the interface had no room, beyond the IQUEUE packets that may wait. Raise
    /// IQUEUE, or look at the rate that the link can send.
    #[drop]
    Full,
    /// Packets to an interface that is gone: it was removed, or moved to another network namespace.
    /// Packets are sent again when an interface of its name is up; the handler `link` says whether it
    /// is.
    #[drop]
    Gone,
    /// Packets that arrive before the interface is open or after it was closed.
    #[drop]
    Closed,
}

/// A worker's open interface, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDeviceState {
    #[flatten]
    device: DeviceSlot<AttachedDevice, Tx>,
    waiting: TxQueue,
}

#[handlers]
impl ToDeviceState {
    /// Packets that the interface refused.
    #[read]
    #[metric(metrics::SEND_ERRORS)]
    fn errors(&self) -> u64 {
        self.device.stats().tx_errors
    }

    /// Whether packets wait until the interface has room.
    #[read]
    fn q(&self) -> Value {
        let is_any = |waiting: &[u64]| waiting.iter().any(|&count| count > 0).to_string();
        Value::Sums(Sums::new(vec![self.waiting.len() as u64], is_any))
    }

    /// Number of times that the interface had no room.
    #[read]
    fn full(&self) -> u64 {
        self.device.stats().tx_full
    }

    /// The method by which the element sends, and the reason for it.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Resets `count` and `byte_count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

impl Build for ToDevice {
    type Args = ToDeviceArgs;

    fn build(settings: ToDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        if settings.burst <= 0 {
            return Err(ArgError::new("bad BURST").help("BURST is at least 1"));
        }
        let (link, outputs) = (LinkHandlers::new(&settings.devname), setup.outputs);
        set_descriptors(&settings.devname, false, settings.ndesc);
        let (debug, shares) = (settings.debug, setup.queue_shares.to_vec());
        Ok(ToDevice { settings, debug, link, outputs, shares })
    }
}

impl PerBatch for ToDevice {
    type On = on::Any;
    type Local = ToDeviceState;
    type Fate = ToDeviceExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &ToDevice) -> bool {
        let (now, then) = (&self.settings, &before.settings);
        now.devname == then.devname
            && now.request(0) == then.request(0)
            && same_shares(&before.shares, &self.shares)
    }

    fn init(&self, local: &mut ToDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        let share = self.shares.iter().find(|share| share.worker == cx.worker());
        let request = self.settings.request(share.map_or(0, |share| share.queues.start as u32));
        local.device.set(AttachedDevice::open(&self.settings.devname, &request, cx.pool())?);
        Ok(())
    }

    fn exchange_device(&self, local: &mut ToDeviceState, cx: &mut Cx) {
        let device = local.device.get_mut();
        if device.is_some_and(|device| device.exchange() && device.is_away()) {
            local.waiting.discard(ToDeviceExit::Gone, cx);
        }
    }

    fn batch(&self, local: &mut ToDeviceState, _: usize, batch: Batch, cx: &mut Cx) {
        match self.outputs {
            0 => self.send(local, batch, cx),
            _ => self.send_each(local, batch, cx),
        }
    }

    fn run_timer(&self, local: &mut ToDeviceState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
    }

    fn cleanup(&self, local: &mut ToDeviceState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
        local.waiting.discard(ToDeviceExit::Full, cx);
    }

    fn held(&self, local: &ToDeviceState) -> usize {
        local.waiting.len()
    }
}

impl ToDevice {
    fn send(&self, local: &mut ToDeviceState, batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(ToDeviceExit::Closed, batch);
            return;
        };
        if device.is_away() {
            local.waiting.drop_batch(batch, ToDeviceExit::Gone, cx);
            return;
        }
        let room = Room { limit: self.settings.iqueue as usize, blocking: self.settings.blocking };
        let exits = (ToDeviceExit::Refused, ToDeviceExit::Full);
        let outcome = local.waiting.send(device, batch, room, exits, cx);
        if self.debug && outcome.refused > 0 {
            self.report(&format_args!("{} packets refused", outcome.refused), cx);
        }
        if let Some(error) = outcome.error {
            self.report(&error, cx);
        }
    }

    /// Forwards up to `max` packets from the interface `from` without inspection; how many.
    /// Forwards none while packets wait, which would be overtaken. `None` while the interface is missing.
    pub(super) fn pass(
        &self,
        local: &mut ToDeviceState,
        from: &mut AttachedDevice,
        max: usize,
        cx: &mut Cx,
    ) -> Option<PacketTotals> {
        let to = local.device.get_mut()?;
        if local.waiting.len() > 0 {
            return Some(PacketTotals::default());
        }
        let passed = from.pass(to, max);
        if passed.packets > 0 {
            cx.count_consumed(passed.packets as usize);
            local.waiting.schedule_retry(to, cx);
        }
        Some(passed)
    }

    /// Sends packets one by one, so that each leaves by the output of its own result.
    fn send_each(&self, local: &mut ToDeviceState, mut batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(ToDeviceExit::Closed, batch);
            return;
        };
        if device.is_away() {
            cx.emit_batch(ToDeviceExit::Failed, batch);
            return;
        }
        for mut packet in batch.drain() {
            let mut one = Batch::new();
            one.push(packet.share());
            let result = device.transmit(&mut one).and_then(|n| device.flush().map(|()| n));
            let fate =
                if matches!(result, Ok(1)) { ToDeviceExit::Sent } else { ToDeviceExit::Failed };
            drop(one);
            cx.emit(fate, packet);
        }
    }

    fn report(&self, what: &dyn std::fmt::Display, cx: &mut Cx) {
        cx.chatter(&format!("ToDevice({}): {what}", self.settings.devname));
    }
}
