//! Capture files that clients write: pcapng, with an interface for each place in the graph.

use crate::observe::packet::{FirstHeader, PacketRecord};
use castanet_wire::Timestamp;
use castanet_wire::pcap::{NgPacket, NgWriter, link_type};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// A file that ends with a whole block, also when the disk is full.
pub(super) struct BlockFile {
    file: File,
    /// Bytes that were flushed: they are whole blocks.
    whole: u64,
    /// Bytes that were written.
    written: u64,
    /// Whether it was cut: then nothing is written any more.
    is_cut: bool,
}

impl BlockFile {
    /// Creates a file, or empties one.
    pub(super) fn create(path: &Path) -> Result<BufWriter<BlockFile>> {
        let file = BlockFile { file: File::create(path)?, whole: 0, written: 0, is_cut: false };
        Ok(BufWriter::with_capacity(1 << 16, file))
    }
}

impl Write for BlockFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // A buffer writes what it still has when it is dropped.
        if self.is_cut {
            return Ok(bytes.len());
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.whole = self.written;
        self.file.flush()
    }
}

impl PacketFile<BufWriter<BlockFile>> {
    /// Bytes written so far.
    pub(super) fn position(&self) -> u64 {
        let buffer = self.writer.sink();
        buffer.get_ref().written + buffer.buffer().len() as u64
    }

    /// After an error, cuts a block off that could not be written to its end; no more is written.
    pub(super) fn cut(&mut self) {
        let it = self.writer.sink_mut().get_mut();
        // There is nothing to be done about an error beside the one that has led here.
        _ = it.file.set_len(it.whole);
        it.is_cut = true;
    }
}

/// A pcapng file whose interfaces are places in the graph.
pub(super) struct PacketFile<W> {
    writer: NgWriter<W>,
    interfaces: HashMap<(String, FirstHeader), u32>,
    snap_len: u32,
}

impl<W: Write> PacketFile<W> {
    /// Begins a file.
    pub(super) fn new(sink: W, snap_len: usize) -> Result<PacketFile<W>> {
        let application = format!("castanet {}", crate::program::version());
        Ok(PacketFile {
            writer: NgWriter::new(sink, &application)?,
            interfaces: HashMap::new(),
            snap_len: u32::try_from(snap_len).unwrap_or(0),
        })
    }

    /// Writes a packet of a place, and describes the place before its first one.
    pub(super) fn write(
        &mut self,
        place: &str,
        description: &str,
        time: i64,
        packet: &PacketRecord,
        comment: &str,
    ) -> Result<()> {
        let key = (place.to_owned(), packet.layer);
        let interface = match self.interfaces.get(&key) {
            Some(&interface) => interface,
            None => {
                let link = match packet.layer {
                    FirstHeader::Ethernet => link_type::ETHERNET,
                    FirstHeader::Ip => link_type::RAW,
                };
                let interface =
                    self.writer.add_interface(link as u16, self.snap_len, place, description)?;
                self.interfaces.insert(key, interface);
                interface
            }
        };
        self.writer.write(&NgPacket {
            interface,
            timestamp: Timestamp(time),
            length: packet.length,
            bytes: &packet.bytes(),
            comment,
        })
    }

    /// Writes what is in buffers.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.writer.flush()
    }
}
