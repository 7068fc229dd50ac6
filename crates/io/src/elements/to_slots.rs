//! `ToSlots`: sends packets to another process by shared memory.

use super::device_slot::{DeviceSlot, Tx};
use super::slot_args::SlotArgs;
use super::tx_queue::{Room, TxQueue};
use crate::slots::{Direction, SlotDevice};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;

/// Sends packets to another process by shared memory (a slot channel).
///
/// `FromSlots` describes the channel and its arguments. The element copies each packet into a slot,
/// with its paint, packet type and time stamp. Packets for which the ring has no room wait, up to
/// IQUEUE of them. Packets that arrive while no peer is connected are dropped; those that were in the
/// ring when the peer ended are counted by the handler `unread`.
///
/// ```text
/// FromDevice(eth0) -> ToSlots(/run/tenant.slots, SLOTS 4096);
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/0")]
pub struct ToSlots {
    /// The arguments of the channel.
    #[arg(flatten)]
    channel: SlotArgs,
    /// Number of packets that may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether the worker blocks until there is room, or until the peer has taken
    /// nothing for a tenth of a second, instead of dropping packets.
    #[arg(keyword, default = false)]
    blocking: bool,
}

/// The reasons to drop packets.
#[derive(Fate)]
pub enum ToSlotsExit {
    /// Packets while no peer is connected.
    #[drop]
    NoPeer,
    /// Packets that are empty or longer than a slot. Raise SNAPLEN where the channel is made.
    #[drop]
    Refused,
    /// Packets for which the ring had no room, beyond the IQUEUE packets that may wait. Raise
    /// IQUEUE or SLOTS, or look at the rate at which the peer takes packets.
    #[drop]
    Full,
}

/// The open channel, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToSlotsState {
    #[flatten]
    device: DeviceSlot<SlotDevice, Tx>,
    #[flatten]
    waiting: TxQueue,
    /// Whether there was a peer at the last burst.
    attached: bool,
}

#[handlers]
impl ToSlotsState {
    /// The channel, and whether there is a peer.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Packets that were in the ring when the peer ended.
    #[read]
    fn unread(&self) -> u64 {
        self.device.get().map_or(0, |device| device.losses().unread)
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
    from_args(config, names, |it: &ToSlots| it.channel.resources())
}

impl PerBatch for ToSlots {
    type On = on::Any;
    type Local = ToSlotsState;
    type Fate = ToSlotsExit;
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ToSlots) -> bool {
        self.channel == before.channel
    }

    fn init(&self, local: &mut ToSlotsState, _: &mut Cx) -> Result<(), ArgError> {
        local.device.set(self.channel.open(Direction::Send)?);
        Ok(())
    }

    fn batch(&self, local: &mut ToSlotsState, _: usize, batch: Batch, cx: &mut Cx) {
        self.send(local, batch, cx);
    }

    fn run_timer(&self, local: &mut ToSlotsState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
    }

    fn cleanup(&self, local: &mut ToSlotsState, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
        local.waiting.discard(ToSlotsExit::Full, cx);
        local.device.close();
    }

    fn held(&self, local: &ToSlotsState) -> usize {
        local.waiting.len()
    }
}

impl ToSlots {
    fn send(&self, local: &mut ToSlotsState, batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            return local.waiting.drop_batch(batch, ToSlotsExit::NoPeer, cx);
        };
        let attached = device.attach();
        if attached != std::mem::replace(&mut local.attached, attached) {
            for message in device.take_messages() {
                cx.chatter(&format!("ToSlots: {message}"));
            }
        }
        if !attached {
            local.waiting.discard(ToSlotsExit::NoPeer, cx);
            return local.waiting.drop_batch(batch, ToSlotsExit::NoPeer, cx);
        }
        let room = Room { limit: self.iqueue as usize, blocking: self.blocking };
        let exits = (ToSlotsExit::Refused, ToSlotsExit::Full);
        let outcome = local.waiting.send(device, batch, room, exits, cx);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("ToSlots({}): {error}", self.channel.path()));
        }
    }
}
