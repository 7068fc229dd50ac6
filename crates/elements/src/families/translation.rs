//! Families that change headers: encapsulation, rewriters.

use super::Family;

pub(super) const ENCAPSULATION: Family = Family {
    file: "which-encapsulation.md",
    title: "Which encapsulation?",
    text: "Elements that put a header before the packet, with their opposites.",
    rows: &[
        (
            "ARPQuerier",
            "IPv4 packets go to neighbours on Ethernet",
            "finds the address by ARP; one for each interface",
        ),
        ("IP6NDSolicitor", "the same for IPv6", "by neighbour discovery"),
        (
            "EtherEncap",
            "the Ethernet addresses are known",
            "a constant header; opposite: `Strip(14)`",
        ),
        ("EtherVLANEncap", "the same with a VLAN tag", "opposite: `StripEtherVLANHeader`"),
        (
            "VLANEncap",
            "a frame gets a VLAN tag",
            "into a frame that has its header; opposite: `VLANDecap`",
        ),
        ("IPEncap", "a payload becomes an IPv4 packet, or IP in IP", "opposite: `StripIPHeader`"),
        ("IP6Encap", "the same for IPv6", "no checksum"),
        (
            "UDPIPEncap",
            "a payload becomes a UDP datagram",
            "UDP and IPv4 header; opposite: `StripTransportHeader`",
        ),
        ("ICMPPingEncap", "a payload becomes a ping", "counts sequence numbers"),
        (
            "GREEncap",
            "packets of any protocol go into a GRE tunnel",
            "`IPEncap` stands behind it; opposite: `GREDecap`",
        ),
        (
            "VXLANEncap",
            "Ethernet frames go into a VXLAN",
            "`UDPIPEncap` stands behind it; opposite: `VXLANDecap`",
        ),
        (
            "GeneveEncap",
            "frames or packets go into a Geneve tunnel",
            "`UDPIPEncap` stands behind it; opposite: `GeneveDecap`",
        ),
        (
            "GTPEncap",
            "packets go into a GTP-U tunnel",
            "`UDPIPEncap` stands behind it; opposite: `GTPDecap`",
        ),
        ("GTPLookup", "packets to users go into their tunnels", "finds the tunnel in a `GTPTable`"),
    ],
};

pub(super) const REWRITERS: Family = Family {
    file: "which-rewriter.md",
    title: "Which rewriter (NAT)?",
    text: "A rewriter gives each flow a mapping, and rewrites replies back. `conf/nat.click` has a \
           gateway of several of them.",
    rows: &[
        ("IPRewriter", "TCP and UDP behind one address", "ports; tracks TCP connections"),
        (
            "UDPRewriter",
            "the same without a look at TCP's state",
            "timeouts as of UDP flows; DCCP, too",
        ),
        (
            "TCPRewriter",
            "the data of TCP changes its length, as with FTP",
            "sequence numbers, too; TCP alone",
        ),
        ("ICMPPingRewriter", "pings", "identifiers in the place of ports"),
        (
            "ICMPRewriter",
            "ICMP errors about rewritten packets",
            "has no mappings; asks other rewriters",
        ),
        (
            "IPAddrRewriter",
            "each inner address has an outer one (basic NAT)",
            "any protocol, no ports",
        ),
        ("IPAddrPairRewriter", "source and destination change by pairs", "any protocol, no ports"),
        ("AddressTranslator", "addresses and ports of IPv6", "static and dynamic mappings"),
        ("ProtocolTranslator64", "IPv6 packets become IPv4", "no state: addresses are embedded"),
        ("ProtocolTranslator46", "IPv4 packets become IPv6", "no state: addresses are embedded"),
        ("FTPPortMapper", "active FTP through a rewriter", "changes PORT and EPRT"),
        (
            "RoundRobinIPMapper",
            "new flows go to several servers in turn",
            "an argument of rewriters",
        ),
        (
            "SourceIPHashMapper",
            "a source keeps its server",
            "an argument of rewriters; consistent hash",
        ),
        ("ThreadIPMapper", "each worker has a pattern of its own", "an argument of rewriters"),
        (
            "Middlebox",
            "translation, balancing and filters by rules",
            "rules of one line, IPv4 and IPv6",
        ),
    ],
};
