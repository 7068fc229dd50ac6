//! Looks up network interfaces of the machine and their addresses.

use crate::error::IoError;
use crate::offload::LinkType;
use crate::sys::{ethtool, netif, netlink};
use castanet_element::args::AddressKind;
use castanet_wire::MacAddr;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;

pub use crate::sys::netif::{Ipv4Net, Ipv6Net};

/// A network interface, as it was when looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Its Ethernet address; `None` if it carries bare IP packets.
    pub ether: Option<MacAddr>,
    /// The largest packet it carries, without the link header.
    pub mtu: usize,
    /// Whether it is up.
    pub up: bool,
    /// Its IPv4 addresses.
    pub ipv4: Vec<Ipv4Net>,
    /// Its IPv6 addresses.
    pub ipv6: Vec<Ipv6Net>,
}

/// The hardware type of bare IP, as mobile broadband modems have it (`ARPHRD_RAWIP`).
const RAWIP: u16 = 519;

/// Returns the names of all interfaces of the calling thread's network namespace.
pub fn names() -> Vec<String> {
    netif::list().into_iter().map(|(_, name)| name).collect()
}

/// Returns the inode number of the calling thread's network namespace; zero for a thread that
/// cannot read it, which is in the first namespace.
pub(crate) fn namespace() -> u64 {
    std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |meta| meta.ino())
}

impl Interface {
    /// Looks up the interface called `name`.
    pub fn find(name: &str) -> Result<Interface, IoError> {
        let read = || -> io::Result<_> {
            let requests = netif::IoctlSocket::new(name)?;
            let (ipv4, ipv6) = netif::addresses(name)?;
            let (hardware, ether) = requests.hardware()?;
            let up = requests.flags()? & libc::IFF_UP != 0;
            Ok((requests.index()?, hardware, ether, requests.mtu()?, up, ipv4, ipv6))
        };
        let (index, hardware, ether, mtu, up, ipv4, ipv6) = read().map_err(|error| {
            // An invalid name is reported like a missing one.
            match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::InvalidInput, None) | (_, Some(libc::ENODEV)) => missing(name),
                _ => IoError::new(format!("look up interface {name}"), error),
            }
        })?;
        let ether = match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(MacAddr(ether)),
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | RAWIP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT => None,
            _ => return Err(IoError::Link { name: name.into(), hardware }),
        };
        Ok(Interface { name: name.into(), index, ether, mtu, up, ipv4, ipv6 })
    }

    /// Returns the reason why the host itself needs packets that arrive here, if it does: the
    /// interface has an address, or a device on top. Link-local addresses do not count, as every
    /// interface has one.
    pub(crate) fn needed_by_host(&self) -> Option<String> {
        let v4 = self.ipv4.iter().map(|net| IpAddr::V4(net.address));
        let v6 = self.ipv6.iter().filter(|net| !net.address.is_unicast_link_local());
        let mut addresses = v4.chain(v6.map(|net| IpAddr::V6(net.address)));
        if let Some(address) = addresses.next() {
            return Some(format!("it has the address {address} there"));
        }
        match netlink::upper_device(self.index) {
            Ok(user) => user.map(|name| format!("its {name} uses it")),
            Err(error) => Some(format!("it may, and does not say: {error}")),
        }
    }

    /// Returns the current number of queues to receive from and to send to.
    pub(crate) fn queues(&self) -> (usize, usize) {
        let requests = netif::IoctlSocket::new(&self.name);
        requests.map_or((1, 1), |it| {
            (ethtool::rx_queues(&it) as usize, ethtool::tx_queues(&it) as usize)
        })
    }

    /// Returns the NUMA node of the interface, if it is known.
    pub(crate) fn numa_node(&self) -> Option<usize> {
        ethtool::numa_node(&netif::IoctlSocket::new(&self.name).ok()?)
    }

    /// Returns the link type: the header with which its packets begin.
    pub(crate) fn link(&self) -> LinkType {
        if self.ether.is_some() { LinkType::Ethernet } else { LinkType::Ip }
    }
}

/// Makes the error for a name that no interface has.
fn missing(name: &str) -> IoError {
    let known = names();
    let nearest = castanet_lang::nearest(name, known.iter().map(String::as_str));
    IoError::NoInterface { name: name.into(), nearest: nearest.map(Into::into), known }
}

/// Returns an address of the interface called `name`, as configurations write it: the value of
/// `eth0`, `eth0:ip`, `eth0:ipnet`, `eth0:eth`, `eth0:ip6`, `eth0:ip6net` and `eth0:gw`.
///
/// A port's name is that of a service in /etc/services.
pub fn address_of(name: &str, kind: AddressKind) -> Option<String> {
    match kind {
        AddressKind::TcpPort => return service(name, "tcp"),
        AddressKind::UdpPort => return service(name, "udp"),
        _ => {}
    }
    let found = Interface::find(name).ok()?;
    let net = found.ipv4.first();
    match kind {
        AddressKind::Ip => net.map(|net| net.address.to_string()),
        AddressKind::Net => net.map(|net| format!("{}/{}", net.address, net.netmask)),
        AddressKind::Mac => found.ether.map(|ether| ether.with_colons().to_string()),
        AddressKind::Ip6 => found.ipv6.first().map(|net| net.address.to_string()),
        AddressKind::Net6 => {
            found.ipv6.first().map(|net| format!("{}/{}", net.address, net.prefix))
        }
        AddressKind::Gateway => gateway(name).map(|router| router.to_string()),
        AddressKind::TcpPort
        | AddressKind::UdpPort
        | AddressKind::Anno
        | AddressKind::Pattern
        | AddressKind::Spinlock => None,
    }
}

/// Returns the port of a service (services(5)).
fn service(name: &str, protocol: &str) -> Option<String> {
    let services = std::fs::read_to_string("/etc/services").ok()?;
    services.lines().find_map(|line| {
        let line = line.split_once('#').map_or(line, |(line, _)| line);
        let (first, rest) = line.trim().split_once(char::is_whitespace)?;
        let mut words = rest.split_whitespace();
        let (port, of) = words.next()?.split_once('/')?;
        let is_named = first == name || words.any(|alias| alias == name);
        (of == protocol && is_named).then(|| port.to_owned())
    })
}

/// Returns the gateway of the default route through an interface.
fn gateway(name: &str) -> Option<Ipv4Addr> {
    // Routes of the thread's network namespace, which may not be the process's.
    let routes = std::fs::read_to_string("/proc/thread-self/net/route").ok()?;
    routes.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, gateway, flags, ..] = fields[..] else { return None };
        // The kernel prints addresses as numbers in the machine's byte order.
        let number = |text| u32::from_str_radix(text, 16).ok();
        let by_gateway = number(flags)? & u32::from(libc::RTF_GATEWAY) != 0;
        let found = interface == name && number(destination)? == 0 && by_gateway;
        found.then(|| number(gateway).map(|it| Ipv4Addr::from(it.to_ne_bytes())))?
    })
}
