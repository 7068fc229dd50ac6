//! `NumberPacket`: writes consecutive numbers into packets.

use super::record_timestamp::NumberFormat;
use castanet_element::prelude::*;
use castanet_element::wire::number::{ByteOrder, LEN, write};

/// Writes consecutive numbers into packets.
///
/// The number has 8 bytes. A packet that is too short for it is extended, and the
/// length in its IP header increased if the header is marked. All workers share one
/// sequence.
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
#[element(room = "measure", args = NumberPacketArgs)]
pub struct NumberPacket(NumberPacketArgs);

#[derive(Args)]
pub struct NumberPacketArgs {
    /// Offset of the number in the packet, in bytes.
    #[arg(default = 40, range = ..=1048576)]
    offset: u32,
    /// Whether to write in network byte order, rather than that of this machine.
    #[arg(keyword, default = false)]
    net_order: bool,
}

/// The next number.
#[derive(Default, Local)]
#[write(reset)]
pub struct NumberPacketState {
    /// Number of packets that were numbered.
    #[read]
    #[portable]
    count: u64,
}

/// The byte order of numbers.
pub(super) fn byte_order(net_order: bool) -> ByteOrder {
    if net_order { ByteOrder::Network } else { ByteOrder::Host }
}

impl Build for NumberPacket {
    type Args = NumberPacketArgs;

    fn build(args: NumberPacketArgs, setup: &Setup) -> Result<Self, ArgError> {
        setup.own_shared::<NumberFormat>().with(|format| format.net_order = args.net_order);
        Ok(NumberPacket(args))
    }
}

impl PerPacket for NumberPacket {
    type On = on::Any;
    type Local = NumberPacketState;
    type Fate = ();
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, state: &mut NumberPacketState, packet: &mut Packet) {
        let offset = self.0.offset as usize;
        if packet.len() < offset + LEN {
            extend(packet, offset + LEN);
        }
        write(packet.bytes_mut(), offset, byte_order(self.0.net_order), state.count);
        state.count += 1;
    }
}

/// Extends a packet to `len` bytes, also in its IP header.
#[cold]
fn extend(packet: &mut Packet, len: usize) {
    packet.put_back(len - packet.len());
    let header = packet.network_offset().and_then(|at| usize::try_from(at).ok());
    if let (Some(at), Some(mut ip)) = (header, packet.ipv4()) {
        ip.rewrite_total_len((len - at).min(u16::MAX.into()) as u16);
    }
}
