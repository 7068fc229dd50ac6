//! `GREEncap`: prepends GRE headers.

use super::tunnel_protocol::TunnelProtocol;
use castanet_element::prelude::*;
use castanet_element::wire::GreHeader;

/// Prepends a GRE header to each packet.
///
/// The header is that of RFC 2784, with key and sequence number of RFC 2890. `IPEncap(gre, SRC, DST)` prepends the
/// IP header.
///
/// ```click
/// in -> e :: GREEncap(ip) -> out
/// > in  hex 61 62
/// < out hex 00 00 08 00 61 62
/// ! e.key 258
/// = e.key 258
/// > in  hex 61 62
/// < out hex 20 00 08 00 00 00 01 02 61 62
/// ```
///
/// ```click
/// in -> GREEncap(ethernet, CHECKSUM true, KEY 7) -> out
/// > in  hex 61 62
/// < out hex a0 00 65 58 99 3d 00 00 00 00 00 07 61 62
/// ```
///
/// ```click
/// in -> GREEncap(ip, SEQUENCE true) -> out
/// > in  hex 61
/// > in  hex 62
/// < out hex 10 00 08 00 00 00 00 01 61
/// < out hex 10 00 08 00 00 00 00 02 62
/// ```
#[derive(Clone, Element)]
#[element(room = "tunnel", args = GREEncapArgs)]
pub struct GREEncap {
    protocol: TunnelProtocol,
    checksum: bool,
    /// The key.
    #[arg(live)]
    key: Option<u32>,
    sequence: bool,
    /// Whether key 0 means none.
    is_zero_none: bool,
}

#[derive(Args)]
pub struct GREEncapArgs {
    /// Protocol of the packets: `ip`, `ip6`, `ethernet`, or an EtherType.
    #[arg]
    protocol: TunnelProtocol,
    /// Whether headers have a checksum over header and packet.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The key; without it, headers have none, nor with 0 under the name `click`.
    #[arg(keyword)]
    key: Option<u32>,
    /// Whether headers have a sequence number, from 1 on.
    #[arg(keyword, default = false)]
    sequence: bool,
}

impl Build for GREEncap {
    type Args = GREEncapArgs;

    fn build(args: GREEncapArgs, setup: &Setup) -> Result<Self, ArgError> {
        let GREEncapArgs { protocol, checksum, key, sequence } = args;
        // A key may be 0 (RFC 2890), but for FastClick.
        Ok(GREEncap { protocol, checksum, key, sequence, is_zero_none: setup.as_click })
    }
}

/// The number of the last packet.
#[derive(Default, Local)]
pub struct GRESequence {
    last: u32,
}

impl PerPacket for GREEncap {
    type On = on::Any;
    type Local = GRESequence;
    type Fate = ();
    // One tunnel has one sequence of numbers.
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, state: &mut GRESequence, packet: &mut Packet) {
        let GREEncap { protocol, checksum: has_checksum, key, .. } = *self;
        let key = key.filter(|&key| key != 0 || !self.is_zero_none);
        let sequence = self.sequence.then(|| {
            state.last = state.last.wrapping_add(1);
            state.last
        });
        let header = GreHeader { protocol: protocol.0, key, has_checksum, sequence };
        packet.push_front(header.length());
        header.write(packet.bytes_mut());
    }
}
