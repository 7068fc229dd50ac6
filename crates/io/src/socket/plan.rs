//! What a socket is to be, and opening it.

use super::abandoned::is_abandoned;
use crate::sys::sockopt;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Ipv4Addr, Protocol, SocketAddrAny, SocketAddrUnix, SocketAddrV4, SocketFlags,
    SocketType, bind, connect, ipproto, listen, socket_with, sockopt as option,
};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A place in the network, or in the file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    Ip(SocketAddrV4),
    File(PathBuf),
}

impl Where {
    pub(super) fn address(&self) -> Result<SocketAddrAny, Errno> {
        Ok(match self {
            Where::Ip(address) => (*address).into(),
            Where::File(path) => {
                // A name that begins with zero is not in the file system.
                let text = path.as_os_str().as_encoded_bytes();
                match text.split_first() {
                    Some((0, name)) => SocketAddrUnix::new_abstract_name(name)?.into(),
                    _ => SocketAddrUnix::new(path.as_path())?.into(),
                }
            }
        })
    }

    /// The file to be removed in the end.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match self {
            Where::File(path) if !path.as_os_str().as_encoded_bytes().starts_with(&[0]) => {
                Some(path.clone())
            }
            _ => None,
        }
    }
}

/// What carries the packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// TCP, or a stream between processes.
    Stream,
    /// UDP, or datagrams between processes.
    Datagrams,
    /// IPv4 packets of this protocol, with their headers.
    Raw(u8),
    /// UDP to and from a group.
    Group {
        /// By which interface, and whose packets are our own.
        source: Option<SocketAddrV4>,
        /// Whether this machine hears what it sends.
        hears_itself: bool,
    },
}

/// How a socket is to be opened; [`Plan::new`] has what is usual.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) carrier: Carrier,
    /// Whom it goes to, or, if it serves, where it waits.
    pub(crate) place: Where,
    /// Where a client comes from.
    pub(crate) local: Option<Where>,
    pub(crate) client: bool,
    /// The most bytes of a packet.
    pub(crate) snaplen: usize,
    pub(crate) headroom: usize,
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) nodelay: bool,
    pub(crate) timestamps: bool,
    /// Whether whoever comes has to be let in.
    pub(crate) gated: bool,
}

