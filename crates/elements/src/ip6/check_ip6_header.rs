//! `CheckIP6Header`: whether an IPv6 header can be believed.

use castanet_engine::prelude::*;
use castanet_kit::ip6_header::{Fault, HeaderCheck};

/// Checks IPv6 headers, marks them, and cuts off the padding of the link.
///
/// Version and length must be right, and the source no group and none of the
/// bad ones. What passes has its network and transport headers marked, the
/// latter behind extension headers with PROCESS_EH. What does not leaves by
/// output 1 or, where that is not connected, is dropped by the name of its
/// fault. Each worker reports the first bad packet.
///
/// ```click
/// in -> c :: CheckIP6Header(3::1 3::2, 14) -> out;  c[1] -> bad
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp hop 9 pad 18
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 3::2 > 2::2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 ff02::1 > 2::2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp hop 9 ; network 14
/// < bad eth 0:0:0:0:0:1 > 0:0:0:0:0:2 3::2 > 2::2 udp
/// < bad eth 0:0:0:0:0:1 > 0:0:0:0:0:2 ff02::1 > 2::2 udp
/// ~ IP6 header check failed
/// = c.count 1
/// = c.drops 2
/// ```
/// ```click
/// in -> c :: CheckIP6Header(PROCESS_EH true) -> SetUDPChecksumIP6 -> out
/// > in  [1::1]:5 > [2::2]:6 udp id 7 frag 0 badcheck
/// > in  hex 60
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// > in  1::1 > 2::2 udp iplen 99
/// > in  ff02::1 > 2::2 udp
/// < out [1::1]:5 > [2::2]:6 udp id 7 frag 0
/// = c.drops.tiny_packet 1
/// = c.drops.bad_version 1
/// = c.drops.bad_length 1
/// = c.drops.bad_source 1
/// ```
#[derive(Element)]
#[element(room = "ip6", args = Checks, gives = "ip6")]
pub struct CheckIP6Header {
    check: HeaderCheck,
    offset: usize,
    two_outputs: bool,
}

#[derive(Args)]
pub struct Checks {
    /// Addresses that no packet may come from.
    #[arg(default = Vec::new())]
    badaddrs: Vec<Ipv6Addr>,
    /// Where the header begins, in bytes.
    #[arg(default = 0)]
    offset: u16,
    /// Whether to look for the transport header behind extension headers.
    #[arg(keyword, default = false)]
    process_eh: bool,
}

/// Where checked packets go.
#[derive(Fate)]
pub enum Verdict {
    /// Packets whose header is good.
    Good,
    /// All other packets.
    #[optional]
    Bad,
    /// Packets shorter than a header.
    #[drop]
    TinyPacket,
    /// Packets of another version than 6.
    #[drop]
    BadVersion,
    /// Payloads longer than the packet.
    #[drop]
    BadLength,
    /// Sources that are nobody's address.
    #[drop]
    BadSource,
}

/// What one worker has checked.
#[derive(Default, Local)]
pub struct Tally {
    /// Good packets.
    #[read]
    count: u64,
    /// Bad packets.
    #[read]
    drops: u64,
    report: bool,
}

impl Build for CheckIP6Header {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        let check = HeaderCheck::new(&args.badaddrs, args.process_eh);
        Ok(CheckIP6Header { check, offset: args.offset.into(), two_outputs: setup.outputs > 1 })
    }
}

impl PerPacket for CheckIP6Header {
    type On = on::Any;
    type Local = Tally;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        let bytes = packet.bytes().get(self.offset..).unwrap_or_default();
        let good = match self.check.check(bytes) {
            Ok(good) => good,
            Err(fault) => return self.refuse(tally, fault),
        };
        packet.truncate(self.offset + good.total_len);
        packet.set_network_header(self.offset as isize, good.header_len);
        tally.count += 1;
        Verdict::Good
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        if std::mem::take(&mut tally.report) {
            cx.chatter("IP6 header check failed");
        }
    }
}

impl CheckIP6Header {
    #[cold]
    fn refuse(&self, tally: &mut Tally, fault: Fault) -> Verdict {
        tally.report |= tally.drops == 0;
        tally.drops += 1;
        match fault {
            _ if self.two_outputs => Verdict::Bad,
            Fault::Tiny => Verdict::TinyPacket,
            Fault::Version => Verdict::BadVersion,
            Fault::Length => Verdict::BadLength,
            Fault::Source => Verdict::BadSource,
        }
    }
}
