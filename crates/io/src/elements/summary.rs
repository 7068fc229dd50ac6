//! What summary dumps say of packets beside their bytes.

use castanet_element::prelude::*;
use castanet_packet::anno;
use castanet_wire::Timestamp;
use castanet_wire::summary::{self, Field, Meta};

/// The fields of a dump, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Fields(pub(crate) Vec<Field>);

impl Fields {
    /// The fields that these words name; none if one is unknown.
    pub(crate) fn of(text: &str) -> Fields {
        Fields(summary::fields(text).unwrap_or_default())
    }
}

impl FromArg for Fields {
    const SYNTAX: &'static str = "names of fields";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let fields = summary::fields(text).map_err(|error| ArgError::new(error.to_string()))?;
        match fields.is_empty() {
            true => Err(ArgError::new("no contents specified")),
            false => Ok(Fields(fields)),
        }
    }
}

/// What a packet's annotations say.
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

/// Sets the annotations that say it; those that are zero in a new packet stay untouched.
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

/// A packet that stands for several, taken apart: what is known of each, in order.
///
/// Lengths are shared out evenly, no packet being shorter than the bytes there are; times run
/// from the first to the last.
#[derive(Default)]
pub(super) struct Each {
    meta: Meta,
    /// How many there are, and how many are still to come.
    count: u64,
    left: u64,
    /// The bytes there are, and those of all packets together.
    len: u64,
    total: u64,
    /// The first time, and how far one is from the next.
    from: i64,
    step: i64,
}

impl Each {
    /// Takes a packet of `len` bytes apart.
    pub(super) fn of(meta: &Meta, len: usize) -> Each {
        let (count, len) = (u64::from(meta.extra_packets) + 1, len as u64);
        let from = match meta.first_timestamp.0 {
            0 => meta.timestamp.0,
            first => first.min(meta.timestamp.0),
        };
        Each {
            meta: *meta,
            count,
            left: count,
            len,
            total: (len + u64::from(meta.extra_length)).max(count * len),
            from,
            step: meta.timestamp.0.saturating_sub(from).checked_div(count as i64 - 1).unwrap_or(0),
        }
    }

    /// Leaves a packet whole.
    pub(super) fn whole(meta: &Meta) -> Each {
        Each { meta: *meta, left: 1, ..Each::default() }
    }

    /// What is known of the next packet.
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

impl Iterator for Each {
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
        let each: Vec<_> = Each::of(&meta, 20).map(|m| (m.timestamp.0, m.extra_length)).collect();
        assert_eq!(each, [(100, 0), (200, 0), (300, 0), (400, 3)]);
        let mut packet = Packet::from_bytes(&[0; 20]);
        annotate(&mut packet, &meta);
        assert_eq!(meta_of(&packet), meta);
    }

    #[test]
    fn one_packet_stays_as_it_is() {
        let meta = Meta { timestamp: Timestamp(7), extra_length: 5, ..Meta::default() };
        assert_eq!(Each::of(&meta, 20).collect::<Vec<_>>(), [meta]);
        let many = Meta { extra_packets: u32::MAX, ..meta };
        assert_eq!(Each::whole(&many).collect::<Vec<_>>(), [many]);
        assert_eq!(Each::of(&many, 20).take(2).count(), 2);
    }
}
