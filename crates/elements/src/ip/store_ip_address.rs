//! `StoreIPAddress`: an address into the packet.

use castanet_engine::prelude::*;

/// Writes an IPv4 address into each packet.
///
/// With one argument the destination annotation is written, if it is not zero;
/// with two, ADDRESS. OFFSET counts bytes, and no checksum is touched; or it is
/// `src` or `dst` for the field of the marked IPv4 header, and then the
/// checksums of IP, TCP and UDP are mended. A packet that ends before OFFSET
/// stays as it is.
///
/// ```click
/// in -> StoreIPAddress(2) -> out
/// > in  hex 00 00 00 00 00 00 00 ; dst 1.2.3.4
/// > in  hex 00 00 00 00 00 00 00
/// > in  hex 00 00 ; dst 1.2.3.4
/// < out hex 00 00 01 02 03 04 00
/// < out hex 00 00 00 00 00 00 00
/// < out hex 00 00
/// ```
/// ```click
/// in -> StoreIPAddress(9.9.9.9, src) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp "data"
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp
/// > in  1.0.0.1 > 2.0.0.2 udp frag 8
/// < out 9.9.9.9:5 > 2.0.0.2:6 udp "data"
/// < out 9.9.9.9:5 > 2.0.0.2:6 tcp
/// < out 9.9.9.9 > 2.0.0.2 udp frag 8
/// ```
#[derive(Element)]
#[element(room = "ip", args = Where)]
pub struct StoreIPAddress {
    address: Option<Ipv4Addr>,
    place: Place,
}

/// Where in the packet.
pub enum Place {
    Offset(usize),
    Src,
    Dst,
}

impl FromArg for Place {
    const SYNTAX: &'static str = "an offset in bytes, src or dst";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match text {
            "src" => Ok(Place::Src),
            "dst" => Ok(Place::Dst),
            _ => Ok(Place::Offset(u32::from_arg(text, names)? as usize)),
        }
    }
}

#[derive(Args)]
pub struct Where {
    /// OFFSET, or ADDRESS and OFFSET; OFFSET may be `src` or `dst`.
    #[arg(rest)]
    arguments: Vec<String>,
}

impl Build for StoreIPAddress {
    type Args = Where;
    fn build(args: Where, setup: &Setup) -> Result<Self, ArgError> {
        let (address, offset) = match args.arguments.as_slice() {
            [offset] => (None, offset),
            [address, offset] => {
                let address = Ipv4Addr::from_arg(address, setup.names);
                (Some(address.map_err(|e| e.at("ADDRESS"))?), offset)
            }
            [] => return Err(ArgError::new("OFFSET: required argument missing")),
            _ => return Err(ArgError::new("too many arguments")),
        };
        let place = Place::from_arg(offset, setup.names).map_err(|e| e.at("OFFSET"))?;
        Ok(StoreIPAddress { address, place })
    }
}

impl PerPacket for StoreIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let annotated = || Some(packet.dst()).filter(|dst| !dst.is_unspecified());
        let Some(address) = self.address.or_else(annotated) else { return };
        let offset = match self.place {
            Place::Offset(offset) => offset,
            Place::Src | Place::Dst => return self.rewrite(packet, address),
        };
        let place = packet.len() >= offset.saturating_add(4);
        if place && let Some(bytes) = packet.bytes_mut()[offset..].first_chunk_mut::<4>() {
            *bytes = address.octets();
        }
    }
}

impl StoreIPAddress {
    fn rewrite(&self, packet: &mut Packet, address: Ipv4Addr) {
        let Some(mut ip) = packet.ipv4() else { return };
        let delta = match self.place {
            Place::Src => ip.rewrite_src(address),
            _ => ip.rewrite_dst(address),
        };
        if let Some(mut tcp) = packet.tcp() {
            tcp.adjust_checksum(delta);
        } else if let Some(mut udp) = packet.udp() {
            udp.adjust_checksum(delta);
        }
    }
}
