//! Sockets as devices: streams, datagrams, whole IPv4 packets, multicast groups.

mod access_gate;
mod config;
mod stale_file;

pub(crate) use config::{SocketAddress, SocketConfig, StepError, Transport};
pub(crate) use stale_file::{is_socket, remove_stale};

use crate::device::{Device, DeviceStats};
use crate::sys::EpollSet;
use access_gate::{AccessGate, Datagram};
use castanet_packet::{Batch, Packet, Pool, anno};
use rustix::io::Errno;
use rustix::net::{
    Ipv4Addr, RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketAddrV4, SocketFlags,
    acceptfrom_with, getsockname, recv, recvfrom, send, sendto, shutdown,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// The longest datagram in bytes.
const MAX_DATAGRAM: usize = 1 << 16;

/// An open socket.
pub(crate) struct SocketDevice {
    config: SocketConfig,
    /// The socket on which a server of streams accepts clients.
    listener: Option<OwnedFd>,
    /// The socket that receives packets; `None` while no client is connected.
    rx_socket: Option<OwnedFd>,
    /// Readable when a server of streams can accept or receive. Its descriptor stays the same while
    /// those of clients change.
    stream_events: Option<EpollSet>,
    /// The socket that sends packets, if it is not `rx_socket`.
    tx_socket: Option<OwnedFd>,
    /// Reserves the port for this process.
    _port_claim: Option<OwnedFd>,
    /// The destination of datagrams.
    peer: Option<SocketAddrAny>,
    /// The address from which this socket sends; packets from it are ignored.
    local_address: Option<SocketAddrV4>,
    /// Number of bytes of the first waiting packet that the stream has accepted.
    written: usize,
    buffer: Box<[u8]>,
    stats: DeviceStats,
    /// Log lines about connections.
    messages: Vec<String>,
    /// The socket file, which is removed at the end.
    file: Option<PathBuf>,
    /// Clients and datagrams that wait for a decision; `None` if all are permitted.
    gate: Option<AccessGate>,
}

/// The outcome of sending one packet.
enum SendResult {
    Sent,
    Refused,
    Retry,
}

impl SocketDevice {
    /// Opens a socket; the error names the system call that failed.
    pub(crate) fn open(config: SocketConfig) -> Result<SocketDevice, StepError> {
        let room =
            if config.transport == Transport::Stream { config.snaplen } else { MAX_DATAGRAM };
        let mut device = SocketDevice {
            listener: None,
            rx_socket: None,
            stream_events: None,
            tx_socket: None,
            _port_claim: None,
            peer: None,
            local_address: None,
            written: 0,
            buffer: vec![0; room.max(1)].into(),
            stats: DeviceStats::default(),
            messages: Vec::new(),
            file: None,
            gate: (config.is_gated && !config.client).then(AccessGate::default),
            config,
        };
        match &device.config.transport {
            Transport::Stream if !device.config.client => {
                let listener = device.config.open()?;
                let events = EpollSet::new([listener.as_raw_fd()].into_iter());
                device.stream_events = Some(events.map_err(|error| ("epoll", errno(&error)))?);
                device.listener = Some(listener);
            }
            Transport::Stream | Transport::Datagrams => {
                device.rx_socket = Some(device.config.open()?);
            }
            Transport::Raw(_) => {
                let (fd, port_claim) = device.config.open_raw()?;
                (device.rx_socket, device._port_claim) = (Some(fd), port_claim);
            }
            Transport::Group { source, .. } => {
                let (receiver, sender) = device.config.open_group()?;
                device.local_address =
                    source.and_then(|_| getsockname(&sender).ok()?.try_into().ok());
                (device.rx_socket, device.tx_socket) = (Some(receiver), Some(sender));
            }
        }
        let address = |place: &SocketAddress| place.address().map_err(|why| ("address", why));
        if device.config.client || matches!(device.config.transport, Transport::Group { .. }) {
            device.peer = Some(address(&device.config.place)?);
        }
        let SocketConfig { client, local, place, .. } = &device.config;
        let bound = if *client { local.as_ref() } else { Some(place) };
        device.file = bound.and_then(SocketAddress::file);
        device.announce();
        Ok(device)
    }

    fn announce(&mut self) {
        if self.config.transport != Transport::Stream {
            return;
        }
        let place = address_text(&self.config.place);
        let fd = self.rx_socket.as_ref().or(self.listener.as_ref()).map_or(-1, AsRawFd::as_raw_fd);
        self.messages.push(match self.config.client {
            true => format!("opened connection {fd} to {place}"),
            false => format!("listening for connections on {place} ({fd})"),
        });
    }

    /// Returns whether packets have a destination.
    pub(crate) fn has_peer(&self) -> bool {
        match self.config.transport {
            Transport::Stream => self.rx_socket.is_some(),
            Transport::Datagrams => self.peer.is_some(),
            Transport::Raw(_) | Transport::Group { .. } => true,
        }
    }

    /// Takes the log lines about connections.
    pub(crate) fn messages(&mut self) -> impl Iterator<Item = String> + '_ {
        self.messages.drain(..)
    }

    /// The local port, if it has one.
    pub(crate) fn port(&self) -> Option<u16> {
        let fd = self.listener.as_ref().or(self.tx_socket.as_ref()).or(self.rx_socket.as_ref())?;
        SocketAddrV4::try_from(getsockname(fd).ok()?).ok().map(|address| address.port())
    }

    /// Closes the connection, if there is one.
    fn disconnect(&mut self) {
        if let Some(fd) = self.rx_socket.take() {
            self.messages.push(format!("closed connection {}", fd.as_raw_fd()));
            // Shutting down fails only if the connection has ended already.
            _ = shutdown(&fd, Shutdown::Both);
        }
        self.written = 0;
    }

    /// Accepts the next client; returns whether one is connected.
    fn accept(&mut self) -> bool {
        let Some(listener) = &self.listener else { return false };
        if self.gate.as_ref().is_some_and(AccessGate::is_taken) {
            return false;
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match acceptfrom_with(listener, flags) {
            Ok((fd, from)) => {
                let from = from.and_then(|it| SocketAddrV4::try_from(it).ok());
                if let (Some(gate), Some(from)) = (&mut self.gate, from) {
                    gate.hold_client(fd, from);
                    return false;
                }
                self.serve_client(fd, from)
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(error) => {
                self.messages.push(format!("accept: {}", errno_text(error)));
                false
            }
        }
    }

    /// Makes a client the one that is served; returns whether that was possible.
    fn serve_client(&mut self, fd: OwnedFd, from: Option<SocketAddrV4>) -> bool {
        let events = self.stream_events.as_ref();
        let added = events.map_or(Ok(()), |events| events.add(fd.as_raw_fd()));
        let from = from.map_or_else(String::new, |it| format!(" from {it}"));
        self.messages.push(match &added {
            Ok(()) => format!("opened connection {}{from}", fd.as_raw_fd()),
            Err(error) => {
                format!("connection{from}: {}", castanet_element::args::io_error_text(error))
            }
        });
        self.rx_socket = added.is_ok().then_some(fd);
        self.rx_socket.is_some()
    }

    /// Takes the addresses that the element has to decide on.
    pub(crate) fn queries(&mut self) -> Vec<Ipv4Addr> {
        self.gate.as_mut().map(AccessGate::queries).unwrap_or_default()
    }

    /// Applies the element's decision on an address.
    pub(crate) fn decide(&mut self, address: Ipv4Addr, is_allowed: bool) {
        let Some(gate) = &mut self.gate else { return };
        let (client, denied) = gate.decide(address, is_allowed);
        self.messages.extend(denied);
        if let Some((fd, from)) = client {
            self.serve_client(fd, Some(from));
        }
    }

    /// Receives the next packet into the buffer. Returns the number of bytes in the buffer, and the
    /// packet's length before it was cut.
    fn next(&mut self) -> Option<(usize, usize)> {
        match self.config.transport {
            Transport::Stream => self.receive_stream(),
            _ => self.receive_datagram(),
        }
    }

    fn receive_stream(&mut self) -> Option<(usize, usize)> {
        loop {
            if self.rx_socket.is_none() && !self.accept() {
                return None;
            }
            let fd = self.rx_socket.as_ref()?;
            match recv(fd, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => self.disconnect(),
                Ok((len, _)) => return Some((len, len)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(error) => {
                    self.messages.push(errno_text(error));
                    self.disconnect();
                }
            }
        }
    }

    fn receive_datagram(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Some(Datagram { bytes, full_len, from }) =
                self.gate.as_mut().and_then(AccessGate::next)
            {
                self.buffer[..bytes.len()].copy_from_slice(&bytes);
                self.peer = from.or(self.peer.take());
                return Some((bytes.len(), full_len));
            }
            let fd = self.rx_socket.as_ref()?;
            match recvfrom(fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, 0, _)) => {}
                Ok((_, full_len, from)) => {
                    let sender = || SocketAddrV4::try_from(from.clone()?).ok();
                    if self.local_address.is_some() && sender() == self.local_address {
                        continue;
                    }
                    let len = full_len.min(self.config.snaplen).min(MAX_DATAGRAM);
                    if let Some(gate) = &mut self.gate {
                        gate.hold_datagram(Datagram {
                            bytes: self.buffer[..len].to_vec(),
                            full_len,
                            from,
                        });
                        continue;
                    }
                    if !self.config.client && self.config.transport == Transport::Datagrams {
                        self.peer = from.or(self.peer.take());
                    }
                    return Some((len, full_len));
                }
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                // The error belongs to an earlier packet that found no receiver; the socket still
                // works.
                Err(error) => {
                    self.messages.push(errno_text(error));
                    return None;
                }
            }
        }
    }

    fn send(&mut self, packet: &Packet) -> SendResult {
        if packet.bytes().is_empty() {
            return SendResult::Sent;
        }
        match self.config.transport {
            Transport::Stream => self.send_stream(packet.bytes()),
            _ => self.send_datagram(packet),
        }
    }

    fn send_stream(&mut self, bytes: &[u8]) -> SendResult {
        loop {
            let Some(fd) = &self.rx_socket else { return SendResult::Refused };
            match send(fd, &bytes[self.written.min(bytes.len())..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.written += count;
                    if self.written >= bytes.len() {
                        self.written = 0;
                        return SendResult::Sent;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return SendResult::Retry,
                Err(error) => {
                    self.messages.push(errno_text(error));
                    self.disconnect();
                }
            }
        }
    }

    fn send_datagram(&mut self, packet: &Packet) -> SendResult {
        let Some(fd) = self.tx_socket.as_ref().or(self.rx_socket.as_ref()) else {
            return SendResult::Refused;
        };
        let Some(peer) = self.peer_of(packet) else { return SendResult::Refused };
        loop {
            return match sendto(fd, packet.bytes(), SendFlags::NOSIGNAL, &peer) {
                Ok(_) => SendResult::Sent,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN | Errno::NOBUFS) => SendResult::Retry,
                Err(error) => {
                    self.messages.push(errno_text(error));
                    SendResult::Refused
                }
            };
        }
    }

    /// The destination of a packet.
    fn peer_of(&self, packet: &Packet) -> Option<SocketAddrAny> {
        if matches!(self.config.transport, Transport::Raw(_)) {
            let header = packet.bytes().get(..20)?;
            let dst: [u8; 4] = castanet_wire::Ipv4Header::from_prefix(header)?.0.dst().octets();
            return Some(SocketAddrV4::new(Ipv4Addr::from(dst), 0).into());
        }
        match &self.config.place {
            // A client without a remote address uses the packet's destination annotation.
            SocketAddress::Ip(place) if self.config.client && place.ip().is_unspecified() => {
                Some(SocketAddrV4::new(packet.dst(), place.port()).into())
            }
            _ => self.peer.clone(),
        }
    }

    /// Makes a packet of the first bytes of the buffer.
    fn packet(&self, pool: &Pool, len: usize, full_len: usize) -> Option<Packet> {
        let bytes = &self.buffer[..len];
        let mut packet = match self.config.headroom.saturating_sub(pool.headroom()) {
            0 => pool.copy_in(bytes)?,
            short => {
                let mut packet = pool.alloc()?;
                packet.put_back(short + len)[short..].copy_from_slice(bytes);
                packet.pull_front(short);
                packet
            }
        };
        if full_len > len {
            packet.set_anno_u32(anno::EXTRA_LENGTH, (full_len - len) as u32);
        }
        Some(packet)
    }
}

impl Drop for SocketDevice {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            _ = std::fs::remove_file(file);
        }
    }
}

