//! `FromDevice`: receives packets from a network interface.

use super::attached_device::AttachedDevice;
use super::device_selection::{self, DeviceRequest, ReceiveRequest};
use super::device_slot::{DeviceSlot, Rx};
use super::emit_switch::EmitSwitch;
use super::encap::Encap;
use super::ip_mark;
use super::link_handlers::LinkHandlers;
use super::method::Method;
use super::metrics;
use super::patterns::{FramePattern, IpPattern};
use super::poll_backoff::PollBackoff;
use super::rss_table;
use super::rx_placement::{AvailableQueues, RxPlacementArgs, nonnegative, same_shares};
use super::to_device::ToDevice;
use crate::af_packet::FanoutGroup;
use crate::af_xdp::{HostFilter, Queues, set_descriptors};
use crate::device::Device;
use crate::tcpdump_filter::TcpdumpFilter;
use castanet_element::device as devices;
use castanet_element::exec::PacketFilter;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_packet::anno;
use std::sync::Arc;

/// Receives packets from the network interface DEVNAME.
///
/// Emits packets as the wire carried them: with their link header, VLAN tags
/// in place, checksums complete, and cut to the MTU where the kernel had joined
/// them. The element sets their timestamp and packet type annotations.
///
/// By default the element chooses the fastest method that the interface
/// supports. AF_XDP is the fastest; the element uses it if the driver supports it
/// and the host does not need the interface (the interface has no address, and no
/// bridge or other device uses it). With AF_XDP the kernel hands over each packet
/// before its own stack processes it, without a copy if the driver can write to
/// this program's memory. Otherwise the element reads the `TPACKET_V3` ring of a
/// packet socket, as with `METHOD AF_PACKET`: this works with any driver and costs
/// 48 ns a packet. `METHOD SOCKET` makes one system call a packet, 1.3 µs, but
/// never waits for the ring's block (at most a millisecond). `castanet run` prints
/// the method at the start and the reason why it is not a faster one; the handler
/// `device` returns the same.
///
/// With AF_XDP neither the host nor another program receives the packets that
/// arrive, except those that HOST_IP and HOST_FRAMES select. With a packet socket
/// the host receives them too, unless SNIFFER is false, and other programs may
/// receive from the same interface: each sees every packet, so two routers on it
/// forward each packet twice. The element does not receive the packets that a
/// `ToDevice` of the same interface sends.
///
/// With several workers (`-j`) a share of them receives from each device: with
/// AF_XDP each worker has hardware queues of its own, and with packet sockets a
/// socket of its own, over which the kernel spreads flows. `castanet explain`
/// shows the queues of each worker.
///
/// If the next element, or the one behind `Counter` and `AverageCounter` alone, is a `ToDevice` without
/// outputs and both use AF_XDP, frames go on without inspection, unless SNAPLEN, FORCE_IP or PROTOCOL
/// require it; `castanet explain` shows where.
///
/// ```text
/// FromDevice(eth0, PROMISC true) -> Print(in) -> Discard;
/// ```
#[derive(Element)]
#[element(args = FromDeviceArgs, methods, headers = Receive)]
pub struct FromDevice {
    settings: FromDeviceArgs,
    #[flatten]
    link: LinkHandlers,
    /// The queues of each worker.
    shares: Vec<QueueShare>,
    /// The packet sockets of several workers, for a device without queues.
    group: Option<FanoutGroup>,
}

