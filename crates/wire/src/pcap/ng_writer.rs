//! Writes pcapng files (draft-ietf-opsawg-pcapng), in host byte order.

use super::ng::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, IF_TSRESOL, INTERFACE, SECTION_HEADER};
use crate::timestamp::Timestamp;
use std::io::{self, Write};

/// Option of any block: a comment.
const COMMENT: u16 = 1;
/// Section option: the program that writes the file.
const USER_APPLICATION: u16 = 4;
/// Interface option: its name.
const IF_NAME: u16 = 2;
/// Interface option: a description.
const IF_DESCRIPTION: u16 = 3;
/// The longest option.
const MAX_OPTION: usize = u16::MAX as usize;
/// Resolution of timestamps: nanoseconds, as a power of ten.
const NANOSECONDS: u8 = 9;

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct NgPacket<'p> {
    /// Number of the interface, as [`NgWriter::add_interface`] has returned it.
    pub interface: u32,
    /// Its time.
    pub timestamp: Timestamp,
    /// Its length on the wire.
    pub length: usize,
    /// Its bytes, as many as were captured.
    pub bytes: &'p [u8],
    /// A comment; none if empty.
    pub comment: &'p str,
}

/// A writer of a pcapng file, which writes each block at once.
#[derive(Debug)]
pub struct NgWriter<W> {
    sink: W,
    interfaces: u32,
}

impl<W: Write> NgWriter<W> {
    /// Writes the header of a section, with the name of the program that writes it.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn new(sink: W, application: &str) -> io::Result<NgWriter<W>> {
        let mut body = BYTE_ORDER_MAGIC.to_ne_bytes().to_vec();
        body.extend(1u16.to_ne_bytes());
        body.extend(0u16.to_ne_bytes());
        // The length of the section is not known.
        body.extend(u64::MAX.to_ne_bytes());
        add_option(&mut body, USER_APPLICATION, application.as_bytes());
        end_options(&mut body);
        let mut writer = NgWriter { sink, interfaces: 0 };
        writer.write_block(SECTION_HEADER, &body)?;
        Ok(writer)
    }

    /// Describes another interface; returns its number. At most `snap_len` bytes of its packets are
    /// captured; 0 means all.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn add_interface(
        &mut self,
        link_type: u16,
        snap_len: u32,
        name: &str,
        description: &str,
    ) -> io::Result<u32> {
        let mut body = link_type.to_ne_bytes().to_vec();
        body.extend(0u16.to_ne_bytes());
        body.extend(snap_len.to_ne_bytes());
        add_option(&mut body, IF_NAME, name.as_bytes());
        add_option(&mut body, IF_DESCRIPTION, description.as_bytes());
        add_option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
        end_options(&mut body);
        self.write_block(INTERFACE, &body)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn write(&mut self, packet: &NgPacket<'_>) -> io::Result<()> {
        debug_assert!(packet.interface < self.interfaces, "no such interface");
        let NgPacket { timestamp, length, bytes, comment, .. } = *packet;
        // Times in the file are unsigned: earlier times become the epoch.
        let nanoseconds = u64::try_from(timestamp.0).unwrap_or(0);
        let captured = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let length = u32::try_from(length).unwrap_or(u32::MAX).max(captured);
        let mut body = packet.interface.to_ne_bytes().to_vec();
        body.extend(((nanoseconds >> 32) as u32).to_ne_bytes());
        body.extend((nanoseconds as u32).to_ne_bytes());
        body.extend(captured.to_ne_bytes());
        body.extend(length.to_ne_bytes());
        body.extend(bytes);
        pad(&mut body);
        if !comment.is_empty() {
            add_option(&mut body, COMMENT, comment.as_bytes());
            end_options(&mut body);
        }
        self.write_block(ENHANCED_PACKET, &body)
    }

    fn write_block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 12).map_err(io::Error::other)?;
        let mut block = kind.to_ne_bytes().to_vec();
        block.extend(length.to_ne_bytes());
        block.extend(body);
        block.extend(length.to_ne_bytes());
        self.sink.write_all(&block)
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The underlying writer.
    pub fn sink(&self) -> &W {
        &self.sink
    }

    /// The underlying writer, to change.
    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.sink
    }
}

/// Adds an option; one that is too long is cut at the end of a character.
fn add_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    let is_inside = |&byte: &u8| byte & 0xc0 == 0x80;
    let mut end = value.len().min(MAX_OPTION);
    while end < value.len() && end > 0 && is_inside(&value[end]) {
        end -= 1;
    }
    body.extend(code.to_ne_bytes());
    body.extend((end as u16).to_ne_bytes());
    body.extend(&value[..end]);
    pad(body);
}

fn end_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Fills up to a multiple of four bytes.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::{Reader, link_type};
    use proptest::prelude::*;

    type WrittenPacket = (u8, i64, usize, Vec<u8>, String);

    fn packets() -> impl Strategy<Value = Vec<WrittenPacket>> {
        let bytes = prop::collection::vec(any::<u8>(), 0..70);
        let one = (0..2u8, 0..i64::MAX, 0..2000usize, bytes, ".{0,20}");
        prop::collection::vec(one, 0..10)
    }

    proptest! {
        #[test]
        fn a_reader_reads_all_that_was_written(packets in packets()) {
            let mut writer = NgWriter::new(Vec::new(), "a program").expect("is memory");
            let types = [link_type::ETHERNET, link_type::RAW];
            for (number, link_type) in types.iter().enumerate() {
                let interface = writer.add_interface(*link_type as u16, 0, "q[0]", "Queue");
                prop_assert_eq!(interface.expect("is memory"), number as u32);
            }
            for (interface, time, more, bytes, comment) in &packets {
                writer.write(&NgPacket {
                    interface: (*interface).into(),
                    timestamp: Timestamp(*time),
                    length: bytes.len() + more,
                    bytes,
                    comment,
                }).expect("is memory");
            }
            let file = writer.into_inner();
            let mut reader = Reader::new(&file[..]).expect("is a file");
            for (interface, time, more, bytes, _) in &packets {
                let packet = reader.next_packet().expect("is whole").expect("is there");
                prop_assert_eq!(packet.link_type, types[usize::from(*interface)]);
                prop_assert_eq!(packet.timestamp, Timestamp(*time));
                prop_assert_eq!(packet.wire_len as usize, bytes.len() + more);
                prop_assert_eq!(packet.data, &bytes[..]);
            }
            prop_assert!(reader.next_packet().expect("is whole").is_none());
        }
    }

    #[test]
    fn long_comments_are_cut_between_characters() {
        let mut body = Vec::new();
        let long = "\u{e9}".repeat(40_000);
        add_option(&mut body, COMMENT, format!("x{long}").as_bytes());
        let length = u16::from_ne_bytes([body[2], body[3]]);
        assert_eq!((length, body.len()), (65_535, 65_540));
        add_option(&mut body, COMMENT, long.as_bytes());
        let length = u16::from_ne_bytes([body[65_542], body[65_543]]);
        assert_eq!(length, 65_534);
        assert!(std::str::from_utf8(&body[65_544..65_544 + 65_534]).is_ok());
    }
}
