//! TUN and TAP devices: packets to and from the host's own stack.

mod open_queues;

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::interface::{Interface, Ipv4Net};
use crate::offload::{LinkType, VnetHeader};
use crate::rx_buffer::RxBuffer;
use crate::rx_finisher::{FrameMeta, RxFinisher};
use crate::sys::netif;
use crate::sys::tun::TunQueue;
use crate::tx_batch;
use castanet_packet::{Batch, Pool};
use castanet_wire::MacAddr;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::SystemTime;

/// The mode of a device (`ip tuntap`): the first header of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunTapMode {
    /// An IP header.
    Tun,
    /// An Ethernet header.
    Tap,
}

/// Settings of the host's side of a device. A field that is `None` leaves the setting as the
/// kernel, or an earlier owner of the device, made it.
#[derive(Clone, Debug, Default)]
pub struct HostSide {
    /// The host's address, and the network that is reached this way.
    pub ipv4: Option<Ipv4Net>,
    /// A default route by way of this address.
    pub gateway: Option<Ipv4Addr>,
    /// The host's Ethernet address, for TAP devices.
    pub ether: Option<MacAddr>,
    /// The largest packet, without Ethernet header.
    pub mtu: Option<usize>,
}

/// One queue of a TUN or TAP device. The kernel removes the device with the
/// last of its queues. A device opened by name again in the same process is
/// the same queue: one side of it can receive while another sends.
pub struct Tap {
    mode: TunTapMode,
    name: String,
    queue: Arc<TunQueue>,
    is_new: bool,
    /// Whether the kernel has said that the device is not there.
    is_gone: bool,
    rx_buffer: RxBuffer,
    finisher: RxFinisher,
}

impl Tap {
    /// Opens the device called `name`, which the kernel makes if there is
    /// none; an empty name leaves it to the kernel. With `multi_queue`, it may be
    /// opened once for each queue. Packets will carry the number `device`.
    pub fn open(
        name: &str,
        mode: TunTapMode,
        multi_queue: bool,
        device: u16,
    ) -> Result<Tap, IoError> {
        let link = match mode {
            TunTapMode::Tun => LinkType::Ip,
            TunTapMode::Tap => LinkType::Ethernet,
        };
        let is_new = Interface::find(name).is_err();
        let (queue, name) = open_queues::open(name, mode, multi_queue)?;
        let (rx_buffer, finisher) = (RxBuffer::new(), RxFinisher::new(link, device));
        Ok(Tap { mode, name, queue, is_new, is_gone: false, rx_buffer, finisher })
    }

    /// Whether the device was removed.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Makes a device that was removed again, or takes one that this process has made since; counts
    /// go on.
    pub fn make_again(&mut self) -> Result<(), IoError> {
        // The queue before is closed after another has its descriptor, so that the two differ.
        (self.queue, _) = open_queues::open(&self.name, self.mode, false)?;
        self.is_gone = false;
        Ok(())
    }

    /// Whether opening it created the device, so that no other process can use it yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Sets up the host's side, and brings it up.
    pub fn configure_host(&self, host_side: &HostSide) -> Result<(), IoError> {
        let name = &self.name;
        let failed = |what: &str| {
            let doing = format!("{what} of {name}");
            move |error| IoError::new(doing, error)
        };
        let interface = netif::IoctlSocket::new(name).map_err(failed("change the setup"))?;
        if let Some(ether) = host_side.ether {
            interface
                .set_ether(ether.octets())
                .map_err(failed(&format!("set the address {ether}")))?;
        }
        if let Some(mtu) = host_side.mtu {
            interface.set_mtu(mtu).map_err(failed(&format!("set the MTU {mtu}")))?;
        }
        if let Some(net) = host_side.ipv4 {
            let what = format!("set the address {}", net.address);
            interface.set_ipv4(net).map_err(failed(&what))?;
        }
        interface.set_up(true).map_err(failed("bring up the host's side"))?;
        if let Some(gateway) = host_side.gateway {
            let what = format!("add the default route by {gateway}");
            interface.add_default_route(gateway).map_err(failed(&what))?;
        }
        Ok(())
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The host's side of the device.
    pub fn interface(&self) -> Result<Interface, IoError> {
        Interface::find(&self.name)
    }
}

/// Wall-clock time: the kernel does not say when it sent a packet here.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Device for Tap {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let mut count = self.finisher.take_overflow(batch, max);
        let time = now();
        while count < max {
            let queue = &self.queue;
            let got = self.rx_buffer.receive(pool, |buffer, rest| {
                let (vnet, len) = queue.receive(buffer, rest)?;
                Ok((FrameMeta { wire_len: len, vnet, vlan: None, kind: 0, time }, len))
            });
            match got {
                Ok((frame, meta)) => {
                    let left = max - count;
                    count += frame.finish(&mut self.finisher, pool, &meta, batch, left);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // Nothing there; or the host's side is down, which may change.
                    Some(libc::EAGAIN | libc::EIO) => break,
                    Some(libc::EBADFD) => {
                        self.is_gone = true;
                        break;
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let (queue, is_gone) = (&self.queue, &mut self.is_gone);
        let sent = tx_batch::transmit(batch, &mut self.finisher.stats, |packets| {
            let Some(first) = packets.first() else { return Ok(0) };
            let sent = queue.send(VnetHeader::default(), first.bytes());
            *is_gone |= sent.as_ref().is_err_and(|it| it.raw_os_error() == Some(libc::EBADFD));
            sent.map(|()| 1)
        });
        Ok(sent)
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.queue.raw_fd())
    }

    fn stats(&self) -> DeviceStats {
        self.finisher.stats
    }

    fn describe(&self) -> String {
        let (word, what) = match self.mode {
            TunTapMode::Tun => ("TUN", "IP packets"),
            TunTapMode::Tap => ("TAP", "Ethernet frames"),
        };
        format!("{}: {word} device, {what} to and from the host's own stack", self.name)
    }
}
