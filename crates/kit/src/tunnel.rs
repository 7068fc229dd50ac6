//! Tunnels of Ethernet over IPv4, by their plain outer headers: VXLAN (RFC 7348), Geneve (RFC 8926) and GRE
//! (RFC 2784, 2890).
//!
//! A plain outer header has a constant length, and its few variable fields are independent of the tunnel:
//! so it is read in one look, and written from a template. A UDP checksum is checked. Packets with anything
//! else (IP options, fragments, Geneve options, sequence numbers) are not read here.

use crate::rss::flow_hash;
use castanet_wire::checksum::{self, Sum, header_ok};
use castanet_wire::headers::frame_payload;
use castanet_wire::{
    Ethernet, Geneve, Gre, GreHeader, Ipv4Header, Udp, Vxlan, ether_type, ip_proto,
};
use std::net::Ipv4Addr;

/// The protocol of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encapsulation {
    /// VXLAN to this UDP port.
    Vxlan(u16),
    /// Geneve to this UDP port.
    Geneve(u16),
    /// GRE.
    Gre,
}

/// A tunnel, as this end sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tunnel {
    /// Its protocol.
    pub encapsulation: Encapsulation,
    /// The other end.
    pub remote: Ipv4Addr,
    /// The network identifier, of which VXLAN and Geneve have always one, or the key of GRE.
    pub key: Option<u32>,
}

/// Offset of the header behind the outer IPv4 header.
const TRANSPORT: usize = Ethernet::LEN + Ipv4Header::LEN;
/// Offset of the header behind a UDP header.
const BEHIND_UDP: usize = TRANSPORT + Udp::LEN;
/// Length of the outer headers of VXLAN and Geneve, which have headers of the same length.
const BEHIND_NETWORK: usize = BEHIND_UDP + Vxlan::LEN;
/// A frame is at least so long if a frame is in it: that of GRE without key.
const SHORTEST: usize = TRANSPORT + Gre::LEN + Ethernet::LEN;

/// First UDP source port of tunnels, of 2^14 (RFC 7348, section 5; RFC 8926, section 3.3).
const FIRST_PORT: u16 = 49152;
const PORT_BITS: u32 = 14;
/// The factor of the hash of a tunnel: 2^64 divided by the golden ratio (Knuth, TAOCP 6.4).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Time to live of outer packets.
const TTL: u8 = 250;

/// The words of a frame that are compared, by their offsets; the last overlaps the one before.
const WORDS: [usize; 7] = [0, 8, 16, 24, 32, 40, SHORTEST - 8];

/// Reads the words at [`WORDS`].
#[inline(always)]
fn words(bytes: &[u8; SHORTEST]) -> [u64; WORDS.len()] {
    WORDS.map(|at| bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)))
}

#[inline(always)]
fn word16(bytes: &[u8; SHORTEST], at: usize) -> u16 {
    bytes[at..].first_chunk().map_or(0, |word| u16::from_be_bytes(*word))
}

