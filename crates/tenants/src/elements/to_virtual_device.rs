//! `ToVirtualDevice`: takes the frames that a tenant sends on its virtual device.

use super::source_addresses::{SourceAddresses, announcement};
use castanet_element::prelude::*;
use castanet_wire::{Ethernet, Vlan, ether_type, vlan};

/// Passes on the Ethernet frames that a tenant sends on its virtual device.
///
/// `castanet tenants` puts this element in the place of a tenant's `ToDevice`; the multiplexer of
/// the physical device is behind it. The input may be push or pull, as that of `ToDevice`.
///
/// When the tenant has come from another instance, the element announces its Ethernet addresses, so that switches
/// send to this instance what is for the tenant: for each source address of the frames that it sent there last, it
/// sends some RARP requests (RFC 903), as QEMU does for a virtual machine.
///
/// ```click
/// in -> v :: ToVirtualDevice(eth1, MTU 28) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp len 28
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 1.0.0.1 > 2.0.0.2 udp len 28
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp len 29
/// > in  hex 61
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp len 28
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 1.0.0.1 > 2.0.0.2 udp len 28
/// = v.drops.too_long 1
/// = v.drops.short 1
/// = v.count 2
/// = v.byte_count 88
/// = v.virtual_device eth1
/// = v.mtu 28
/// ! v.mtu 1500
/// ! v.reset_counts
/// = v.count 0
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/1", processing = "a/h")]
pub struct ToVirtualDevice {
    /// The tenant's name of the device.
    #[arg]
    #[read]
    virtual_device: String,
    /// Maximum length of what an Ethernet frame carries behind its header and one VLAN tag, in bytes.
    #[arg(keyword, live, default = 1500)]
    mtu: usize,
}

#[derive(Fate)]
pub enum ToVirtualDeviceExit {
    /// Ethernet frames, for the multiplexer.
    Sent,
    /// Frames that are longer than MTU allows. Fragment the packets, or lower the MTU of their
    /// senders.
    #[drop]
    TooLong,
    /// Packets that are too short for an Ethernet header.
    #[drop]
    Short,
}

/// Counters of the frames sent, and their source addresses.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToVirtualDeviceState {
    /// Frames sent, since the last reset if there was one.
    #[read]
    #[portable]
    count: u64,
    /// Bytes sent, since the last reset if there was one.
    #[read]
    #[portable]
    byte_count: u64,
    #[portable]
    sources: SourceAddresses,
}

#[handlers]
impl ToVirtualDeviceState {
    /// Resets `count` and `byte_count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        (self.count, self.byte_count) = (0, 0);
        Ok(())
    }
}

impl ToVirtualDeviceState {
    fn note_sent(&mut self, batch: &Batch) {
        self.count += batch.len() as u64;
        self.byte_count += batch.byte_count();
        // One frame of a burst tells enough.
        let last = batch.as_slice().last().and_then(|it| Ethernet::from_prefix(it.bytes()));
        if let Some((header, _)) = last {
            self.sources.note(header.src());
        }
    }
}

impl ToVirtualDevice {
    /// Takes out packets that are not sent.
    #[cold]
    fn sort_out(&self, batch: &mut Batch, cx: &mut Cx) {
        for packet in std::mem::take(batch).drain() {
            match self.check(&packet) {
                ToVirtualDeviceExit::Sent => batch.push(packet),
                exit => cx.emit(exit, packet),
            }
        }
    }

    fn check(&self, packet: &Packet) -> ToVirtualDeviceExit {
        let Some(length) = packet.len().checked_sub(Ethernet::LEN) else {
            return ToVirtualDeviceExit::Short;
        };
        let is_tagged = vlan::tag(packet.bytes(), ether_type::VLAN).is_some();
        match length > self.mtu.saturating_add(if is_tagged { Vlan::LEN } else { 0 }) {
            true => ToVirtualDeviceExit::TooLong,
            false => ToVirtualDeviceExit::Sent,
        }
    }
}

impl PerBatch for ToVirtualDevice {
    type On = on::Any;
    type Local = ToVirtualDeviceState;
    type Fate = ToVirtualDeviceExit;

    fn batch(&self, it: &mut ToVirtualDeviceState, _: usize, mut batch: Batch, cx: &mut Cx) {
        let fitting = Ethernet::LEN..=self.mtu.saturating_add(Ethernet::LEN);
        if !batch.iter().all(|packet| fitting.contains(&packet.len())) {
            self.sort_out(&mut batch, cx);
        }
        it.note_sent(&batch);
        cx.emit_batch(ToVirtualDeviceExit::Sent, batch);
    }

    fn after_take_state(&self, it: &mut ToVirtualDeviceState, cx: &mut Cx) {
        if it.sources.has_announcement() {
            cx.set_timer(cx.now());
        }
    }

    fn run_timer(&self, it: &mut ToVirtualDeviceState, cx: &mut Cx) {
        let Some(pause) = it.sources.announce() else { return };
        for source in it.sources.iter() {
            if let Some(packet) = cx.copy_in(&announcement(source)) {
                cx.emit(ToVirtualDeviceExit::Sent, packet);
            }
        }
        cx.set_timer(cx.now() + pause);
    }
}
