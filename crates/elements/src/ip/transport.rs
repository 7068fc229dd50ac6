//! Transport segments: their checks, checksums and headers, for several elements.

use castanet_element::fate::{NOT_TAKEN, none_taken};
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::ipv4::{claimed_header_len, final_destination};
use castanet_element::wire::{Ipv4Header, Ipv6Header, Tcp, Udp};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The sum of the pseudo header and the transport segment of an IPv4 packet, of the length that
/// the IPv4 header gives. `None` for fragments and for packets shorter than that length.
#[inline]
pub(crate) fn segment(packet: &Packet) -> Option<(Sum, &[u8])> {
    let (ip, segment) = packet.ipv4_segment()?;
    (!ip.is_fragment()).then(|| (pseudo(packet, ip, segment.len()), segment))
}

/// The sum of the pseudo header of an IPv4 packet for a segment of `len` bytes. That of a packet on a
/// source route has the route's end as its destination.
#[inline]
pub(crate) fn pseudo(packet: &Packet, ip: &Ipv4Header, len: usize) -> Sum {
    if ip.header_len() > Ipv4Header::LEN {
        return pseudo_with_options(packet, ip, len);
    }
    ip.pseudo(len)
}

#[cold]
fn pseudo_with_options(packet: &Packet, ip: &Ipv4Header, len: usize) -> Sum {
    let options = packet.network_bytes().get(Ipv4Header::LEN..ip.header_len());
    let mut ip = *ip;
    ip.set_dst(final_destination(ip.dst(), options.unwrap_or_default()));
    ip.pseudo(len)
}

/// The UDP header of an IPv4 packet, the sum of the pseudo header with the UDP length, and the
/// datagram of that length, which may be less than the length in the IPv4 header. `None` if
/// [`segment`] returns `None`, or if the UDP length is wrong.
#[inline]
pub(crate) fn datagram(packet: &Packet) -> Option<(&Udp, Sum, &[u8])> {
    let (ip, bytes) = packet.ipv4_segment().filter(|(ip, _)| !ip.is_fragment())?;
    let (udp, _) = Udp::from_prefix(bytes)?;
    let len = usize::from(udp.length());
    let bytes = bytes.get(..len).filter(|_| len >= Udp::LEN)?;
    Some((udp, pseudo(packet, ip, len), bytes))
}

/// Marks the IP header at the start of a packet that has no marked header, for elements that take
/// packets so.
#[inline]
pub(crate) fn mark_at_start(packet: &mut Packet) {
    if packet.network_offset().is_none() {
        mark_first_header(packet);
    }
}

#[cold]
fn mark_first_header(packet: &mut Packet) {
    let bytes = packet.bytes();
    let version = Ipv4Header::from_prefix(bytes).map(|(ip, _)| ip.version());
    let len = match version {
        Some(4) => claimed_header_len(bytes).filter(|&len| len <= bytes.len()),
        Some(6) => Ipv6Header::from_prefix(bytes).map(|_| Ipv6Header::LEN),
        _ => None,
    };
    if let Some(len) = len {
        packet.set_network_header(0, len);
    }
}

/// Restores the transport header of a packet, if it was stripped.
#[inline]
pub(crate) fn unstrip(packet: &mut Packet) {
    if let Some(offset @ ..0) = packet.transport_offset() {
        packet.push_front(offset.unsigned_abs());
    }
}

/// The fault of an invalid segment.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The segment belongs to another protocol.
    Protocol,
    /// A length is wrong.
    Length,
    /// The checksum is wrong.
    Checksum,
}

/// A class of checks: the protocol that its elements check.
pub trait TransportProtocol: Send + Sync + 'static {
    /// The arguments of its elements.
    type Args: Args + Into<TransportCheckArgs>;
    /// Protocol number in IP headers.
    const NUMBER: u8;
    /// Name of the protocol in reports.
    const NAME: &'static str;
    /// Click's text for each fault.
    const FAULT_TEXTS: [&'static str; 3];
    /// Checks the header and, if `checksum` is true, the checksum of a segment that is not a fragment. `pseudo` gives
    /// the sum of the pseudo header.
    fn check(pseudo: impl FnOnce() -> Sum, segment: &[u8], checksum: bool) -> Result<(), Fault>;
    /// Checks the header of a segment of which there is only the first fragment.
    fn check_start(segment: &[u8]) -> Result<(), Fault>;
}

