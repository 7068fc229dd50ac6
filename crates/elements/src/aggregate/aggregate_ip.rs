//! `AggregateIP`: sets the aggregate to a header field.

use super::annotation::set;
use castanet_element::prelude::*;
use castanet_kit::ip_field::IpField;

/// Sets each packet's aggregate annotation to a field of its IP or transport header.
///
/// A field is a name such as `ip src` or `tcp ack` (the flag; `tcp ackno` is the number), or
/// bytes such as `ip[12:4]`, or bits such as `transp{0-15}`; a mask, `/8` or `& 0xff00`, selects
/// part of it, and so does a position, as in `ip src[1]`. `ip proto 47[0:2]` are bytes of the
/// header of protocol 47. `sport` and `dport` are those of TCP or UDP, `data[0]` is the first
/// byte of their data. A field lies in one word of 32 bits. Packets that do not have all of its
/// word leave by the second output.
///
/// ```click
/// in -> a :: AggregateIP(ip src/8) -> AggregateIP(udp dport & 0xff, INCREMENTAL true)
///    -> c :: AggregateCounter -> f :: AggregateFilter(1 309, 0 all) -> other
/// a[1] -> none;  f[1] -> out
/// > in   1.0.0.1:5 > 2.0.0.2:53 udp
/// > in   1.0.0.1:5 > 2.0.0.2:54 udp
/// > in   hex 01 02
/// < none hex 01 02
/// = a.header ip
/// = a.field ip src/8
/// = a.bit_offset 96
/// = a.bit_length 8
/// = c.count 2
/// < out   1.0.0.1:5 > 2.0.0.2:53 udp
/// < other 1.0.0.1:5 > 2.0.0.2:54 udp
/// ```
///
/// ```click
/// in -> AggregateIP(ip src/8, UNSHIFT_IP_ADDR true) -> f :: AggregateFilter(0 16777216, 1 all) -> out;  f[1] -> other
/// > in  1.2.3.4 > 2.0.0.2 udp
/// < out 1.2.3.4 > 2.0.0.2 udp
/// ```
///
/// ```click
/// in -> a :: AggregateIP(tcp[13] & 0x10) -> f :: AggregateFilter(1 1, 0 all) -> other;  f[1] -> acks
/// > in    1.0.0.1:5 > 2.0.0.2:80 tcp ack
/// > in    1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// < acks  1.0.0.1:5 > 2.0.0.2:80 tcp ack
/// < other 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = a.header tcp
/// = a.field tcp ack
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = AggregateIPArgs, methods)]
pub struct AggregateIP {
    field: IpField,
    incremental: bool,
    /// Number of bits by which a masked part of an address is shifted left.
    shift: u32,
}

#[derive(Args)]
pub struct AggregateIPArgs {
    /// The field, with its mask.
    #[arg]
    field: String,
    /// Whether the field is appended to the bits of the annotation, rather than replaces it.
    #[arg(keyword, default = false)]
    incremental: bool,
    /// Whether a masked part of an address keeps its bit position.
    #[arg(keyword, default = false)]
    unshift_ip_addr: bool,
}

impl Build for AggregateIP {
    type Args = AggregateIPArgs;

    fn build(args: AggregateIPArgs, _: &Setup) -> Result<Self, ArgError> {
        let field = IpField::parse(&args.field)
            .map_err(|e| ArgError::new(format!("FIELD: {}", e.message)).click(e.click))?;
        if args.incremental && field.bit_length == 32 {
            let error = ArgError::new("no bit of the annotation is left for INCREMENTAL");
            let click = "'INCREMENTAL' is incompatible with field length 32";
            return Err(error.click(click).help("a mask such as /16 makes the field shorter"));
        }
        if args.incremental && args.unshift_ip_addr {
            return Err(ArgError::new("INCREMENTAL and UNSHIFT_IP_ADDR are incompatible"));
        }
        let shift = field.address_shift().filter(|_| args.unshift_ip_addr).unwrap_or(0);
        Ok(AggregateIP { field, incremental: args.incremental, shift })
    }
}

#[handlers]
impl AggregateIP {
    /// The header in which the field lies, such as `ip`, `tcp` or `data`.
    #[read]
    fn header(&self) -> String {
        self.field.header_name()
    }
    /// The field by its name, if it or an octet or word around it has one.
    #[read]
    fn field(&self) -> String {
        self.field.canonical()
    }
    /// Offset of the field in bits from the start of the header.
    #[read]
    fn bit_offset(&self) -> u32 {
        self.field.bit_offset
    }
    /// Length of the field in bits.
    #[read]
    fn bit_length(&self) -> u32 {
        self.field.bit_length
    }
}

#[derive(Fate)]
pub enum AggregateIPExit {
    /// Packets with the field.
    Marked,
    /// Packets without the field.
    #[optional]
    Without,
}

impl PerPacket for AggregateIP {
    type On = on::Any;
    type Local = ();
    type Fate = AggregateIPExit;

    fn packet(&self, _: &mut (), packet: &mut Packet) -> AggregateIPExit {
        let value = packet.ipv4().and_then(|ip| self.field.value(ip.datagram()));
        let Some(value) = value else { return AggregateIPExit::Without };
        set(packet, value << self.shift, self.incremental.then_some(self.field.bit_length));
        AggregateIPExit::Marked
    }
}
