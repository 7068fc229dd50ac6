//! The names that the IP languages know: fields, protocols, ports, TCP flags, ICMP types.

/// Names that a configuration adds with `AddressInfo` and `IPNameInfo`.
pub trait Names {
    /// The IPv4 address called `name`, in host byte order.
    fn address(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }

    /// The IPv4 prefix called `name`, as address and mask in host byte order.
    fn prefix(&self, name: &str) -> Option<(u32, u32)> {
        let _ = name;
        None
    }

    /// The Ethernet address called `name`.
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        let _ = name;
        None
    }

    /// The port called `name`, of `protocol` if that is TCP or UDP, else of one of them.
    fn port(&self, name: &str, protocol: Option<u8>) -> Option<u16> {
        let _ = (name, protocol);
        None
    }

    /// The same of the machine's services.
    fn service(&self, name: &str, protocol: Option<u8>) -> Option<u16> {
        let _ = (name, protocol);
        None
    }

    /// The IP protocol called `name`.
    fn protocol(&self, name: &str) -> Option<u8> {
        let _ = name;
        None
    }

    /// The ICMP type called `name`.
    fn icmp_type(&self, name: &str) -> Option<u8> {
        let _ = name;
        None
    }
}

/// The built-in names only.
pub struct NoNames;

impl Names for NoNames {}

/// `tcpudp`: TCP or UDP.
pub(crate) const TCP_OR_UDP: u32 = 257;
/// `transp`: any transport protocol.
pub(crate) const ANY_TRANSPORT: u32 = 258;

pub(crate) const PROTOCOLS: &[(&str, u32)] = &[
    ("ah", 51),
    ("dccp", 33),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("ospf", 89),
    ("sctp", 132),
    ("tcp", 6),
    ("tcpudp", TCP_OR_UDP),
    ("transp", ANY_TRANSPORT),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

pub(crate) const FLAGS: &[(&str, u32)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

pub(crate) const ICMP_TYPES: &[(&str, u32)] = &[
    ("echo", 8),
    ("echo-reply", 0),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
    ("parameterproblem", 12),
    ("redirect", 5),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("sourcequench", 4),
    ("timeexceeded", 11),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("unreachable", 3),
];

/// Click's own list, with the services that a Unix system has names for.
pub(crate) const PORTS: &[(&str, u32)] = &[
    ("auth", 113),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("dns", 53),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap2", 143),
    ("imap3", 220),
    ("imaps", 993),
    ("ipsec-nat-t", 4500),
    ("irc", 194),
    ("isakmp", 500),
    ("kerberos", 88),
    ("ldap", 389),
    ("ldaps", 636),
    ("microsoft-ds", 445),
    ("mysql", 3306),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgresql", 5432),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("rip", 520),
    ("route", 520),
    ("rsync", 873),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("syslog", 514),
    ("telnet", 23),
    ("tftp", 69),
    ("time", 37),
    ("www", 80),
    ("x11", 6000),
];

/// The number of `name` in `table`.
pub(crate) fn find(table: &[(&str, u32)], name: &str) -> Option<u32> {
    table.iter().find(|(n, _)| *n == name).map(|&(_, v)| v)
}