/// Exits of the transport checks.
#[derive(Fate)]
pub enum TransportExit {
    /// Packets with a valid transport header, and fragments of the protocol.
    Good,
    /// All other packets, if output 1 is connected.
    #[optional]
    Bad,
    /// Packets of another protocol, or without a marked IPv4 header. Sort them out with an IPClassifier
    /// before, or put a CheckIPHeader before this element.
    #[drop]
    BadProtocol,
    /// Packets shorter than the transport header, or than its length field says.
    #[drop]
    BadLength,
    /// Packets whose transport checksum is wrong. If all have one, set it behind the element that
    /// changes their headers.
    #[drop]
    BadChecksum,
}

/// The arguments of `CheckTCPHeader` and `CheckUDPHeader`.
#[derive(Args)]
pub struct TransportCheckArgs {
    /// Whether to report every invalid packet, not only the first.
    #[arg(keyword, default = false)]
    pub(crate) verbose: bool,
    /// Whether to check the checksum.
    #[arg(keyword, default = true)]
    pub(crate) checksum: bool,
    /// Whether to count by fault; ignored, because the element always does.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    pub(crate) details: bool,
}

/// An element that checks the headers of one transport protocol.
pub struct TransportCheck<P> {
    /// Name of the element in reports.
    name: String,
    verbose: bool,
    checksum: bool,
    two_outputs: bool,
    protocol: PhantomData<P>,
}

impl<P: TransportProtocol> Build for TransportCheck<P> {
    type Args = P::Args;
    fn build(args: P::Args, setup: &Setup) -> Result<Self, ArgError> {
        let TransportCheckArgs { verbose, checksum, .. } = args.into();
        let two_outputs = setup.outputs > 1;
        let name = format!("{} :: Check{}Header", setup.name, P::NAME);
        Ok(TransportCheck { name, verbose, checksum, two_outputs, protocol: PhantomData })
    }
}

impl<P: TransportProtocol> PerPacket for TransportCheck<P>
where
    Self: Describe,
{
    // Packets that are not IPv4 are invalid like others.
    type On = on::Any;
    type Local = TransportCheckState<P>;
    type Fate = TransportExit;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;
    const COUNTS_HANDLED: bool = true;

    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(
        &self,
        _: &mut TransportCheckState<P>,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        let Some(packets) = bytes.network() else { return none_taken(fates) };
        let mut bits = 0;
        for (packet, fate) in packets.zip(fates) {
            *fate = match check_bytes::<P>(packet, self.checksum) {
                Some(Ok(())) => TransportExit::Good.index(),
                Some(Err(fault)) => self.exit(fault).index(),
                None => NOT_TAKEN,
            };
            bits |= *fate;
        }
        bits
    }

    fn count_handled(&self, state: &mut TransportCheckState<P>, packets: usize) {
        state.count += packets as u64;
    }

    #[inline]
    fn packet(&self, state: &mut TransportCheckState<P>, packet: &mut Packet) -> TransportExit {
        let Some(ip) = packet.ipv4() else { return self.reject(state, Fault::Protocol) };
        match check::<P>(&ip, self.checksum) {
            Ok(()) => {
                state.count += 1;
                TransportExit::Good
            }
            Err(fault) => self.reject(state, fault),
        }
    }

    fn end_burst(&self, state: &mut TransportCheckState<P>, cx: &mut Cx) {
        state.report(&self.name, cx);
    }
}

impl<P: TransportProtocol> TransportCheck<P> {
    #[cold]
    fn reject(&self, state: &mut TransportCheckState<P>, fault: Fault) -> TransportExit {
        if self.verbose || state.drops == 0 {
            state.reports.push(fault);
        }
        state.drops += 1;
        state.by_fault[fault as usize] += 1;
        self.exit(fault)
    }

    /// Where packets with a fault go.
    fn exit(&self, fault: Fault) -> TransportExit {
        match fault {
            _ if self.two_outputs => TransportExit::Bad,
            Fault::Protocol => TransportExit::BadProtocol,
            Fault::Length => TransportExit::BadLength,
            Fault::Checksum => TransportExit::BadChecksum,
        }
    }
}

#[inline(always)]
fn check<P: TransportProtocol>(ip: &Ipv4, checksum: bool) -> Result<(), Fault> {
    if ip.protocol() != P::NUMBER {
        return Err(Fault::Protocol);
    }
    if ip.is_fragment() {
        return check_fragment::<P>(ip);
    }
    let packet = ip.packet();
    let (ip, bytes) = packet.ipv4_segment().ok_or(Fault::Length)?;
    P::check(|| pseudo(packet, ip, bytes.len()), bytes, checksum)
}

