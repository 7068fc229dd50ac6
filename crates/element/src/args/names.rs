//! Names that stand for addresses in arguments.

use super::Net;
use crate::files::HandlerFiles;
use castanet_wire::MacAddr;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The kind of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// `1.0.0.1`.
    Ip,
    /// `1.0.0.0/8`.
    Net,
    /// `00:01:02:03:04:05`.
    Mac,
    /// `2001:db8::1`.
    Ip6,
    /// `2001:db8::/32`.
    Net6,
    /// A port of TCP, as `PortInfo` declares it.
    TcpPort,
    /// A port of UDP.
    UdpPort,
    /// An annotation, as `AnnotationInfo` declares it: `OFFSET/SIZE`.
    Anno,
    /// A pattern of rewriters, as `IPRewriterPatterns` declares it.
    Pattern,
    /// A lock of paths, as `SpinlockInfo` declares it.
    Spinlock,
    /// Whom the machine's default route through an interface names, as Ip.
    Gateway,
}

impl AddressKind {
    /// The kinds that addresses are written in.
    pub const WRITTEN: [AddressKind; 5] =
        [AddressKind::Ip, AddressKind::Net, AddressKind::Mac, AddressKind::Ip6, AddressKind::Net6];

    /// The kind that a suffix picks.
    fn of_suffix(suffix: &str) -> Option<AddressKind> {
        Some(match suffix {
            "ip" => AddressKind::Ip,
            "ipnet" | "net" | "ip4net" | "ip_prefix" => AddressKind::Net,
            "eth" | "ether" | "ethernet" => AddressKind::Mac,
            "ip6" => AddressKind::Ip6,
            "ip6net" | "ip6_prefix" => AddressKind::Net6,
            _ => return None,
        })
    }
}

/// Asks the machine for an interface's address.
pub(crate) type Resolver =
    std::sync::Arc<dyn Fn(&str, AddressKind) -> Option<String> + Send + Sync>;

/// Addresses by name, as `AddressInfo` and the machine's interfaces give them.
#[derive(Clone, Default)]
pub struct Names {
    declared: HashMap<String, Vec<String>>,
    system: Option<Resolver>,
    files: HandlerFiles,
    /// The sealed compound in which they hold; `None` for those that hold outside of all of them.
    scope: Option<String>,
}

impl Names {
    /// Names from `AddressInfo` declarations, and those of interfaces.
    pub fn new(declared: &[(String, String)], system: Option<Resolver>) -> Names {
        let mut names = Names { system, ..Names::default() };
        for (name, address) in declared {
            names.declared.entry(name.clone()).or_default().push(address.clone());
        }
        names
    }

    /// Names that hold inside a sealed compound, where interfaces have no names and handlers reach no
    /// files.
    pub(super) fn sealed(scope: &str, declared: &[(String, String)]) -> Names {
        let names = Names::new(declared, None).with_files(HandlerFiles::sealed());
        Names { scope: Some(scope.to_owned()), ..names }
    }

    /// The sealed compound in which they hold; `None` for those that hold outside of all of them.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The same, with files that handlers may name.
    pub fn with_files(self, files: HandlerFiles) -> Names {
        Names { files, ..self }
    }

    /// Files that handlers may name.
    pub fn files(&self) -> &HandlerFiles {
        &self.files
    }

    /// The address of `name`. A suffix (`:ip`, `:ipnet`, `:eth`, `:ip6`,
    /// `:ip6net`) picks one of several addresses; `:bcast` is the broadcast
    /// address of the prefix, `:gw` an interface's gateway, or the first host of a
    /// declared prefix, as in Click. A name without suffix whose address has host
    /// bits is that host, and no prefix; one without host bits is a prefix alone.
    pub fn resolve(&self, name: &str, kind: AddressKind) -> Option<String> {
        if kind == AddressKind::Net && self.is_host(name) {
            return None;
        }
        picked(name, kind, &|base, kind| {
            self.declared(base, kind).or_else(|| self.machine(base, kind))
        })
    }

