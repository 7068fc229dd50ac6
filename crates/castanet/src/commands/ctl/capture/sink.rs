//! Where captured packets go: lines, JSON, or pcapng files.

use super::CaptureArguments;
use crate::commands::CommandError;
use crate::commands::ctl::format::printable;
use crate::commands::ctl::packet_file::{BlockFile, PacketFile};
use crate::commands::ctl::trace::file_error;
use crate::observe::capture::{CaptureRecord, PlaceRecord};
use crate::terminal::{bold, colours_on_stdout, say_on};
use castanet_element::streams::StandardOutput;
use castanet_wire::Timestamp;
use std::collections::VecDeque;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where captured packets go.
pub(super) struct CaptureSink {
    kind: SinkKind,
    packets: u64,
}

enum SinkKind {
    /// A line for each packet.
    Lines,
    /// A JSON object for each packet.
    Json,
    /// pcapng on standard output.
    Stream(PacketFile<StandardOutput>),
    /// pcapng files.
    Files(FileRing),
}

impl CaptureSink {
    /// Opens the first file, if there is one.
    pub(super) fn new(
        arguments: &CaptureArguments,
        json: bool,
    ) -> Result<CaptureSink, CommandError> {
        let is_stream = arguments.write.as_deref() == Some(Path::new("-"));
        if is_stream && arguments.is_ring() {
            let message = "files take turns; standard output is no file";
            return Err(CommandError::usage(message.into()));
        }
        let kind = match &arguments.write {
            Some(path) if !is_stream => SinkKind::Files(FileRing::new(path, arguments)?),
            None if json || arguments.json => SinkKind::Json,
            None if arguments.text || io::stdout().is_terminal() => SinkKind::Lines,
            _ => {
                let file = PacketFile::new(StandardOutput, arguments.snaplen);
                SinkKind::Stream(file.map_err(|error| stream_error(&error))?)
            }
        };
        Ok(CaptureSink { kind, packets: 0 })
    }

    /// Whether it shows packets as text.
    pub(super) fn has_text(&self) -> bool {
        matches!(self.kind, SinkKind::Lines | SinkKind::Json)
    }

    /// Whether packets go to a file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, SinkKind::Files(_))
    }

    /// Writes packets; `false` if the reader has gone.
    pub(super) fn take(&mut self, packets: &[CaptureRecord]) -> Result<bool, CommandError> {
        self.packets += packets.len() as u64;
        match &mut self.kind {
            SinkKind::Lines => {
                let colours = colours_on_stdout();
                let text: String = packets.iter().map(|packet| line(packet, colours)).collect();
                Ok(text.is_empty() || say_on(&text)?)
            }
            SinkKind::Json => {
                let json = |packet| serde_json::to_string(packet).unwrap_or_default() + "\n";
                let text: String = packets.iter().map(json).collect();
                Ok(text.is_empty() || say_on(&text)?)
            }
            SinkKind::Stream(file) => {
                let written = packets.iter().try_for_each(|packet| write(file, packet));
                match written.and_then(|()| file.flush()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
                    done => done.map(|()| true).map_err(|error| stream_error(&error)),
                }
            }
            SinkKind::Files(ring) => {
                packets.iter().try_for_each(|packet| ring.write(packet))?;
                ring.flush().map(|()| true)
            }
        }
    }

    /// Ends the output; returns the number of packets.
    pub(super) fn finish(&mut self) -> Result<u64, CommandError> {
        if let SinkKind::Files(ring) = &mut self.kind {
            ring.flush()?;
        }
        Ok(self.packets)
    }
}

fn stream_error(error: &io::Error) -> CommandError {
    file_error(Path::new("standard output"), error)
}

/// The place as it is written on the command line.
fn place(packet: &CaptureRecord) -> String {
    let element = &packet.element;
    match &packet.place {
        PlaceRecord::Input { port } => format!("[{port}]{element}"),
        PlaceRecord::Output { port } => format!("{element}[{port}]"),
        PlaceRecord::Dropped { .. } => element.clone(),
    }
}

fn line(packet: &CaptureRecord, colours: bool) -> String {
    let time = Timestamp(packet.time).rfc3339_micros();
    let place = bold(&printable(&place(packet)), colours);
    let dropped = match &packet.place {
        PlaceRecord::Dropped { reason, .. } => format!(" dropped: {}", printable(reason)),
        _ => String::new(),
    };
    let (text, length) = (printable(&packet.packet.text), packet.packet.length);
    format!("{time} {place}{dropped}  {text}   ({length} bytes)\n")
}

