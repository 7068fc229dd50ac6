//! The TUN or TAP device of elements that exchange packets with the host's network stack.

use super::device_slot::DeviceSlot;
use super::ip_mark;
use super::metrics;
use super::tx_queue::{Room, TxQueue};
use crate::device::Device;
use crate::interface::{Interface, Ipv4Net};
use crate::tap::{HostSide, Tap, TunTapMode};
use castanet_element::prelude::*;

/// The packets that may wait until the host takes them.
const ROOM: Room = Room { limit: 1024, blocking: false };

/// The time between attempts to make a device again that was removed.
const RETRY: Duration = Duration::from_secs(1);

/// The exits of packets from the host, and the reasons to drop packets to it.
#[derive(Fate)]
pub enum HostExit {
    /// Packets that the host sends, with the IP header of IP packets marked.
    Packet,
    /// From TUN devices, packets that are not IP.
    #[optional]
    NotIp,
    /// Packets that the host's stack refused: malformed, or its side is down or was removed.
    #[drop]
    Refused,
    /// Packets that the host's stack had no room for.
    #[drop]
    Full,
}

/// The open device, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct HostState {
    device: DeviceSlot<Tap>,
    kind: Option<TunTapMode>,
    waiting: TxQueue,
    /// The host's side, as it is made again if somebody removes it.
    setup: Option<HostSide>,
    /// While the device is gone or not set up, the time of the next attempt to make it again.
    retry: Option<Time>,
    /// The error of the last attempt; the same is not reported twice.
    obstacle: String,
}

#[handlers]
impl HostState {
    /// The device's name.
    #[read]
    fn dev_name(&self) -> String {
        self.device.get().map_or_else(String::new, |device| device.name().to_owned())
    }

    /// Packets received from the host since the last reset.
    #[read]
    #[metric(metrics::RECEIVED_PACKETS)]
    fn packets(&self) -> u64 {
        self.device.since(|it| it.received)
    }

    /// The same as `packets`.
    #[read]
    fn count(&self) -> u64 {
        self.packets()
    }

    /// Packets sent to the host since the last reset.
    #[read]
    #[metric(metrics::SENT_PACKETS)]
    fn sent(&self) -> u64 {
        self.device.since(|it| it.sent)
    }

    /// A description of the device.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Resets the counts to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

/// The resources that a device of this name needs.
pub(super) fn resources(devname: &str) -> Vec<Resource> {
    let name = if devname.is_empty() { "a new tap" } else { devname };
    vec![
        Resource::new(ResourceKind::Interface, name, "exchanges packets with the host there"),
        Resource::new(ResourceKind::WriteFile, "/dev/net/tun", "makes the device"),
        Resource::capability("CAP_NET_ADMIN", "makes the device and sets its addresses"),
    ]
}

/// The configuration of the host's side of a device; an error if `gateway` is not on its network.
pub(super) fn host_side(
    net: Option<&Net>,
    gateway: Option<Ipv4Addr>,
    ether: Option<MacAddr>,
    mtu: Option<u32>,
) -> Result<HostSide, ArgError> {
    if let Some(gateway) = gateway.filter(|it| !net.is_some_and(|net| net.contains(*it))) {
        let error = ArgError::new(format!("{gateway} is not on the device's network"));
        return Err(error.click("bad GATEWAY").at("GATEWAY"));
    }
    let ipv4 = net.map(|net| Ipv4Net { address: net.address, netmask: net.mask });
    Ok(HostSide { ipv4, gateway, ether, mtu: mtu.map(|mtu| mtu as usize) })
}

impl HostState {
    /// Opens the device; if it is new and `setup` is given, configures the host's side of it.
    pub(super) fn open(
        &mut self,
        name: &str,
        kind: TunTapMode,
        setup: Option<&HostSide>,
    ) -> Result<(), ArgError> {
        let failed = |error: crate::IoError| ArgError::new(error.to_string());
        let device = Tap::open(name, kind, false, 0).map_err(failed)?;
        if let Some(setup) = setup.filter(|_| device.is_new()) {
            device.configure_host(setup).map_err(failed)?;
        }
        self.device.set(device);
        (self.kind, self.setup) = (Some(kind), setup.cloned());
        Ok(())
    }

