//! Families that look at packets: classifiers, lookups, switches, counters.

use super::Family;

pub(super) const CLASSIFIERS: Family = Family {
    file: "which-classifier.md",
    title: "Which classifier or filter?",
    text: "A classifier chooses an output by the contents of the packet; a filter also \
           drops. `IPClassifier`, `IPFilter` and `Middlebox` look packets up in a table where tests \
           one by one would be slow.",
    rows: &[
        (
            "Classifier",
            "bytes at fixed offsets decide, as the type of an Ethernet frame",
            "any protocol; offsets and masks",
        ),
        (
            "IPClassifier",
            "fields of IPv4, TCP, UDP or ICMP decide",
            "an output for each pattern; like tcpdump's",
        ),
        (
            "IPFilter",
            "packets are allowed or denied, as in a firewall",
            "rules with actions; the first that matches decides",
        ),
        (
            "Middlebox",
            "rules track connections, rewrite packets, or change by the thousand while packets flow",
            "IPv4 and IPv6; all rules that match apply",
        ),
        (
            "HostEtherFilter",
            "frames for other hosts are dropped",
            "by Ethernet address; sets the packet type",
        ),
        ("DropBroadcasts", "broadcasts must not be forwarded", "by the packet type annotation"),
        ("CheckLength", "the length decides", "one limit"),
        ("CheckPaint", "one paint colour decides", "passes one colour"),
        ("PaintSwitch", "the paint is the number of the output", "an output for each colour"),
        ("AggregateFilter", "the aggregate annotation decides", "numbers and ranges"),
        ("TimeFilter", "the time stamp decides", "a period, for recorded traffic"),
        ("RandomSample", "chance decides", "a probability"),
    ],
};

pub(super) const LOOKUPS: Family = Family {
    file: "which-lookup.md",
    title: "Which routing table?",
    text: "A lookup finds the longest prefix of the destination annotation, sends the packet to the \
           route's output and sets the annotation to its gateway. Click's many classes for IPv4 \
           (`LookupIPRoute`, `StaticIPLookup`, `LinearIPLookup`, `DirectIPLookup`, `RangeIPLookup` and \
           others) are names of one class here.",
    rows: &[
        (
            "RadixIPLookup",
            "routes of IPv4",
            "one trie for few routes and for a million; routes change while packets flow",
        ),
        ("LookupIP6Route", "routes of IPv6", "the IPv6 destination annotation"),
        (
            "IPClassifier",
            "a handful of prefixes, or other fields beside the destination",
            "sets no gateway",
        ),
        (
            "EtherSwitch",
            "frames are switched by Ethernet address",
            "learns the addresses by itself",
        ),
        (
            "ARPTable",
            "an Ethernet address is found for the next hop",
            "used by `ARPQuerier`s, has no packets",
        ),
    ],
};

pub(super) const SWITCHES: Family = Family {
    file: "which-switch.md",
    title: "Which switch: distributing and copying packets?",
    text: "A switch chooses an output without a look at protocols; a tee copies.",
    rows: &[
        ("Switch", "a handler chooses the output", "one output at a time"),
        (
            "StaticSwitch",
            "the configuration chooses the output",
            "as `Switch`, without the handler",
        ),
        (
            "RoundRobinSwitch",
            "each output is to have the same number of packets",
            "packets of one flow part",
        ),
        ("StrideSwitch", "outputs have shares of different size", "in proportion to tickets"),
        ("HashSwitch", "packets of one flow must stay together", "by a hash of some bytes"),
        ("RandomSwitch", "outputs are chosen at random", "no state"),
        ("PaintSwitch", "an element before has chosen, by paint", "the paint is the output"),
        ("CPUSwitch", "each worker is to have its own path", "worker n sends to output n"),
        (
            "ExactCPUSwitch",
            "the same where only some workers reach the element",
            "numbers only those",
        ),
        ("Bypass", "a part of the graph is switched on and off", "a branch and the way past it"),
        ("Tee", "every packet goes to all outputs", "push; copies share their bytes"),
        ("PullTee", "the same on a pull path", "output 0 is pulled, the others push"),
        ("PaintTee", "packets of one colour are copied", "for ICMP redirects"),
        ("Hub", "every port hears all the others", "not back to the port of its input"),
    ],
};

pub(super) const COUNTERS: Family = Family {
    file: "which-counter.md",
    title: "Which counter?",
    text: "Every element counts packets at its ports (`icounts`, `ocounts`) and drops by reason, and \
           `castanet top` shows rates. A counter is for more than that.",
    rows: &[
        (
            "Counter",
            "packets, bytes and their rates at one place; a handler is called at a count",
            "the usual one",
        ),
        (
            "MultiCounter",
            "the same for several inputs in one element",
            "lists, an entry for each input",
        ),
        ("AverageCounter", "the rate of a whole run", "from the first packet to the last"),
        (
            "AggregateCounter",
            "packets or bytes by flow, address or any aggregate",
            "a table that grows",
        ),
        (
            "AggregateCounterVector",
            "the same for aggregates below a known number",
            "a vector of fixed size",
        ),
        ("BatchStats", "the lengths of bursts", "a distribution"),
        ("AverageBatchCounter", "bursts and packets of the last interval", "whole intervals"),
        ("CheckNumberPacket", "loss and duplicates of numbered packets", "with `NumberPacket`"),
        ("TimestampDiff", "the delay between two places", "with `RecordTimestamp`"),
    ],
};