impl Device for SocketDevice {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let now = match self.config.timestamps {
            true => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok(),
            false => None,
        };
        let before = batch.len();
        for _ in 0..max {
            let Some((len, full_len)) = self.next() else { break };
            let Some(mut packet) = self.packet(pool, len, full_len) else {
                self.stats.no_frame += 1;
                continue;
            };
            if let Some(now) = now {
                packet.set_timestamp(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
            }
            self.stats.received += 1;
            self.stats.received_bytes += len as u64;
            batch.push(packet);
        }
        Ok(batch.len() - before)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let (mut done, mut went) = (0, 0);
        for packet in batch.iter() {
            match self.send(packet) {
                SendResult::Sent => {
                    went += 1;
                    self.stats.sent += 1;
                    self.stats.sent_bytes += packet.len() as u64;
                }
                SendResult::Refused => self.stats.tx_errors += 1,
                SendResult::Retry => {
                    self.stats.tx_full += 1;
                    break;
                }
            }
            done += 1;
        }
        *batch = batch.split_off(done);
        Ok(went)
    }

    fn fd(&self) -> Option<RawFd> {
        // While a client waits for a decision, no other is accepted.
        if self.rx_socket.is_none() && self.gate.as_ref().is_some_and(AccessGate::is_taken) {
            return None;
        }
        let events = self.stream_events.as_ref().map(EpollSet::raw_fd);
        events.or(self.rx_socket.as_ref().map(AsRawFd::as_raw_fd))
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }

    fn describe(&self) -> String {
        let what = match &self.config.transport {
            Transport::Stream => "a stream",
            Transport::Datagrams => "datagrams",
            Transport::Raw(_) => "whole IPv4 packets",
            Transport::Group { .. } => "datagrams of a group",
        };
        let side = if self.config.client { "to" } else { "at" };
        format!("{what} {side} {}, by system calls", address_text(&self.config.place))
    }
}

fn address_text(place: &SocketAddress) -> String {
    match place {
        SocketAddress::Ip(address) => address.to_string(),
        SocketAddress::File(path) => path.display().to_string(),
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The system's text for an error.
pub(crate) fn errno_text(error: Errno) -> String {
    castanet_element::args::io_error_text(&io::Error::from(error))
}
