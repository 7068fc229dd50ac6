//! `SetPacketType`: whom a packet is for.

use castanet_engine::prelude::*;

/// Sets whom the link layer meant packets for.
///
/// ```click
/// in -> SetPacketType(MULTICAST) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// < out 1.0.0.1 > 2.0.0.2 udp ; type multicast
/// ```
#[derive(Element)]
#[element(room = "annotate", args = Word)]
pub struct SetPacketType {
    kind: PacketType,
}

#[derive(Args)]
pub struct Word {
    /// One of HOST, BROADCAST, MULTICAST, OTHERHOST and OUTGOING.
    #[arg(name = "TYPE")]
    kind: String,
}

impl Build for SetPacketType {
    type Args = Word;

    fn build(args: Word, _: &Setup) -> Result<Self, ArgError> {
        let kind = match args.kind.to_ascii_uppercase().as_str() {
            "HOST" => PacketType::Host,
            "BROADCAST" => PacketType::Broadcast,
            "MULTICAST" => PacketType::Multicast,
            "OTHERHOST" => PacketType::OtherHost,
            "OUTGOING" => PacketType::Outgoing,
            _ => {
                let kinds = "HOST, BROADCAST, MULTICAST, OTHERHOST or OUTGOING";
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
