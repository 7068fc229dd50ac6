//! The properties of packets in summary dumps: annotations, and packets that stand for several.

use castanet_element::prelude::*;
use castanet_packet::anno;
use castanet_wire::Timestamp;
use castanet_wire::summary::{self, Field, Meta};

/// The fields of a dump, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Fields(pub(crate) Vec<Field>);

impl Fields {
    /// The fields that the words of a text name; none if one word is unknown.
    pub(crate) fn of(text: &str) -> Fields {
        Fields(summary::fields(text).unwrap_or_default())
    }
}

impl FromArg for Fields {
    const SYNTAX: &'static str = "names of fields";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let words = Words::from_arg(text, names)?.words;
        let field = |word: &String| {
            word.parse::<Field>().map_err(|error| ArgError::new(error.to_string()).unplaced())
        };
        let fields = ArgError::all(words.iter().map(field))?;
        match fields.is_empty() {
            true => Err(ArgError::new("no contents specified").unplaced()),
            false => Ok(Fields(fields)),
        }
    }
}

/// The properties that a packet's annotations give.
pub(super) fn meta_of(packet: &Packet) -> Meta {
    Meta {
        timestamp: Timestamp(packet.timestamp()),
        first_timestamp: Timestamp(packet.anno_u64(anno::FIRST_TIMESTAMP) as i64),
        extra_packets: packet.anno_u16(anno::EXTRA_PACKETS).into(),
        extra_length: packet.anno_u32(anno::EXTRA_LENGTH),
        paint: packet.paint(),
        aggregate: packet.anno_u32(anno::AGGREGATE),
        thread: 0,
    }
}

/// Sets a new packet's annotations from its properties; zeros are not written.
pub(super) fn annotate(packet: &mut Packet, meta: &Meta) {
    if meta.timestamp != Timestamp::default() {
        packet.set_timestamp(meta.timestamp.0);
    }
    if meta.first_timestamp != Timestamp::default() {
        packet.set_anno_u64(anno::FIRST_TIMESTAMP, meta.first_timestamp.0 as u64);
    }
    if meta.extra_packets != 0 {
        let more = u16::try_from(meta.extra_packets).unwrap_or(u16::MAX);
        packet.set_anno_u16(anno::EXTRA_PACKETS, more);
    }
    if meta.extra_length != 0 {
        packet.set_anno_u32(anno::EXTRA_LENGTH, meta.extra_length);
    }
    if meta.aggregate != 0 {
        packet.set_anno_u32(anno::AGGREGATE, meta.aggregate);
    }
    packet.set_paint(meta.paint);
}

/// The properties of each packet that a packet stands for, in order.
///
/// The extra length is divided evenly, but no packet is shorter than the bytes of the packet;
/// times increase evenly from the first timestamp to the last.
#[derive(Default)]
pub(super) struct MetaIter {
    meta: Meta,
    /// Number of packets.
    count: u64,
    /// Number of packets not emitted yet.
    left: u64,
    /// Length of the packet in bytes.
    len: u64,
    /// Length of all packets together in bytes.
    total: u64,
    /// The first time, in nanoseconds.
    from: i64,
    /// Nanoseconds from one packet to the next.
    step: i64,
}

impl MetaIter {
    /// The packets that a packet of `len` bytes stands for.
    pub(super) fn split(meta: &Meta, len: usize) -> MetaIter {
        let (count, len) = (u64::from(meta.extra_packets) + 1, len as u64);
        let from = match meta.first_timestamp.0 {
            0 => meta.timestamp.0,
            first => first.min(meta.timestamp.0),
        };
        MetaIter {
            meta: *meta,
            count,
            left: count,
            len,
            total: (len + u64::from(meta.extra_length)).max(count * len),
            from,
            step: meta.timestamp.0.saturating_sub(from).checked_div(count as i64 - 1).unwrap_or(0),
        }
    }

    /// A packet alone, even if it stands for several.
    pub(super) fn whole(meta: &Meta) -> MetaIter {
        MetaIter { meta: *meta, left: 1, ..MetaIter::default() }
    }

    /// The properties of the next packet.
    pub(super) fn peek(&self) -> Option<Meta> {
        if self.left == 0 || self.count <= 1 {
            return (self.left > 0).then_some(self.meta);
        }
        let before = self.count - self.left;
        let (share, time) = match self.left {
            1 => (self.total - self.total / self.count * before, self.meta.timestamp.0),
            _ => (self.total / self.count, self.from + self.step * before as i64),
        };
        Some(Meta {
            timestamp: Timestamp(time),
            extra_packets: 0,
            extra_length: u32::try_from(share - self.len).unwrap_or(u32::MAX),
            ..self.meta
        })
    }
}

impl Iterator for MetaIter {
    type Item = Meta;
    fn next(&mut self) -> Option<Meta> {
        let meta = self.peek()?;
        self.left -= 1;
        Some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_packets_share_length_and_time() {
        let meta = Meta {
            timestamp: Timestamp(400),
            first_timestamp: Timestamp(100),
            extra_packets: 3,
            extra_length: 63,
            ..Meta::default()
        };
        let each: Vec<_> =
            MetaIter::split(&meta, 20).map(|m| (m.timestamp.0, m.extra_length)).collect();
        assert_eq!(each, [(100, 0), (200, 0), (300, 0), (400, 3)]);
        let mut packet = Packet::from_bytes(&[0; 20]);
        annotate(&mut packet, &meta);
        assert_eq!(meta_of(&packet), meta);
    }

    #[test]
    fn one_packet_stays_as_it_is() {
        let meta = Meta { timestamp: Timestamp(7), extra_length: 5, ..Meta::default() };
        assert_eq!(MetaIter::split(&meta, 20).collect::<Vec<_>>(), [meta]);
        let many = Meta { extra_packets: u32::MAX, ..meta };
        assert_eq!(MetaIter::whole(&many).collect::<Vec<_>>(), [many]);
        assert_eq!(MetaIter::split(&many, 20).take(2).count(), 2);
    }
}
