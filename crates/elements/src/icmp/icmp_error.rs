//! `ICMPError`: sends ICMP errors about IPv4 packets.

use super::icmp_error_message::{ErrorMessage, ICMPErrorExit};
use castanet_element::prelude::*;
use castanet_element::wire::{icmp, names};
use castanet_kit::icmp_error;

/// Turns IPv4 packets into ICMP errors or redirects to their senders.
///
/// The element sends no error about an ICMP error, a broadcast or multicast, a
/// later fragment, or a packet whose source is not the address of one host (RFC
/// 1812, 4.3.2.7). A redirect contains the gateway in the destination
/// annotation, a parameter problem the offset in the parameter problem
/// annotation, and "fragmentation needed" contains PMTU. The error about a
/// source-routed packet takes the reversed route. The element sets the Fix IP
/// Source annotation for `FixIPSrc`.
///
/// ```click
/// in -> e :: ICMPError(9.9.9.9, timeexceeded, transit, BADADDRS 1.0.0.255) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ttl 1
/// > in  1.0.0.1 > 2.0.0.2 udp hl 4
/// > in  1.0.0.1 > 2.0.0.2 icmp type unreachable
/// > in  1.0.0.1 > 224.0.0.1 udp
/// > in  1.0.0.1 > 2.0.0.2 udp ; type broadcast
/// > in  1.0.0.255 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 proto 9 frag 8
/// < out 9.9.9.9 > 1.0.0.1 icmp ttl 200 id 1 type timeexceeded [1.0.0.1 > 2.0.0.2 udp ttl 1] ; dst 1.0.0.1 fixipsrc 1
/// = e.drops.malformed 1
/// = e.drops.about_error 1
/// = e.drops.group_destination 1
/// = e.drops.link_group 1
/// = e.drops.bad_source 1
/// = e.drops.later_fragment 1
/// = e.src 9.9.9.9
/// ```
/// ```click
/// in -> e :: ICMPError(9.9.9.9, redirect, host) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ipopt 0x83070401010101
/// = e.drops.routed_redirect 1
/// ```
#[derive(Clone, Element)]
#[element(room = "icmp", args = ICMPErrorArgs, methods, headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct ICMPError {
    src: Ipv4Addr,
    kind: u8,
    code: u8,
    bad_addresses: Vec<u32>,
    mtu: u32,
    pmtu: u16,
    sets_fix_anno: bool,
}

#[derive(Args)]
pub struct ICMPErrorArgs {
    /// Source address of the errors.
    #[arg]
    src: Ipv4Addr,
    /// ICMP type: `unreachable`, `timeexceeded`, `parameterproblem`, `redirect`, `sourcequench`, or
    /// its number.
    #[arg(name = "TYPE")]
    kind: String,
    /// ICMP code, by name or number.
    #[arg(default = "0".to_owned())]
    code: String,
    /// Addresses that are not those of one host, such as broadcast addresses.
    #[arg(default = Vec::new())]
    badaddrs: Vec<Ipv4Addr>,
    /// Maximum length of an error, in bytes.
    #[arg(keyword, default = 576)]
    mtu: u32,
    /// MTU in "fragmentation needed" errors, in bytes.
    #[arg(keyword, default = 0)]
    pmtu: u16,
    /// Whether to set the Fix IP Source annotation, for `FixIPSrc`.
    #[arg(keyword, default = true)]
    set_fix_anno: bool,
    /// The same as SET_FIX_ANNO, by the name in Click's manual.
    #[arg(keyword)]
    use_fix_anno: Option<bool>,
}

impl Build for ICMPError {
    type Args = ICMPErrorArgs;
    fn build(args: ICMPErrorArgs, _: &Setup) -> Result<Self, ArgError> {
        let kind = names::icmp_type_number(&args.kind)
            .ok_or_else(|| ArgError::new("ICMP type must be between 0 and 255").at("TYPE"))?;
        if !icmp::is_error(kind) {
            return Err(ArgError::new(format!("ICMP type {kind} is not an error type")));
        }
        let code = names::icmp_code_number(kind, &args.code).ok_or_else(|| {
            ArgError::new("argument 2 takes ICMP code (integer between 0 and 255)")
        })?;
        let bad_addresses = args.badaddrs.iter().map(|a| a.to_bits()).collect();
        let sets_fix_anno = args.use_fix_anno.unwrap_or(args.set_fix_anno);
        let (src, mtu, pmtu) = (args.src, args.mtu, args.pmtu);
        Ok(ICMPError { src, kind, code, bad_addresses, mtu, pmtu, sets_fix_anno })
    }
}

#[handlers]
impl ICMPError {
    /// Source address of the errors.
    #[read(src)]
    fn read_src(&self) -> Ipv4Addr {
        self.src
    }
    /// Sets the source address of the errors.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { src: Ipv4Addr::from_arg(text, names)?, ..self.clone() })
    }
    /// Maximum length of an error, in bytes.
    #[read(mtu)]
    fn read_mtu(&self) -> String {
        self.mtu.to_string()
    }
    /// Sets the maximum length of an error.
    #[write(mtu)]
    fn set_mtu(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { mtu: u32::from_arg(text, names)?, ..self.clone() })
    }
    /// MTU in "fragmentation needed" errors, in bytes.
    #[read(pmtu)]
    fn read_pmtu(&self) -> u16 {
        self.pmtu
    }
    /// Sets the MTU in "fragmentation needed" errors.
    #[write(pmtu)]
    fn set_pmtu(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { pmtu: u16::from_arg(text, names)?, ..self.clone() })
    }
}

/// The identification of the last error, and the time of the burst.
#[derive(Default, Local)]
pub struct ICMPErrorState {
    id: u16,
    now: Time,
}

impl PerPacket for ICMPError {
    type On = on::Ipv4;
    type Local = ICMPErrorState;
    type Fate = ICMPErrorExit;
    const SHARED: bool = true;

    #[inline]
    fn begin_burst(&self, state: &mut ICMPErrorState, now: Time) {
        state.now = now;
    }

    #[inline]
    fn packet(&self, state: &mut ICMPErrorState, ip: Ipv4) -> ICMPErrorExit {
        use PacketType::{Broadcast, Multicast};
        let is_link_group = matches!(ip.packet().packet_type(), Broadcast | Multicast);
        let bytes = ip.packet().network_bytes();
        if let Err(suppression) =
            icmp_error::check_allowed(bytes, self.kind, is_link_group, &self.bad_addresses)
        {
            return suppression.into();
        }
        state.id = state.id.wrapping_add(1);
        let (src, kind, code, pmtu) = (self.src, self.kind, self.code, self.pmtu);
        let (mtu, id, now) = (self.mtu as usize, state.id, state.now);
        let dst = ip.src();
        let packet = ip.into_packet();
        ErrorMessage { src, kind, code, mtu, pmtu, id, now }.apply(packet, dst);
        packet.set_fix_ip_src(self.sets_fix_anno);
        ICMPErrorExit::Error
    }
}
