//! `ToVirtualDevice`: takes the frames that a tenant sends on its virtual device.

use castanet_element::prelude::*;
use castanet_wire::{Ethernet, Vlan, ether_type, vlan};

/// Passes on the Ethernet frames that a tenant sends on its virtual device.
///
/// `castanet tenants` puts this element in the place of a tenant's `ToDevice`; the multiplexer of
/// the physical device is behind it. The input may be push or pull, as that of `ToDevice`.
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

/// Counters of the frames sent.
#[derive(Default, Local)]
#[write(reset_counts)]
pub struct ToVirtualDeviceState {
    /// Frames sent, since the last reset if there was one.
    #[read]
    count: u64,
    /// Bytes sent, since the last reset if there was one.
    #[read]
    byte_count: u64,
}

impl PerPacket for ToVirtualDevice {
    type On = on::Any;
    type Local = ToVirtualDeviceState;
    type Fate = ToVirtualDeviceExit;

    fn packet(&self, sent: &mut ToVirtualDeviceState, packet: &mut Packet) -> ToVirtualDeviceExit {
        let Some(length) = packet.len().checked_sub(Ethernet::LEN) else {
            return ToVirtualDeviceExit::Short;
        };
        let is_tagged = vlan::tag(packet.bytes(), ether_type::VLAN).is_some();
        if length > self.mtu.saturating_add(if is_tagged { Vlan::LEN } else { 0 }) {
            return ToVirtualDeviceExit::TooLong;
        }
        sent.count += 1;
        sent.byte_count += packet.len() as u64;
        ToVirtualDeviceExit::Sent
    }
}