    /// The address that `AddressInfo` declares; that can be an interface's address in turn.
    pub(super) fn declared(&self, name: &str, kind: AddressKind) -> Option<String> {
        self.declared.get(name)?.iter().find_map(|text| {
            let of_interface = || picked(text, kind, &|base, kind| self.machine(base, kind));
            literal(text, kind).or_else(of_interface)
        })
    }

    /// Whether a declared name is that of a host, whose prefix has to be asked for.
    fn is_host(&self, name: &str) -> bool {
        let net = self.declared(name, AddressKind::Net).and_then(|net| Net::parse(&net));
        net.is_some_and(|net| net.has_host_bits())
    }

    pub(super) fn machine(&self, interface: &str, kind: AddressKind) -> Option<String> {
        self.system.as_ref()?(interface, kind)
    }

    /// Whether `text` is an interface's address by its form: `eth0:ip`.
    pub fn is_of_interface(text: &str) -> bool {
        text.split_once(':').is_some_and(|(base, suffix)| {
            let known =
                matches!(suffix, "bcast" | "gw") || AddressKind::of_suffix(suffix).is_some();
            known && !base.is_empty()
        })
    }

    /// Whether the same is declared in both.
    pub fn declares_like(&self, other: &Names) -> bool {
        self.declared == other.declared
    }

    /// Every declared name, for suggestions.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }
}

/// The address of `name`, where `look` finds that of a name without its suffix.
fn picked(
    name: &str,
    kind: AddressKind,
    look: &dyn Fn(&str, AddressKind) -> Option<String>,
) -> Option<String> {
    let (base, suffix) = name.split_once(':').unwrap_or((name, ""));
    if base.is_empty() {
        return None;
    }
    match suffix {
        "" => look(base, kind),
        "bcast" if kind == AddressKind::Ip => {
            let net = Net::parse(&look(base, AddressKind::Net)?)?;
            Some(net.broadcast().to_string())
        }
        "gw" if kind == AddressKind::Ip => look(base, AddressKind::Gateway),
        _ if AddressKind::of_suffix(suffix) == Some(kind) => look(base, kind),
        _ => None,
    }
}

/// The address written in `text`, if it has one of this kind.
fn literal(text: &str, kind: AddressKind) -> Option<String> {
    let (bare, length) = text.split_once('/').map_or((text, None), |(a, n)| (a, Some(n)));
    let six = bare.parse::<Ipv6Addr>().ok();
    match kind {
        AddressKind::Ip => {
            let net = Net::parse(text)?;
            let is_host = length.is_none() || net.has_host_bits() || net.prefix_len() == 32;
            is_host.then(|| net.address.to_string())
        }
        AddressKind::Net => length.and(Net::parse(text)).map(|_| text.to_owned()),
        AddressKind::Mac => text.parse::<MacAddr>().ok().map(|_| text.to_owned()),
        AddressKind::Ip6 => six.map(|address| address.to_string()),
        AddressKind::Net6 => six.and(length).map(|_| text.to_owned()),
        AddressKind::TcpPort => text.strip_prefix(TCP_PORT).map(str::to_owned),
        AddressKind::UdpPort => text.strip_prefix(UDP_PORT).map(str::to_owned),
        AddressKind::Anno => text.strip_prefix(ANNO).map(str::to_owned),
        AddressKind::Pattern => text.strip_prefix(PATTERN).map(str::to_owned),
        AddressKind::Spinlock => text.strip_prefix(SPINLOCK).map(str::to_owned),
        AddressKind::Gateway => {
            let net = length.and(Net::parse(text))?;
            let base = net.address.to_bits() & net.mask.to_bits();
            Some(Ipv4Addr::from_bits(base | 1).to_string())
        }
    }
}

