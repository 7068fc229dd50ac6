//! `ToDump`: writes packets to a capture file.

use super::encap::Encap;
use crate::pcap::{self, DumpWriter};
use castanet_element::args::io_error_text;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_packet::anno;
use castanet_wire::Timestamp;
use castanet_wire::pcap::{Precision, Writer};

/// Writes packets to the pcap file FILENAME, `-` for standard output.
///
/// The element emits the packets again if its output is connected. The record of a
/// packet without a timestamp has the present time. A packet is in the file at most
/// a second after the element has written it.
///
/// ```text
/// FromDevice(eth0) -> ToDump(eth0.pcap);
/// ```
#[derive(Element)]
#[element(args = ToDumpArgs, ports = "1/0-1", processing = "a/a", methods)]
pub struct ToDump {
    settings: ToDumpArgs,
    /// The elements that USE_ENCAP_FROM names, each with its file.
    encap_files: Vec<(String, String)>,
    /// Whether the output is connected.
    has_output: bool,
}

/// The arguments of `ToDump`.
#[derive(Args)]
pub struct ToDumpArgs {
    /// The file.
    #[arg]
    filename: String,
    /// Number of bytes to keep of each packet; 0 for all.
    #[arg(default = 2000)]
    snaplen: u32,
    /// The header that packets begin with.
    #[arg(default = Encap::ETHER)]
    encap: Encap,
    /// Names of `FromDump` elements, whose files say with which header packets begin.
    #[arg(keyword)]
    use_encap_from: Option<Words>,
    /// Whether the extra length annotation counts in the length of a packet.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether to write each burst to the file at once.
    #[arg(keyword, default = false)]
    unbuffered: bool,
    /// Whether times are in nanoseconds instead of microseconds.
    #[arg(keyword, default = true)]
    nano: bool,
    /// Whether to write the time of the write, also for packets with a timestamp.
    #[arg(keyword, default = false)]
    force_ts: bool,
}

/// The exit of packets that were written, and the reason to drop packets.
#[derive(Fate)]
pub enum ToDumpExit {
    /// Packets that were written.
    #[optional]
    Written,
    /// Packets that the element could not write. Look for room in the file system.
    #[drop]
    Unwritten,
}

/// The open file.
#[derive(Default, Local)]
#[local(methods)]
pub struct ToDumpState {
    /// A file that was opened, before the element has started to write.
    opened: Option<Output>,
    file: Option<DumpWriter>,
    /// Packets written since the last reset.
    #[read]
    count: u64,
    /// Whether the buffer has unwritten bytes.
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
    /// Resets `count` to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.count = 0;
        Ok(())
    }

    /// Writes the buffer to the file.
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

/// The resources that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ToDumpArgs| {
        Resource::output(Some(&it.filename), "writes packets to it")
    })
}

impl Build for ToDump {
    type Args = ToDumpArgs;

    fn build(settings: ToDumpArgs, setup: &Setup) -> Result<Self, ArgError> {
        let named = settings.use_encap_from.iter().flat_map(|it| &it.words);
        let encap_files = named.map(|name| dump_file(name, setup)).collect::<Result<_, _>>()?;
        Ok(ToDump { settings, encap_files, has_output: setup.outputs > 0 })
    }
}

/// An element that USE_ENCAP_FROM names, and the file that it reads.
fn dump_file(name: &str, setup: &Setup) -> Result<(String, String), ArgError> {
    let file = match setup.element(name, None) {
        Some(it) if it.class == "FromDump" => setup.file_of(name),
        Some(it) => Err(ArgError::new(format!("`{name}` is a {} and reads no dump", it.class))),
        None => Err(ArgError::new(format!("there is no element `{name}`"))
            .click(format!("no element named '{name}'"))),
    };
    let file = file.map_err(|e| e.at("USE_ENCAP_FROM"))?;
    Ok((name.to_owned(), file.unwrap_or_default()))
}

impl ToDump {
    /// The header that packets begin with: that of the files of USE_ENCAP_FROM, or ENCAP.
    fn link_type(&self) -> Result<u32, ArgError> {
        let mut found: Option<(&str, u32)> = None;
        for (name, file) in &self.encap_files {
            let opened = pcap::open(file).map_err(|error| ArgError::new(error.to_string()));
            let opened = opened.map_err(|e| e.at("USE_ENCAP_FROM"))?;
            let Some(link) = opened.link_type() else { continue };
            if let Some((first, _)) = found.filter(|(_, first)| *first != link) {
                let message = format!("'{first}' and '{name}' have different encapsulations");
                return Err(ArgError::new(message).at("USE_ENCAP_FROM"));
            }
            found = Some((name, link));
        }
        Ok(found.map_or(self.settings.encap.0, |(_, link)| link))
    }
}

/// The longest time that a packet stays in the buffer.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

impl PerBatch for ToDump {
    type On = on::Any;
    type Local = ToDumpState;
    type Fate = ToDumpExit;
    // All workers write to one file, in one order.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ToDump) -> bool {
        let (now, then) = (&self.settings, &before.settings);
        (&now.filename, now.encap, now.nano) == (&then.filename, then.encap, then.nano)
            && self.encap_files == before.encap_files
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
        let keep = if it.snaplen == 0 { MAX_SNAPLEN } else { it.snaplen };
        let link = self.link_type()?;
        let writer = local
            .opened
            .take()
            .map(|opened| opened.begin().and_then(|file| Writer::new(file, link, precision, keep)));
        let writer = writer.transpose();
        local.file = writer.map_err(|error| ArgError::of_file(&it.filename, &error))?;
        Ok(())
    }

    fn batch(&self, local: &mut ToDumpState, _: usize, batch: Batch, cx: &mut Cx) {
        let now = cx.now();
        let written = batch.iter().try_for_each(|packet| self.write(local, packet, now));
        if let Err(error) = written {
            cx.chatter(&self.error_text(&error));
            local.file = None;
        }
        if local.file.is_none() {
            cx.emit_batch(ToDumpExit::Unwritten, batch);
            return;
        }
        if self.settings.unbuffered {
            self.flush(local, cx);
        } else if !std::mem::replace(&mut local.dirty, true) {
            cx.set_timer(now + FLUSH_INTERVAL);
        }
        match self.has_output {
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

/// The longest packet, in bytes: libpcap's limit.
const MAX_SNAPLEN: u32 = 262_144;

impl ToDump {
    fn write(&self, local: &mut ToDumpState, packet: &Packet, now: Time) -> std::io::Result<()> {
        let Some(file) = &mut local.file else { return Ok(()) };
        let time = match packet.timestamp() {
            timestamp if timestamp != 0 && !self.settings.force_ts => timestamp,
            _ => now.0,
        };
        let extra =
            if self.settings.extra_length { packet.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
        let len = u32::try_from(packet.len()).unwrap_or(u32::MAX).saturating_add(extra);
        file.write(Timestamp(time), len, packet.bytes())?;
        local.count += 1;
        Ok(())
    }

    /// Writes the buffer to the file; closes the file after an error.
    fn flush(&self, local: &mut ToDumpState, cx: &mut Cx) {
        if let Err(error) = local.write_out() {
            cx.chatter(&self.error_text(&error));
            local.file = None;
        }
    }

    fn error_text(&self, error: &std::io::Error) -> String {
        format!("ToDump({}): {}", self.settings.filename, io_error_text(error))
    }
}
