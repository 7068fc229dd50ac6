//! `FromVirtualDevice`: emits the frames of a tenant's virtual device, in a task of its own.

use super::link_header::mark_ethernet;
use castanet_element::packet::PacketQueue;
use castanet_element::prelude::*;
use castanet_wire::Ethernet;

/// Emits the Ethernet frames that the demultiplexer pushes for a tenant's virtual device.
///
/// `castanet tenants` puts this element in the place of a tenant's `FromDevice`. Frames wait here
/// until the element's own task emits them in bursts, so that the work on them is done by a task of
/// the tenant. The element marks the MAC header, sets the packet type annotation by the
/// destination address, and clears the others.
///
/// ```click
/// in -> v :: FromVirtualDevice(eth1, CAPACITY 2) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; dst 9.0.0.9 paint 7
/// > in  eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ; mac 0 dst 0.0.0.0 paint 0
/// < out eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff 1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// > in  hex 61
/// = v.drops.short 1
/// = v.count 2
/// = v.byte_count 84
/// = v.length 0
/// = v.virtual_device eth1
/// ! v.reset_counts
/// = v.count 0
/// ! v.active false
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// = v.length 2
/// = v.drops.full 1
/// ! v.capacity 1
/// = v.length 1
/// = v.drops.reset 1
/// ```
#[derive(Clone, Element)]
#[element(ports = "1/1", processing = "h/h")]
pub struct FromVirtualDevice {
    /// The tenant's name of the device.
    #[arg]
    #[read]
    virtual_device: String,
    /// Maximum number of packets that wait.
    #[arg(keyword, live, default = 1024)]
    capacity: usize,
    /// Whether packets are emitted.
    #[arg(keyword, live, default = true)]
    active: bool,
}

#[derive(Fate)]
pub enum FromVirtualDeviceExit {
    /// Ethernet frames for the tenant.
    Frame,
    /// Frames that find the device full. Give the tenant a greater share of the time, or raise
    /// CAPACITY.
    #[drop]
    Full,
    /// Packets that are too short for an Ethernet header.
    #[drop]
    Short,
}

/// The frames that wait, and the counters of those emitted.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromVirtualDeviceState {
    #[portable]
    waiting: PacketQueue,
    /// Frames emitted, since the last reset if there was one.
    #[read]
    #[portable]
    count: u64,
    /// Bytes emitted, since the last reset if there was one.
    #[read]
    #[portable]
    byte_count: u64,
}

#[handlers]
impl FromVirtualDeviceState {
    /// Number of frames that wait.
    #[read]
    fn length(&self) -> usize {
        self.waiting.len()
    }

    /// Resets `count` and `byte_count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        (self.count, self.byte_count) = (0, 0);
        Ok(())
    }
}

/// Whether a packet is too short for an Ethernet header.
#[inline]
fn is_short(packet: &Packet) -> bool {
    packet.len() < Ethernet::LEN
}

/// Takes out packets without an Ethernet header.
#[cold]
fn drop_short(batch: &mut Batch, cx: &mut Cx) {
    for packet in std::mem::take(batch).drain() {
        match is_short(&packet) {
            true => cx.emit(FromVirtualDeviceExit::Short, packet),
            false => batch.push(packet),
        }
    }
}

/// Packets that are prefetched before one is looked at: while they have waited, their memory may have left the caches.
const PREFETCHED: usize = 8;

impl Store for FromVirtualDevice {
    type Local = FromVirtualDeviceState;
    type Fate = FromVirtualDeviceExit;

    fn enqueue(&self, state: &mut FromVirtualDeviceState, mut batch: Batch, cx: &mut Cx) {
        if batch.iter().any(is_short) {
            drop_short(&mut batch, cx);
        }
        let room = self.room(state);
        if batch.len() > room {
            let excess = batch.split_off(room);
            cx.emit_batch(FromVirtualDeviceExit::Full, excess);
        }
        state.waiting.append(&mut batch);
    }

    fn dequeue(&self, state: &mut FromVirtualDeviceState, n: usize, into: &mut Batch, _: &mut Cx) {
        let (packets, bytes) = (into.len(), into.byte_count());
        state.waiting.take(n, into);
        // Headers are marked here, not in `enqueue`: they are then in the cache for the elements below.
        let taken = &mut into.as_mut_slice()[packets..];
        for index in 0..taken.len() {
            taken.get(index + PREFETCHED).into_iter().for_each(Packet::prefetch);
            mark_ethernet(&mut taken[index]);
        }
        state.count += (into.len() - packets) as u64;
        state.byte_count += into.byte_count() - bytes;
    }

    fn held(&self, state: &FromVirtualDeviceState) -> usize {
        state.length()
    }

    fn room(&self, state: &FromVirtualDeviceState) -> usize {
        self.capacity.saturating_sub(state.length())
    }

    fn shrink(&self, state: &mut FromVirtualDeviceState) {
        state.waiting.truncate(self.capacity);
    }

    fn is_active(&self, _: &FromVirtualDeviceState) -> bool {
        self.active
    }
}
