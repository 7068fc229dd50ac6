//! The configuration of a socket, and how to open it.

use super::stale_file::remove_stale;
use crate::sys::sockopt;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Ipv4Addr, Protocol, SocketAddrAny, SocketAddrUnix, SocketAddrV4, SocketFlags,
    SocketType, bind, connect, ipproto, listen, socket_with, sockopt as option,
};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// An address in the network or in the file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SocketAddress {
    Ip(SocketAddrV4),
    File(PathBuf),
}

impl SocketAddress {
    pub(super) fn address(&self) -> Result<SocketAddrAny, Errno> {
        Ok(match self {
            SocketAddress::Ip(address) => (*address).into(),
            SocketAddress::File(path) => {
                // A name that begins with a zero byte is abstract: no file.
                let text = path.as_os_str().as_encoded_bytes();
                match text.split_first() {
                    Some((0, name)) => SocketAddrUnix::new_abstract_name(name)?.into(),
                    _ => SocketAddrUnix::new(path.as_path())?.into(),
                }
            }
        })
    }

    /// The socket file, which is removed at the end.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match self {
            SocketAddress::File(path) if !path.as_os_str().as_encoded_bytes().starts_with(&[0]) => {
                Some(path.clone())
            }
            _ => None,
        }
    }
}

/// The transport that carries packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    /// TCP, or a stream between processes.
    Stream,
    /// UDP, or datagrams between processes.
    Datagrams,
    /// IPv4 packets of this protocol, with their headers.
    Raw(u8),
    /// UDP to and from a multicast group.
    Group {
        /// The address of the interface to use; packets from it are not received.
        source: Option<SocketAddrV4>,
        /// Whether this machine receives packets that it sends to the group.
        loopback: bool,
    },
}

/// The configuration of a socket; [`SocketConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub(crate) struct SocketConfig {
    pub(crate) transport: Transport,
    /// The remote address of a client; the local address of a server.
    pub(crate) place: SocketAddress,
    /// The local address of a client.
    pub(crate) local: Option<SocketAddress>,
    pub(crate) client: bool,
    /// The longest packet in bytes; longer ones are cut.
    pub(crate) snaplen: usize,
    pub(crate) headroom: usize,
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) nodelay: bool,
    pub(crate) timestamps: bool,
    /// Whether the element decides on each remote address (ALLOW, DENY).
    pub(crate) is_gated: bool,
}

