//! The ports around an example: one class that feeds, one that collects.

use crate::args::ArgError;
use crate::class::{Class, per_batch, source};
use crate::cx::Cx;
use crate::element::{Asked, Never, PerBatch, Source};
use castanet_macros::{Element, Local, handlers};
use castanet_packet::{Batch, Packet};
use castanet_wire::sketch::{self, Layer};

/// Feeds the packets of an example.
#[derive(Element)]
#[element(processing = "h/h")]
pub(super) struct ExampleInput;

impl Source for ExampleInput {
    type Local = ();
    type Fate = ();
    fn ask(&self, _: &mut (), _: usize, _: &mut Cx) -> Asked {
        Asked::Done
    }
}

/// Collects packets as text.
#[derive(Element)]
#[element(processing = "a/a", ports = "1-/0")]
pub(super) struct ExampleOutput;

/// What has come out and was not yet expected.
#[derive(Default, Local)]
#[local(methods)]
pub(super) struct Seen {
    lines: Vec<String>,
}

#[handlers]
impl Seen {
    /// What has come out, a packet a line.
    #[read]
    fn seen(&self) -> String {
        self.lines.join("\n")
    }
    /// Forgets what has come out.
    #[write]
    fn forget(&mut self, _: &str) -> Result<(), ArgError> {
        self.lines.clear();
        Ok(())
    }
}

impl PerBatch for ExampleOutput {
    type On = crate::on::Any;
    type Local = Seen;
    type Fate = Never;
    const SHARED: bool = true;
    fn batch(&self, seen: &mut Seen, _: usize, batch: Batch, cx: &mut Cx) {
        seen.lines.extend(batch.iter().map(show));
        cx.consume(batch);
    }
}

/// The class that feeds.
pub(super) static INPUT: Class = source::<ExampleInput>();
/// The class that collects.
pub(super) static OUTPUT: Class = per_batch::<ExampleOutput>();

/// A packet as a line: its sketch, then its annotations.
pub(super) fn show(packet: &Packet) -> String {
    let text = sketch::print(packet.bytes(), layer_of(packet));
    format!("{text} ; {}", annotations(packet).map(|(k, v)| format!("{k} {v}")).join(" "))
}

/// Where the bytes of a packet begin, as far as it knows itself.
fn layer_of(packet: &Packet) -> Layer {
    match packet.network_offset() {
        Some(0) => Layer::Network,
        Some(14) => Layer::Ethernet,
        _ if packet.bytes().first().is_some_and(|b| b >> 4 == 4) => Layer::Network,
        _ => Layer::Ethernet,
    }
}

fn annotations(packet: &Packet) -> [(&'static str, String); 8] {
    let stamp = packet.timestamp();
    let offset = |o: Option<isize>| o.map_or("-".into(), |o| o.to_string());
    [
        ("paint", packet.paint().to_string()),
        ("dst", packet.dst().to_string()),
        ("type", format!("{:?}", packet.packet_type()).to_lowercase()),
        ("mac", offset(packet.mac_offset())),
        ("network", offset(packet.network_offset())),
        ("fixipsrc", u8::from(packet.fix_ip_src()).to_string()),
        ("time", format!("{}.{:09}", stamp / 1_000_000_000, stamp % 1_000_000_000)),
        ("length", packet.len().to_string()),
    ]
}

/// Builds the packet that a line describes.
pub(super) fn build(line: &str) -> Result<Packet, String> {
    let (text, annotations) = line.split_once(" ; ").unwrap_or((line, ""));
    let sketch::Sketch { bytes, layer } = sketch::build(text.trim())?;
    let mut packet = Packet::from_bytes(&bytes);
    match layer {
        Layer::Network if bytes.first().is_some_and(|b| b >> 4 == 4) => {
            let header = usize::from(bytes[0] & 15) * 4;
            packet.set_network_header(0, header);
            if let Some(ip) = packet.ipv4() {
                let dst = ip.dst();
                packet.set_dst(dst);
            }
        }
        Layer::Network => {}
        Layer::Ethernet => packet.set_mac_header(0),
    }
    let words: Vec<&str> = annotations.split_whitespace().collect();
    for pair in words.chunks(2) {
        annotate(&mut packet, pair)?;
    }
    Ok(packet)
}

fn annotate(packet: &mut Packet, pair: &[&str]) -> Result<(), String> {
    use castanet_packet::PacketType;
    let [name, value] = pair else { return Err(format!("{pair:?} wants a value")) };
    let bad = || format!("`{value}` is no value for {name}");
    match *name {
        "paint" => packet.set_paint(value.parse().map_err(|_| bad())?),
        "dst" => packet.set_dst(value.parse().map_err(|_| bad())?),
        "fixipsrc" => packet.set_fix_ip_src(*value == "1"),
        "mac" => packet.set_mac_header(value.parse().map_err(|_| bad())?),
        "network" => {
            let at: isize = value.parse().map_err(|_| bad())?;
            let first = usize::try_from(at).ok().and_then(|at| packet.bytes().get(at)).copied();
            packet.set_network_header(at, usize::from(first.unwrap_or(0) & 15) * 4);
        }
        "time" => {
            let seconds: f64 = value.parse().map_err(|_| bad())?;
            packet.set_timestamp((seconds * 1e9) as i64);
        }
        "type" => packet.set_packet_type(match *value {
            "host" => PacketType::Host,
            "broadcast" => PacketType::Broadcast,
            "multicast" => PacketType::Multicast,
            "otherhost" => PacketType::OtherHost,
            "outgoing" => PacketType::Outgoing,
            _ => return Err(bad()),
        }),
        _ => return Err(format!("no annotation `{name}`")),
    }
    Ok(())
}

/// Whether a packet that came out is the one expected: the same bytes, and
/// those annotations that the expectation names.
pub(super) fn matches(got: &str, want: &str) -> Result<bool, String> {
    let (got_text, got_annotations) = got.split_once(" ; ").unwrap_or((got, ""));
    let (want_text, want_annotations) = want.split_once(" ; ").unwrap_or((want, ""));
    let sketch::Sketch { bytes, layer } = sketch::build(want_text.trim())?;
    let got_words: Vec<&str> = got_annotations.split_whitespace().collect();
    let want_words: Vec<&str> = want_annotations.split_whitespace().collect();
    let same = want_words.chunks(2).all(|pair| got_words.chunks(2).any(|other| other == pair));
    // Bytes that are no header read the same from either layer.
    let layers = [layer, Layer::Ethernet, Layer::Network];
    Ok(same && layers.iter().any(|&layer| got_text == sketch::print(&bytes, layer)))
}