/// The arguments of `FromDevice`.
#[derive(Args)]
pub struct FromDeviceArgs {
    /// The interface to receive from.
    #[arg]
    devname: String,
    /// Whether to receive packets for other hosts too.
    #[arg(default = false)]
    promisc: bool,
    /// Whether the host receives the same packets too; if not given, it does if
    /// it needs the interface. False requires Linux 6.6 or AF_XDP.
    #[arg(keyword)]
    sniffer: Option<bool>,
    /// Number of bytes to keep of each packet; 0 for all.
    #[arg(default = 0)]
    snaplen: u32,
    /// Whether to emit only IP packets, with their IP header marked.
    #[arg(keyword, default = false)]
    force_ip: bool,
    /// The method by which the element receives.
    #[arg(keyword, default = Method::Best, shown = "default")]
    method: Method,
    /// Older name of METHOD.
    #[arg(keyword)]
    capture: Option<Method>,
    /// Whether to emit the packets that the host sends too.
    #[arg(keyword, default = false)]
    outbound: bool,
    /// The only Ethernet type to emit packets of; 0 for all.
    #[arg(keyword, default = 0)]
    protocol: u16,
    /// Number of packets to receive at once; 0 for the engine's burst.
    #[arg(keyword, default = 0)]
    burst: u32,
    /// Number of bytes to keep free before each packet; the pool's frames always
    /// have 128, and a packet moves to a larger buffer if it needs more.
    #[arg(keyword, default = 0)]
    #[expect(dead_code, reason = "for configurations that say so")]
    headroom: u32,
    /// Whether packets carry the time at which they were received.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// With AF_XDP, the first queue to receive from; the kernel receives from the
    /// others. -1 for all.
    #[arg(keyword, default = -1, range = -1..=65535)]
    queue: i32,
    /// With AF_XDP, the number of queues to receive from; -1 for all, or for one
    /// if QUEUE is given.
    #[arg(keyword, default = -1, range = -1..=65535)]
    n_queues: i32,
    /// With AF_XDP, the IPv4 packets that only the host receives: a pattern of
    /// `IPClassifier`, such as `tcp port 22 or icmp`.
    #[arg(keyword)]
    host_ip: Option<IpPattern>,
    /// With AF_XDP, the frames that only the host receives: a pattern of
    /// `Classifier`, such as `12/0806`.
    #[arg(keyword)]
    host_frames: Option<FramePattern>,
    /// With AF_XDP, the number of packets for which the worker polls the driver at
    /// once while packets arrive, instead of waiting for interrupts; 0 to use interrupts.
    #[arg(keyword, default = 0, range = 0..=65535)]
    busy_poll: u32,
    /// With AF_XDP, number of descriptors of each queue, rounded up to a power of two; 0 for 2048. It counts
    /// where no other element has the interface open already.
    #[arg(keyword, default = 0, range = 0..=32768)]
    ndesc: u16,
    /// An expression as for tcpdump; the element drops packets that do not match. Unless METHOD says
    /// otherwise, it then receives from a packet socket, so that the host has all packets. Needs libpcap.
    #[arg(keyword)]
    bpf_filter: Option<BpfFilter>,
    /// The header that packets begin with; ignored here, as the interface says it.
    #[arg(keyword)]
    #[expect(dead_code, reason = "for configurations that say so")]
    encap: Option<Encap>,
    /// Whether to receive packets.
    #[arg(keyword, default = true)]
    active: bool,
    /// Whether packets carry a hash of their flow as their aggregate, and the sockets of several workers
    /// share packets by a table, which the lower bits of the hash are looked up in (`rss_reta`). AF_XDP
    /// has no such table: METHOD AF_XDP is refused.
    #[arg(keyword, default = false)]
    rss_aggregate: bool,
    /// The workers that receive.
    #[arg(flatten)]
    placement: RxPlacementArgs,
}

/// An expression of tcpdump, compiled.
#[derive(Clone)]
pub(super) struct BpfFilter(Arc<TcpdumpFilter>);

impl FromArg for BpfFilter {
    const SYNTAX: &'static str = "an expression as for tcpdump";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let expression = String::from_arg(text, names)?;
        let filter = TcpdumpFilter::new(&expression).map_err(ArgError::new)?;
        Ok(BpfFilter(Arc::new(filter)))
    }
}

/// The exits of received packets.
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
    /// Packets that do not match BPF_FILTER.
    #[drop]
    Filtered,
}

/// The time until the worker polls a device without free frames again.
const STARVED_RETRY: Duration = Duration::from_millis(1);

/// A worker's open interface.
#[derive(Default, Local)]
#[local(methods)]
pub struct FromDeviceState {
    #[flatten]
    device: DeviceSlot<AttachedDevice, Rx>,
    #[flatten]
    switch: EmitSwitch,
    /// With BUSY_POLL, the time since the last packet.
    backoff: PollBackoff,
    /// The error message that was written last; the same message is not written twice in a row.
    last_error: String,
    /// Whether this worker reports the table of all, and sets it.
    is_leader: bool,
    /// Number of packets lost for lack of frames, as last reported.
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

    /// The queues that the element receives from, one a line, each with the worker that does. With
    /// packet sockets, a queue is a socket.
    #[read]
    fn queue_workers(&self) -> String {
        rss_table::workers(&self.shares)
    }
}

#[handlers]
impl FromDeviceState {
    /// Packets that the kernel dropped because the worker did not fetch them in time.
    #[read]
    #[metric(metrics::KERNEL_DROPS)]
    fn kernel_drops(&self) -> u64 {
        self.device.stats().kernel_drops
    }

    /// Super-frames that were cut into packets.
    #[read]
    fn super_frames(&self) -> u64 {
        self.device.stats().super_frames
    }

    /// The method by which the element receives, and the reason for it.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// With RSS_AGGREGATE and several workers, the queue of each entry of the table by which their
    /// sockets share packets: the entry of a packet is the lower bits of its aggregate.
    #[read]
    fn rss_reta(&self) -> String {
        rss_table::text(&self.table())
    }

