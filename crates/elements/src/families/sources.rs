//! Families by which packets come: sources, devices.

use super::Family;

pub(super) const SOURCES: Family = Family {
    file: "which-source.md",
    title: "Which source of packets?",
    text: "Sources that generate packets, and those that read recorded ones.",
    rows: &[
        ("InfiniteSource", "packets as fast as they are taken", "equal packets; waits for queues"),
        ("RatedSource", "packets at an even rate", "equal packets; exact over time"),
        ("TimedSource", "a packet now and then", "one at each interval"),
        ("RandomSource", "the contents are to be random", "as fast as they are taken"),
        ("FastUDPSource", "frames of one UDP flow", "headers by arguments; checksums"),
        ("FastUDPFlows", "frames of many UDP flows", "random ports"),
        ("FastTCPFlows", "frames of many TCP flows", "each with SYN, data and FIN"),
        ("ICMPPingSource", "pings, with the replies' times", "has an input for replies"),
        ("FromDump", "a pcap or pcapng file", "whole packets; with TIMING at their times"),
        ("FromIPSummaryDump", "an IP summary dump", "packets made of the fields of a line"),
        ("FromTcpdump", "lines printed by tcpdump", "packets made of the fields of a line"),
        ("ReplayUnqueue", "packets again and again, from memory", "pulls them first; any speed"),
    ],
};

pub(super) const DEVICES: Family = Family {
    file: "which-device.md",
    title: "Which device or socket?",
    text: "Elements that receive packets; most have a partner that sends, such as `ToDevice`.",
    rows: &[
        (
            "FromDevice",
            "a network interface of Linux",
            "AF_XDP or a packet socket, whichever is faster there",
        ),
        ("FromDPDKDevice", "a port that DPDK drives", "the kernel does not see the port"),
        (
            "FromDPDKRing",
            "packets of another DPDK process",
            "no copy where the processes share memory",
        ),
        (
            "FromSlots",
            "packets of another process, which need not be trusted",
            "shared memory; with `ToSlots` for the other direction",
        ),
        (
            "KernelTap",
            "frames to and from this host's own stack",
            "one element for both directions",
        ),
        ("KernelTun", "IP packets to and from this host's own stack", "no Ethernet, no ARP"),
        ("FromHost", "frames from this host", "with `ToHost` for the other direction"),
        ("Socket", "payload over TCP, UDP or Unix sockets", "packets are the data of the socket"),
        ("RawSocket", "whole IPv4 packets of one protocol", "the host receives them, too"),
        ("McastSocket", "payload to and from a multicast group", "UDP"),
    ],
};
