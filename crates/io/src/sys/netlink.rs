//! Which devices stand on which (`RTM_GETLINK`), and when any of them changes (`RTMGRP_LINK`).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `RTM_GETLINK` as a request: `struct nlmsghdr` and `struct ifinfomsg`.
#[repr(C)]
struct Request {
    len: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    /// Family, type, number, flags and change mask: zero asks for all.
    about: [u32; 4],
}

/// Length of `struct nlmsghdr`, `struct ifinfomsg` and `struct rtattr`.
const HEADER: usize = 16;
const ABOUT: usize = 16;
const ATTRIBUTE: usize = 4;

/// One device of the list.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Listed {
    index: u32,
    name: String,
    /// The bridge or bond that it is part of.
    master: Option<u32>,
    /// The device that it stands on; for a veth its peer.
    link: Option<u32>,
    /// That device is in another namespace.
    elsewhere: bool,
}

/// The name of a bridge that the interface of number `index` is part of, or of
/// a device that stands on it; nothing if there is neither.
pub(crate) fn user_of(index: u32) -> io::Result<Option<String>> {
    Ok(user_in(&list()?, index))
}

fn user_in(all: &[Listed], index: u32) -> Option<String> {
    let this = all.iter().find(|it| it.index == index)?;
    let uses = |it: &&Listed| {
        let on_top = it.link == Some(index) && !it.elsewhere && it.index != index;
        // The two ends of a veth pair name each other.
        let peers = this.link == Some(it.index) && !this.elsewhere;
        this.master == Some(it.index) || (on_top && !peers)
    };
    all.iter().find(uses).map(|it| it.name.clone())
}

fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor is fresh and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Learns when a device of the namespace comes, goes or changes.
pub(crate) struct Watch(OwnedFd);

impl Watch {
    /// Learns of changes from now on.
    pub(crate) fn new() -> io::Result<Watch> {
        let socket = open()?;
        // SAFETY: numbers, all of which may be zero.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a live structure of `size` bytes.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
        Ok(Watch(socket))
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

    /// The descriptor, readable when something has changed.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// All devices of the calling thread's namespace.
fn list() -> io::Result<Vec<Listed>> {
    let socket = open()?;
    let request = Request {
        len: size_of::<Request>() as u32,
        kind: libc::RTM_GETLINK,
        flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
        sequence: 1,
        port: 0,
        about: [0; 4],
    };
    // SAFETY: `request` is live and as long as stated.
    let sent = unsafe {
        libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<Request>(), 0)
    };
    check(sent as libc::c_int)?;
    let mut found = Vec::new();
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        // SAFETY: the buffer is live, writable and as long as stated.
        let got =
            unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let got = check(got as libc::c_int)? as usize;
        if got == 0 || read_messages(buffer.get(..got).unwrap_or_default(), &mut found)? {
            return Ok(found);
        }
    }
}

/// Reads the messages of one answer; says whether the list is at its end.
fn read_messages(mut bytes: &[u8], found: &mut Vec<Listed>) -> io::Result<bool> {
    while let (Some(len), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let Some(body) = bytes.get(HEADER..len as usize) else { break };
        match libc::c_int::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let error = u32_at(body, 0).unwrap_or_default() as i32;
                return Err(io::Error::from_raw_os_error(-error));
            }
            _ if kind == libc::RTM_NEWLINK => found.extend(read_link(body)),
            _ => {}
        }
        bytes = bytes.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Reads one device.
fn read_link(body: &[u8]) -> Option<Listed> {
    let mut link = Listed { index: u32_at(body, 4)?, ..Listed::default() };
    let mut rest = body.get(ABOUT..)?;
    while let (Some(len), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(value) = rest.get(ATTRIBUTE..len.into()) else { break };
        match kind {
            libc::IFLA_IFNAME => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                link.name = String::from_utf8_lossy(name).into_owned();
            }
            libc::IFLA_MASTER => link.master = u32_at(value, 0),
            libc::IFLA_LINK => link.link = u32_at(value, 0),
            libc::IFLA_LINK_NETNSID => link.elsewhere = true,
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

    fn device(index: u32, name: &str) -> Listed {
        Listed { index, name: name.into(), ..Listed::default() }
    }

    #[test]
    fn the_loopback_is_listed_and_nobody_uses_it() {
        let all = list().unwrap();
        assert!(all.iter().any(|it| it.name == "lo" && it.index > 0), "{all:?}");
        assert_eq!(user_of(1).unwrap(), None);
    }

    #[test]
    fn bridges_and_vlans_are_users_and_peers_are_not() {
        let mut all = vec![
            device(1, "lo"),
            Listed { master: Some(5), ..device(2, "eth0") },
            device(3, "eth1"),
            Listed { link: Some(3), ..device(4, "eth1.7") },
            device(5, "br0"),
            Listed { link: Some(7), ..device(6, "veth0") },
            Listed { link: Some(6), ..device(7, "veth1") },
            // Its peer has number 3 in another namespace.
            Listed { link: Some(8), elsewhere: true, ..device(8, "veth2") },
        ];
        let user = |all: &[Listed], index| user_in(all, index);
        assert_eq!(user(&all, 2).as_deref(), Some("br0"));
        assert_eq!(user(&all, 3).as_deref(), Some("eth1.7"));
        for index in [1, 4, 5, 6, 7, 8, 9] {
            assert_eq!(user(&all, index), None, "{index}");
        }
        all[7].link = Some(3);
        all.remove(3);
        assert_eq!(user(&all, 3), None);
    }

    #[test]
    fn messages_cut_short_are_no_harm() {
        let mut message = [0u8; 48];
        message[0] = 48;
        message[4] = libc::RTM_NEWLINK as u8;
        message[20] = 9; // its number
        message[32..36].copy_from_slice(&[8, 0, libc::IFLA_MASTER as u8, 0]);
        message[36] = 3;
        message[40..44].copy_from_slice(&[200, 0, libc::IFLA_IFNAME as u8, 0]);
        for len in 0..=message.len() {
            let mut found = Vec::new();
            assert!(!read_messages(&message[..len], &mut found).unwrap());
            let whole = Listed { master: Some(3), index: 9, ..Listed::default() };
            assert_eq!(found, if len == 48 { vec![whole] } else { vec![] });
        }
    }
}
