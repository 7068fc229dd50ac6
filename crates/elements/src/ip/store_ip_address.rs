//! `StoreIPAddress`: writes an IPv4 address into packets.

use castanet_element::prelude::*;

/// Writes an IPv4 address into each packet.
///
/// With one argument, OFFSET, the element writes the destination annotation,
/// unless it is 0.0.0.0; with two it writes ADDR. OFFSET is an offset from
/// the start of the packet in bytes, and then no checksum changes; or it is
/// `src` or `dst` for that field of the marked IPv4 header, and then the
/// checksums of IP, TCP and UDP are updated. A packet without room for 4 bytes
/// at OFFSET stays as it is.
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
/// in -> StoreIPAddress(OFFSET src, ADDR 9.9.9.9) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp "data"
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp
/// > in  1.0.0.1 > 2.0.0.2 udp frag 8
/// < out 9.9.9.9:5 > 2.0.0.2:6 udp "data"
/// < out 9.9.9.9:5 > 2.0.0.2:6 tcp
/// < out 9.9.9.9 > 2.0.0.2 udp frag 8
/// ```
/// ```click
/// in -> StoreIPAddress(1.2.3.4, 1) -> StoreIPAddress(OFFSET 5) -> out
/// > in  hex 00 00 00 00 00 00 00 00 00 ; dst 5.6.7.8
/// < out hex 00 01 02 03 04 05 06 07 08
/// ```
#[derive(Element)]
#[element(room = "ip", args = StoreIPAddressArgs)]
pub struct StoreIPAddress {
    address: Option<Ipv4Addr>,
    field: AddressField,
}

/// The location to write to.
pub enum AddressField {
    Offset(usize),
    Src,
    Dst,
}

impl FromArg for AddressField {
    const SYNTAX: &'static str = "an offset in bytes, src or dst";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match text {
            "src" => Ok(AddressField::Src),
            "dst" => Ok(AddressField::Dst),
            _ => Ok(AddressField::Offset(u32::from_arg(text, names)? as usize)),
        }
    }
}

#[derive(Args)]
pub struct StoreIPAddressArgs {
    /// The address; that of the destination annotation if it is missing.
    #[arg(keyword)]
    addr: Option<Ipv4Addr>,
    /// Offset of the address in the packet in bytes, or `src` or `dst`.
    #[arg(keyword)]
    offset: Option<AddressField>,
    /// OFFSET, or ADDR and OFFSET, unless keywords say them.
    #[arg(rest)]
    arguments: Vec<String>,
}

impl Build for StoreIPAddress {
    type Args = StoreIPAddressArgs;
    fn build(args: StoreIPAddressArgs, setup: &Setup) -> Result<Self, ArgError> {
        let mut places = args.arguments.as_slice();
        let field = match (args.offset, places.split_last()) {
            (Some(field), _) => field,
            (None, Some((offset, before))) => {
                places = before;
                AddressField::from_arg(offset, setup.names).map_err(|e| e.at("OFFSET"))?
            }
            (None, None) => return Err(ArgError::new("OFFSET: required argument missing")),
        };
        let address = match (args.addr, places) {
            (address, []) => address,
            (None, [address]) => {
                let address = Ipv4Addr::from_arg(address, setup.names);
                Some(address.map_err(|e| e.at("ADDR"))?)
            }
            _ => return Err(ArgError::new("too many arguments")),
        };
        Ok(StoreIPAddress { address, field })
    }
}

impl PerPacket for StoreIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let annotation = || Some(packet.dst()).filter(|dst| !dst.is_unspecified());
        let Some(address) = self.address.or_else(annotation) else { return };
        let offset = match self.field {
            AddressField::Offset(offset) => offset,
            AddressField::Src | AddressField::Dst => return self.rewrite(packet, address),
        };
        let has_room = packet.len() >= offset.saturating_add(4);
        if has_room && let Some(bytes) = packet.bytes_mut()[offset..].first_chunk_mut::<4>() {
            *bytes = address.octets();
        }
    }
}

impl StoreIPAddress {
    fn rewrite(&self, packet: &mut Packet, address: Ipv4Addr) {
        let Some(mut ip) = packet.ipv4() else { return };
        let delta = match self.field {
            AddressField::Src => ip.rewrite_src(address),
            _ => ip.rewrite_dst(address),
        };
        if let Some(mut tcp) = packet.tcp() {
            tcp.adjust_checksum(delta);
        } else if let Some(mut udp) = packet.udp() {
            udp.adjust_checksum(delta);
        }
    }
}
