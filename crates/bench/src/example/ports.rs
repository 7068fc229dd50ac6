//! The ports of an example: a class that feeds, one that collects, one that refuses.

use super::compare::side_by_side;
use castanet_element::args::Names;
use castanet_element::class::{Class, per_batch, source};
use castanet_element::cx::Cx;
use castanet_element::device::{Device, Queues, RxThreads};
use castanet_element::element::{NextRun, PerBatch, Source};
use castanet_element::error::ArgError;
use castanet_element::fate::Never;
use castanet_element::prelude::{Element, Local, handlers};
use castanet_lang::nearest;
use castanet_packet::{Batch, Packet};
use castanet_wire::Ipv6Header;
use castanet_wire::sketch::{self, Layer};

/// Feeds the packets of an example.
#[derive(Element)]
#[element(processing = "h/h")]
pub(super) struct ExampleInput;

impl Source for ExampleInput {
    type Local = ();
    type Fate = ();
    const PER_WORKER: bool = true;
    fn produce(&self, _: &mut (), _: usize, _: &mut Cx) -> NextRun {
        NextRun::Done
    }
}

/// Refuses its configuration, once the elements before it are initialised.
#[derive(Element)]
#[element(ports = "0/0")]
pub(super) struct ExampleRefusal;

/// The error.
pub(super) const REFUSED: &str = "the example wants it refused";

impl PerBatch for ExampleRefusal {
    type On = castanet_element::on::Any;
    type Local = ();
    type Fate = Never;
    fn init(&self, _: &mut (), _: &mut Cx) -> Result<(), ArgError> {
        Err(ArgError::new(REFUSED))
    }
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}

/// Collects packets as text.
#[derive(Element)]
#[element(processing = "a/a", ports = "1-/0")]
pub(super) struct ExampleOutput;

/// Packets that came out and are not expected yet.
#[derive(Default, Local)]
#[local(methods)]
pub(super) struct ExampleOutputState {
    lines: Vec<String>,
    /// Packets whose headers or contents are out of bounds, a line each.
    #[read]
    out_of_bounds: String,
}

#[handlers]
impl ExampleOutputState {
    /// Packets that came out, a line each.
    #[read]
    fn seen(&self) -> String {
        self.lines.join("\n")
    }
    /// Drops the packets that came out.
    #[write]
    fn forget(&mut self, _: &str) -> Result<(), ArgError> {
        self.lines.clear();
        Ok(())
    }
}

impl PerBatch for ExampleOutput {
    type On = castanet_element::on::Any;
    type Local = ExampleOutputState;
    type Fate = Never;
    const SHARED: bool = true;
    fn batch(&self, seen: &mut ExampleOutputState, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch.iter() {
            let line = show(packet);
            if let Err(error) = packet.check_bounds() {
                seen.out_of_bounds += &format!("{error}: {line}\n");
            }
            seen.lines.push(line);
        }
        cx.consume(batch);
    }
}

/// The class that feeds.
pub(super) static INPUT: Class = source::<ExampleInput>().with_device(input_device);

/// A device from which all workers receive, so that packets may be fed on each of them.
fn input_device(_: &str, _: &Names) -> Option<Device> {
    let (name, how) = ("example".to_owned(), String::new());
    let queues = Queues { first: None, least: 1, most: usize::MAX, sockets: true };
    let rx_threads = RxThreads { parallel: true, ..RxThreads::default() };
    Some(Device { name, how, node: None, queues, rx_threads })
}

/// The class that collects.
pub(super) static OUTPUT: Class = per_batch::<ExampleOutput>();

/// The class that refuses.
pub(super) static REFUSAL: Class = per_batch::<ExampleRefusal>();

/// A packet as a line: its sketch, then its annotations.
pub(super) fn show(packet: &Packet) -> String {
    let text = sketch::print(packet.bytes(), layer_of(packet));
    format!("{text} ; {}", annotations(packet).map(|(k, v)| format!("{k} {v}")).join(" "))
}

/// Offset of the first marked header of a packet.
fn layer_of(packet: &Packet) -> Layer {
    match packet.network_offset() {
        Some(0) => Layer::Network,
        Some(14) => Layer::Ethernet,
        _ if packet.bytes().first().is_some_and(|b| matches!(b >> 4, 4 | 6)) => Layer::Network,
        _ => Layer::Ethernet,
    }
}

