//! `ToDump`: a capture file of what passes.

use super::encap::Encap;
use crate::pcap::DumpWriter;
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_packet::anno;
use castanet_wire::Timestamp;
use castanet_wire::pcap::{Precision, Writer};

/// Writes packets to the pcap file FILENAME, `-` for standard output.
///
/// If its output is connected, packets go on there. A packet without a
/// timestamp gets the present time. What is written is in the file within a
/// second.
///
/// ```text
/// FromDevice(eth0) -> ToDump(eth0.pcap);
/// ```
#[derive(Element)]
#[element(args = ToDumpArgs, ports = "1/0-1", processing = "a/a", methods)]
pub struct ToDump {
    settings: ToDumpArgs,
    /// Whether packets go on.
    passes: bool,
}

/// What can be set.
#[derive(Args)]
pub struct ToDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// How many bytes of each packet to keep; 0 for all.
    #[arg(default = 2000)]
    snaplen: u32,
    /// What packets begin with.
    #[arg(default = Encap::ETHER)]
    encap: Encap,
    /// Whether the length that packets say they had beyond their bytes counts.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether to write each burst at once.
    #[arg(keyword, default = false)]
    unbuffered: bool,
    /// Whether times are in nanoseconds rather than microseconds.
    #[arg(keyword, default = false)]
    nano: bool,
}

/// Where packets go after they were written.
#[derive(Fate)]
pub enum ToDumpExit {
    /// Packets that were written.
    #[optional]
    Written,
    /// Packets that the file did not take.
    #[drop]
    Unwritten,
}

/// The open file.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDumpState {
    /// What was opened and not begun to be written.
    opened: Option<Output>,
    file: Option<DumpWriter>,
    /// Packets written since the last reset.
    #[read]
    count: u64,
    /// Whether there is something in the buffer.
    dirty: bool,
}

#[handlers]
impl ToDump {
    /// The file's name.
    #[read]
    fn filename(&self) -> String {
        self.settings.filename.clone()
    }
}

#[handlers]
impl ToDumpState {
    /// Starts `count` again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.count = 0;
        Ok(())
    }

    /// Writes out what is still in the buffer.
    #[write]
    fn flush(&mut self, _: &str) -> Result<(), ArgError> {
        self.write_out().map_err(|error| ArgError::new(io_error_text(&error)))
    }
}

impl ToDumpState {
    fn write_out(&mut self) -> std::io::Result<()> {
        self.dirty = false;
        self.file.as_mut().map_or(Ok(()), DumpWriter::flush)
    }
}

impl Build for ToDump {
    type Args = ToDumpArgs;

    fn build(settings: ToDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ToDump { settings, passes: setup.outputs > 0 })
    }
}

/// The longest that a packet stays in the buffer.
const FLUSH: Duration = Duration::from_secs(1);

impl PerBatch for ToDump {
    type On = on::Any;
    type Local = ToDumpState;
    type Fate = ToDumpExit;
    // One file, in one order.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ToDump) -> bool {
        let (now, then) = (&self.settings, &before.settings);
        (&now.filename, now.encap, now.nano) == (&then.filename, then.encap, then.nano)
    }

    fn init(&self, local: &mut ToDumpState, _: &mut Cx) -> Result<(), ArgError> {
        let name = &self.settings.filename;
        let opened = Output::open(name).map_err(|error| ArgError::of_file(name, &error))?;
        local.opened = Some(opened);
        Ok(())
    }

    fn start(&self, local: &mut ToDumpState, _: &mut Cx) -> Result<(), ArgError> {
        let it = &self.settings;
        let precision = if it.nano { Precision::Nanos } else { Precision::Micros };
        let keep = if it.snaplen == 0 { MOST } else { it.snaplen };
        let begun = local.opened.take().map(|opened| {
            opened.begin().and_then(|file| Writer::new(file, it.encap.0, precision, keep))
        });
        let begun = begun.transpose();
        local.file = begun.map_err(|error| ArgError::of_file(&it.filename, &error))?;
        Ok(())
    }

    fn batch(&self, local: &mut ToDumpState, _: usize, batch: Batch, cx: &mut Cx) {
        let now = cx.now();
        let written = batch.iter().try_for_each(|packet| self.write(local, packet, now));
        if let Err(error) = written {
            cx.chatter(&self.words(&error));
            local.file = None;
        }
        if local.file.is_none() {
            cx.emit_batch(ToDumpExit::Unwritten, batch);
            return;
        }
        if self.settings.unbuffered {
            self.flush(local, cx);
        } else if !std::mem::replace(&mut local.dirty, true) {
            cx.set_timer(now + FLUSH);
        }
        match self.passes {
            true => cx.emit_batch(ToDumpExit::Written, batch),
            false => cx.consume(batch),
        }
    }

    fn run_timer(&self, local: &mut ToDumpState, cx: &mut Cx) {
        self.flush(local, cx);
    }

    fn cleanup(&self, local: &mut ToDumpState, cx: &mut Cx) {
        self.flush(local, cx);
        local.file = None;
    }
}

/// Bytes that no packet exceeds: libpcap's own limit.
const MOST: u32 = 262_144;

impl ToDump {
    fn write(&self, local: &mut ToDumpState, packet: &Packet, now: Time) -> std::io::Result<()> {
        let Some(file) = &mut local.file else { return Ok(()) };
        let time = if packet.timestamp() == 0 { now.0 } else { packet.timestamp() };
        let extra =
            if self.settings.extra_length { packet.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
        let len = u32::try_from(packet.len()).unwrap_or(u32::MAX).saturating_add(extra);
        file.write(Timestamp(time), len, packet.bytes())?;
        local.count += 1;
        Ok(())
    }

    /// Writes out what is buffered; after a failure the file is given up.
    fn flush(&self, local: &mut ToDumpState, cx: &mut Cx) {
        if let Err(error) = local.write_out() {
            cx.chatter(&self.words(&error));
            local.file = None;
        }
    }

    fn words(&self, error: &std::io::Error) -> String {
        format!("ToDump({}): {}", self.settings.filename, io_error_text(error))
    }
}
