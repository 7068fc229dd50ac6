//! `FromDevice`: packets that a network interface receives.

use super::device_selection::{self, DeviceRequest, Receive, SelectedDevice};
use super::device_slot::DeviceSlot;
use super::ip_mark;
use super::method::Method;
use super::patterns::{FramePattern, IpPattern};
use super::poll_backoff::PollBackoff;
use super::rx_placement::{AvailableQueues, RxPlacementArgs, given, same_shares};
use super::to_device::ToDevice;
use crate::af_packet::FanoutGroup;
use crate::af_xdp::{HostFilter, Queues};
use crate::device::Device;
use castanet_element::device as devices;
use castanet_element::prelude::*;
use castanet_packet::anno;
use std::sync::Arc;

/// Receives packets from the network interface DEVNAME.
///
/// Packets come as the wire carried them: with their link header, VLAN tags
/// in place, checksums complete, and cut to the MTU where the kernel had them
/// joined. Their timestamp and packet type annotations are set.
///
/// By default they come the fastest way that there is. That is AF_XDP, where the
/// driver supports it and the host itself has no need of the interface (no
/// address there, and no bridge or other device on it): the kernel hands packets over
/// before it has looked at them, in place where the driver can write to this
/// program's memory. Else they come from the `TPACKET_V3` ring of a packet
/// socket, as with `METHOD AF_PACKET`: with any driver, at 48 ns each. `METHOD
/// SOCKET` takes one system call a packet, 1.3 µs, but never waits for the
/// ring's block (at most a millisecond). `castanet run` says at the start which
/// it is and why nothing better, and the handler `device` whenever asked.
///
/// By AF_XDP the host does not see what arrives, but for what HOST_IP and
/// HOST_FRAMES choose, nor can another program receive it. By packet socket it
/// does, unless SNIFFER is false, and other programs may receive from the same
/// interface: each sees every packet, so two routers on it forward each packet
/// twice. What a `ToDevice` of the same interface sends is not received.
///
/// With several workers (`-j`) each device is received from by its share of
/// them: by AF_XDP each worker has hardware queues of its own, and by packet
/// socket a socket of its own, over which the kernel spreads flows. `castanet
/// explain` shows who has what.
///
/// Where a `ToDevice` without outputs comes next and both are by AF_XDP, packets go on without a
/// look at them, unless SNAPLEN, FORCE_IP or PROTOCOL ask for one; `castanet explain` shows where.
///
/// ```text
/// FromDevice(eth0, PROMISC true) -> Print(in) -> Discard;
/// ```
#[derive(Element)]
#[element(args = FromDeviceArgs, methods)]
pub struct FromDevice {
    settings: FromDeviceArgs,
    /// What each worker has of the device.
    shares: Vec<QueueShare>,
    /// The sockets of several workers, where there are no queues.
    group: Option<FanoutGroup>,
}

/// What can be set.
#[derive(Args)]
pub struct FromDeviceArgs {
    /// The interface to receive from.
    #[arg]
    devname: String,
    /// Whether to receive packets for other hosts too.
    #[arg(keyword, default = false)]
    promisc: bool,
    /// Whether the host goes on receiving the same packets itself; if nothing
    /// is said, where it has need of them. False takes Linux 6.6 or AF_XDP.
    #[arg(keyword)]
    sniffer: Option<bool>,
    /// How many bytes of each packet to keep; 0 for all.
    #[arg(keyword, default = 0)]
    snaplen: u32,
    /// Whether to emit nothing but IP packets, their IP header marked.
    #[arg(keyword, default = false)]
    force_ip: bool,
    /// How packets are received.
    #[arg(keyword, default = Method::Best)]
    method: Method,
    /// The same as METHOD, as older configurations call it.
    #[arg(keyword)]
    capture: Option<Method>,
    /// Whether to emit what the host sends too.
    #[arg(keyword, default = false)]
    outbound: bool,
    /// Only packets of this Ethernet type; 0 for all.
    #[arg(keyword, default = 0)]
    protocol: u16,
    /// How many packets to receive at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// Bytes to keep free before each packet; the pool's frames always have
    /// 128, and packets grow beyond that when they must.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// Whether packets carry the time they were received at.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// By AF_XDP, the first queue to receive from; the others are left to the
    /// kernel. -1 for all.
    #[arg(keyword, default = -1, range = -1..=65535)]
    queue: i32,
    /// By AF_XDP, how many queues to receive from; -1 for all, or one where
    /// QUEUE is given.
    #[arg(keyword, default = -1, range = -1..=65535)]
    n_queues: i32,
    /// By AF_XDP, IPv4 packets that the host goes on receiving, and only the
    /// host: a pattern as `IPClassifier`'s, such as `tcp port 22 or icmp`.
    #[arg(keyword)]
    host_ip: Option<IpPattern>,
    /// By AF_XDP, frames that the host goes on receiving, and only the host: a
    /// pattern as `Classifier`'s, such as `12/0806`.
    #[arg(keyword)]
    host_frames: Option<FramePattern>,
    /// By AF_XDP, how many packets the worker has the driver look for at once
    /// while packets come, rather than have it interrupt; 0 to leave it to interrupts.
    #[arg(keyword, default = 0, range = 0..=65535)]
    busy_poll: u32,
    /// Who receives.
    #[arg(flatten)]
    spread: RxPlacementArgs,
}

