//! `ICMPRewriter`: ICMP errors about packets that were rewritten.

use super::named::{Rewriter, rewriter};
use super::rewriting::WayOfErrors;
use castanet_engine::prelude::*;
use castanet_kit::nat::{QuotedPacket, parse_quote, rewrite_error};

/// Rewrites ICMP errors about packets that rewriters have rewritten, for those who sent them.
///
/// MAPS names rewriters, `rw` or `rw:OFFSET`. The first of them that has a mapping for what an
/// error quotes says what that was before. Addresses, ports, identifiers, sequence numbers and
/// checksums are set back in the quote; the error then goes to who had sent that, by output 0,
/// or, with an OFFSET, by the output beyond that where the mapping sends replies. All
/// other messages leave by output 1, if it is connected.
///
/// ```click
/// in -> rw :: IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0) -> out
/// errors -> ir :: ICMPRewriter(rw) -> told;  ir[1] -> others
/// > in     1.0.0.1:5 > 2.0.0.2:6 udp
/// < out    9.9.9.9:1024 > 2.0.0.2:6 udp
/// > errors 3.0.0.3 > 9.9.9.9 icmp type timeexceeded code 0 [9.9.9.9:1024 > 2.0.0.2:6 udp]
/// > errors 3.0.0.3 > 9.9.9.9 icmp type unreachable code 3 [9.9.9.9:1025 > 2.0.0.2:6 udp]
/// > errors 3.0.0.3 > 9.9.9.9 icmp type echo-reply
/// < told   3.0.0.3 > 1.0.0.1 icmp type timeexceeded code 0 [1.0.0.1:5 > 2.0.0.2:6 udp] ; dst 1.0.0.1
/// < others 3.0.0.3 > 9.9.9.9 icmp type unreachable code 3 [9.9.9.9:1025 > 2.0.0.2:6 udp]
/// < others 3.0.0.3 > 9.9.9.9 icmp type echo-reply
/// ```
/// ```click
/// in -> pr :: ICMPPingRewriter(pattern 9.9.9.9 700-800# - - 0 1) -> out;  pr[1] -> home
/// errors -> ir :: ICMPRewriter(pr:0, DST_ANNO false) -> none;  ir[1] -> told
/// > in     1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 1
/// < out    9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 1
/// > errors 3.0.0.3 > 9.9.9.9 icmp type timeexceeded [9.9.9.9 > 2.0.0.2 icmp type echo ident 700 seq 1]
/// < told   3.0.0.3 > 1.0.0.1 icmp type timeexceeded [1.0.0.1 > 2.0.0.2 icmp type echo ident 5 seq 1] ; dst 9.9.9.9
/// ```
/// ```click
/// in -> rw :: IPAddrRewriter(pattern 9.9.9.9 - 0 0) -> out
/// errors -> ir :: ICMPRewriter(rw) -> told
/// > in     1.0.0.1:5 > 2.0.0.2:6 tcp
/// < out    9.9.9.9:5 > 2.0.0.2:6 tcp
/// > errors 3.0.0.3 > 9.9.9.9 icmp type unreachable code 4 [9.9.9.9:5 > 2.0.0.2:6 tcp]
/// > errors 3.0.0.3 > 9.9.9.8 icmp type unreachable code 4 [9.9.9.8:5 > 2.0.0.2:6 tcp]
/// < told   3.0.0.3 > 1.0.0.1 icmp type unreachable code 4 [1.0.0.1:5 > 2.0.0.2:6 tcp]
/// = ir.drops.unmapped 1
/// ```
#[derive(Element)]
#[element(room = "nat", args = Settings, ports = "1/1-", processing = "h/h", gives = "ip")]
pub struct ICMPRewriter {
    maps: Vec<(Rewriter, Option<u8>)>,
    dst_anno: bool,
    reply_anno: Option<AnnoAt<1>>,
    /// Where all other messages go.
    others: WayOfErrors,
}

#[derive(Args)]
pub struct Settings {
    /// Rewriters, the first choice first, with spaces between them.
    #[arg]
    maps: Words,
    /// Whether to set the destination annotation to where errors go.
    #[arg(keyword, default = true)]
    dst_anno: bool,
    /// The annotation that errors about the first direction get, as replies do.
    #[arg(keyword)]
    reply_anno: Option<AnnoAt<1>>,
}

impl Build for ICMPRewriter {
    type Args = Settings;

    fn build(it: Settings, setup: &Setup) -> Result<Self, ArgError> {
        let find = |word: &String| map(word, setup);
        let named = it.maps.words.iter().filter(|word| !word.is_empty());
        let maps = named.map(find).collect::<Result<Vec<_>, _>>()?;
        if maps.is_empty() {
            return Err(ArgError::new("no IP rewriters supplied"));
        }
        let others = if setup.outputs > 1 { WayOfErrors::OTHERS } else { WayOfErrors::UNMAPPED };
        Ok(ICMPRewriter { maps, dst_anno: it.dst_anno, reply_anno: it.reply_anno, others })
    }
}

/// The rewriter that is meant, and the number of its first output here.
fn map(word: &str, setup: &Setup) -> Result<(Rewriter, Option<u8>), ArgError> {
    let wrong = || ArgError::new(format!("{word} not an IP rewriter"));
    let (name, offset) = word.split_once(':').map_or((word, None), |(a, b)| (a, Some(b)));
    let offset = offset.map(|text| text.parse::<u8>().map_err(|_| wrong())).transpose()?;
    let found = rewriter(setup, name).ok_or_else(wrong)?;
    let (outputs, needed) = (setup.outputs, usize::from(offset.unwrap_or(0)) + found.outputs);
    if offset.is_some() && needed > outputs {
        let word_for = if outputs == 1 { "output" } else { "outputs" };
        return Err(ArgError::new(format!(
            "{word} port offset requires more than {outputs} {word_for}"
        )));
    }
    Ok((found, offset))
}

impl ICMPRewriter {
    /// Rewrites one message; `None` if it is about nothing that was rewritten.
    fn rewrite(&self, packet: &mut Packet) -> Option<WayOfErrors> {
        let mut ip = packet.ipv4()?;
        let quote: QuotedPacket = parse_quote(ip.payload())?;
        let (restored, offset) = self.maps.iter().find_map(|(it, offset)| {
            let found = it.table.read(|table| table.original(table.zone(&it.member)?, &quote));
            Some((found?, *offset))
        })?;
        let receiver = rewrite_error(ip.datagram_mut(), &quote, &restored);
        receiver.iter().filter(|_| self.dst_anno).for_each(|dst| packet.set_dst(*dst));
        if let (Some(place), Some(anno)) = (self.reply_anno, restored.anno) {
            place.set(packet, anno);
        }
        Some(WayOfErrors::output(offset.map_or(0, |offset| offset + restored.output)))
    }
}

impl PerBatch for ICMPRewriter {
    type On = on::Icmp;
    type Local = ();
    type Fate = WayOfErrors;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            let way = self.rewrite(&mut packet).unwrap_or(self.others);
            cx.emit(way, packet);
        }
    }
}