/// The system call that failed, and its error.
pub(crate) type StepError = (&'static str, Errno);

fn step<T>(what: &'static str, done: Result<T, Errno>) -> Result<T, StepError> {
    done.map_err(|why| (what, why))
}

impl SocketConfig {
    /// A server with timestamps on packets, which have up to 2048 bytes.
    pub(crate) fn new(transport: Transport, place: SocketAddress) -> SocketConfig {
        SocketConfig {
            transport,
            place,
            local: None,
            client: false,
            snaplen: 2048,
            headroom: 28,
            send_buffer: None,
            receive_buffer: None,
            nodelay: false,
            timestamps: true,
            is_gated: false,
        }
    }

    /// Creates a socket of the right kind and sets its options.
    fn create(&self) -> Result<OwnedFd, StepError> {
        let family = match self.place {
            SocketAddress::Ip(_) => AddressFamily::INET,
            SocketAddress::File(_) => AddressFamily::UNIX,
        };
        let (kind, protocol) = match self.transport {
            Transport::Stream => (SocketType::STREAM, None),
            Transport::Datagrams | Transport::Group { .. } => (SocketType::DGRAM, None),
            Transport::Raw(0) => (SocketType::RAW, Some(ipproto::RAW)),
            Transport::Raw(number) => {
                let number = std::num::NonZeroU32::new(u32::from(number));
                (SocketType::RAW, number.map(Protocol::from_raw))
            }
        };
        let flags = SocketFlags::CLOEXEC;
        let fd = step("socket", socket_with(family, kind, flags, protocol))?;
        if self.transport == Transport::Stream && family == AddressFamily::INET && self.nodelay {
            step("setsockopt(TCP_NODELAY)", option::set_tcp_nodelay(&fd, true))?;
        }
        if let Some(size) = self.send_buffer {
            let done = option::set_socket_send_buffer_size(&fd, size as usize);
            step("setsockopt(SO_SNDBUF)", done)?;
        }
        if let Some(size) = self.receive_buffer {
            let size = size as usize;
            // The system's limit, which is low by default, is for users who may not raise it.
            let done = option::set_socket_recv_buffer_size_force(&fd, size)
                .or_else(|_| option::set_socket_recv_buffer_size(&fd, size));
            step("setsockopt(SO_RCVBUF)", done)?;
        }
        Ok(fd)
    }

    /// Opens a stream or datagram socket: bound, listening if it serves streams, connected if it is
    /// a client of streams.
    pub(super) fn open(&self) -> Result<OwnedFd, StepError> {
        let fd = self.create()?;
        let place = step("address", self.place.address())?;
        match (&self.local, self.client) {
            (_, false) => {
                remove_stale_file(&self.place);
                if self.transport == Transport::Stream {
                    // A server that restarts need not wait for old connections.
                    step("setsockopt(SO_REUSEADDR)", option::set_socket_reuseaddr(&fd, true))?;
                }
                step("bind", bind(&fd, &place))?;
            }
            (Some(local), true) => {
                remove_stale_file(local);
                let address = step("address", local.address())?;
                step("bind", bind(&fd, &address))?;
            }
            (None, true) => {}
        }
        match (&self.transport, self.client) {
            (Transport::Stream, true) => {
                let connected = connect(&fd, &place);
                if let (Err(_), Some(file)) =
                    (connected, self.local.as_ref().and_then(SocketAddress::file))
                {
                    // `bind` has just created the file.
                    _ = std::fs::remove_file(file);
                }
                step("connect", connected)?;
            }
            (Transport::Stream, false) => step("listen", listen(&fd, 2))?,
            _ => {}
        }
        step("fcntl", rustix::io::ioctl_fionbio(&fd, true))?;
        Ok(fd)
    }

    /// Opens a socket for whole IPv4 packets; also binds one that reserves the port.
    pub(super) fn open_raw(&self) -> Result<(OwnedFd, Option<OwnedFd>), StepError> {
        let fd = self.create()?;
        step("IP_HDRINCL", sockopt::include_ip_header(&fd))?;
        step("SO_BROADCAST", option::set_socket_broadcast(&fd, true))?;
        step("fcntl", rustix::io::ioctl_fionbio(&fd, true))?;
        let (SocketAddress::Ip(place), Transport::Raw(protocol)) = (&self.place, &self.transport)
        else {
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
        let port_claim = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None);
        let port_claim = step("socket", port_claim)?;
        step("bind", bind(&port_claim, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, place.port())))?;
        Ok((fd, Some(port_claim)))
    }

    /// Opens a socket that receives from the group, and one that sends to it.
    pub(super) fn open_group(&self) -> Result<(OwnedFd, OwnedFd), StepError> {
        let (Transport::Group { source, loopback }, SocketAddress::Ip(group)) =
            (&self.transport, &self.place)
        else {
            return Err(("socket", Errno::INVAL));
        };
        let interface = source.map_or(Ipv4Addr::UNSPECIFIED, |source| *source.ip());
        let receiver = self.create()?;
        step("setsockopt(SO_REUSEADDR)", option::set_socket_reuseaddr(&receiver, true))?;
        step("bind", bind(&receiver, group))?;
        let joined = option::set_ip_add_membership(&receiver, group.ip(), &interface);
        step("setsockopt(IP_ADD_MEMBERSHIP)", joined)?;
        step("fcntl", rustix::io::ioctl_fionbio(&receiver, true))?;
        let sender = self.create()?;
        if let Some(source) = source {
            step("bind", bind(&sender, source))?;
            let done = option::set_ip_multicast_if(&sender, source.ip());
            step("setsockopt(IP_MULTICAST_IF)", done)?;
        }
        let done = option::set_ip_multicast_loop(&sender, *loopback);
        step("setsockopt(IP_MULTICAST_LOOP)", done)?;
        step("fcntl", rustix::io::ioctl_fionbio(&sender, true))?;
        Ok((receiver, sender))
    }
}

/// Removes a socket file that no process has open.
fn remove_stale_file(place: &SocketAddress) {
    if let Some(path) = place.file() {
        // If the file cannot be removed, `bind` reports the error.
        _ = remove_stale(&path);
    }
}
