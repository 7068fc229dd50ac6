//! What the elements that check and set transport checksums share.

use castanet_engine::prelude::*;
use castanet_engine::wire::checksum::Sum;

/// The transport segment of a whole IPv4 packet, as far as its lengths say, and the sum of the
/// pseudo header; `None` for fragments and where the packet is too short.
pub(crate) fn segment(packet: &Packet) -> Option<(Sum, &[u8])> {
    let ip = packet.ipv4_header()?;
    let len = usize::from(ip.total_len()).checked_sub(ip.header_len())?;
    let segment = packet.network_bytes().get(ip.header_len()..)?.get(..len)?;
    (!ip.is_fragment()).then(|| (ip.pseudo(len), segment))
}

/// What is wrong with a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is of another protocol.
    Protocol,
    /// A length is wrong.
    Length,
    /// The checksum is wrong.
    Checksum,
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
    pub(crate) fn judge(&self, bad: &mut Faults, found: Result<(), Fault>) -> Verdict {
        match found {
            Ok(()) => Verdict::Good,
            Err(fault) => self.refuse(bad, fault),
        }
    }

    #[cold]
    fn refuse(&self, bad: &mut Faults, fault: Fault) -> Verdict {
        if self.verbose || bad.total == 0 {
            bad.reports.push(fault);
        }
        bad.total += 1;
        bad.by_fault[fault as usize] += 1;
        match fault {
            _ if self.two_outputs => Verdict::Bad,
            Fault::Protocol => Verdict::BadProtocol,
            Fault::Length => Verdict::BadLength,
            Fault::Checksum => Verdict::BadChecksum,
        }
    }
}

/// What one worker has found wrong.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) total: u64,
    by_fault: [u64; 3],
    reports: Vec<Fault>,
}

impl Faults {
    /// Counts by fault, under the protocol's own words.
    pub(crate) fn details(&self, words: [&'static str; 3]) -> Value {
        Value::Counts(self.by_fault.into_iter().zip(words).collect())
    }

    /// Reports the bad packets of a burst.
    #[inline]
    pub(crate) fn report(&mut self, protocol: &str, words: [&'static str; 3], cx: &mut Cx) {
        for fault in self.reports.drain(..) {
            cx.chatter(&format!("{protocol} header check failed: {}", words[fault as usize]));
        }
    }
}