/// Checks the segment of a packet that is given from its network header on; `None` if that has options, or if the
/// packet is a fragment.
#[inline(always)]
fn check_bytes<P: TransportProtocol>(packet: &[u8], checksum: bool) -> Option<Result<(), Fault>> {
    let (ip, _) = Ipv4Header::from_prefix(packet).filter(|(ip, _)| ip.is_plain())?;
    if ip.protocol() != P::NUMBER {
        return Some(Err(Fault::Protocol));
    }
    if ip.is_fragment() {
        return None;
    }
    let Some(segment) = packet.get(Ipv4Header::LEN..usize::from(ip.total_len())) else {
        return Some(Err(Fault::Length));
    };
    Some(P::check(|| ip.pseudo(segment.len()), segment, checksum))
}

/// Checks a fragment. The checksum covers all fragments of the packet.
#[cold]
fn check_fragment<P: TransportProtocol>(ip: &Ipv4) -> Result<(), Fault> {
    if !ip.is_first_fragment() {
        return Ok(());
    }
    let (_, bytes) = ip.packet().ipv4_segment().ok_or(Fault::Length)?;
    P::check_start(bytes)
}

/// Counters of one worker, and the faults of the current burst to report.
#[derive(Local)]
#[local(methods)]
pub struct TransportCheckState<P: TransportProtocol> {
    /// Number of valid packets.
    #[read]
    #[portable]
    count: u64,
    /// Number of invalid packets.
    #[read]
    #[portable]
    drops: u64,
    #[portable]
    by_fault: [u64; 3],
    reports: Vec<Fault>,
    protocol: PhantomData<P>,
}

impl<P: TransportProtocol> Default for TransportCheckState<P> {
    fn default() -> Self {
        TransportCheckState {
            count: 0,
            drops: 0,
            by_fault: [0; 3],
            reports: Vec::new(),
            protocol: PhantomData,
        }
    }
}

#[handlers]
impl<P: TransportProtocol> TransportCheckState<P> {
    /// Number of invalid packets for each fault.
    #[read]
    fn drop_details(&self) -> Value {
        let texts = P::FAULT_TEXTS.map(Cow::from);
        Value::Counts(self.by_fault.into_iter().zip(texts).collect())
    }

    /// Reports the invalid packets of a burst.
    #[inline]
    fn report(&mut self, name: &str, cx: &mut Cx) {
        for fault in self.reports.drain(..) {
            let text = P::FAULT_TEXTS[fault as usize];
            cx.chatter(&format!("{name}: {} header check failed: {text}", P::NAME));
        }
    }
}

/// Removes all bytes before `end`, an offset from the packet's first byte; the whole packet if
/// `end` is beyond it.
#[inline]
pub(crate) fn strip_to(packet: &mut Packet, end: isize) {
    if !packet.pull_front(usize::try_from(end).unwrap_or(0)) {
        let all = packet.len();
        packet.pull_front(all);
    }
}

/// Replaces the contents of `packet` by `bytes`, an IPv4 packet, and marks its header.
pub(crate) fn replace_with_ipv4(packet: &mut Packet, bytes: &[u8]) {
    packet.replace_contents(bytes);
    if let Some((ip, _)) = Ipv4Header::from_prefix(bytes) {
        packet.set_network_header(0, ip.header_len());
        packet.set_dst(ip.dst());
    }
}

/// Writes both headers over those of `packet`, which begins with an IPv4 header of the same length,
/// with the packet's length and right checksums.
pub(crate) fn write_tcp_headers(packet: &mut Packet, mut ip: Ipv4Header, mut tcp: Tcp) {
    ip.set_total_len(packet.len() as u16);
    let Some((header, rest)) = Ipv4Header::from_prefix_mut(packet.bytes_mut()) else { return };
    let options = ip.header_len().saturating_sub(Ipv4Header::LEN);
    let Some((options, segment)) = rest.split_at_mut_checked(options) else { return };
    ip.update_checksum(options);
    *header = ip;
    let pseudo = ip.pseudo(segment.len());
    if let Some((header, rest)) = Tcp::from_prefix_mut(segment) {
        tcp.update_checksum(pseudo, rest);
        *header = tcp;
    }
}
