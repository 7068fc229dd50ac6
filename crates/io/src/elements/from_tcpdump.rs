//! `FromTcpdump`: packets from what tcpdump printed.

use super::from_ip_summary_dump::mark;
use super::summary::annotate;
use crate::pcap;
use crate::text_file::LineReader;
use castanet_engine::prelude::*;
use castanet_wire::tcpdump::Reader;

/// Makes packets of the lines that tcpdump has printed to FILENAME, `-` for standard input.
///
/// Old and new versions' lines about IPv4 are understood, with numeric addresses
/// (`tcpdump -n`). What a line leaves open is zero, and TTL is 2; payloads are
/// only said in the extra length annotation. Sequence numbers that count from the
/// first of their connection are made absolute. Times of day count from midnight.
///
/// ```click
/// f :: FromTcpdump(DATA "12:00:00.5 IP 1.0.0.1.1024 > 2.0.0.2.80: Flags [S], seq 7, win 512, length 0\n# a remark\n12:00:01 IP 1.0.0.1.53 > 2.0.0.2.99: UDP, length 12\n", CHECKSUM true, STOP true) -> out
/// < out 1.0.0.1:1024 > 2.0.0.2:80 tcp syn seq 7 win 512 ttl 2 ; dst 2.0.0.2 network 0
/// < out 1.0.0.1:53 > 2.0.0.2:99 udp ttl 2 len 40
/// = f.active true
/// = f.encap IP
/// = f.sampling_prob 1
/// ```
#[derive(Clone, Element)]
#[element(args = Settings, methods)]
pub struct FromTcpdump {
    settings: Settings,
    /// Of 2²⁸ packets, how many are emitted.
    chance: u32,
}

/// What can be set.
#[derive(Clone, Args)]
pub struct Settings {
    /// The file.
    #[arg]
    filename: Option<String>,
    /// Whether to ask the router to stop after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Whether to emit packets before `active` is written.
    #[arg(keyword, default = true)]
    active: bool,
    /// For configurations that say so: what no line sets is always zero.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    zero: bool,
    /// Whether to set checksums, and to make packets as long as they say.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability with which each packet is emitted.
    #[arg(keyword, default = 1.0, range = 0.0..=1.0)]
    sample: f64,
    /// The lines themselves, instead of a file.
    #[arg(keyword)]
    data: Option<Data>,
}

/// Where reading stands.
#[derive(Default, Local)]
#[local(methods)]
pub struct Reading {
    file: Option<LineReader>,
    reader: Reader,
    /// Whether to emit packets now.
    #[read]
    active: bool,
    /// Whether a line that is no packet has been reported.
    complained: bool,
    /// Bytes read.
    #[read]
    filepos: u64,
}

#[handlers]
impl FromTcpdump {
    /// The probability with which each packet is emitted.
    #[read]
    fn sampling_prob(&self) -> f64 {
        f64::from(self.chance) / f64::from(ALWAYS)
    }

    /// What packets begin with.
    #[read]
    fn encap(&self) -> &'static str {
        "IP"
    }

    /// The file's name.
    #[read]
    fn filename(&self) -> Option<String> {
        self.settings.filename.clone()
    }

    /// The file's size in bytes, or `-` if it has none.
    #[read]
    fn filesize(&self) -> String {
        let given = self.settings.data.as_ref().map(|data| data.0.len() as u64);
        let size = given.or_else(|| pcap::size(self.settings.filename.as_deref()?));
        size.map_or("-".into(), |size| size.to_string())
    }
}

#[handlers]
impl Reading {
    /// Begins or ceases to emit packets.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }

    /// Ceases to emit packets, and asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        self.active = false;
        Ok(())
    }
}

/// The chance of being emitted always.
const ALWAYS: u32 = 1 << 28;

impl Build for FromTcpdump {
    type Args = Settings;

    fn build(it: Settings, _: &Setup) -> Result<Self, ArgError> {
        match (&it.filename, &it.data) {
            (Some(_), Some(_)) => return Err(ArgError::new("FILENAME and DATA conflict")),
            (None, None) => {
                let error = ArgError::new("is missing; it wants a file, or `-`").at("FILENAME");
                return Err(error.click("required argument missing"));
            }
            _ => {}
        }
        let chance = (it.sample * f64::from(ALWAYS)) as u32;
        Ok(FromTcpdump { settings: it, chance })
    }
}

impl Source for FromTcpdump {
    type Local = Reading;
    type Fate = ();

    fn continues(&self, _: &FromTcpdump) -> bool {
        false // it opens what its arguments name
    }

    fn begin(&self, local: &mut Reading, cx: &mut Cx) -> Result<(), ArgError> {
        (local.reader, local.active) = (Reader::new(self.settings.checksum), self.settings.active);
        let name = self.settings.filename.as_deref().unwrap_or("<data>");
        let file = match &self.settings.data {
            Some(data) => Ok(LineReader::of_text(data.0.clone())),
            None => LineReader::open(name),
        };
        let mut file = file.map_err(|error| ArgError::new(error.to_string()))?;
        if !file.peek(Reader::is_first).unwrap_or(true) {
            let what = "first line suspicious; is this a tcpdump output file?";
            cx.chatter(&format!("{}: warning: {what}", file.landmark()));
        }
        local.file = Some(file);
        Ok(())
    }

    fn ask(&self, local: &mut Reading, n: usize, cx: &mut Cx) -> Asked {
        if !local.active {
            return Asked::Done;
        }
        for _ in 0..n {
            if !self.read(local, cx) {
                if local.file.take().is_some() && self.settings.stop {
                    cx.stop();
                }
                return Asked::Done;
            }
        }
        Asked::Again
    }

    fn active(&self, local: &Reading) -> bool {
        local.active && local.file.is_some()
    }

    fn end(&self, local: &mut Reading, _: &mut Cx) {
        local.file = None;
    }
}

impl FromTcpdump {
    /// Reads a line and emits its packet; whether there was one.
    fn read(&self, local: &mut Reading, cx: &mut Cx) -> bool {
        let Some(file) = &mut local.file else { return false };
        let found = match file.next_line() {
            Ok(Some(line)) => local.reader.line(&line),
            Ok(None) => return false,
            Err(error) => {
                cx.chatter(&format!("{}: {error}", file.landmark()));
                return false;
            }
        };
        local.filepos = file.position();
        match found {
            Ok(None) => {}
            Ok(Some(parsed)) => {
                if self.chance < ALWAYS && cx.random() as u32 % ALWAYS >= self.chance {
                    return true;
                }
                let Some(mut packet) = cx.copy_in(&parsed.bytes) else { return true };
                if let Some(network) = parsed.network {
                    mark(&mut packet, network);
                }
                annotate(&mut packet, &parsed.meta);
                cx.emit((), packet);
            }
            // One line that is no packet is reported, for there may be many.
            Err(_) if std::mem::replace(&mut local.complained, true) => {}
            Err(error) => cx.chatter(&format!("{}: {error}", file.landmark())),
        }
        true
    }
}