    /// Number of entries of that table; 0 if there is none.
    #[read]
    fn rss_reta_size(&self) -> usize {
        self.table().len()
    }

    /// Sets the queue of each entry of that table.
    #[write(rss_reta)]
    fn set_rss_reta(&mut self, text: &str) -> Result<(), ArgError> {
        let group = self.device.get().filter(|_| self.is_leader).and_then(|it| it.table_group());
        let Some(group) = group else { return Ok(()) };
        let table = rss_table::parse(text, group.table().len(), group.queues())?;
        group.set_table(&table).map_err(|error| ArgError::new(error.to_string()))
    }

    /// Resets `count` and `byte_count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

impl FromDeviceState {
    /// The table of all workers; empty if there is none, or unless this worker reports it.
    fn table(&self) -> Vec<u16> {
        let device = self.device.get().filter(|_| self.is_leader);
        device.and_then(AttachedDevice::table_group).map(FanoutGroup::table).unwrap_or_default()
    }
}

impl Build for FromDevice {
    type Args = FromDeviceArgs;

    fn build(settings: FromDeviceArgs, setup: &Setup) -> Result<Self, ArgError> {
        // Reports wrong arguments before any device is open.
        settings.request()?;
        let group = (setup.queue_shares.len() > 1).then(FanoutGroup::default);
        let link = LinkHandlers::new(&settings.devname);
        set_descriptors(&settings.devname, true, settings.ndesc);
        Ok(FromDevice { settings, link, shares: setup.queue_shares.to_vec(), group })
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
        local.is_leader = cx.is_home();
        let request = self.request(cx.worker(), local.is_leader)?;
        local.device.set(AttachedDevice::open(&self.settings.devname, &request, cx.pool())?);
        Ok(())
    }

    fn start(&self, local: &mut FromDeviceState, _: &mut Cx) -> Result<(), ArgError> {
        local.device.get_mut().map_or(Ok(()), AttachedDevice::start)
    }

    fn offer_claims(&self, local: &mut FromDeviceState, leaving: bool) {
        local.device.get_mut().into_iter().for_each(|device| device.set_retiring(leaving));
    }

    fn exchange_device(&self, local: &mut FromDeviceState, _: &mut Cx) {
        local.device.get_mut().into_iter().for_each(|device| _ = device.exchange());
    }

    fn apply_config(&self, local: &mut FromDeviceState) {
        local.switch.follow(self.settings.active);
    }

    fn is_active(&self, local: &FromDeviceState) -> bool {
        local.switch.is_on
    }

    fn produce(&self, local: &mut FromDeviceState, n: usize, cx: &mut Cx) -> NextRun {
        // While the interface is away, nothing is to be done until the task is run again.
        let Some(device) = local.device.get_mut().filter(|it| !it.is_away()) else {
            return NextRun::Done;
        };
        let n = if self.settings.burst > 0 { self.settings.burst as usize } else { n };
        if self.is_plain() {
            let passed = cx.bypass(|to: &ToDevice, tx, _, cx| to.pass(tx, device, n, cx));
            if passed.is_some_and(|passed| passed.packets > 0) {
                local.backoff.reset();
                return NextRun::Again;
            }
        }
        let mut batch = Batch::new();
        if let Err(error) = device.receive(cx.pool(), &mut batch, n) {
            let message = format!("FromDevice({}): {error}", self.settings.devname);
            if message != local.last_error {
                cx.chatter(&message);
                local.last_error = message;
            }
            return NextRun::At(cx.now() + Duration::from_secs(1));
        }
        cx.report_missed(&mut local.no_frame, device.no_frame());
        if batch.is_empty() {
            if device.starved() {
                cx.report_starved();
                return NextRun::At(cx.now() + STARVED_RETRY);
            }
            if self.settings.busy_poll > 0 && local.backoff.is_short(cx.now()) {
                return NextRun::Again;
            }
            return device.fd().map_or(NextRun::Again, NextRun::Readable);
        }
        local.backoff.reset();
        cx.count_received(batch.len());
        let ethernet = device.is_ethernet();
        batch.iter_mut().for_each(|packet| self.prepare(packet, ethernet));
        if !self.selects() {
            cx.emit_batch(FromDeviceExit::Packet, batch);
            return NextRun::Again;
        }
        for mut packet in batch.drain() {
            let exit = self.classify(&mut packet, ethernet);
            cx.emit(exit, packet);
        }
        NextRun::Again
    }

