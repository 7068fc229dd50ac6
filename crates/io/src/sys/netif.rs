//! Network interfaces by name: properties, addresses and configuration.

use super::check;
use std::ffi::CStr;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket for `ioctl` requests about one interface.
pub(crate) struct IoctlSocket {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

/// One IPv4 address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Net {
    /// The address.
    pub address: Ipv4Addr,
    /// The netmask.
    pub netmask: Ipv4Addr,
}

/// One IPv6 address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Net {
    /// The address.
    pub address: Ipv6Addr,
    /// The length of the prefix.
    pub prefix: u8,
}

/// Names and numbers of all interfaces.
pub(crate) fn list() -> Vec<(u32, String)> {
    // SAFETY: takes nothing; the array is freed below.
    let all = unsafe { libc::if_nameindex() };
    let mut interfaces = Vec::new();
    if all.is_null() {
        return interfaces;
    }
    let mut at = all;
    // SAFETY: the array ends with an entry of number zero and no name, and
    // each name before it is a C string that lives until the array is freed.
    unsafe {
        while (*at).if_index != 0 && !(*at).if_name.is_null() {
            let name = CStr::from_ptr((*at).if_name).to_string_lossy().into_owned();
            interfaces.push(((*at).if_index, name));
            at = at.add(1);
        }
        libc::if_freenameindex(all);
    }
    interfaces
}

/// The present name of the interface of number `index`; `None` if this namespace has none.
pub(crate) fn name_of(index: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name, which the call ends by a zero byte.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

/// All addresses of the interface `name`.
pub(crate) fn addresses(name: &str) -> io::Result<(Vec<Ipv4Net>, Vec<Ipv6Net>)> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `head` is a live pointer for the answer.
    check(unsafe { libc::getifaddrs(&mut head) })?;
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    let mut at = head;
    // SAFETY: `getifaddrs` answers a list in which names are C strings and
    // each address is as long as its family says; it is freed after the loop.
    unsafe {
        while let Some(entry) = at.as_ref() {
            at = entry.ifa_next;
            let (address, mask) = (entry.ifa_addr, entry.ifa_netmask);
            if address.is_null()
                || mask.is_null()
                || CStr::from_ptr(entry.ifa_name).to_bytes() != name.as_bytes()
            {
                continue;
            }
            match i32::from((*address).sa_family) {
                libc::AF_INET => v4.push(Ipv4Net {
                    address: ipv4_of(&address.cast::<libc::sockaddr_in>().read_unaligned()),
                    netmask: ipv4_of(&mask.cast::<libc::sockaddr_in>().read_unaligned()),
                }),
                libc::AF_INET6 => v6.push(Ipv6Net {
                    address: ipv6_of(&address.cast::<libc::sockaddr_in6>().read_unaligned()),
                    prefix: ipv6_of(&mask.cast::<libc::sockaddr_in6>().read_unaligned())
                        .to_bits()
                        .leading_ones() as u8,
                }),
                _ => {}
            }
        }
        libc::freeifaddrs(head);
    }
    Ok((v4, v6))
}

fn ipv4_of(address: &libc::sockaddr_in) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr))
}

fn ipv6_of(address: &libc::sockaddr_in6) -> Ipv6Addr {
    Ipv6Addr::from(address.sin6_addr.s6_addr)
}

impl IoctlSocket {
    /// Prepares for requests about the interface `name`.
    pub(crate) fn new(name: &str) -> io::Result<IoctlSocket> {
        let name = c_name(name)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(IoctlSocket { socket: unsafe { OwnedFd::from_raw_fd(fd) }, name })
    }

    pub(super) fn request(&self) -> libc::ifreq {
        // SAFETY: numbers, addresses and a pointer, for which all bytes zero
        // is a valid value of every member.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request
    }

    pub(super) fn ioctl(&self, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: all requests of this file read and write one `ifreq`.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), code, std::ptr::from_mut(request)) };
        check(result).map(drop)
    }

    /// Its number.
    pub(crate) fn index(&self) -> io::Result<u32> {
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has just filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    /// Its hardware type (`ARPHRD_…`) and address.
    pub(crate) fn hardware(&self) -> io::Result<(u16, [u8; 6])> {
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the kernel has just filled this member.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut bytes = [0; 6];
        for (to, from) in bytes.iter_mut().zip(address.sa_data) {
            *to = from as u8;
        }
        Ok((address.sa_family, bytes))
    }

    /// The largest packet it carries, without the link header.
    pub(crate) fn mtu(&self) -> io::Result<usize> {
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the kernel has just filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
    }

    /// Its flags (`IFF_…`).
    pub(crate) fn flags(&self) -> io::Result<libc::c_int> {
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_flags }.into())
    }

    /// Brings it up or takes it down.
    pub(crate) fn set_up(&self, up: bool) -> io::Result<()> {
        let flags = self.flags()?;
        let flags = if up { flags | libc::IFF_UP } else { flags & !libc::IFF_UP };
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        self.ioctl(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Sets the largest packet it carries.
    pub(crate) fn set_mtu(&self, mtu: usize) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_mtu =
            libc::c_int::try_from(mtu).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.ioctl(libc::SIOCSIFMTU, &mut request)
    }

    /// Sets its Ethernet address.
    pub(crate) fn set_ether(&self, ether: [u8; 6]) -> io::Result<()> {
        let mut request = self.request();
        let mut address = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
        for (to, from) in address.sa_data.iter_mut().zip(ether) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_hwaddr = address;
        self.ioctl(libc::SIOCSIFHWADDR, &mut request)
    }

    /// Sets its IPv4 address and netmask.
    pub(crate) fn set_ipv4(&self, net: Ipv4Net) -> io::Result<()> {
        for (code, address) in
            [(libc::SIOCSIFADDR, net.address), (libc::SIOCSIFNETMASK, net.netmask)]
        {
            let mut request = self.request();
            request.ifr_ifru.ifru_addr = socket_address(address);
            self.ioctl(code, &mut request)?;
        }
        Ok(())
    }

    /// Adds a default route by way of `gateway`.
    pub(crate) fn add_default_route(&self, gateway: Ipv4Addr) -> io::Result<()> {
        // SAFETY: numbers, addresses and a pointer, all of which may be zero.
        let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
        let mut device = self.name;
        route.rt_dst = socket_address(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = socket_address(Ipv4Addr::UNSPECIFIED);
        route.rt_gateway = socket_address(gateway);
        route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
        route.rt_dev = device.as_mut_ptr();
        // SAFETY: the request reads one `rtentry` and the name it points to,
        // both of which live until it returns.
        let result = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SIOCADDRT as libc::Ioctl,
                std::ptr::from_ref(&route),
            )
        };
        check(result).map(drop)
    }
}

/// An interface's name in the kernel's form.
pub(super) fn c_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut array = [0; libc::IFNAMSIZ];
    if name.len() >= array.len() || name.bytes().any(|b| b == 0 || b == b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in array.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(array)
}

/// An IPv4 address in the general form.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut general = libc::sockaddr { sa_family: libc::AF_INET as u16, sa_data: [0; 14] };
    // `sockaddr_in` puts two bytes of port before the address.
    for (to, from) in general.sa_data.iter_mut().skip(2).zip(address.octets()) {
        *to = from as libc::c_char;
    }
    general
}
