//! `IPInputCombo`: combines the first elements of a router's input path.

use super::header_checks::{CheckIPHeaderExit, CheckIPHeaderState, HeaderChecker, SourceFilter};
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Paints packets, strips the Ethernet header, checks and marks the IPv4 header.
///
/// The element replaces `Paint(COLOR) -> Strip(14) -> CheckIPHeader ->
/// GetIPAddress(16)` and accesses each packet only once.
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
#[element(room = "ip", args = IPInputComboArgs, gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct IPInputCombo {
    color: u8,
    checker: HeaderChecker,
}

#[derive(Args)]
pub struct IPInputComboArgs {
    /// Value of the paint annotation.
    #[arg]
    color: u8,
    /// Bad source addresses, in addition to 0.0.0.0 and 255.255.255.255.
    #[arg]
    badsrc: Option<Vec<Ipv4Addr>>,
    /// Addresses of this router with their prefixes, as in `CheckIPHeader`.
    #[arg(keyword, default = Vec::new())]
    interfaces: Vec<Net>,
    /// Good destinations: packets to them may have any source address.
    #[arg(keyword, default = Vec::new())]
    gooddst: Vec<Ipv4Addr>,
}

impl Build for IPInputCombo {
    type Args = IPInputComboArgs;
    fn build(args: IPInputComboArgs, setup: &Setup) -> Result<Self, ArgError> {
        let mut bad = args.badsrc.unwrap_or_default();
        if !bad.is_empty() {
            bad.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
        }
        let good_destinations = args.gooddst;
        let filter = SourceFilter { interfaces: args.interfaces, bad, good_destinations };
        let checker = HeaderChecker {
            check: filter.check(true),
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
    type Local = CheckIPHeaderState;
    type Fate = CheckIPHeaderExit;

    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;
    const COUNTS_HANDLED: bool = true;

    fn byte_length(&self) -> Option<usize> {
        Some(Ethernet::LEN + self.checker.byte_length())
    }

    fn handle_bytes(
        &self,
        _: &mut CheckIPHeaderState,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        bytes.set_paint(self.color);
        bytes.strip(Ethernet::LEN);
        self.checker.check_bytes(bytes, fates)
    }

    fn count_handled(&self, state: &mut CheckIPHeaderState, packets: usize) {
        state.count_handled(packets);
    }

    #[inline]
    fn packet(&self, state: &mut CheckIPHeaderState, packet: &mut Packet) -> CheckIPHeaderExit {
        packet.set_paint(self.color);
        // A packet shorter than an Ethernet header becomes empty and fails the IPv4 check.
        let header = Ethernet::LEN.min(packet.len());
        packet.pull_front(header);
        self.checker.check_packet(state, packet)
    }

    fn end_burst(&self, state: &mut CheckIPHeaderState, cx: &mut Cx) {
        state.report(&self.checker.name, cx);
    }
}