fn annotations(packet: &Packet) -> [(&'static str, String); 9] {
    let stamp = packet.timestamp();
    let offset = |o: Option<isize>| o.map_or("-".into(), |o| o.to_string());
    [
        ("paint", packet.paint().to_string()),
        ("dst", packet.dst().to_string()),
        ("dst6", packet.dst6().to_string()),
        ("type", format!("{:?}", packet.packet_type()).to_lowercase()),
        ("mac", offset(packet.mac_offset())),
        ("network", offset(packet.network_offset())),
        ("fixipsrc", u8::from(packet.fix_ip_src()).to_string()),
        ("time", format!("{}.{:09}", stamp / 1_000_000_000, stamp % 1_000_000_000)),
        ("length", packet.len().to_string()),
    ]
}

/// The annotations that a line can set or expect; `length` is only expected.
const ANNOTATIONS: [&str; 9] =
    ["paint", "dst", "dst6", "type", "mac", "network", "fixipsrc", "time", "length"];

/// Names and values after ` ; `.
fn pairs(annotations: &str) -> Result<Vec<(&str, &str)>, String> {
    let words: Vec<&str> = annotations.split_whitespace().collect();
    let pair = |pair: &[_]| match *pair {
        [name, _] if !ANNOTATIONS.contains(&name) => {
            let near = nearest(name, ANNOTATIONS).map(|near| format!("; did you mean `{near}`?"));
            let (all, near) = (ANNOTATIONS.join(", "), near.unwrap_or_default());
            Err(format!("no annotation is called `{name}`, only {all}{near}"))
        }
        [name, value] => Ok((name, value)),
        _ => Err(format!("after ` ; ` stand names and values; `{}` has no value", pair.join(" "))),
    };
    words.chunks(2).map(pair).collect()
}

/// A sketch with its defaults filled in, as an actual packet is shown; its bytes, and their offset.
pub(super) fn sketched(line: &str) -> Result<(String, sketch::Sketch), String> {
    let text = line.split_once(" ; ").map_or(line, |(text, _)| text).trim();
    let built = sketch::build(text)
        .map_err(|e| format!("{e}\n  (`castanet_wire::sketch` has the grammar of packets)"))?;
    Ok((sketch::print(&built.bytes, built.layer), built))
}

/// Builds the packet that a line describes.
pub(super) fn build(line: &str) -> Result<Packet, String> {
    let (_, annotations) = line.split_once(" ; ").unwrap_or((line, ""));
    let (_, sketch::Sketch { bytes, layer }) = sketched(line)?;
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
        Layer::Network if bytes.first().is_some_and(|b| b >> 4 == 6) => mark6(&mut packet, 0),
        Layer::Network => {}
        Layer::Ethernet => packet.set_mac_header(0),
    }
    for (name, value) in pairs(annotations)? {
        annotate(&mut packet, name, value)?;
    }
    Ok(packet)
}

/// Marks an IPv6 header, and sets the destination annotation.
fn mark6(packet: &mut Packet, at: isize) {
    packet.set_network_header(at, Ipv6Header::LEN);
    let Some((dst, len)) =
        packet.ipv6().map(|ip| (ip.dst(), Ipv6Header::LEN + ip.upper_layer().offset))
    else {
        return packet.clear_network_header();
    };
    packet.set_network_header(at, len);
    packet.set_dst6(dst);
}

fn annotate(packet: &mut Packet, name: &str, value: &str) -> Result<(), String> {
    use castanet_packet::PacketType;
    let bad = || format!("`{value}` is no value for {name}");
    match name {
        "paint" => packet.set_paint(value.parse().map_err(|_| bad())?),
        "dst" => packet.set_dst(value.parse().map_err(|_| bad())?),
        "dst6" => packet.set_dst6(value.parse().map_err(|_| bad())?),
        "fixipsrc" => packet.set_fix_ip_src(value == "1"),
        "mac" => packet.set_mac_header(value.parse().map_err(|_| bad())?),
        "network" => {
            let at: isize = value.parse().map_err(|_| bad())?;
            let first = usize::try_from(at).ok().and_then(|at| packet.bytes().get(at)).copied();
            match first.unwrap_or(0) {
                first if first >> 4 == 6 => mark6(packet, at),
                first => packet.set_network_header(at, usize::from(first & 15) * 4),
            }
        }
        "time" => {
            let seconds: f64 = value.parse().map_err(|_| bad())?;
            packet.set_timestamp((seconds * 1e9) as i64);
        }
        "type" => packet.set_packet_type(match value {
            "host" => PacketType::Host,
            "broadcast" => PacketType::Broadcast,
            "multicast" => PacketType::Multicast,
            "otherhost" => PacketType::OtherHost,
            "outgoing" => PacketType::Outgoing,
            "loopback" => PacketType::Loopback,
            _ => {
                let types = "host, broadcast, multicast, otherhost, outgoing, loopback";
                return Err(format!("{}: {types}", bad()));
            }
        }),
        _ => return Err(format!("`{name}` is expected of packets, not set")),
    }
    Ok(())
}

/// Compares an actual packet with the expected one: bytes, and annotations that the expectation
/// names. An error shows both.
pub(super) fn compare(got: &str, want: &str) -> Result<(), String> {
    let (got_text, got_annotations) = got.split_once(" ; ").unwrap_or((got, ""));
    let (_, want_annotations) = want.split_once(" ; ").unwrap_or((want, ""));
    let (want_text, sketch::Sketch { bytes, .. }) = sketched(want)?;
    // Bytes that are no header read the same from either layer.
    let layers = [Layer::Ethernet, Layer::Network];
    let same = layers.iter().any(|&layer| got_text == sketch::print(&bytes, layer));
    let mut expected = if same { got_text.to_owned() } else { want_text };
    let mut shown = got_text.to_owned();
    let all = pairs(got_annotations)?;
    for (n, (name, value)) in pairs(want_annotations)?.into_iter().enumerate() {
        let mark = if n == 0 { " ;" } else { "" };
        let got = all.iter().find(|(other, _)| *other == name).map_or("-", |(_, value)| *value);
        expected += &format!("{mark} {name} {value}");
        shown += &format!("{mark} {name} {got}");
    }
    (expected == shown).then_some(()).ok_or_else(|| side_by_side(&expected, &shown))
}