/// What could not be done, and why.
pub(crate) type Failed = (&'static str, Errno);

fn step<T>(what: &'static str, done: Result<T, Errno>) -> Result<T, Failed> {
    done.map_err(|why| (what, why))
}

impl Plan {
    /// Serves at a place, with stamps of time on packets of up to 2 KiB.
    pub(crate) fn new(carrier: Carrier, place: Where) -> Plan {
        Plan {
            carrier,
            place,
            local: None,
            client: false,
            snaplen: 2048,
            headroom: 28,
            send_buffer: None,
            receive_buffer: None,
            nodelay: false,
            timestamps: true,
            gated: false,
        }
    }

    /// A socket of the right kind, with its options.
    fn make(&self) -> Result<OwnedFd, Failed> {
        let family = match self.place {
            Where::Ip(_) => AddressFamily::INET,
            Where::File(_) => AddressFamily::UNIX,
        };
        let (kind, protocol) = match self.carrier {
            Carrier::Stream => (SocketType::STREAM, None),
            Carrier::Datagrams | Carrier::Group { .. } => (SocketType::DGRAM, None),
            Carrier::Raw(0) => (SocketType::RAW, Some(ipproto::RAW)),
            Carrier::Raw(number) => {
                let number = std::num::NonZeroU32::new(u32::from(number));
                (SocketType::RAW, number.map(Protocol::from_raw))
            }
        };
        let flags = SocketFlags::CLOEXEC;
        let fd = step("socket", socket_with(family, kind, flags, protocol))?;
        if self.carrier == Carrier::Stream && family == AddressFamily::INET && self.nodelay {
            step("setsockopt(TCP_NODELAY)", option::set_tcp_nodelay(&fd, true))?;
        }
        if let Some(size) = self.send_buffer {
            let done = option::set_socket_send_buffer_size(&fd, size as usize);
            step("setsockopt(SO_SNDBUF)", done)?;
        }
        if let Some(size) = self.receive_buffer {
            let done = option::set_socket_recv_buffer_size(&fd, size as usize);
            step("setsockopt(SO_RCVBUF)", done)?;
        }
        Ok(fd)
    }

    /// A socket at its place: listening if it serves streams, connected if it
    /// is a client of them.
    pub(super) fn open(&self) -> Result<OwnedFd, Failed> {
        let fd = self.make()?;
        let place = step("address", self.place.address())?;
        match (&self.local, self.client) {
            (_, false) => {
                clear_the_way(&self.place);
                if self.carrier == Carrier::Stream {
                    // A server that comes back need not wait for old connections.
                    step("setsockopt(SO_REUSEADDR)", option::set_socket_reuseaddr(&fd, true))?;
                }
                step("bind", bind(&fd, &place))?;
            }
            (Some(local), true) => {
                clear_the_way(local);
                let address = step("address", local.address())?;
                step("bind", bind(&fd, &address))?;
            }
            (None, true) => {}
        }
        match (&self.carrier, self.client) {
            (Carrier::Stream, true) => {
                let connected = connect(&fd, &place);
                if let (Err(_), Some(file)) = (connected, self.local.as_ref().and_then(Where::file))
                {
                    // It was just made.
                    _ = std::fs::remove_file(file);
                }
                step("connect", connected)?;
            }
            (Carrier::Stream, false) => step("listen", listen(&fd, 2))?,
            _ => {}
        }
        step("fcntl", rustix::io::ioctl_fionbio(&fd, true))?;
        Ok(fd)
    }

    /// A socket for whole IPv4 packets, and one that keeps others off the port.
    pub(super) fn open_raw(&self) -> Result<(OwnedFd, Option<OwnedFd>), Failed> {
        let fd = self.make()?;
        step("IP_HDRINCL", sockopt::include_ip_header(&fd))?;
        step("SO_BROADCAST", option::set_socket_broadcast(&fd, true))?;
        step("fcntl", rustix::io::ioctl_fionbio(&fd, true))?;
        let (Where::Ip(place), Carrier::Raw(protocol)) = (&self.place, &self.carrier) else {
            return Ok((fd, None));
        };
        let kind = match *protocol {
            6 => SocketType::STREAM,
            17 => SocketType::DGRAM,
            _ => return Ok((fd, None)),
        };
        if place.port() == 0 {
            return Ok((fd, None));
        }
        let claim = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None);
        let claim = step("socket", claim)?;
        step("bind", bind(&claim, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, place.port())))?;
        Ok((fd, Some(claim)))
    }

    /// A socket that hears the group, and one that sends to it.
    pub(super) fn open_group(&self) -> Result<(OwnedFd, OwnedFd), Failed> {
        let (Carrier::Group { source, hears_itself }, Where::Ip(group)) =
            (&self.carrier, &self.place)
        else {
            return Err(("socket", Errno::INVAL));
        };
        let interface = source.map_or(Ipv4Addr::UNSPECIFIED, |source| *source.ip());
        let hears = self.make()?;
        step("setsockopt(SO_REUSEADDR)", option::set_socket_reuseaddr(&hears, true))?;
        step("bind", bind(&hears, group))?;
        let joined = option::set_ip_add_membership(&hears, group.ip(), &interface);
        step("setsockopt(IP_ADD_MEMBERSHIP)", joined)?;
        step("fcntl", rustix::io::ioctl_fionbio(&hears, true))?;
        let sends = self.make()?;
        if let Some(source) = source {
            step("bind", bind(&sends, source))?;
            let done = option::set_ip_multicast_if(&sends, source.ip());
            step("setsockopt(IP_MULTICAST_IF)", done)?;
        }
        let done = option::set_ip_multicast_loop(&sends, *hears_itself);
        step("setsockopt(IP_MULTICAST_LOOP)", done)?;
        step("fcntl", rustix::io::ioctl_fionbio(&sends, true))?;
        Ok((hears, sends))
    }
}

/// Removes the file of a socket that no process has any more.
fn clear_the_way(place: &Where) {
    if let Some(path) = place.file().filter(|path| is_abandoned(path)) {
        // One that cannot be removed is in the way, which binding says.
        _ = std::fs::remove_file(path);
    }
}
