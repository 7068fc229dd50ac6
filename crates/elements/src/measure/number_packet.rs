//! `NumberPacket`: a number in every packet.

use super::record_timestamp::Numbering;
use castanet_engine::prelude::*;
use castanet_engine::wire::number::{ByteOrder, LEN, write};

/// Writes a number into each packet, one higher than into the one before.
///
/// The number has eight bytes; a packet that ends before it is made longer, and
/// so is the length in its IP header if that was marked. All workers count together.
///
/// ```click
/// in -> n :: NumberPacket(OFFSET 2, NET_ORDER true) -> out
/// > in  hex 01 02 03 04 05 06 07 08 09 0a
/// > in  hex 01 02
/// < out hex 01 02 00 00 00 00 00 00 00 00
/// < out hex 01 02 00 00 00 00 00 00 00 01
/// = n.count 2
/// ! n.reset
/// = n.count 0
/// ```
///
/// ```click
/// in -> NumberPacket -> c :: CheckIPHeader -> k :: Counter -> CheckNumberPacket(40, 1) -> Discard
/// > in 1.0.0.1 > 2.0.0.2 udp len 28
/// = c.drops 0
/// = k.byte_count 48
/// ```
#[derive(Element)]
#[element(room = "measure", args = Format)]
pub struct NumberPacket(Format);

#[derive(Args)]
pub struct Format {
    /// Where in the packet.
    #[arg(default = 40, range = ..=1048576)]
    offset: u32,
    /// Whether the most significant byte comes first, rather than as this machine has it.
    #[arg(keyword, default = false)]
    net_order: bool,
}

/// How many have been numbered.
#[derive(Default, Local)]
#[write(reset)]
pub struct Next {
    /// Packets.
    #[read]
    count: u64,
}

/// In which order the bytes of a number lie.
pub(super) fn order(net_order: bool) -> ByteOrder {
    if net_order { ByteOrder::Network } else { ByteOrder::Host }
}

impl Build for NumberPacket {
    type Args = Format;

    fn build(args: Format, setup: &Setup) -> Result<Self, ArgError> {
        setup.own::<Numbering>().with(|numbering| numbering.net_order = args.net_order);
        Ok(NumberPacket(args))
    }
}

impl PerPacket for NumberPacket {
    type On = on::Any;
    type Local = Next;
    type Fate = ();
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, next: &mut Next, packet: &mut Packet) {
        let offset = self.0.offset as usize;
        if packet.len() < offset + LEN {
            lengthen(packet, offset + LEN);
        }
        write(packet.bytes_mut(), offset, order(self.0.net_order), next.count);
        next.count += 1;
    }
}

/// Makes a packet longer, in its IP header too.
#[cold]
fn lengthen(packet: &mut Packet, len: usize) {
    packet.put_back(len - packet.len());
    let header = packet.network_offset().and_then(|at| usize::try_from(at).ok());
    if let (Some(at), Some(mut ip)) = (header, packet.ipv4()) {
        ip.rewrite_total_len((len - at).min(u16::MAX.into()) as u16);
    }
}
