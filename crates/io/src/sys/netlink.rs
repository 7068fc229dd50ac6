//! Lists devices and their lower devices (`RTM_GETLINK`), and reports changes (`RTMGRP_LINK`).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `RTM_GETLINK` as a request: `struct nlmsghdr` and `struct ifinfomsg`.
#[repr(C)]
struct LinkRequest {
    len: u32,
    message_type: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    /// Family, type, number, flags and change mask: zero asks for all.
    ifinfomsg: [u32; 4],
}

/// Length of `struct nlmsghdr`, `struct ifinfomsg` and `struct rtattr`.
const NLMSGHDR_LEN: usize = 16;
const IFINFOMSG_LEN: usize = 16;
const RTATTR_LEN: usize = 4;

/// One device (`RTM_NEWLINK`).
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct LinkInfo {
    index: u32,
    name: String,
    /// The bridge or bond that it is part of.
    master: Option<u32>,
    /// The device that it stands on; for a veth its peer.
    link: Option<u32>,
    /// That device is in another namespace.
    link_in_other_netns: bool,
}

/// The name of a bridge that the interface of number `index` is part of, or of
/// a device that stands on it; nothing if there is neither.
pub(crate) fn upper_device(index: u32) -> io::Result<Option<String>> {
    Ok(upper_device_in(&list()?, index))
}

fn upper_device_in(links: &[LinkInfo], index: u32) -> Option<String> {
    let this = links.iter().find(|it| it.index == index)?;
    let is_upper = |it: &&LinkInfo| {
        let stacked = it.link == Some(index) && !it.link_in_other_netns && it.index != index;
        // The two ends of a veth pair name each other.
        let peers = this.link == Some(it.index) && !this.link_in_other_netns;
        this.master == Some(it.index) || (stacked && !peers)
    };
    links.iter().find(is_upper).map(|it| it.name.clone())
}

fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Monitors the devices of the network namespace for additions, removals and changes.
pub(crate) struct LinkMonitor(OwnedFd);

impl LinkMonitor {
    /// Starts to monitor.
    pub(crate) fn new() -> io::Result<LinkMonitor> {
        let socket = open()?;
        // SAFETY: numbers, all of which may be zero.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a live structure of `size` bytes.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
        Ok(LinkMonitor(socket))
    }

    /// Whether anything has changed since the last call.
    pub(crate) fn has_changed(&self) -> bool {
        let mut changed = false;
        loop {
            // SAFETY: room for no bytes: nothing is written.
            let got = unsafe {
                libc::recv(self.0.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT)
            };
            // That there were more messages than room for them is an error
            // once, and says that something has changed.
            if got < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return changed;
            }
            changed = true;
        }
    }

    /// Reads the changes since the last call; the indices of removed devices go to `removed`. Returns
    /// whether anything has changed. Of more messages than the socket has room for, some are missing.
    pub(crate) fn read_removed(&self, removed: &mut Vec<u32>) -> bool {
        let (mut buffer, mut changed) = ([0u8; 16 << 10], false);
        loop {
            let (fd, to) = (self.0.as_raw_fd(), buffer.as_mut_ptr().cast());
            // SAFETY: the buffer is live, writable and as long as stated.
            let got = unsafe { libc::recv(fd, to, buffer.len(), libc::MSG_DONTWAIT) };
            match usize::try_from(got) {
                Ok(0) => return changed,
                Ok(got) => removed.extend(removals(buffer.get(..got).unwrap_or_default())),
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::ENOBUFS | libc::EINTR) => {}
                    _ => return changed,
                },
            }
            changed = true;
        }
    }

    /// Waits for a change; `false` if `stop` was closed at its other end.
    pub(crate) fn wait(&self, stop: BorrowedFd<'_>) -> bool {
        let poll_fd = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut both = [poll_fd(self.raw_fd(), libc::POLLIN), poll_fd(stop.as_raw_fd(), 0)];
        // SAFETY: `both` is live, and two.
        unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
        both[1].revents == 0
    }

    /// The descriptor, readable when something has changed.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// All devices of the calling thread's namespace.
fn list() -> io::Result<Vec<LinkInfo>> {
    let socket = open()?;
    let request = LinkRequest {
        len: size_of::<LinkRequest>() as u32,
        message_type: libc::RTM_GETLINK,
        flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
        sequence: 1,
        port: 0,
        ifinfomsg: [0; 4],
    };
    // SAFETY: `request` is live and as long as stated.
    let sent = unsafe {
        libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<LinkRequest>(), 0)
    };
    check(sent as libc::c_int)?;
    let mut links = Vec::new();
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        // SAFETY: the buffer is live, writable and as long as stated.
        let got =
            unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let got = check(got as libc::c_int)? as usize;
        if got == 0 || parse_messages(buffer.get(..got).unwrap_or_default(), &mut links)? {
            return Ok(links);
        }
    }
}

