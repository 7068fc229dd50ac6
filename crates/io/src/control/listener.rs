//! Sockets to which clients connect, and the connections to them.

use super::endpoint::Endpoint;
use crate::socket::remove_stale;
use crate::sys::inherited_socket;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use rustix::fs::{AtFlags, CWD, Gid, Mode, chmod, chownat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of further ports that a server tries if the next free port will do.
const EXTRA_PORTS: u16 = 11;

/// Maximum number of simultaneous clients of a socket: a quarter of the descriptors that a process may
/// have by default.
pub(super) const MAX_CLIENTS: usize = 256;

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The descriptors of inherited connections that elements use.
static CLAIMED: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

fn claimed_descriptors() -> MutexGuard<'static, BTreeSet<RawFd>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves a descriptor for one element; dropping it releases the descriptor.
pub(super) struct DescriptorClaim(RawFd);

impl Drop for DescriptorClaim {
    fn drop(&mut self) {
        claimed_descriptors().remove(&self.0);
    }
}

/// Reserves a connection that the process inherited, TCP or Unix. An error if another element uses
/// it.
pub(super) fn claim_descriptor(fd: RawFd) -> io::Result<(Stream, DescriptorClaim)> {
    let socket = std::os::unix::net::UnixStream::from(inherited_socket::stream_socket(fd)?);
    if !claimed_descriptors().insert(fd) {
        return Err(ErrorKind::AddrInUse.into());
    }
    let claim = DescriptorClaim(fd);
    socket.set_nonblocking(true)?;
    Ok((Stream::Unix(UnixStream::from_std(socket)), claim))
}

pub(super) fn listen(place: &Endpoint) -> io::Result<Listener> {
    match place {
        Endpoint::Socket(_) => Err(ErrorKind::Unsupported.into()),
        Endpoint::Tcp { port, or_next, local } => {
            let address = if *local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            let last = if *or_next { port.saturating_add(EXTRA_PORTS) } else { *port };
            let mut ports = *port..=last;
            loop {
                let port = ports.next().unwrap_or(last);
                match TcpListener::bind(SocketAddr::from((address, port))) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse && port < last => {}
                    bound => return bound.map(Listener::Tcp),
                }
            }
        }
        Endpoint::Unix(path) => {
            remove_stale(path)?;
            UnixListener::bind(path).map(Listener::Unix)
        }
        Endpoint::Restricted { path, group } => {
            remove_stale(path)?;
            restricted(path, *group).map(Listener::Unix)
        }
    }
}

/// A socket file for this user, and for a group if there is one. Nobody can connect before the
/// permissions are set: the socket listens last.
fn restricted(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    /// Clients that may wait to be accepted.
    const BACKLOG: i32 = 128;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let permit = || -> io::Result<()> {
        let group_mode = if group.is_some() { Mode::RGRP | Mode::WGRP } else { Mode::empty() };
        if group.is_some() {
            chownat(CWD, path, None, group.map(Gid::from_raw), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        chmod(path, Mode::RUSR | Mode::WUSR | group_mode)?;
        Ok(rustix::net::listen(&socket, BACKLOG)?)
    };
    permit().inspect_err(|_| _ = std::fs::remove_file(path))?;
    Ok(UnixListener::from_std(std::os::unix::net::UnixListener::from(socket)))
}

impl Listener {
    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            Listener::Tcp(listener) => listener,
            Listener::Unix(listener) => listener,
        }
    }

    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        }
    }

    /// Accepts the next client; also returns its address for log lines, as ` from 10.0.0.1.80`, or
    /// nothing.
    pub(super) fn accept(&self) -> io::Result<(Stream, String)> {
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                (Stream::Tcp(stream), format!(" from {}.{}", from.ip(), from.port()))
            }
            Listener::Unix(listener) => (Stream::Unix(listener.accept()?.0), String::new()),
        })
    }
}

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Shuts the connection down, even if other processes hold its descriptor. The descriptor of an
    /// inherited connection stays open.
    pub(super) fn end(&self) {
        // Shutting down fails only if the client has closed the connection already.
        _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }

    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        }
    }
}
