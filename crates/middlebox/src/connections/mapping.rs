//! Rewrites packets by the mapping of their connection, in both directions.

use crate::field::Layer;
use crate::headers::Headers;
use crate::rewrite::{FieldBits, PacketRewriter, put};
use castanet_kit::conntrack::{
    Address, HeaderOffsets, Tuple, Tuple4, TupleKey, replace_tuple, rewrite_error, rewrite_tuple,
};
use castanet_wire::tcp::flag;
use castanet_wire::{Ipv4Header, Tcp};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Direction of a packet in its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// The direction of the packet that created the connection.
    Original,
    /// The opposite direction.
    Reply,
}

impl Direction {
    /// The other way.
    pub(super) fn opposite(self) -> Direction {
        match self {
            Direction::Original => Direction::Reply,
            Direction::Reply => Direction::Original,
        }
    }
}

/// Offsets that are added to fields of packets, modulo their size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Offsets {
    /// Offset of sequence numbers in the original direction.
    pub(super) seq: u32,
    /// Offset of sequence numbers in the reply direction, which the original direction
    /// acknowledges.
    pub(super) ack: u32,
    /// Offset of IPv4 identifications in the original direction.
    pub(super) id: u16,
    /// Fixed IPv4 identification in the original direction.
    pub(super) fixed_id: Option<u16>,
    /// IPv6 flow label in the original direction.
    pub(super) label: Option<u32>,
}

/// Rewrite of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    pub(super) direction: Direction,
    /// The tuple of the packet, and the one that it gets.
    pub(super) tuples: (Tuple, Tuple),
    pub(super) offsets: Offsets,
    /// Offset of the packet with these tuples, if an ICMP error quotes it.
    pub(super) quoted: Option<usize>,
}

const ID4: FieldBits = FieldBits::new(Layer::Ip4, Ipv4Header::ID, 16);
const LABEL: FieldBits = FieldBits::new(Layer::Ip6, 0, 20).later(12);
const SEQ: FieldBits = FieldBits::new(Layer::Tcp, Tcp::SEQ, 32);
const ACK: FieldBits = FieldBits::new(Layer::Tcp, Tcp::ACK, 32);

/// Returns the offsets of a packet's headers.
#[inline]
pub(crate) fn offsets(headers: &Headers) -> HeaderOffsets {
    let &Headers { network, end, protocol, is_later_fragment, .. } = headers;
    let transport = if is_later_fragment { end } else { headers.transport };
    HeaderOffsets { network, transport, end, protocol }
}

/// Rewrites a packet of a connection that has the tuple `from`.
#[inline]
pub(crate) fn rewrite_packet4(bytes: &mut [u8], headers: &Headers, from: &Tuple4, to: &Tuple4) {
    match headers.upper {
        // Their keys have the packet's own addresses and ports.
        Layer::Tcp | Layer::Udp => replace_tuple(bytes, offsets(headers), from, to),
        _ => rewrite_tuple(bytes, offsets(headers), from, to),
    };
}

impl Mapping {
    /// Rewrites the packet.
    pub(crate) fn apply(&self, rewriter: &mut PacketRewriter) {
        let (bytes, headers) = (rewriter.packet.bytes_mut(), rewriter.headers);
        if self.tuples.0 != self.tuples.1 {
            match headers.is_ip6 {
                false => self.rewrite_tuple::<Ipv4Addr>(bytes, &headers),
                true => self.rewrite_tuple::<Ipv6Addr>(bytes, &headers),
            };
        }
        if self.quoted.is_none() {
            self.add_offsets(rewriter);
        }
    }

    /// Rewrites the tuple of the packet, or of the packet that it quotes.
    fn rewrite_tuple<A: Address>(&self, bytes: &mut [u8], headers: &Headers) -> Option<()> {
        let from = TupleKey::<A>::of_tuple(&self.tuples.0);
        let to = TupleKey::of_tuple(&self.tuples.1);
        let Some(at) = self.quoted else {
            return rewrite_tuple(bytes, offsets(headers), &from, &to);
        };
        let quoted = offsets(&Headers::quoted(&bytes[..headers.end], at)?);
        rewrite_error(bytes, offsets(headers), quoted, (&from, &to), |_| {})
    }

    /// Adds the offsets of the connection to sequence numbers and other fields.
    fn add_offsets(&self, rewriter: &mut PacketRewriter) {
        if self.offsets == Offsets::default() {
            return;
        }
        let Offsets { seq, ack, id, fixed_id, label } = self.offsets;
        let forward = self.direction == Direction::Original;
        let (bytes, headers) = (rewriter.packet.bytes_mut(), rewriter.headers);
        if forward {
            let id = |old: u128| fixed_id.map_or(old + u128::from(id), u128::from);
            put(bytes, &headers, ID4, id);
            put(bytes, &headers, LABEL, |old| label.map_or(old, u128::from));
        }
        let (sent, seen) = if forward { (seq, ack) } else { (ack, seq) };
        put(bytes, &headers, SEQ, |old| old + u128::from(sent));
        if seen != 0 && headers.tcp_flags(bytes) & flag::ACK != 0 {
            let back = seen.wrapping_neg();
            put(bytes, &headers, ACK, |old| old + u128::from(back));
            rewriter.shift_sack(back);
        }
    }
}
