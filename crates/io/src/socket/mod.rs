//! Sockets as devices: streams, datagrams, whole IPv4 packets, groups.

mod abandoned;
mod gate;
mod plan;

pub(crate) use abandoned::{is_abandoned, is_socket};
pub(crate) use plan::{Carrier, Failed, Plan, Where};

use crate::device::{Device, DeviceStats};
use crate::sys::EpollSet;
use castanet_packet::{Batch, Packet, Pool, anno};
use gate::{Datagram, Gate};
use rustix::io::Errno;
use rustix::net::{
    Ipv4Addr, RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketAddrV4, SocketFlags,
    acceptfrom_with, getsockname, recv, recvfrom, send, sendto, shutdown,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// The longest datagram.
const LONGEST: usize = 1 << 16;

/// A socket that is open.
pub(crate) struct Link {
    plan: Plan,
    /// Where a server of streams waits for the next client.
    listener: Option<OwnedFd>,
    /// Where packets come from, while there is somebody.
    from: Option<OwnedFd>,
    /// Readable when a server of streams has something to do: clients come and
    /// go, and with them the numbers of their descriptors.
    ears: Option<EpollSet>,
    /// Where packets go, if not to where they come from.
    to: Option<OwnedFd>,
    /// Keeps others off a port.
    _claim: Option<OwnedFd>,
    /// Whom datagrams go to.
    peer: Option<SocketAddrAny>,
    /// Whose packets are our own.
    own: Option<SocketAddrV4>,
    /// How much of the first packet to be sent a stream has taken.
    taken: usize,
    buffer: Box<[u8]>,
    stats: DeviceStats,
    /// What is to be said about connections.
    news: Vec<String>,
    /// The file to be removed in the end.
    file: Option<PathBuf>,
    /// Where all wait who are not let in at once.
    gate: Option<Gate>,
}

/// What became of a packet to be sent.
enum Sent {
    Went,
    Refused,
    Later,
}

impl Link {
    /// Opens a socket; what could not be done where that fails.
    pub(crate) fn open(plan: Plan) -> Result<Link, Failed> {
        let room = if plan.carrier == Carrier::Stream { plan.snaplen } else { LONGEST };
        let mut link = Link {
            listener: None,
            from: None,
            ears: None,
            to: None,
            _claim: None,
            peer: None,
            own: None,
            taken: 0,
            buffer: vec![0; room.max(1)].into(),
            stats: DeviceStats::default(),
            news: Vec::new(),
            file: None,
            gate: (plan.gated && !plan.client).then(Gate::default),
            plan,
        };
        match &link.plan.carrier {
            Carrier::Stream if !link.plan.client => {
                let listener = link.plan.open()?;
                let ears = EpollSet::new([listener.as_raw_fd()].into_iter());
                link.ears = Some(ears.map_err(|error| ("epoll", errno(&error)))?);
                link.listener = Some(listener);
            }
            Carrier::Stream | Carrier::Datagrams => link.from = Some(link.plan.open()?),
            Carrier::Raw(_) => {
                let (fd, claim) = link.plan.open_raw()?;
                (link.from, link._claim) = (Some(fd), claim);
            }
            Carrier::Group { source, .. } => {
                let (hears, sends) = link.plan.open_group()?;
                link.own = source.and_then(|_| getsockname(&sends).ok()?.try_into().ok());
                (link.from, link.to) = (Some(hears), Some(sends));
            }
        }
        let address = |place: &Where| place.address().map_err(|why| ("address", why));
        if link.plan.client || matches!(link.plan.carrier, Carrier::Group { .. }) {
            link.peer = Some(address(&link.plan.place)?);
        }
        let bound =
            if link.plan.client { link.plan.local.as_ref() } else { Some(&link.plan.place) };
        link.file = bound.and_then(Where::file);
        link.announce();
        Ok(link)
    }

    fn announce(&mut self) {
        if self.plan.carrier != Carrier::Stream {
            return;
        }
        let place = shown(&self.plan.place);
        let fd = self.from.as_ref().or(self.listener.as_ref()).map_or(-1, AsRawFd::as_raw_fd);
        self.news.push(match self.plan.client {
            true => format!("opened connection {fd} to {place}"),
            false => format!("listening for connections on {place} ({fd})"),
        });
    }

    /// Whether there is anybody to send to.
    pub(crate) fn has_peer(&self) -> bool {
        match self.plan.carrier {
            Carrier::Stream => self.from.is_some(),
            Carrier::Datagrams => self.peer.is_some(),
            Carrier::Raw(_) | Carrier::Group { .. } => true,
        }
    }

    /// What there is to say about connections.
    pub(crate) fn news(&mut self) -> impl Iterator<Item = String> + '_ {
        self.news.drain(..)
    }

    /// The port that it has on this machine.
    pub(crate) fn port(&self) -> Option<u16> {
        let fd = self.listener.as_ref().or(self.to.as_ref()).or(self.from.as_ref())?;
        SocketAddrV4::try_from(getsockname(fd).ok()?).ok().map(|address| address.port())
    }

    /// Ends the connection that there is.
    fn hang_up(&mut self) {
        if let Some(fd) = self.from.take() {
            self.news.push(format!("closed connection {}", fd.as_raw_fd()));
            // One that is not connected any more has nothing to shut down.
            _ = shutdown(&fd, Shutdown::Both);
        }
        self.taken = 0;
    }

    /// Lets the next client in; whether there was one.
    fn accept(&mut self) -> bool {
        let Some(listener) = &self.listener else { return false };
        if self.gate.as_ref().is_some_and(Gate::is_taken) {
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
                self.welcome(fd, from)
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(error) => {
                self.news.push(format!("accept: {}", words(error)));
                false
            }
        }
    }

    /// Makes a client the one that is served; whether that could be done.
    fn welcome(&mut self, fd: OwnedFd, from: Option<SocketAddrV4>) -> bool {
        let heard = self.ears.as_ref().map_or(Ok(()), |ears| ears.add(fd.as_raw_fd()));
        let from = from.map_or_else(String::new, |it| format!(" from {it}"));
        self.news.push(match &heard {
            Ok(()) => format!("opened connection {}{from}", fd.as_raw_fd()),
            Err(error) => {
                format!("connection{from}: {}", castanet_element::args::io_error_text(error))
            }
        });
        self.from = heard.is_ok().then_some(fd);
        self.from.is_some()
    }

    /// Addresses of whom somebody has to say whether they may come in.
    pub(crate) fn questions(&mut self) -> Vec<Ipv4Addr> {
        self.gate.as_mut().map(Gate::questions).unwrap_or_default()
    }

    /// Says of an address whether it may come in.
    pub(crate) fn judge(&mut self, address: Ipv4Addr, may: bool) {
        let Some(gate) = &mut self.gate else { return };
        let (client, denied) = gate.judge(address, may);
        self.news.extend(denied);
        if let Some((fd, from)) = client {
            self.welcome(fd, Some(from));
        }
    }

    /// The next packet, in the buffer: how many bytes are there, and how many
    /// there were.
    fn next(&mut self) -> Option<(usize, usize)> {
        match self.plan.carrier {
            Carrier::Stream => self.next_of_stream(),
            _ => self.next_datagram(),
        }
    }

    fn next_of_stream(&mut self) -> Option<(usize, usize)> {
        loop {
            if self.from.is_none() && !self.accept() {
                return None;
            }
            let fd = self.from.as_ref()?;
            match recv(fd, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => self.hang_up(),
                Ok((len, _)) => return Some((len, len)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(error) => {
                    self.news.push(words(error));
                    self.hang_up();
                }
            }
        }
    }

    fn next_datagram(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Some(Datagram { bytes, whole, from }) = self.gate.as_mut().and_then(Gate::next) {
                self.buffer[..bytes.len()].copy_from_slice(&bytes);
                self.peer = from.or(self.peer.take());
                return Some((bytes.len(), whole));
            }
            let fd = self.from.as_ref()?;
            match recvfrom(fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, 0, _)) => {}
                Ok((_, whole, from)) => {
                    let ours = || SocketAddrV4::try_from(from.clone()?).ok();
                    if self.own.is_some() && ours() == self.own {
                        continue;
                    }
                    let len = whole.min(self.plan.snaplen).min(LONGEST);
                    if let Some(gate) = &mut self.gate {
                        gate.hold(Datagram { bytes: self.buffer[..len].to_vec(), whole, from });
                        continue;
                    }
                    if !self.plan.client && self.plan.carrier == Carrier::Datagrams {
                        self.peer = from.or(self.peer.take());
                    }
                    return Some((len, whole));
                }
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                // An earlier packet found nobody: that is no end.
                Err(error) => {
                    self.news.push(words(error));
                    return None;
                }
            }
        }
    }

    fn send(&mut self, packet: &Packet) -> Sent {
        if packet.bytes().is_empty() {
            return Sent::Went;
        }
        match self.plan.carrier {
            Carrier::Stream => self.send_on(packet.bytes()),
            _ => self.send_datagram(packet),
        }
    }

    fn send_on(&mut self, bytes: &[u8]) -> Sent {
        loop {
            let Some(fd) = &self.from else { return Sent::Refused };
            match send(fd, &bytes[self.taken.min(bytes.len())..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.taken += count;
                    if self.taken >= bytes.len() {
                        self.taken = 0;
                        return Sent::Went;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Sent::Later,
                Err(error) => {
                    self.news.push(words(error));
                    self.hang_up();
                }
            }
        }
    }

    fn send_datagram(&mut self, packet: &Packet) -> Sent {
        let Some(fd) = self.to.as_ref().or(self.from.as_ref()) else { return Sent::Refused };
        let Some(peer) = self.peer_of(packet) else { return Sent::Refused };
        loop {
            return match sendto(fd, packet.bytes(), SendFlags::NOSIGNAL, &peer) {
                Ok(_) => Sent::Went,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN | Errno::NOBUFS) => Sent::Later,
                Err(error) => {
                    self.news.push(words(error));
                    Sent::Refused
                }
            };
        }
    }

    /// Whom a packet goes to.
    fn peer_of(&self, packet: &Packet) -> Option<SocketAddrAny> {
        if matches!(self.plan.carrier, Carrier::Raw(_)) {
            let header = packet.bytes().get(..20)?;
            let dst: [u8; 4] = castanet_wire::Ipv4Header::from_prefix(header)?.0.dst().octets();
            return Some(SocketAddrV4::new(Ipv4Addr::from(dst), 0).into());
        }
        match &self.plan.place {
            // A client of nobody in particular.
            Where::Ip(place) if self.plan.client && place.ip().is_unspecified() => {
                Some(SocketAddrV4::new(packet.dst(), place.port()).into())
            }
            _ => self.peer.clone(),
        }
    }

    /// A packet of the first bytes of the buffer.
    fn packet(&self, pool: &Pool, len: usize, whole: usize) -> Option<Packet> {
        let bytes = &self.buffer[..len];
        let mut packet = match self.plan.headroom.saturating_sub(pool.headroom()) {
            0 => pool.copy_in(bytes)?,
            short => {
                let mut packet = pool.alloc()?;
                packet.put_back(short + len)[short..].copy_from_slice(bytes);
                packet.pull_front(short);
                packet
            }
        };
        if whole > len {
            packet.set_anno_u32(anno::EXTRA_LENGTH, (whole - len) as u32);
        }
        Some(packet)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            _ = std::fs::remove_file(file);
        }
    }
}