/// Reads the messages of one answer; returns whether the list is complete.
fn parse_messages(mut bytes: &[u8], links: &mut Vec<LinkInfo>) -> io::Result<bool> {
    while let (Some(len), Some(message_type)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let Some(body) = bytes.get(NLMSGHDR_LEN..len as usize) else { break };
        match libc::c_int::from(message_type) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let error = u32_at(body, 0).unwrap_or_default() as i32;
                return Err(io::Error::from_raw_os_error(-error));
            }
            _ if message_type == libc::RTM_NEWLINK => links.extend(parse_link(body)),
            _ => {}
        }
        bytes = bytes.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The indices of the devices that messages report as removed. A port that leaves a bridge is reported
/// by a message of the bridge's family.
fn removals(mut bytes: &[u8]) -> Vec<u32> {
    let mut all = Vec::new();
    while let (Some(len), Some(message_type)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let Some(body) = bytes.get(NLMSGHDR_LEN..len as usize) else { break };
        let is_device = body.first().is_some_and(|&family| family == libc::AF_UNSPEC as u8);
        if message_type == libc::RTM_DELLINK && is_device {
            all.extend(u32_at(body, 4));
        }
        bytes = bytes.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// Reads one device.
fn parse_link(body: &[u8]) -> Option<LinkInfo> {
    let mut link = LinkInfo { index: u32_at(body, 4)?, ..LinkInfo::default() };
    let mut rest = body.get(IFINFOMSG_LEN..)?;
    while let (Some(len), Some(attribute)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(value) = rest.get(RTATTR_LEN..len.into()) else { break };
        match attribute {
            libc::IFLA_IFNAME => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                link.name = String::from_utf8_lossy(name).into_owned();
            }
            libc::IFLA_MASTER => link.master = u32_at(value, 0),
            libc::IFLA_LINK => link.link = u32_at(value, 0),
            libc::IFLA_LINK_NETNSID => link.link_in_other_netns = true,
            _ => {}
        }
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(link)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, name: &str) -> LinkInfo {
        LinkInfo { index, name: name.into(), ..LinkInfo::default() }
    }

    #[test]
    fn the_loopback_is_listed_without_an_upper_device() {
        let links = list().unwrap();
        assert!(links.iter().any(|it| it.name == "lo" && it.index > 0), "{links:?}");
        assert_eq!(upper_device(1).unwrap(), None);
    }

    #[test]
    fn bridges_and_vlans_are_upper_devices_and_peers_are_not() {
        let mut links = vec![
            device(1, "lo"),
            LinkInfo { master: Some(5), ..device(2, "eth0") },
            device(3, "eth1"),
            LinkInfo { link: Some(3), ..device(4, "eth1.7") },
            device(5, "br0"),
            LinkInfo { link: Some(7), ..device(6, "veth0") },
            LinkInfo { link: Some(6), ..device(7, "veth1") },
            // Its peer has number 3 in another namespace.
            LinkInfo { link: Some(8), link_in_other_netns: true, ..device(8, "veth2") },
        ];
        let upper = |links: &[LinkInfo], index| upper_device_in(links, index);
        assert_eq!(upper(&links, 2).as_deref(), Some("br0"));
        assert_eq!(upper(&links, 3).as_deref(), Some("eth1.7"));
        for index in [1, 4, 5, 6, 7, 8, 9] {
            assert_eq!(upper(&links, index), None, "{index}");
        }
        links[7].link = Some(3);
        links.remove(3);
        assert_eq!(upper(&links, 3), None);
    }

    #[test]
    fn removed_devices_are_those_that_leave_the_namespace_and_not_a_bridge() {
        let message = |message_type: u16, family: i32, index: u32| {
            let mut bytes = [0u8; NLMSGHDR_LEN + IFINFOMSG_LEN];
            bytes[0] = bytes.len() as u8;
            bytes[4..6].copy_from_slice(&message_type.to_ne_bytes());
            bytes[16] = family as u8;
            bytes[20..24].copy_from_slice(&index.to_ne_bytes());
            bytes
        };
        let all = [
            message(libc::RTM_NEWLINK, libc::AF_UNSPEC, 3),
            message(libc::RTM_DELLINK, libc::AF_BRIDGE, 4),
            message(libc::RTM_DELLINK, libc::AF_UNSPEC, 5),
            message(libc::RTM_DELLINK, libc::AF_UNSPEC, 6),
        ]
        .concat();
        assert_eq!(removals(&all), [5, 6]);
        // A message that was cut short, and a length of zero.
        assert_eq!(removals(&all[..all.len() - 1]), [5]);
        assert_eq!(removals(&[0; 32]), [0u32; 0]);
    }

    #[test]
    fn truncated_messages_are_ignored() {
        let mut message = [0u8; 48];
        message[0] = 48;
        message[4] = libc::RTM_NEWLINK as u8;
        message[20] = 9; // its number
        message[32..36].copy_from_slice(&[8, 0, libc::IFLA_MASTER as u8, 0]);
        message[36] = 3;
        message[40..44].copy_from_slice(&[200, 0, libc::IFLA_IFNAME as u8, 0]);
        for len in 0..=message.len() {
            let mut links = Vec::new();
            assert!(!parse_messages(&message[..len], &mut links).unwrap());
            let whole = LinkInfo { master: Some(3), index: 9, ..LinkInfo::default() };
            assert_eq!(links, if len == 48 { vec![whole] } else { vec![] });
        }
    }
}
