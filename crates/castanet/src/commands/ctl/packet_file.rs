//! Capture files that clients write: pcapng, with an interface for each place in the graph.

use crate::observe::packet::{FirstHeader, PacketRecord};
use castanet_wire::Timestamp;
use castanet_wire::pcap::{NgPacket, NgWriter, link_type};
use std::collections::HashMap;
use std::io::{Result, Write};

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

    /// The sink.
    pub(super) fn sink(&self) -> &W {
        self.writer.sink()
    }

    /// The sink, to change.
    pub(super) fn sink_mut(&mut self) -> &mut W {
        self.writer.sink_mut()
    }
}
