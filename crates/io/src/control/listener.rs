//! Sockets that programs come to, and the connections that they make.

use super::endpoint::Endpoint;
use crate::socket::is_abandoned;
use crate::sys::inherited_socket;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many more ports are tried where the next free one will do.
const MORE_PORTS: u16 = 11;

/// How many clients a socket has at once.
pub(super) const MOST_CLIENTS: usize = 64;

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The descriptors of connections that the process was started with and that elements have.
static ADOPTED: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

fn descriptors_in_use() -> MutexGuard<'static, BTreeSet<RawFd>> {
    ADOPTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps others off a descriptor until it is dropped.
pub(super) struct Adopted(RawFd);

impl Drop for Adopted {
    fn drop(&mut self) {
        descriptors_in_use().remove(&self.0);
    }
}

/// A connection that the process was started with, whatever its kind; an error if another element
/// has it.
pub(super) fn adopt(fd: RawFd) -> io::Result<(Stream, Adopted)> {
    let socket = std::os::unix::net::UnixStream::from(inherited_socket::stream_socket(fd)?);
    if !descriptors_in_use().insert(fd) {
        return Err(ErrorKind::AddrInUse.into());
    }
    let adopted = Adopted(fd);
    socket.set_nonblocking(true)?;
    Ok((Stream::Unix(UnixStream::from_std(socket)), adopted))
}

pub(super) fn listen(place: &Endpoint) -> io::Result<Listener> {
    match place {
        Endpoint::Socket(_) => Err(ErrorKind::Unsupported.into()),
        Endpoint::Tcp { port, or_next, local } => {
            let address = if *local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            let last = if *or_next { port.saturating_add(MORE_PORTS) } else { *port };
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
            if is_abandoned(path) {
                std::fs::remove_file(path)?;
            }
            UnixListener::bind(path).map(Listener::Unix)
        }
    }
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

    /// The next client, and where it is.
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
    /// Ends the connection, whoever else has its descriptor: that of a connection
    /// which the process was started with stays open.
    pub(super) fn end(&self) {
        // One that the other side has ended already is no failure.
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