    fn cleanup(&self, local: &mut FromDeviceState, _: &mut Cx) {
        local.device.close();
    }
}

/// The interface and the queues that the arguments ask for; `None` if they are wrong.
pub(super) fn device(config: &str, names: &Names) -> Option<devices::Device> {
    let it = <FromDeviceArgs as Args>::parse(config, names).ok()?;
    let forecast = device_selection::predict(&it.devname, &it.request().ok()?);
    let offer = forecast
        .queues
        .map_or(AvailableQueues::Sockets, |(receive, _)| AvailableQueues::All(receive));
    Some(devices::Device {
        how: forecast.how,
        node: it.placement.node(forecast.numa_node),
        queues: it.placement.queues(nonnegative(it.queue), nonnegative(it.n_queues), offer),
        rx_threads: it.placement.rx_threads(),
        name: it.devname,
    })
}

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &FromDeviceArgs| {
        let Ok(request) = it.request() else { return Vec::new() };
        device_selection::resources(&it.devname, &request)
    })
}

impl FromDeviceArgs {
    fn request(&self) -> Result<DeviceRequest, ArgError> {
        let receive = ReceiveRequest {
            queues: Queues::ALL,
            exactly: self.queue >= 0,
            group: None,
            has_table: self.rss_aggregate,
            is_leader: true,
            sniffer: self.sniffer,
            promiscuous: self.promisc,
            outbound: self.outbound,
            timestamps: self.timestamp,
            for_host: self.for_host()?,
            busy_poll: self.busy_poll,
        };
        let method = match self.capture.unwrap_or(self.method) {
            // The host must have the packets that the filter drops.
            Method::Best if self.bpf_filter.is_some() => Method::Ring,
            method => method,
        };
        Ok(DeviceRequest { method, receive: Some(receive), transmit: 0, bypass_qdisc: false })
    }

    /// The filter of packets for the host, if HOST_IP or HOST_FRAMES is given.
    fn for_host(&self) -> Result<Option<Arc<HostFilter>>, ArgError> {
        let frames = self.host_frames.as_ref().map(|it| &it.0);
        let ip = self.host_ip.as_ref().map(|it| &it.0);
        if frames.is_none() && ip.is_none() {
            return Ok(None);
        }
        let for_host = HostFilter::new(frames, ip);
        let unmet = |why| ArgError::new(format!("HOST_IP and HOST_FRAMES cannot be met: {why}"));
        for_host.map(|it| Some(Arc::new(it))).map_err(unmet)
    }
}

impl FromDevice {
    /// The device that `worker` opens; `at_home` if it is the element's home worker.
    fn request(&self, worker: usize, at_home: bool) -> Result<DeviceRequest, ArgError> {
        let mut request = self.settings.request()?;
        let share = self.shares.iter().find(|share| share.worker == worker);
        if let (Some(receive), Some(QueueShare { queues, .. })) = (&mut request.receive, share) {
            let (first, count) = (queues.start as u32, queues.len() as u32);
            receive.queues = Queues { first, count };
            receive.group = self.group.clone().map(|group| (group, self.shares.len()));
            receive.is_leader = at_home;
        }
        Ok(request)
    }

    /// Whether the element emits every packet unchanged.
    fn is_plain(&self) -> bool {
        !self.selects() && self.settings.snaplen == 0 && !self.settings.rss_aggregate
    }

    /// Whether not every packet leaves by the first output.
    fn selects(&self) -> bool {
        let FromDeviceArgs { force_ip, protocol, bpf_filter, .. } = &self.settings;
        *force_ip || *protocol != 0 || bpf_filter.is_some()
    }

    /// Sets a received packet's annotations, and cuts it to SNAPLEN.
    fn prepare(&self, packet: &mut Packet, ethernet: bool) {
        if ethernet {
            packet.set_mac_header(0);
        }
        if !self.settings.timestamp && packet.timestamp() != 0 {
            packet.set_timestamp(0);
        }
        if self.settings.rss_aggregate {
            rss_table::set_flow_hash(packet, ethernet);
        }
        let (len, keep) = (packet.len(), self.settings.snaplen as usize);
        if keep > 0 && len > keep {
            let extra = packet.anno_u32(anno::EXTRA_LENGTH);
            packet.set_anno_u32(anno::EXTRA_LENGTH, extra.saturating_add((len - keep) as u32));
            packet.truncate(keep);
        }
    }

    /// The exit of a packet by PROTOCOL and FORCE_IP; marks its IP header with FORCE_IP.
    fn classify(&self, packet: &mut Packet, ethernet: bool) -> FromDeviceExit {
        let kind = packet.ether_header().filter(|_| ethernet).map(|it| it.ether_type());
        if self.settings.protocol != 0 && kind != Some(self.settings.protocol) {
            return FromDeviceExit::OtherProtocol;
        }
        if let Some(filter) = &self.settings.bpf_filter
            && !filter.0.matches(packet)
        {
            return FromDeviceExit::Filtered;
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
