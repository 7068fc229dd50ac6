//! `StoreIPAddress`: writes an IPv4 address into packets.

use castanet_element::prelude::*;
use castanet_element::wire::ipv4::{IpSide, rewrite_address};

/// Writes an IPv4 address into each packet.
///
/// With one argument, OFFSET, the element writes the destination annotation; with two it writes
/// ADDR. OFFSET is an offset from the start of the packet in bytes, and then no checksum changes; or
/// it is `src` or `dst` for that field of the marked IP header, whatever its version, and then the
/// checksums of IP, TCP and UDP change by as much as the address. Packets without such a header,
/// without room for 4 bytes at OFFSET or, where OFFSET is a number, without a destination
/// annotation leave by the second output.
///
/// ```click
/// in -> s :: StoreIPAddress(2) -> out;  s[1] -> others
/// > in  hex 00 00 00 00 00 00 00 ; dst 1.2.3.4
/// > in  hex 00 00 00 00 00 00 00
/// > in  hex 00 00 ; dst 1.2.3.4
/// < out hex 00 00 01 02 03 04 00
/// < others hex 00 00 00 00 00 00 00
/// < others hex 00 00
/// ```
/// ```click
/// in -> StoreIPAddress(OFFSET SRC, ADDR 9.9.9.9) -> out
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
#[element(room = "ip", args = StoreIPAddressArgs, processing = "a/ah")]
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
        match text.to_ascii_lowercase().as_str() {
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

#[derive(Fate)]
pub enum StoreIPAddressExit {
    /// Packets with the address.
    Stored,
    /// Packets without a place for it, or without an address for the place.
    #[optional]
    Others,
}

impl PerPacket for StoreIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = StoreIPAddressExit;

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) -> StoreIPAddressExit {
        match self.store(packet) {
            true => StoreIPAddressExit::Stored,
            false => StoreIPAddressExit::Others,
        }
    }
}

impl StoreIPAddress {
    /// Stores the address; whether there was a place and an address.
    #[inline]
    fn store(&self, packet: &mut Packet) -> bool {
        let address = self.address.unwrap_or(packet.dst());
        let (offset, side) = match self.field {
            AddressField::Offset(offset) => (Some(offset), None),
            AddressField::Src => (header_offset(packet), Some(IpSide::Src)),
            AddressField::Dst => (header_offset(packet), Some(IpSide::Dst)),
        };
        let is_missing = self.address.is_none() && address.is_unspecified() && side.is_none();
        let Some(offset) = offset.filter(|&at| at < packet.len() && !is_missing) else {
            return false;
        };
        if let Some(side) = side {
            return rewrite_address(&mut packet.bytes_mut()[offset..], side, address);
        }
        let place = packet.bytes_mut()[offset..].first_chunk_mut::<4>();
        place.map(|bytes| *bytes = address.octets()).is_some()
    }
}

/// Where the marked IP header begins.
fn header_offset(packet: &Packet) -> Option<usize> {
    usize::try_from(packet.network_offset()?).ok()
}