/// Where received packets go.
#[derive(Fate)]
pub enum FromDeviceExit {
    /// Packets.
    Packet,
    /// With FORCE_IP, packets that are not IP.
    #[optional]
    NotIp,
    /// Packets of another Ethernet type than PROTOCOL.
    #[drop]
    OtherProtocol,
}

/// How soon a device without frames is asked again.
const STARVED: Duration = Duration::from_millis(1);

/// The open interface.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDeviceState {
    device: DeviceSlot<SelectedDevice>,
    /// With BUSY_POLL, how long nothing has come.
    wait: PollBackoff,
    /// What was last written about an error.
    said: String,
    /// How many packets had been lost for want of frames.
    no_frame: u64,
}

#[handlers]
impl FromDevice {
    /// The header that packets begin with.
    #[read]
    fn encap(&self) -> String {
        let link = crate::interface::Interface::find(&self.settings.devname);
        if link.is_ok_and(|it| it.ether.is_none()) { "IP".into() } else { "ETHER".into() }
    }
}

#[handlers]
impl FromDeviceState {
    /// Packets received since the last reset.
    #[read]
    fn count(&self) -> u64 {
        self.device.since(|it| it.received)
    }

    /// Bytes received since the last reset.
    #[read]
    fn byte_count(&self) -> u64 {
        self.device.since(|it| it.received_bytes)
    }

    /// Packets that the kernel dropped because they were not fetched in time.
    #[read]
    fn kernel_drops(&self) -> u64 {
        self.device.stats().kernel_drops
    }

    /// Packets dropped because the pool had no frame.
    #[read]
    fn no_frame_drops(&self) -> u64 {
        self.device.stats().no_frame
    }

    /// Packets dropped because their offload header did not fit them.
    #[read]
    fn malformed(&self) -> u64 {
        self.device.stats().malformed
    }

    /// Super-frames that were cut into packets.
    #[read]
    fn super_frames(&self) -> u64 {
        self.device.stats().super_frames
    }

    /// How packets are received, and why that way.
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

impl Build for FromDevice {
    type Args = FromDeviceArgs;

    fn build(settings: FromDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        // What is wrong with it shows before anything is open.
        settings.request()?;
        let group = (setup.queue_shares.len() > 1).then(FanoutGroup::default);
        Ok(FromDevice { settings, shares: setup.queue_shares.to_vec(), group })
    }
}

impl Source for FromDevice {
    type Local = FromDeviceState;
    type Fate = FromDeviceExit;
    const PER_WORKER: bool = true;

    fn can_take_state(&self, before: &FromDevice) -> bool {
        let same = |worker| match (self.request(worker, true), before.request(worker, true)) {
            (Ok(now), Ok(then)) => now.without_group() == then.without_group(),
            _ => false,
        };
        self.settings.devname == before.settings.devname
            && same_shares(&before.shares, &self.shares)
            && self.shares.iter().all(|share| same(share.worker))
    }

    fn init(&self, local: &mut FromDeviceState, cx: &mut Cx) -> Result<(), ArgError> {
        let request = self.request(cx.worker(), cx.is_home())?;
        local.device.set(device_selection::open(&self.settings.devname, &request, cx.pool())?);
        Ok(())
    }

    fn start(&self, local: &mut FromDeviceState, _: &mut Cx) -> Result<(), ArgError> {
        local.device.get_mut().map_or(Ok(()), SelectedDevice::start)
    }

    fn offer_claims(&self, local: &mut FromDeviceState, leaving: bool) {
        local.device.get_mut().into_iter().for_each(|device| device.leave(leaving));
    }

    fn produce(&self, local: &mut FromDeviceState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(device) = local.device.get_mut() else { return NextRun::Done };
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        if self.is_plain() {
            let went = cx.bypass(|to: &ToDevice, sending, cx| to.pass(sending, device, n, cx));
            if went.is_some_and(|went| went > 0) {
                local.wait.over();
                return NextRun::Again;
            }
        }
        let mut batch = Batch::new();
        if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
            let said = format!("FromDevice({}): {error}", self.settings.devname);
            if said != local.said {
                cx.chatter(&said);
                local.said = said;
            }
            return NextRun::At(cx.now() + Duration::from_secs(1));
        }
        cx.report_missed(&mut local.no_frame, device.no_frame());
        if batch.is_empty() {
            if device.starved() {
                cx.report_starved();
                return NextRun::At(cx.now() + STARVED);
            }
            if self.settings.busy_poll > 0 && local.wait.is_short(cx.now()) {
                return NextRun::Again;
            }
            return device.fd().map_or(NextRun::Again, NextRun::Readable);
        }
        local.wait.over();
        cx.count_received(batch.len());
        let ethernet = device.ethernet;
        batch.iter_mut().for_each(|packet| self.dress(packet, ethernet));
        if !self.settings.force_ip && self.settings.protocol == 0 {
            cx.emit_batch(FromDeviceExit::Packet, batch);
            return NextRun::Again;
        }
        for mut packet in batch.drain() {
            let exit = self.sort(&mut packet, ethernet);
            cx.emit(exit, packet);
        }
        NextRun::Again
    }