#[inline(always)]
fn word32(bytes: &[u8; SHORTEST], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

/// The plain outer header of one tunnel: the bits that are the same in all its packets, and their values.
#[derive(Clone, Debug)]
struct PlainHeader {
    mask: [u64; WORDS.len()],
    values: [u64; WORDS.len()],
    /// Length of the outer headers.
    offset: usize,
    is_udp: bool,
}

impl PlainHeader {
    /// That of packets to this end.
    fn new(ether: [u8; 6], address: Ipv4Addr, tunnel: &Tunnel) -> PlainHeader {
        let local = Tunnel { remote: address, ..*tunnel };
        let header = OuterHeader::new(tunnel.remote, &local);
        let mut values = [0; SHORTEST];
        values[..6].copy_from_slice(&ether);
        values[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        values[Ethernet::LEN..TRANSPORT].copy_from_slice(header.ip.bytes());
        let behind = header.behind.bytes();
        values[TRANSPORT..TRANSPORT + behind.len()].copy_from_slice(behind);
        let mut mask = [0; SHORTEST];
        let mut compare = |bytes: &[(usize, &[u8])]| {
            bytes.iter().for_each(|&(at, bits)| mask[at..at + bits.len()].copy_from_slice(bits));
        };
        // The destination; the EtherType, and an IPv4 header without options.
        compare(&[(0, &[0xff; 6]), (12, &[0xff; 3])]);
        // Fragments, not the flag DF; the protocol; both addresses.
        compare(&[(20, &[0xbf, 0xff]), (23, &[0xff]), (26, &[0xff; 8])]);
        let port: (usize, &[u8]) = (TRANSPORT + 2, &[0xff; 2]);
        // Reserved bits are ignored. Geneve has no options, is no control packet, and carries Ethernet.
        match tunnel.encapsulation {
            Encapsulation::Vxlan(_) => compare(&[port, (BEHIND_UDP, &[0x08])]),
            Encapsulation::Geneve(_) => {
                compare(&[port, (BEHIND_UDP, &[0xff, 0xc0, 0xff, 0xff])]);
            }
            Encapsulation::Gre => compare(&[(TRANSPORT, &[0xff; 8][..behind.len()])]),
        }
        let is_udp = tunnel.encapsulation != Encapsulation::Gre;
        if is_udp {
            compare(&[(BEHIND_UDP + 4, &[0xff; 3])]);
        }
        let (mask, all) = (words(&mask), words(&values));
        let values = std::array::from_fn(|n| all[n] & mask[n]);
        PlainHeader { mask, values, offset: TRANSPORT + behind.len(), is_udp }
    }

    /// Whether a frame has it.
    #[inline(always)]
    fn is_in(&self, words: &[u64; WORDS.len()]) -> bool {
        let differ = |n: usize| words[n] & self.mask[n] ^ self.values[n];
        (0..WORDS.len()).fold(0, |all, n| all | differ(n)) == 0
    }
}

/// The place of a frame in the packet of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InnerFrame {
    /// Index of the tunnel.
    pub tunnel: u8,
    /// Length of the outer headers.
    pub offset: usize,
}

/// The tunnels that end at an address, by their outer headers.
#[derive(Clone, Debug)]
pub struct TunnelTable {
    headers: Box<[PlainHeader]>,
    /// Indices of tunnels, by the hash of remote address and network, with linear probes; at most half of the
    /// slots are used. Nobody but the configuration adds tunnels.
    slots: Box<[Option<u8>]>,
    /// The slots have 2 to the power of 64 less this number.
    shift: u32,
}

/// A tunnel that is twice in a list: its first and its second index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duplicate(pub usize, pub usize);

impl TunnelTable {
    /// The tunnels that end here, at most 255.
    ///
    /// # Errors
    /// Two of them are alike.
    pub fn new(
        ether: [u8; 6],
        address: Ipv4Addr,
        tunnels: &[Tunnel],
    ) -> Result<TunnelTable, Duplicate> {
        let size = (2 * tunnels.len()).next_power_of_two().max(2);
        let mut table = TunnelTable {
            headers: tunnels.iter().map(|it| PlainHeader::new(ether, address, it)).collect(),
            slots: vec![None; size].into(),
            shift: u64::BITS - size.trailing_zeros(),
        };
        for (index, (tunnel, number)) in tunnels.iter().zip(0_u8..).enumerate() {
            if let Some(first) = tunnels[..index].iter().position(|it| it == tunnel) {
                return Err(Duplicate(first, index));
            }
            let mut slot = table.slot(tunnel.remote.to_bits(), tunnel.key.unwrap_or(0));
            while table.slots[slot].is_some() {
                slot = table.next(slot);
            }
            table.slots[slot] = Some(number);
        }
        Ok(table)
    }

    /// The first slot of a tunnel.
    #[inline(always)]
    fn slot(&self, remote: u32, key: u32) -> usize {
        let word = u64::from(remote) << 32 | u64::from(key);
        (word.wrapping_mul(FACTOR) >> self.shift) as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// The frame in an Ethernet frame that has come by one of the tunnels with a plain outer header: to both
    /// addresses of this end, valid, of the frame's length, no fragment, and without options. `None` for all
    /// others.
    #[inline(always)]
    pub fn find(&self, frame: &[u8]) -> Option<InnerFrame> {
        let head: &[u8; SHORTEST] = frame.first_chunk()?;
        const KEY: u8 = 0x20;
        let key = match head[Ethernet::LEN + 9] {
            ip_proto::GRE if head[TRANSPORT] & KEY == 0 => 0,
            ip_proto::GRE => word32(head, TRANSPORT + Gre::LEN),
            _ => word32(head, BEHIND_UDP + 4) >> 8,
        };
        let words = words(head);
        let mut slot = self.slot(word32(head, Ethernet::LEN + 12), key);
        let tunnel = loop {
            let number = self.slots[slot]?;
            if self.headers[usize::from(number)].is_in(&words) {
                break number;
            }
            slot = self.next(slot);
        };
        let PlainHeader { offset, is_udp, .. } = self.headers[usize::from(tunnel)];
        let total_len = word16(head, Ethernet::LEN + 2);
        let ip: &[u8; Ipv4Header::LEN] = head[Ethernet::LEN..].first_chunk()?;
        // The frame in it has an Ethernet header.
        let is_whole = usize::from(total_len) + Ethernet::LEN == frame.len()
            && frame.len() >= offset + Ethernet::LEN
            && (!is_udp || word16(head, TRANSPORT + 4) == total_len - Ipv4Header::LEN as u16);
        let is_valid = is_whole
            && header_ok(ip)
            && (!is_udp || word16(head, TRANSPORT + 6) == 0 || is_udp_sum_right(frame));
        is_valid.then_some(InnerFrame { tunnel, offset })
    }
}

/// Whether the UDP checksum of a packet is right whose IPv4 header has no options, and which is as long as the frame.
#[inline(never)]
fn is_udp_sum_right(frame: &[u8]) -> bool {
    let Some((ip, datagram)) = Ipv4Header::from_prefix(&frame[Ethernet::LEN..]) else {
        return false;
    };
    let sum = checksum::pseudo_v4(ip.src(), ip.dst(), ip_proto::UDP, datagram.len());
    sum.slice(datagram).checksum() == 0
}

/// Length of the headers of VXLAN and Geneve behind the Ethernet header.
const UDP_HEADERS: usize = BEHIND_NETWORK - Ethernet::LEN;

/// The outer headers of a tunnel behind the Ethernet header, as a template.
#[derive(Clone, Debug)]
pub struct OuterHeader {
    ip: Ipv4Header,
    /// The sum of the IPv4 header without length and identification.
    sum: Sum,
    behind: BehindIp,
}

/// The headers behind the IPv4 header.
#[derive(Clone, Copy, Debug)]
enum BehindIp {
    /// UDP, and VXLAN or Geneve.
    Udp([u8; Udp::LEN + Vxlan::LEN]),
    /// GRE without key.
    Gre([u8; 4]),
    /// GRE with one.
    GreKey([u8; 8]),
}

impl BehindIp {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            BehindIp::Udp(bytes) => bytes,
            BehindIp::Gre(bytes) => bytes,
            BehindIp::GreKey(bytes) => bytes,
        }
    }

    fn of(tunnel: &Tunnel) -> BehindIp {
        let protocol = ether_type::TRANSPARENT_ETHERNET;
        let vni = tunnel.key.unwrap_or(0);
        let (port, network) = match tunnel.encapsulation {
            Encapsulation::Vxlan(port) => (port, Vxlan::new(vni).0),
            Encapsulation::Geneve(port) => (port, Geneve::new(vni, protocol).0),
            Encapsulation::Gre => {
                let (key, has_checksum, sequence) = (tunnel.key, false, None);
                let header = GreHeader { protocol, key, has_checksum, sequence };
                let mut bytes = [0; 8];
                header.write(&mut bytes);
                let [a, b, c, d, ..] = bytes;
                return match key {
                    None => BehindIp::Gre([a, b, c, d]),
                    Some(_) => BehindIp::GreKey(bytes),
                };
            }
        };
        let mut bytes = [0; Udp::LEN + Vxlan::LEN];
        let mut udp = Udp([0; Udp::LEN]);
        udp.set_dst_port(port);
        bytes[..Udp::LEN].copy_from_slice(udp.bytes());
        bytes[Udp::LEN..].copy_from_slice(&network);
        BehindIp::Udp(bytes)
    }
}