/// Prefix of ports of TCP among addresses.
pub const TCP_PORT: &str = "tcp port:";
/// Prefix of ports of UDP among addresses.
pub const UDP_PORT: &str = "udp port:";
/// Prefix of patterns of rewriters among addresses.
pub const PATTERN: &str = "pattern:";
/// Prefix of locks of paths among addresses.
pub const SPINLOCK: &str = "spinlock:";
/// Prefix of annotations among addresses.
pub const ANNO: &str = "anno:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::FromArg;

    #[test]
    fn suffixes_pick() {
        let declared = [
            ("host", "1.0.0.1"),
            ("host", "00:00:00:00:00:07"),
            ("host", "2001:db8::1"),
            ("net", "18.26/16"),
            ("net", "2001:db8::/32"),
            ("inside", "10.1.2.3/16"),
            ("me", "eth0:ip"),
            ("me", "eth0:eth"),
        ];
        let declared = declared.map(|(name, address)| (name.to_owned(), address.to_owned()));
        let machine = |name: &str, kind| match (name, kind) {
            ("eth0", AddressKind::Ip) => Some("10.0.0.2".to_owned()),
            ("eth0", AddressKind::Net) => Some("10.0.0.2/255.255.255.0".to_owned()),
            ("eth0", AddressKind::Gateway) => Some("10.0.0.1".to_owned()),
            _ => None,
        };
        let names = Names::new(&declared, Some(std::sync::Arc::new(machine)));
        for (name, kind, meaning) in [
            ("host", AddressKind::Ip, Some("1.0.0.1")),
            ("host:ip", AddressKind::Ip, Some("1.0.0.1")),
            ("host:eth", AddressKind::Ip, None),
            ("host:eth", AddressKind::Mac, Some("00:00:00:00:00:07")),
            ("host", AddressKind::Ip6, Some("2001:db8::1")),
            ("host", AddressKind::Net6, None),
            ("host:bcast", AddressKind::Ip, None),
            ("host:gw", AddressKind::Ip, None),
            ("net", AddressKind::Ip, None),
            ("net", AddressKind::Net, Some("18.26/16")),
            ("net:net", AddressKind::Net, Some("18.26/16")),
            ("net:gw", AddressKind::Ip, Some("18.26.0.1")),
            ("inside", AddressKind::Ip, Some("10.1.2.3")),
            ("inside", AddressKind::Net, None),
            ("inside:ip4net", AddressKind::Net, Some("10.1.2.3/16")),
            ("inside:bcast", AddressKind::Ip, Some("10.1.255.255")),
            ("inside:gw", AddressKind::Ip, Some("10.1.0.1")),
            ("net:ipnet", AddressKind::Net, Some("18.26/16")),
            ("net:bcast", AddressKind::Ip, Some("18.26.255.255")),
            ("net:bcast", AddressKind::Net, None),
            ("net:ip6net", AddressKind::Net6, Some("2001:db8::/32")),
            ("net:ip6", AddressKind::Ip6, Some("2001:db8::")),
            ("eth0:bcast", AddressKind::Ip, Some("10.0.0.255")),
            ("eth0:gw", AddressKind::Ip, Some("10.0.0.1")),
            ("me", AddressKind::Ip, Some("10.0.0.2")),
            ("me:ip", AddressKind::Ip, Some("10.0.0.2")),
            ("me", AddressKind::Mac, None),
            (":ip", AddressKind::Ip, None),
            ("host:", AddressKind::Ip, Some("1.0.0.1")),
            ("host:what", AddressKind::Ip, None),
        ] {
            assert_eq!(names.resolve(name, kind).as_deref(), meaning, "{name} as {kind:?}");
        }
        assert_eq!(Ipv6Addr::from_arg("host:ip6", &names), Ok("2001:db8::1".parse().expect("one")));
        let error = Ipv6Addr::from_arg("1.0.0.1", &names).expect_err("is refused");
        assert_eq!(error.to_string(), "`1.0.0.1` is not an IPv6 address");
    }
}
