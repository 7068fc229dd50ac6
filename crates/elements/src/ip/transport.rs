//! What the elements that check and set transport checksums share.

use castanet_engine::prelude::*;
use castanet_engine::wire::checksum::Sum;
use castanet_engine::wire::{Ipv4Header, Udp};
use std::marker::PhantomData;

/// The transport segment of a whole IPv4 packet, as far as its lengths say, and the sum of the
/// pseudo header; `None` for fragments and where the packet is too short.
pub(crate) fn segment(packet: &Packet) -> Option<(Sum, &[u8])> {
    let ip = packet.ipv4_header()?;
    let len = usize::from(ip.total_len()).checked_sub(ip.header_len())?;
    let segment = packet.network_bytes().get(ip.header_len()..)?.get(..len)?;
    (!ip.is_fragment()).then(|| (ip.pseudo(len), segment))
}

/// The UDP header of a whole IPv4 packet, what follows it as far as the header's own length
/// says, which may be less than IP's, and the sum of the pseudo header with that length;
/// `None` where [`segment`] has none and where the length is wrong.
pub(crate) fn datagram(packet: &Packet) -> Option<(Udp, Sum, &[u8])> {
    let (_, bytes) = segment(packet)?;
    let udp = *Udp::from_prefix(bytes)?.0;
    let len = usize::from(udp.length());
    Some((udp, packet.ipv4_header()?.pseudo(len), bytes.get(Udp::LEN..len)?))
}

/// What is wrong with a segment.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is of another protocol.
    Protocol,
    /// A length is wrong.
    Length,
    /// The checksum is wrong.
    Checksum,
}

/// A transport protocol whose header can be checked.
pub trait Protocol: Send + 'static {
    /// Its number in IP headers.
    const NUMBER: u8;
    /// Its name in reports.
    const NAME: &'static str;
    /// Click's words for the faults.
    const WORDS: [&'static str; 3];
    /// Whether a whole segment's header can be believed.
    fn check(pseudo: Sum, segment: &[u8]) -> Result<(), Fault>;
}

/// Where checked packets go.
#[derive(Fate)]
pub enum Verdict {
    /// Packets whose transport header is good.
    Good,
    /// All other packets.
    #[optional]
    Bad,
    /// Packets of another protocol.
    #[drop]
    BadProtocol,
    /// Packets with a wrong length.
    #[drop]
    BadLength,
    /// Packets with a wrong checksum.
    #[drop]
    BadChecksum,
}

/// The arguments of the checks.
#[derive(Args)]
pub struct Checks {
    /// Whether to report every bad packet, not just the first.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether to count by fault; this is always done.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    details: bool,
}

/// A check of one protocol.
pub(crate) struct Checker {
    verbose: bool,
    two_outputs: bool,
}

impl Checker {
    pub(crate) fn new(args: &Checks, setup: &Setup) -> Checker {
        Checker { verbose: args.verbose, two_outputs: setup.outputs > 1 }
    }

    #[inline(always)]
    pub(crate) fn judge<P: Protocol>(&self, bad: &mut Faults<P>, packet: &Packet) -> Verdict {
        match check::<P>(packet) {
            Ok(()) => Verdict::Good,
            Err(fault) => self.refuse(bad, fault),
        }
    }

    #[cold]
    fn refuse<P: Protocol>(&self, bad: &mut Faults<P>, fault: Fault) -> Verdict {
        if self.verbose || bad.drops == 0 {
            bad.reports.push(fault);
        }
        bad.drops += 1;
        bad.by_fault[fault as usize] += 1;
        match fault {
            _ if self.two_outputs => Verdict::Bad,
            Fault::Protocol => Verdict::BadProtocol,
            Fault::Length => Verdict::BadLength,
            Fault::Checksum => Verdict::BadChecksum,
        }
    }
}

#[inline(always)]
fn check<P: Protocol>(packet: &Packet) -> Result<(), Fault> {
    let ip = packet.ipv4_header().filter(|ip| ip.protocol() == P::NUMBER);
    if ip.ok_or(Fault::Protocol)?.is_fragment() {
        return Ok(()); // the checksum is over what is not here
    }
    let (pseudo, bytes) = segment(packet).ok_or(Fault::Length)?;
    P::check(pseudo, bytes)
}

/// What one worker has found wrong.
#[derive(Local)]
#[local(methods)]
pub struct Faults<P: Protocol> {
    /// Bad packets.
    #[read]
    drops: u64,
    by_fault: [u64; 3],
    reports: Vec<Fault>,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Default for Faults<P> {
    fn default() -> Self {
        Faults { drops: 0, by_fault: [0; 3], reports: Vec::new(), protocol: PhantomData }
    }
}

#[handlers]
impl<P: Protocol> Faults<P> {
    /// Bad packets by fault.
    #[read]
    fn drop_details(&self) -> Value {
        Value::Counts(self.by_fault.into_iter().zip(P::WORDS).collect())
    }

    /// Reports the bad packets of a burst.
    #[inline]
    pub(crate) fn report(&mut self, cx: &mut Cx) {
        for fault in self.reports.drain(..) {
            let word = P::WORDS[fault as usize];
            cx.chatter(&format!("{} header check failed: {word}", P::NAME));
        }
    }
}

/// Takes all off a packet that stands before `end`, an offset from its first byte.
#[inline]
pub(crate) fn strip_to(packet: &mut Packet, end: isize) {
    if !packet.pull_front(usize::try_from(end).unwrap_or(0)) {
        let all = packet.len();
        packet.pull_front(all);
    }
}

/// Makes `bytes` the packet, of IPv4 from its first byte on.
pub(crate) fn show(packet: &mut Packet, bytes: &[u8]) {
    packet.replace_contents(bytes);
    if let Some((ip, _)) = Ipv4Header::from_prefix(bytes) {
        packet.set_network_header(0, ip.header_len());
        packet.set_dst(ip.dst());
    }
}
