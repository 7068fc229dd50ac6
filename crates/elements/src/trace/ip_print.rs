//! `IPPrint`: prints IPv4 packets in the format of tcpdump.

use super::ip_print_args::ContentsFormat;
use super::line_writer::{LineWriter, ether_before_network};
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_element::wire::Timestamp;
use castanet_element::wire::print::{Contents, IpPrint};

/// Prints a line about each packet whose IP header is marked, in the format of tcpdump.
///
/// ```click
/// in -> p :: IPPrint(x, TIMESTAMP false, TTL true, PAINT true) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 60 ; paint 3
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp ttl 9 len 60
/// ~ x: paint 3: ttl 9 1.0.0.1.5 > 2.0.0.2.6: udp 40
/// ! p.active false
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> IPPrint(PAYLOAD ASCII, MAXLENGTH 3) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp "hello" ; time 1000000000.5
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp "hello"
/// ~ 1000000000.500000: 1.0.0.1.5 > 2.0.0.2.6: udp 13
/// ~ hel
/// ```
/// Other packets pass. The Ethernet header may have been stripped.
///
/// ```click
/// frames -> MarkMACHeader -> Strip(14) -> CheckIPHeader -> in :: Null
/// in, others -> IPPrint(x, TIMESTAMP false, ETHER true, VLAN true) -> out
/// > frames eth 2:0:0:0:0:1 > 2:0:0:0:0:2 1.0.0.1:5 > 2.0.0.2:6 udp
/// > others hex 61 62 63
/// < out    1.0.0.1:5 > 2.0.0.2:6 udp
/// < out    hex 61 62 63
/// ~ x:  VLAN:002-00-00-00-00-01 > 02-00-00-00-00-02: 1.0.0.1.5 > 2.0.0.2.6: udp 8
/// ```
#[derive(Clone, Args, Element)]
#[element(room = "trace", args = IPPrint)]
pub struct IPPrint {
    /// Text at the beginning of each line.
    #[arg(default = String::new())]
    label: String,
    /// The format of the whole packet's bytes: `NONE`, `HEX` or `ASCII`.
    #[arg(keyword, default = ContentsFormat(Contents::None), shown = "NONE")]
    pub(super) contents: ContentsFormat,
    /// The format of the payload's bytes, instead of the whole packet: `NONE`, `HEX` or `ASCII`.
    #[arg(keyword, default = ContentsFormat(Contents::None), shown = "NONE")]
    pub(super) payload: ContentsFormat,
    /// The most bytes to print; -1 for all.
    #[arg(keyword, default = 1500)]
    maxlength: i32,
    /// An older name of MAXLENGTH.
    #[arg(keyword)]
    nbytes: Option<i32>,
    /// Whether to print Ethernet addresses.
    #[arg(keyword, default = false)]
    ether: bool,
    /// Whether to print identifications.
    #[arg(keyword, default = false)]
    id: bool,
    /// Whether to print TTLs.
    #[arg(keyword, default = false)]
    ttl: bool,
    /// Whether to print types of service.
    #[arg(keyword, default = false)]
    tos: bool,
    /// Whether to print lengths.
    #[arg(keyword, default = false)]
    length: bool,
    /// Whether to print time stamps.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Whether to print the aggregate annotation.
    #[arg(keyword, default = false)]
    aggregate: bool,
    /// Whether to print the VLAN annotation.
    #[arg(keyword, default = false)]
    vlan: bool,
    /// Whether to print the paint annotation.
    #[arg(keyword, default = false)]
    paint: bool,
    /// Whether to print ICMP numbers in network order.
    #[arg(keyword, default = true)]
    swap: bool,
    /// A file to print to, `-` for standard output.
    #[arg(keyword)]
    outfile: Option<String>,
    /// The channel of the log to print to, which only a ChatterSocket of it reads; the default one is read
    /// by all.
    #[arg(keyword, default = String::new())]
    channel: String,
    /// Whether to print at all.
    #[arg(keyword, live, default = true)]
    active: bool,
}

impl IPPrint {
    fn describe(&self, packet: &Packet, line: &mut String) {
        let payload = self.payload.0 != Contents::None;
        let network = packet.network_offset().unwrap_or(0);
        let print = IpPrint {
            label: &self.label,
            timestamp: self.timestamp.then(|| Timestamp(packet.timestamp())),
            aggregate: self.aggregate.then(|| packet.anno_u32(anno::AGGREGATE)),
            vlan: self.vlan.then(|| packet.anno_u16(anno::VLAN_TCI)),
            paint: self.paint.then(|| packet.paint()),
            ether: ether_before_network(packet).filter(|_| self.ether),
            id: self.id,
            ttl: self.ttl,
            tos: self.tos,
            length: self.length,
            swapped: !self.swap,
            contents: if payload { self.payload.0 } else { self.contents.0 },
            payload,
            max: usize::try_from(self.nbytes.unwrap_or(self.maxlength)).ok(),
        };
        match usize::try_from(network) {
            Ok(at) => print.line(packet.bytes(), at, line),
            Err(_) => print.line(packet.network_bytes(), 0, line), // its start was stripped
        }
    }
}

/// The file that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &IPPrint| {
        Resource::output(it.outfile.as_deref(), "writes lines to it")
    })
}

impl PerBatch for IPPrint {
    type On = on::Any;
    type Local = LineWriter;
    type Fate = ();
    const SHARED: bool = true;
    const CAN_PASS_BURST: bool = true;

    fn burst_effect(&self, _: &BurstSummary) -> BurstEffect {
        if self.active { BurstEffect::Keeps } else { BurstEffect::Passes }
    }

    fn can_take_state(&self, before: &IPPrint) -> bool {
        self.outfile == before.outfile
    }

    fn init(&self, writer: &mut LineWriter, _: &mut Cx) -> Result<(), ArgError> {
        writer.open(self.outfile.as_deref())
    }

    fn start(&self, writer: &mut LineWriter, _: &mut Cx) -> Result<(), ArgError> {
        writer.start()
    }

    fn batch(&self, writer: &mut LineWriter, _: usize, batch: Batch, cx: &mut Cx) {
        let printed = batch.iter().filter(|it| self.active && it.network_offset().is_some());
        for packet in printed {
            writer.line_on(&self.channel, cx, |line| self.describe(packet, line));
        }
        cx.emit_batch((), batch);
    }

    fn cleanup(&self, writer: &mut LineWriter, cx: &mut Cx) {
        writer.flush(cx);
    }
}
