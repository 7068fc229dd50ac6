//! `ToDevice`: packets for a network interface to send.

use super::device_selection::{self, DeviceRequest, SelectedDevice};
use super::device_slot::DeviceSlot;
use super::method::Method;
use super::rx_placement::{given, same_shares};
use super::tx_queue::TxQueue;
use crate::device::Device;
use castanet_element::device as devices;
use castanet_element::device::{Queues, RxThreads};
use castanet_element::prelude::*;

/// Sends packets, link header included, on the network interface DEVNAME.
///
/// It takes packets pushed and pulled alike, and sends what a burst brings at
/// once. Packets that the interface has no room for wait, up to IQUEUE of them
/// on each worker. The way they go is chosen as `FromDevice` chooses, and the
/// handler `device` says which and why: by AF_XDP they go out in place, past the
/// queueing discipline and `tcpdump`. Each worker whose packets can come here
/// has a hardware queue of its own, or shares one where there are fewer, as
/// `castanet explain` shows; by packet socket each has a socket of its own.
/// Where outputs are connected, packets that were sent go to output 0 and
/// packets that were refused to output 1.
///
/// ```text
/// FromDevice(eth0) -> Queue -> ToDevice(eth1);
/// FromDevice(eth1) -> ToDevice(eth0);
/// ```
#[derive(Element)]
#[element(args = ToDeviceArgs, ports = "1/0-2", processing = "a/h")]
pub struct ToDevice {
    settings: ToDeviceArgs,
    /// How many outputs are connected.
    outputs: usize,
    /// What each worker has of the device.
    shares: Vec<QueueShare>,
}

/// What can be set.
#[derive(Args)]
pub struct ToDeviceArgs {
    /// The interface to send on.
    #[arg]
    devname: String,
    /// How many packets to pull at once, in Click; the engine's burst decides.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: u32,
    /// How packets are sent: by AF_XDP, or by `sendmmsg`.
    #[arg(keyword, default = Method::Best)]
    method: Method,
    /// How many packets of each worker may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether a worker whose packets find no place to wait waits itself,
    /// until none has gone for a tenth of a second, rather than drop them.
    #[arg(keyword, default = false)]
    blocking: bool,
    /// By AF_XDP, the first queue to send to; -1 for 0.
    #[arg(keyword, default = -1, range = -1..=65535)]
    queue: i32,
    /// By AF_XDP, how many queues to send to; -1 for one a worker.
    #[arg(keyword, default = -1, range = -1..=65535)]
    n_queues: i32,
    /// Whether to pass by the interface's queueing discipline, and `tcpdump`.
    #[arg(keyword, default = false)]
    bypass_qdisc: bool,
    /// Whether to write a line about each packet that is refused.
    #[arg(keyword, default = false)]
    debug: bool,
}

impl ToDeviceArgs {
    /// What to open, to send to that queue.
    fn request(&self, transmit: u32) -> DeviceRequest {
        let (method, bypass_qdisc) = (self.method, self.bypass_qdisc);
        DeviceRequest { method, receive: None, transmit, bypass_qdisc }
    }
}

/// The interface, and what is wanted of it.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <ToDeviceArgs as Args>::parse(config, names).ok()?;
    let found = device_selection::foresee(&it.devname, &it.request(0));
    let first = given(it.queue);
    let most = found.queues.map_or(usize::MAX, |(_, transmit)| {
        let left = transmit.saturating_sub(first.unwrap_or(0));
        given(it.n_queues).unwrap_or(left).min(left)
    });
    let queues = Queues { first, least: 1, most: most.max(1), sockets: found.queues.is_none() };
    let (name, how, node) = (it.devname, found.how, found.numa_node);
    Some(devices::Device { name, how, node, queues, rx_threads: RxThreads::default() })
}

/// Where packets go after the interface.
#[derive(Fate)]
pub enum Sent {
    /// Packets that were sent.
    #[optional]
    Sent,
    /// Packets that were refused.
    #[optional]
    Failed,
    /// Packets that the interface refused: too long, or the link is down.
    #[drop]
    Refused,
    /// Packets that found no place to wait.
    #[drop]
    Full,
    /// Packets that come before the interface is open or after it was closed.
    #[drop]
    Closed,
}

/// The open interface, and what waits for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDeviceState {
    device: DeviceSlot<SelectedDevice>,
    waiting: TxQueue,
}

#[handlers]
impl ToDeviceState {
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

    /// Packets that the interface refused.
    #[read]
    fn errors(&self) -> u64 {
        self.device.stats().tx_errors
    }

    /// How often there was no room to send.
    #[read]
    fn full(&self) -> u64 {
        self.device.stats().tx_full
    }

    /// How packets are sent, and why that way.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Starts `count` and `byte_count` again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

impl Build for ToDevice {
    type Args = ToDeviceArgs;

    fn build(settings: ToDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ToDevice { settings, outputs: setup.outputs, shares: setup.queue_shares.to_vec() })
    }
}

impl PerBatch for ToDevice {
    type On = on::Any;
    type Local = ToDeviceState;
    type Fate = Sent;
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
        local.device.set(device_selection::open(&self.settings.devname, &request, cx.pool())?);
        Ok(())
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
        cx.emit_batch(Sent::Full, local.waiting.take());
    }

    fn held(&self, local: &ToDeviceState) -> usize {
        local.waiting.len()
    }
}

impl ToDevice {
    fn send(&self, local: &mut ToDeviceState, mut batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(Sent::Closed, batch);
            return;
        };
        let ToDeviceArgs { iqueue, blocking, .. } = self.settings;
        let outcome = local.waiting.send(device, &mut batch, iqueue as usize, blocking, cx);
        cx.count_consumed(outcome.sent);
        cx.count_dropped(Sent::Refused, outcome.refused);
        cx.emit_batch(Sent::Full, batch);
        if self.settings.debug && outcome.refused > 0 {
            self.report(&format_args!("{} packets refused", outcome.refused), cx);
        }
        if let Some(error) = outcome.error {
            self.report(&error, cx);
        }
    }

    /// Sends up to `max` packets that an interface receives without a look at them; how many.
    pub(super) fn pass(
        &self,
        local: &mut ToDeviceState,
        from: &mut SelectedDevice,
        max: usize,
        cx: &mut Cx,
    ) -> usize {
        let to = local.device.get_mut().filter(|_| local.waiting.len() == 0);
        let Some(to) = to else { return 0 };
        let passed = from.pass(to, max);
        if passed > 0 {
            cx.count_consumed(passed);
            local.waiting.schedule_retry(to, cx);
        }
        passed
    }

    /// Sends packets one by one, so that each can go on to where it belongs.
    fn send_each(&self, local: &mut ToDeviceState, mut batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(Sent::Closed, batch);
            return;
        };
        for mut packet in batch.drain() {
            let mut one = Batch::new();
            one.push(packet.share());
            let sent = device.transmit(&mut one).and_then(|n| device.flush().map(|()| n));
            let fate = if matches!(sent, Ok(1)) { Sent::Sent } else { Sent::Failed };
            drop(one);
            cx.emit(fate, packet);
        }
    }

    fn report(&self, what: &dyn std::fmt::Display, cx: &mut Cx) {
        cx.chatter(&format!("ToDevice({}): {what}", self.settings.devname));
    }
}