fn write<W: Write>(file: &mut PacketFile<W>, packet: &CaptureRecord) -> io::Result<()> {
    let place = place(packet);
    let comment = match &packet.place {
        PlaceRecord::Dropped { reason, meaning } => {
            format!("dropped by {} :: {}: {reason}. {meaning}", packet.element, packet.class)
        }
        _ => String::new(),
    };
    file.write(&place, &packet.class, packet.time, &packet.packet, &comment)
}

/// A capture file, or several of which the next one is begun after some time or size.
struct FileRing {
    base: PathBuf,
    snap_len: usize,
    /// Bytes after which the next file begins.
    size: Option<u64>,
    /// Time after which the next file begins.
    time: Option<Duration>,
    /// Files that are kept.
    most: Option<usize>,
    /// Files that are there, in order.
    names: VecDeque<PathBuf>,
    /// Number of the present file.
    number: u32,
    file: PacketFile<BufWriter<BlockFile>>,
    opened: Instant,
}

impl FileRing {
    fn new(path: &Path, arguments: &CaptureArguments) -> Result<FileRing, CommandError> {
        let is_ring = arguments.is_ring();
        if arguments.ring_files.is_some()
            && arguments.ring_size.is_none()
            && arguments.ring_time.is_none()
        {
            let message =
                "--ring-files needs --ring-size or --ring-time: when to begin another file";
            return Err(CommandError::usage(message.into()));
        }
        let name = if is_ring { numbered(path, 1) } else { path.to_owned() };
        Ok(FileRing {
            base: path.to_owned(),
            snap_len: arguments.snaplen,
            size: arguments.ring_size.map(|megabytes| megabytes.saturating_mul(1_000_000)),
            time: arguments.ring_time.map(Duration::from_secs),
            most: arguments.ring_files.and_then(|files| usize::try_from(files).ok()),
            file: open(&name, arguments.snaplen)?,
            names: [name].into(),
            number: 1,
            opened: Instant::now(),
        })
    }

    /// Writes a packet; begins the next file before it if it is time for that.
    fn write(&mut self, packet: &CaptureRecord) -> Result<(), CommandError> {
        let is_old = self.time.is_some_and(|time| self.opened.elapsed() >= time);
        let is_long = self.size.is_some_and(|size| self.file.position() >= size);
        if is_old || is_long {
            self.flush()?;
            self.number += 1;
            let name = numbered(&self.base, self.number);
            self.file = open(&name, self.snap_len)?;
            self.names.push_back(name);
            self.opened = Instant::now();
            while self.most.is_some_and(|most| self.names.len() > most) {
                if let Some(oldest) = self.names.pop_front() {
                    match std::fs::remove_file(&oldest) {
                        // Somebody has taken it away.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        done => done.map_err(|error| file_error(&oldest, &error))?,
                    }
                }
            }
        }
        let written = write(&mut self.file, packet);
        self.check(written)
    }

    fn flush(&mut self) -> Result<(), CommandError> {
        let flushed = self.file.flush();
        self.check(flushed)
    }

    /// After a failure, leaves the file with its whole blocks.
    fn check(&mut self, done: io::Result<()>) -> Result<(), CommandError> {
        done.map_err(|error| {
            self.file.cut();
            file_error(self.names.back().unwrap_or(&self.base), &error)
        })
    }
}

fn open(path: &Path, snap_len: usize) -> Result<PacketFile<BufWriter<BlockFile>>, CommandError> {
    let failed = |error| file_error(path, &error);
    PacketFile::new(BlockFile::create(path).map_err(failed)?, snap_len).map_err(failed)
}

/// The name of a file of the ring: the number stands before the ending.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(ending) => format!("{stem}_{number:05}.{}", ending.to_string_lossy()),
        None => format!("{stem}_{number:05}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_ring_are_numbered_before_their_ending() {
        let name = |path: &str, number| numbered(Path::new(path), number).display().to_string();
        assert_eq!(name("a/b.pcapng", 1), "a/b_00001.pcapng");
        assert_eq!(name("b", 12), "b_00012");
        assert_eq!(name("x.y/b.c.pcapng", 100_000), "x.y/b.c_100000.pcapng");
    }
}
