//! `SetPacketType`: sets the packet type annotation.

use castanet_element::prelude::*;

/// Sets the packet type annotation, such as host, broadcast or multicast.
///
/// ```click
/// in -> SetPacketType(MULTICAST) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// < out 1.0.0.1 > 2.0.0.2 udp ; type multicast
/// ```
///
/// ```click
/// in -> SetPacketType(LOOPBACK) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; type loopback
/// ```
#[derive(Element)]
#[element(room = "annotate", args = SetPacketTypeArgs)]
pub struct SetPacketType {
    kind: PacketType,
}

#[derive(Args)]
pub struct SetPacketTypeArgs {
    /// The packet type, one of HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING and LOOPBACK.
    #[arg(name = "TYPE")]
    kind: String,
}

impl Build for SetPacketType {
    type Args = SetPacketTypeArgs;

    fn build(args: SetPacketTypeArgs, _: &Setup) -> Result<Self, ArgError> {
        let kind = match args.kind.to_ascii_uppercase().as_str() {
            "HOST" => PacketType::Host,
            "BROADCAST" => PacketType::Broadcast,
            "MULTICAST" => PacketType::Multicast,
            "OTHERHOST" => PacketType::OtherHost,
            "OUTGOING" => PacketType::Outgoing,
            "LOOPBACK" => PacketType::Loopback,
            _ => {
                let kinds = "HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING or LOOPBACK";
                return Err(ArgError::new(format!("`{}` is no packet type", args.kind))
                    .click("packet type must be HOST, BROADCAST, MULTICAST, OTHERHOST, or OUTGOING")
                    .help(format!("it wants {kinds}")));
            }
        };
        Ok(SetPacketType { kind })
    }
}

impl PerPacket for SetPacketType {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        packet.set_packet_type(self.kind);
    }
}