impl OuterHeader {
    /// That of packets from `local` into a tunnel.
    pub fn new(local: Ipv4Addr, tunnel: &Tunnel) -> OuterHeader {
        let behind = BehindIp::of(tunnel);
        let protocol = match behind {
            BehindIp::Udp(_) => ip_proto::UDP,
            BehindIp::Gre(_) | BehindIp::GreKey(_) => ip_proto::GRE,
        };
        let mut ip = Ipv4Header::new(protocol, local, tunnel.remote, 0);
        ip.set_ttl(TTL);
        ip.set_total_len(0);
        ip.set_checksum(0);
        OuterHeader { ip, sum: Sum::new().header(ip.bytes()), behind }
    }

    /// Length in bytes with a frame of this length; `None` if no IPv4 packet is so long.
    #[inline(always)]
    pub fn total_len(&self, frame: usize) -> Option<u16> {
        u16::try_from(Ipv4Header::LEN + self.behind.bytes().len() + frame).ok()
    }

    /// Writes the header before a frame, for this total length and identification. `grow` makes room for so
    /// many bytes at the front, and returns them and the frame. `port` is the UDP source port; without it, one of
    /// 2^14 by the frame's flow.
    #[inline(always)]
    pub fn push<'a>(
        &self,
        grow: impl FnOnce(usize) -> &'a mut [u8],
        total_len: u16,
        id: u16,
        port: Option<u16>,
    ) {
        match &self.behind {
            BehindIp::Udp(behind) => {
                let bytes = grow(UDP_HEADERS);
                let Some((head, frame)) = bytes.split_first_chunk_mut() else { return };
                let rest = self.fill::<UDP_HEADERS, _>(head, behind, total_len, id);
                let port = port.unwrap_or_else(|| source_port(frame));
                let len = total_len - Ipv4Header::LEN as u16;
                rest[..2].copy_from_slice(&port.to_be_bytes());
                rest[4..6].copy_from_slice(&len.to_be_bytes());
            }
            BehindIp::Gre(behind) => {
                let bytes = grow(Ipv4Header::LEN + behind.len());
                let Some(head) = bytes.first_chunk_mut() else { return };
                self.fill::<{ Ipv4Header::LEN + 4 }, _>(head, behind, total_len, id);
            }
            BehindIp::GreKey(behind) => {
                let bytes = grow(Ipv4Header::LEN + behind.len());
                let Some(head) = bytes.first_chunk_mut() else { return };
                self.fill::<{ Ipv4Header::LEN + 8 }, _>(head, behind, total_len, id);
            }
        }
    }

    /// Fills the headers; returns those behind the IPv4 header.
    #[inline(always)]
    fn fill<'a, const N: usize, const M: usize>(
        &self,
        head: &'a mut [u8; N],
        behind: &[u8; M],
        total_len: u16,
        id: u16,
    ) -> &'a mut [u8] {
        let mut ip = self.ip;
        ip.set_total_len(total_len);
        ip.set_id(id);
        ip.set_checksum(self.sum.u16(total_len).u16(id).checksum());
        let (start, rest) = head.split_at_mut(Ipv4Header::LEN);
        start.copy_from_slice(ip.bytes());
        rest.copy_from_slice(behind);
        rest
    }
}

/// The UDP source port for a frame: the same for all of a flow, so that they take the same way.
#[inline(always)]
fn source_port(frame: &[u8]) -> u16 {
    let hash = frame_payload(frame, 1).map_or(0, |(kind, at)| flow_hash(kind, &frame[at..]));
    FIRST_PORT + (hash >> (u32::BITS - PORT_BITS)) as u16
}

#[cfg(test)]
mod tests;