    fn cleanup(&self, local: &mut FromDeviceState, _: &mut Cx) {
        local.device.close();
    }
}

/// The interface, and what is wanted of it.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <FromDeviceArgs as Args>::parse(config, names).ok()?;
    let found = device_selection::foresee(&it.devname, &it.request().ok()?);
    let offer =
        found.queues.map_or(AvailableQueues::Sockets, |(receive, _)| AvailableQueues::All(receive));
    Some(devices::Device {
        how: found.how,
        node: it.spread.node(found.numa_node),
        queues: it.spread.queues(given(it.queue), given(it.n_queues), offer),
        rx_threads: it.spread.rx_threads(),
        name: it.devname,
    })
}

impl FromDeviceArgs {
    fn request(&self) -> Result<DeviceRequest, ArgError> {
        let receive = Receive {
            queues: Queues::ALL,
            exactly: self.queue >= 0,
            group: None,
            leads: true,
            sniffer: self.sniffer,
            promiscuous: self.promisc,
            outbound: self.outbound,
            timestamps: self.timestamp,
            for_host: self.for_host()?,
            busy_poll: self.busy_poll,
        };
        let method = self.capture.unwrap_or(self.method);
        Ok(DeviceRequest { method, receive: Some(receive), transmit: 0, bypass_qdisc: false })
    }

    /// What is left to the host, if anything is chosen.
    fn for_host(&self) -> Result<Option<Arc<HostFilter>>, ArgError> {
        let frames = self.host_frames.as_ref().map(|it| &it.0);
        let ip = self.host_ip.as_ref().map(|it| &it.0);
        if frames.is_none() && ip.is_none() {
            return Ok(None);
        }
        let for_host = HostFilter::new(frames, ip);
        let failed = |why| ArgError::new(format!("HOST_IP and HOST_FRAMES cannot be met: {why}"));
        for_host.map(|it| Some(Arc::new(it))).map_err(failed)
    }
}

impl FromDevice {
    /// What a worker opens.
    fn request(&self, worker: usize, at_home: bool) -> Result<DeviceRequest, ArgError> {
        let mut request = self.settings.request()?;
        let share = self.shares.iter().find(|share| share.worker == worker);
        if let (Some(receive), Some(QueueShare { queues, .. })) = (&mut request.receive, share) {
            let (first, count) = (queues.start as u32, queues.len() as u32);
            receive.queues = Queues { first, count };
            receive.group = self.group.clone().map(|group| (group, self.shares.len()));
            receive.leads = at_home;
        }
        Ok(request)
    }

    /// Whether packets go on as they come, whatever they are.
    fn is_plain(&self) -> bool {
        let FromDeviceArgs { force_ip, protocol, snaplen, .. } = self.settings;
        !force_ip && protocol == 0 && snaplen == 0
    }

    /// What every packet gets.
    fn dress(&self, packet: &mut Packet, ethernet: bool) {
        if ethernet {
            packet.set_mac_header(0);
        }
        if !self.settings.timestamp && packet.timestamp() != 0 {
            packet.set_timestamp(0);
        }
        let (len, keep) = (packet.len(), self.settings.snaplen as usize);
        if keep > 0 && len > keep {
            let extra = packet.anno_u32(anno::EXTRA_LENGTH);
            packet.set_anno_u32(anno::EXTRA_LENGTH, extra.saturating_add((len - keep) as u32));
            packet.truncate(keep);
        }
    }

    fn sort(&self, packet: &mut Packet, ethernet: bool) -> FromDeviceExit {
        let kind = packet.ether_header().filter(|_| ethernet).map(|it| it.ether_type());
        if self.settings.protocol != 0 && kind != Some(self.settings.protocol) {
            return FromDeviceExit::OtherProtocol;
        }
        let is_ip = |packet: &mut Packet| match ethernet {
            true => ip_mark::mark_in_ethernet(packet),
            false => ip_mark::mark_at(packet, 0),
        };
        if self.settings.force_ip && !is_ip(packet) {
            FromDeviceExit::NotIp
        } else {
            FromDeviceExit::Packet
        }
    }
}
