//! `IPInputCombo`: the first steps of a router in one.

use super::header_checks::{Checker, Sources, Tally, Verdict};
use castanet_engine::prelude::*;
use castanet_engine::wire::Ethernet;

/// Paints, strips the Ethernet header, checks and marks the IPv4 header.
///
/// It does what `Paint(COLOR) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)`
/// do, looking at each packet once.
///
/// ```click
/// in -> c :: IPInputCombo(2, INTERFACES 18.26.4.9/24) -> out;  c[1] -> bad
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp pad 18
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 18.26.4.255 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 2 dst 2.0.0.2 network 0
/// < bad 18.26.4.255 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> c :: IPInputCombo(2, 1.0.0.255) -> out
/// > in hex 45
/// > in eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1::1 > 2::2 udp
/// > in eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp hl 4
/// > in eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp iplen 99
/// > in eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp badsum
/// > in eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.255 > 2.0.0.2 udp
/// = c.drops 6
/// = c.drops.tiny_packet 1
/// = c.drops.bad_version 1
/// = c.drops.bad_header_length 1
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drops.bad_source 1
/// ```
#[derive(Element)]
#[element(room = "ip", args = Input, gives = "ip")]
pub struct IPInputCombo {
    color: u8,
    checker: Checker,
}

#[derive(Args)]
pub struct Input {
    /// What to paint packets with.
    #[arg]
    color: u8,
    /// Bad sources, beside 0.0.0.0 and 255.255.255.255.
    #[arg]
    badsrc: Option<Vec<Ipv4Addr>>,
    /// This router's addresses, as in `CheckIPHeader`.
    #[arg(keyword, default = Vec::new())]
    interfaces: Vec<Net>,
    /// Addresses to which packets may come from anywhere.
    #[arg(keyword, default = Vec::new())]
    gooddst: Vec<Ipv4Addr>,
}

impl Build for IPInputCombo {
    type Args = Input;
    fn build(args: Input, setup: &Setup) -> Result<Self, ArgError> {
        let mut bad = args.badsrc.unwrap_or_default();
        if !bad.is_empty() {
            bad.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
        }
        let good_destinations = args.gooddst;
        let sources = Sources { interfaces: args.interfaces, bad, good_destinations };
        let checker = Checker {
            check: sources.check(true),
            offset: 0,
            two_outputs: setup.outputs > 1,
            verbose: false,
            name: setup.name.to_owned(),
        };
        Ok(IPInputCombo { color: args.color, checker })
    }
}

impl PerPacket for IPInputCombo {
    type On = on::Any;
    type Local = Tally;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        packet.set_paint(self.color);
        // What is shorter than the header has no room for IPv4 either.
        let header = Ethernet::LEN.min(packet.len());
        packet.pull_front(header);
        self.checker.judge(tally, packet)
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        tally.report(&self.checker.name, cx);
    }
}
