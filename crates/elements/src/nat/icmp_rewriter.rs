//! `ICMPRewriter`: rewrites ICMP errors that quote rewritten packets.

use super::name_resolution::{RewriterRef, rewriter};
use super::rewriter_exits::ICMPRewriterExit;
use castanet_element::prelude::*;
use castanet_kit::nat::{QuotedPacket, parse_quote, rewrite_error};

/// Rewrites ICMP errors about packets that rewriters have rewritten.
///
/// MAPS names rewriters, `rw` or `rw:OFFSET`. The first of them that has a mapping for the quoted
/// packet restores it: addresses, ports, identifiers, sequence numbers and checksums in the quote
/// become what they were before rewriting. The error then goes to the sender of that packet, by
/// output 0, or, with an OFFSET, by output OFFSET plus the mapping's output for replies. All
/// other messages leave by output 1, if it is connected, or are dropped.
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
#[element(room = "nat", args = ICMPRewriterArgs, ports = "1/1-", processing = "h/h", gives = "ip")]
pub struct ICMPRewriter {
    maps: Vec<(RewriterRef, Option<u8>)>,
    dst_anno: bool,
    reply_anno: Option<AnnoAt<1>>,
    /// The exit of all other messages.
    others: ICMPRewriterExit,
}

#[derive(Args)]
pub struct ICMPRewriterArgs {
    /// Names of rewriters, separated by spaces; the first with a mapping is used.
    #[arg]
    maps: Words,
    /// Whether to set the destination annotation of errors to their new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
    /// The annotation byte that errors about a flow's first direction get, as its replies do.
    #[arg(keyword)]
    reply_anno: Option<AnnoAt<1>>,
}

impl Build for ICMPRewriter {
    type Args = ICMPRewriterArgs;

    fn build(it: ICMPRewriterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let find = |word: &String| map(word, setup);
        let named = it.maps.words.iter().filter(|word| !word.is_empty());
        let maps = named.map(find).collect::<Result<Vec<_>, _>>()?;
        if maps.is_empty() {
            return Err(ArgError::new("no IP rewriters supplied"));
        }
        let others =
            if setup.outputs > 1 { ICMPRewriterExit::OTHERS } else { ICMPRewriterExit::UNMAPPED };
        Ok(ICMPRewriter { maps, dst_anno: it.dst_anno, reply_anno: it.reply_anno, others })
    }
}

/// Parses `NAME` or `NAME:OFFSET`: a rewriter, and the offset of its outputs here.
fn map(word: &str, setup: &Setup) -> Result<(RewriterRef, Option<u8>), ArgError> {
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
    /// Rewrites one message; `None` if it quotes no rewritten packet.
    fn rewrite(&self, packet: &mut Packet, worker: usize) -> Option<ICMPRewriterExit> {
        let mut ip = packet.ipv4()?;
        let quote: QuotedPacket = parse_quote(ip.payload())?;
        let (restored, offset) = self.maps.iter().find_map(|(it, offset)| {
            let table = it.tables.get(worker)?;
            let found = table.read(|table| table.original(table.zone(&it.member)?, &quote));
            Some((found?, *offset))
        })?;
        let receiver = rewrite_error(ip.datagram_mut(), &restored);
        receiver.iter().filter(|_| self.dst_anno).for_each(|dst| packet.set_dst(*dst));
        if let (Some(field), Some(anno)) = (self.reply_anno, restored.anno) {
            field.set(packet, anno);
        }
        Some(ICMPRewriterExit::output(offset.map_or(0, |offset| offset + restored.output)))
    }
}

impl PerBatch for ICMPRewriter {
    type On = on::Icmp;
    type Local = ();
    type Fate = ICMPRewriterExit;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            let exit = self.rewrite(&mut packet, cx.worker()).unwrap_or(self.others);
            cx.emit(exit, packet);
        }
    }
}