impl Device for Link {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let now = match self.plan.timestamps {
            true => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok(),
            false => None,
        };
        let before = batch.len();
        for _ in 0..max {
            let Some((len, whole)) = self.next() else { break };
            let Some(mut packet) = self.packet(pool, len, whole) else {
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
                Sent::Went => {
                    went += 1;
                    self.stats.sent += 1;
                    self.stats.sent_bytes += packet.len() as u64;
                }
                Sent::Refused => self.stats.tx_errors += 1,
                Sent::Later => {
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
        // While one waits at the gate nobody else is looked for.
        if self.from.is_none() && self.gate.as_ref().is_some_and(Gate::is_taken) {
            return None;
        }
        let ears = self.ears.as_ref().map(EpollSet::raw_fd);
        ears.or(self.from.as_ref().map(AsRawFd::as_raw_fd))
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }

    fn describe(&self) -> String {
        let what = match &self.plan.carrier {
            Carrier::Stream => "a stream",
            Carrier::Datagrams => "datagrams",
            Carrier::Raw(_) => "whole IPv4 packets",
            Carrier::Group { .. } => "datagrams of a group",
        };
        let side = if self.plan.client { "to" } else { "at" };
        format!("{what} {side} {}, by system calls", shown(&self.plan.place))
    }
}

fn shown(place: &Where) -> String {
    match place {
        Where::Ip(address) => address.to_string(),
        Where::File(path) => path.display().to_string(),
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The system's words for an error.
pub(crate) fn words(error: Errno) -> String {
    castanet_element::args::io_error_text(&io::Error::from(error))
}
