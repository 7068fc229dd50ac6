//! `FromSlots`: receives packets from another process by shared memory.

use super::device_slot::{DeviceSlot, Rx};
use super::slot_args::SlotArgs;
use crate::device::Device;
use crate::slots::{Direction, SlotDevice};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Receives packets from another process by shared memory (a slot channel).
///
/// Two processes share two rings of slots, one for each direction. One of them makes the channel and
/// waits at the socket file PATH, which only its own user can reach; the other says CLIENT true and
/// connects. The other end of the rings is a `ToSlots` of the other process, or any program that
/// follows `docs/slots.md`. A `FromSlots` and a `ToSlots` of one process with the same PATH share one
/// channel and need the same arguments.
///
/// The other process need not be trusted: a slot with a wrong length or packet type costs that packet,
/// and a peer that breaks the rules of rings is disconnected. When the peer ends, the packets that it
/// has put into the ring are still received; a new one can connect 100 ms later.
///
/// Packets keep their bytes, paint, packet type and time stamp. The worker sleeps while the ring is
/// empty, unless POLL is true.
///
/// ```text
/// castanet run -e "FromDevice(eth0) -> ToSlots(/run/t.slots);
///     FromSlots(/run/t.slots) -> ToDevice(eth0)"
/// castanet run -e "FromSlots(/run/t.slots, CLIENT true) -> EtherMirror
///     -> ToSlots(/run/t.slots, CLIENT true)"
/// ```
#[derive(Clone, Element)]
#[element(ports = "0/1")]
pub struct FromSlots {
    /// The arguments of the channel.
    #[arg(flatten)]
    channel: SlotArgs,
    /// Number of packets to take at once; 0 for the engine's burst.
    #[arg(keyword, live, default = 0)]
    burst: u32,
    /// Whether the worker polls the ring without ever sleeping.
    #[arg(keyword, live, default = false)]
    poll: bool,
}

/// The exit of received packets, and the reasons to drop slots.
#[derive(Fate)]
pub enum FromSlotsExit {
    /// Packets.
    Packet,
    /// Slots whose length is zero, or more than a slot or a frame holds: the peer is at fault.
    #[drop]
    SlotLength,
    /// Slots whose packet type is none: the peer is at fault.
    #[drop]
    SlotType,
}

/// The open channel.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromSlotsState {
    #[flatten]
    device: DeviceSlot<SlotDevice, Rx>,
    /// Packets for which the pool had no frame, as they were reported.
    no_frame: u64,
}

#[handlers]
impl FromSlotsState {
    /// The channel, and whether there is a peer.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Number of times that a peer has connected.
    #[read]
    fn connections(&self) -> u64 {
        self.device.get().map_or(0, SlotDevice::connections)
    }

    /// Number of peers that were disconnected because they broke the rules of rings.
    #[read]
    fn ring_faults(&self) -> u64 {
        self.device.get().map_or(0, |device| device.losses().ring_faults)
    }

    /// Resets `count` and `byte_count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromSlots| it.channel.resources())
}

impl Source for FromSlots {
    type Local = FromSlotsState;
    type Fate = FromSlotsExit;

    fn can_take_state(&self, before: &FromSlots) -> bool {
        self.channel == before.channel
    }

    fn init(&self, local: &mut FromSlotsState, _: &mut Cx) -> Result<(), ArgError> {
        local.device.set(self.channel.open(Direction::Receive)?);
        Ok(())
    }

    fn produce(&self, local: &mut FromSlotsState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(device) = local.device.get_mut() else { return NextRun::Done };
        let n = if self.burst > 0 { self.burst as usize } else { n };
        let (mut batch, before) = (Batch::new(), device.losses());
        if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
            cx.chatter(&format!("FromSlots({}): {error}", self.channel.path()));
        }
        cx.report_missed(&mut local.no_frame, device.no_frame());
        let losses = device.losses();
        let length = (losses.length - before.length) as usize;
        let kind = (losses.kind - before.kind) as usize;
        cx.count_received(batch.len() + length + kind);
        cx.count_dropped(FromSlotsExit::SlotLength, length);
        cx.count_dropped(FromSlotsExit::SlotType, kind);
        if !batch.is_empty() {
            batch.iter_mut().for_each(|packet| packet.set_mac_header(0));
            cx.emit_batch(FromSlotsExit::Packet, batch);
            return NextRun::Again;
        }
        for message in device.take_messages() {
            cx.chatter(&format!("FromSlots: {message}"));
        }
        if let Some(time) = device.retry_in() {
            return NextRun::At(cx.now() + time);
        }
        if length + kind > 0 || self.poll || !device.may_sleep() {
            return NextRun::Again;
        }
        device.fd().map_or(NextRun::Again, NextRun::Readable)
    }

    fn cleanup(&self, local: &mut FromSlotsState, _: &mut Cx) {
        local.device.close();
    }
}
