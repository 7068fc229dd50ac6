//! `ARPPrint`: prints ARP messages.

use super::line_writer::{LineWriter, ether_before_network};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use castanet_element::wire::Timestamp;
use castanet_element::wire::print::ArpPrint;

/// Prints a line about each ARP message to standard error, as tcpdump does.
///
/// The message begins at the network header; packets without one pass without
/// a line. After an error no more is written to the file.
///
/// ```click
/// in -> ARPPrint(q, ETHER true) -> p :: ARPPrint(TIMESTAMP false) -> out
/// > in  eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1 ; network 14 time 3.5
/// > in  hex 00 01 08 00
/// < out eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1
/// < out hex 00 01 08 00
/// ~ q: 3.500000: 00-00-00-00-00-01 > FF-FF-FF-FF-FF-FF: arp who-has 1.0.0.2 tell 1.0.0.1
/// ~ arp who-has 1.0.0.2 tell 1.0.0.1
/// ! p.active false
/// = p.active false
/// ```
/// ```click
/// in -> ARPPrint(OUTFILE /dev/null) -> out
/// > in  hex 00 01 08 00 ; network 0
/// < out hex 00 01 08 00
/// ```
#[derive(Clone, Element)]
#[element(room = "trace")]
pub struct ARPPrint {
    /// Text at the beginning of each line.
    #[arg(default = String::new())]
    label: String,
    /// Whether to print the packet's timestamp.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Whether to print the Ethernet addresses.
    #[arg(keyword, default = false)]
    ether: bool,
    /// Whether to print at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// A file to write to instead, `-` for standard output.
    #[arg(keyword)]
    outfile: Option<String>,
}

impl ARPPrint {
    /// Appends the line about a packet whose network header is marked.
    fn line(&self, packet: &Packet, out: &mut String) {
        let line = ArpPrint {
            label: &self.label,
            timestamp: self.timestamp.then(|| Timestamp(packet.timestamp())),
            ether: ether_before_network(packet).filter(|_| self.ether),
        };
        line.line(packet.network_bytes(), out);
    }
}

/// The file that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &ARPPrint| {
        Resource::output(it.outfile.as_deref(), "writes lines to it")
    })
}

impl PerBatch for ARPPrint {
    type On = on::Any;
    type Local = LineWriter;
    type Fate = ();
    // All workers write to one file, in order.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ARPPrint) -> bool {
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
        printed.for_each(|packet| writer.line(cx, |line| self.line(packet, line)));
        cx.emit_batch((), batch);
    }

    fn cleanup(&self, writer: &mut LineWriter, cx: &mut Cx) {
        writer.flush(cx);
    }
}
