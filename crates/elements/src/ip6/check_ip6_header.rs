//! `CheckIP6Header`: checks and marks IPv6 headers.

use castanet_element::prelude::*;
use castanet_kit::ip6_header::{Fault, HeaderCheck};

/// Checks IPv6 headers, marks them, and removes link-layer padding.
///
/// Version and length must be valid, and the source address must be neither
/// multicast nor a bad source. For a valid packet the element sets the network
/// and transport header annotations; with PROCESS_EH the transport header is
/// that behind the extension headers. Invalid packets leave by output 1. If it
/// is not connected, they are dropped, with a counter for each fault. Each
/// worker reports its first invalid packet.
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
#[element(room = "ip6", args = CheckIP6HeaderArgs, gives = "ip6", headers = Mark(MarkedHeader::Ip6))]
pub struct CheckIP6Header {
    check: HeaderCheck,
    offset: usize,
    two_outputs: bool,
}

#[derive(Args)]
pub struct CheckIP6HeaderArgs {
    /// Bad source addresses.
    #[arg(default = Vec::new())]
    badaddrs: Vec<Ipv6Addr>,
    /// Offset of the IPv6 header, in bytes.
    #[arg(default = 0)]
    offset: u16,
    /// Whether to search the extension headers for the transport header.
    #[arg(keyword, default = false)]
    process_eh: bool,
}

/// Exits.
#[derive(Fate)]
pub enum CheckIP6HeaderExit {
    /// Packets with a valid header.
    Good,
    /// Packets with an invalid header.
    #[optional]
    Bad,
    /// Packets shorter than an IPv6 header (40 bytes). Check that the header lies where the element
    /// expects it.
    #[drop]
    TinyPacket,
    /// Packets whose version is not 6. Sort them out with a Classifier before, or check OFFSET.
    #[drop]
    BadVersion,
    /// Packets shorter than their payload length says. Look for an element or a device before that
    /// cuts packets.
    #[drop]
    BadLength,
    /// Packets whose source address is a bad one.
    #[drop]
    BadSource,
}

/// Counters of one worker.
#[derive(Default, Local)]
pub struct CheckIP6HeaderState {
    /// Number of valid packets.
    #[read]
    #[portable]
    count: u64,
    /// Number of invalid packets.
    #[read]
    #[portable]
    drops: u64,
    /// Whether the burst contains the first invalid packet, which is to be reported.
    report: bool,
}

impl Build for CheckIP6Header {
    type Args = CheckIP6HeaderArgs;
    fn build(args: CheckIP6HeaderArgs, setup: &Setup) -> Result<Self, ArgError> {
        let check = HeaderCheck::new(&args.badaddrs, args.process_eh);
        Ok(CheckIP6Header { check, offset: args.offset.into(), two_outputs: setup.outputs > 1 })
    }
}

impl PerPacket for CheckIP6Header {
    type On = on::Any;
    type Local = CheckIP6HeaderState;
    type Fate = CheckIP6HeaderExit;

    #[inline]
    fn packet(&self, state: &mut CheckIP6HeaderState, packet: &mut Packet) -> CheckIP6HeaderExit {
        let bytes = packet.bytes().get(self.offset..).unwrap_or_default();
        let good = match self.check.check(bytes) {
            Ok(good) => good,
            Err(fault) => return self.reject(state, fault),
        };
        packet.truncate(self.offset + good.total_len);
        packet.set_network_header(self.offset as isize, good.header_len);
        state.count += 1;
        CheckIP6HeaderExit::Good
    }

    fn end_burst(&self, state: &mut CheckIP6HeaderState, cx: &mut Cx) {
        if std::mem::take(&mut state.report) {
            cx.chatter("IP6 header check failed");
        }
    }
}

impl CheckIP6Header {
    #[cold]
    fn reject(&self, state: &mut CheckIP6HeaderState, fault: Fault) -> CheckIP6HeaderExit {
        state.report |= state.drops == 0;
        state.drops += 1;
        match fault {
            _ if self.two_outputs => CheckIP6HeaderExit::Bad,
            Fault::Tiny => CheckIP6HeaderExit::TinyPacket,
            Fault::Version => CheckIP6HeaderExit::BadVersion,
            Fault::Length => CheckIP6HeaderExit::BadLength,
            Fault::Source => CheckIP6HeaderExit::BadSource,
        }
    }
}