    /// Configures the host's side of a device that existed before it was opened.
    pub(super) fn start(&self, setup: &HostSide) -> Result<(), ArgError> {
        let Some(device) = self.device.get().filter(|it| !it.is_new()) else { return Ok(()) };
        device.configure_host(setup).map_err(|error| ArgError::new(error.to_string()))
    }

    /// Emits up to `n` packets that the host has sent.
    pub(super) fn receive(&mut self, n: usize, cx: &mut Cx) -> NextRun {
        if self.retry.is_some() {
            return NextRun::At(self.make_again(cx));
        }
        let Some(device) = self.device.get_mut() else { return NextRun::Done };
        let mut batch = Batch::new();
        if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
            cx.chatter(&format!("{}: {error}", device.name()));
            return NextRun::At(cx.now() + Duration::from_secs(1));
        }
        if device.is_gone() {
            return NextRun::At(self.make_again(cx));
        }
        if batch.is_empty() {
            return device.fd().map_or(NextRun::Again, NextRun::Readable);
        }
        cx.count_received(batch.len());
        for mut packet in batch.drain() {
            let exit = match self.kind {
                Some(TunTapMode::Tun) if !ip_mark::mark_at(&mut packet, 0) => HostExit::NotIp,
                Some(TunTapMode::Tap) => {
                    packet.set_mac_header(0);
                    ip_mark::mark_in_ethernet(&mut packet);
                    HostExit::Packet
                }
                _ => HostExit::Packet,
            };
            if let Some(ip) = packet.ipv4_header() {
                let dst = ip.dst();
                packet.set_dst(dst);
            }
            cx.emit(exit, packet);
        }
        NextRun::Again
    }

    /// Sends packets to the host; `refused` and `full` are the reasons to drop them.
    pub(super) fn send<F: Fate>(&mut self, batch: Batch, refused: F, full: F, cx: &mut Cx) {
        if self.device.get().is_some_and(Tap::is_gone) || self.retry.is_some() {
            self.make_again(cx);
        }
        let Some(device) = self.device.get_mut().filter(|it| !it.is_gone()) else {
            cx.emit_batch(refused, batch);
            return;
        };
        let outcome = self.waiting.send(device, batch, ROOM, (refused, full), cx);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("{}: {error}", device.name()));
        }
    }

    /// Makes the device again a second after it was removed, and then each second until that succeeds;
    /// the time of the next look.
    #[cold]
    fn make_again(&mut self, cx: &mut Cx) -> Time {
        let (now, Some(device)) = (cx.now(), self.device.get_mut()) else { return cx.now() };
        let name = device.name();
        let retry = match self.retry {
            Some(retry) => retry,
            // Another element has made it.
            None if Interface::find(name).is_ok() => now,
            None => {
                let text = format!("{name}: the device was removed; it is made again in a second");
                cx.chatter(&text);
                return *self.retry.insert(now + RETRY);
            }
        };
        if now < retry {
            return retry;
        }
        let setup = self.setup.as_ref();
        // It may be there already, and only not be set up yet.
        let made = if device.is_gone() { device.make_again() } else { Ok(()) };
        match made.and_then(|()| setup.map_or(Ok(()), |setup| device.configure_host(setup))) {
            Ok(()) => {
                cx.chatter(&format!("{}: the device is there again", device.name()));
                (self.retry, self.obstacle) = (None, String::new());
                now
            }
            Err(error) => {
                let text = format!("{}: {error}", device.name());
                if text != self.obstacle {
                    cx.chatter(&text);
                    self.obstacle = text;
                }
                *self.retry.insert(now + RETRY)
            }
        }
    }

    /// Number of packets that wait to be sent.
    pub(super) fn held(&self) -> usize {
        self.waiting.len()
    }

    /// Closes the device; drops the packets that wait for the reason `full`.
    pub(super) fn close<F: Fate>(&mut self, full: F, cx: &mut Cx) {
        self.waiting.discard(full, cx);
        self.device.close();
    }
}
