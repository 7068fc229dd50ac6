//! The demo for machines without root: the same router reads one pcap file and writes three.

use std::fs;
use std::path::{Path, PathBuf};

use crate::demo::conf;
use crate::demo::report::{DemoReport, DemoStep};
use crate::error::{Error, Result};
use crate::process::{Command, Output};
use crate::registry;

/// ICMP messages (name, type, code) that the router must send to the first network because of the
/// sample's packets.
const ANSWERS: &[(&str, u8, u8)] = &[
    ("echo reply", 0, 0),
    ("network unreachable", 3, 0),
    ("port unreachable", 3, 3),
    ("fragmentation needed", 3, 4),
    ("redirect", 5, 1),
    ("time exceeded", 11, 0),
    ("parameter problem", 12, 0),
];

/// Runs `conf/router-pcap.click` on `conf/sample.pcap` and checks the frames that it sends.
pub fn replay(castanet: &Path) -> Result<DemoReport> {
    let directory = TemporaryDirectory::new()?;
    let outputs = [0, 1, 2].map(|i| directory.0.join(format!("{i}.pcap")));
    run(castanet, &outputs)?;
    let mut report = DemoReport { steps: Vec::new(), replayed: true };
    let mut first = Vec::new();
    for (i, out) in outputs.iter().enumerate() {
        let frames = frames(out)?;
        let bytes: usize = frames.iter().map(Vec::len).sum();
        let summary = format!("{} frames, {bytes} bytes", frames.len());
        let network = format!("10.0.{}.0/24", i + 1);
        let sent = Ok((!frames.is_empty(), summary));
        report.steps.push(DemoStep::new("forwarded", "router", &network, sent));
        if i == 0 {
            first = frames;
        }
    }
    for (name, kind, code) in ANSWERS {
        let count = first.iter().filter(|frame| icmp(frame) == Some((*kind, *code))).count();
        let sent = Ok((count > 0, format!("{count} × ICMP type {kind} code {code}")));
        report.steps.push(DemoStep::new(name, "router", "10.0.1.0/24", sent));
    }
    Ok(report)
}

/// Runs the router on the sample with three output files, and returns what the router has printed.
pub fn run(castanet: &Path, outputs: &[PathBuf; 3]) -> Result<Output> {
    let files = outputs.iter().enumerate().map(|(i, out)| format!("out{i}={}", out.display()));
    Command::on_host(castanet)
        .arg("run")
        .arg(conf("router-pcap.click"))
        .arg(format!("in={}", conf("sample.pcap").display()))
        .args(files)
        .check()
}

/// Reads the frames of a pcap file, with code that is independent of Castanet.
fn frames(path: &Path) -> Result<Vec<Vec<u8>>> {
    let file = fs::read(path).map_err(Error::io(format!("read {}", path.display())))?;
    parse(&file).ok_or_else(|| {
        let kind = std::io::ErrorKind::InvalidData;
        Error::Io(format!("understand {} as a pcap file", path.display()), kind.into())
    })
}

/// Parses a pcap file of either byte order: a header of 24 bytes, then a header of 16 bytes before
/// each frame. `None` if the file is malformed.
fn parse(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    let little = match *file.first_chunk::<4>()? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => true,
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => false,
        _ => return None,
    };
    let mut rest = file.get(24..)?;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let captured = *rest.get(8..12)?.first_chunk::<4>()?;
        let captured =
            if little { u32::from_le_bytes(captured) } else { u32::from_be_bytes(captured) };
        let end = 16usize.checked_add(usize::try_from(captured).ok()?)?;
        frames.push(rest.get(16..end)?.to_vec());
        rest = &rest[end..];
    }
    Some(frames)
}

/// Returns type and code of the ICMP message in an Ethernet frame, if there is one.
fn icmp(frame: &[u8]) -> Option<(u8, u8)> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [0x08, 0x00])?;
    let (length, protocol) = (usize::from(ip.first()? & 0xf) * 4, ip.get(9)?);
    if *protocol != 1 {
        return None;
    }
    Some((*ip.get(length)?, *ip.get(length + 1)?))
}

/// A directory for output files, removed like a lab's.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> Result<TemporaryDirectory> {
        registry::start_lab("replay").map(|(_, path)| TemporaryDirectory(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        registry::remove_lab(&[], &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_sample() {
        let sample = frames(&conf("sample.pcap")).unwrap();
        assert_eq!(sample.len(), 101);
        let echoes = sample.iter().filter(|frame| icmp(frame) == Some((8, 0))).count();
        assert_eq!(echoes, 11);
    }

    #[test]
    fn refuses_other_and_truncated_files() {
        assert_eq!(parse(b"not a pcap file at all, but long enough"), None);
        let mut file = fs::read(conf("sample.pcap")).unwrap();
        file.pop();
        assert_eq!(parse(&file), None);
        assert_eq!(parse(&file[..24]), Some(Vec::new()));
    }
}
