//! `IP6Print`: prints IPv6 packets.

use super::line_writer::LineWriter;
use castanet_element::prelude::*;
use castanet_element::wire::print::ip6_line;

/// Prints a line about each packet whose IPv6 header is marked to standard error. Other packets pass.
///
/// With CONTENTS, the packet's bytes follow, 24 per line.
///
/// ```click
/// in -> p :: IP6Print(x) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// > in  [1::1]:5 > [2::2]:6 udp hop 9 len 60
/// < out [1::1]:5 > [2::2]:6 udp hop 9 len 60
/// ~ x: 1::1 -> 2::2 plen 20, next 17, hlim 9
/// ! p.active false
/// > in  1::1 > 2::2 udp
/// < out 1::1 > 2::2 udp
/// ```
/// ```click
/// in -> IP6Print(NBYTES 26, CONTENTS true) -> out
/// > in  1::1 > 2::2 udp
/// < out 1::1 > 2::2 udp
/// ~ 1::1 -> 2::2 plen 8, next 17, hlim 64
/// ~   60000000 00081140 00010000 00000000 00000000 00000001
/// ~   0002
/// ```
#[derive(Clone, Element)]
#[element(room = "trace")]
pub struct IP6Print {
    /// Text at the beginning of each line.
    #[arg(default = String::new())]
    label: String,
    /// The most bytes to print.
    #[arg(keyword, default = 1500)]
    nbytes: u32,
    /// Whether to print the packet's bytes.
    #[arg(keyword, default = false)]
    contents: bool,
    /// Whether to print at all.
    #[arg(keyword, live, default = true)]
    active: bool,
}

impl PerBatch for IP6Print {
    type On = on::Any;
    type Local = LineWriter;
    type Fate = ();
    const SHARED: bool = true;

    fn batch(&self, writer: &mut LineWriter, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch.iter().filter(|_| self.active) {
            let Some(header) = packet.ipv6_header() else { continue };
            let contents = packet.bytes().get(..self.nbytes as usize).unwrap_or(packet.bytes());
            let contents = if self.contents { contents } else { &[] };
            writer.line(cx, |line| ip6_line(&self.label, header, contents, line));
        }
        cx.emit_batch((), batch);
    }
}
