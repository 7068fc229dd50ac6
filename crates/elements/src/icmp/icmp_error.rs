//! `ICMPError`: tells senders why their packets went no further.

use super::error_message::{Message, Reply};
use castanet_engine::prelude::*;
use castanet_engine::wire::names;
use castanet_kit::icmp_error;

/// Turns packets into the ICMP errors about them, addressed to their senders.
///
/// No error is sent about an error, a broadcast, a later fragment or a packet
/// whose source is no host's (RFC 1812, 4.3.2.7). A redirect names the
/// gateway in the destination annotation, a parameter problem the byte in its
/// annotation, "fragmentation needed" PMTU. A source route is sent back the
/// way it came. The `FIX_IP_SRC` annotation is set, for `FixIPSrc`.
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
#[element(room = "icmp", args = About, methods)]
pub struct ICMPError {
    src: Ipv4Addr,
    kind: u8,
    code: u8,
    bad: Vec<u32>,
    mtu: u32,
    pmtu: u16,
    fix: bool,
}

#[derive(Args)]
pub struct About {
    /// Source address of the errors.
    #[arg]
    src: Ipv4Addr,
    /// Type: `unreachable`, `timeexceeded`, `parameterproblem`, `redirect`, `sourcequench` or its number.
    #[arg(name = "TYPE")]
    kind: String,
    /// Code, by name or number.
    #[arg(default = "0".to_owned())]
    code: String,
    /// Addresses known not to be single hosts'.
    #[arg(default = Vec::new())]
    badaddrs: Vec<Ipv4Addr>,
    /// The longest error, in bytes.
    #[arg(keyword, default = 576)]
    mtu: u32,
    /// The MTU that "fragmentation needed" tells.
    #[arg(keyword, default = 0)]
    pmtu: u16,
    /// Whether to ask `FixIPSrc` for the outgoing interface's address.
    #[arg(keyword, default = true)]
    set_fix_anno: bool,
    /// The same, by the name that Click's manual has for it.
    #[arg(keyword)]
    use_fix_anno: Option<bool>,
}

impl Build for ICMPError {
    type Args = About;
    fn build(args: About, _: &Setup) -> Result<Self, ArgError> {
        let kind = names::icmp_type_number(&args.kind)
            .ok_or_else(|| ArgError::new("ICMP type must be between 0 and 255").at("TYPE"))?;
        if !icmp_error::is_error(kind) {
            return Err(ArgError::new(format!("ICMP type {kind} is not an error type")));
        }
        let code = names::icmp_code_number(kind, &args.code).ok_or_else(|| {
            ArgError::new("argument 2 takes ICMP code (integer between 0 and 255)")
        })?;
        let bad = args.badaddrs.iter().map(|a| a.to_bits()).collect();
        let fix = args.use_fix_anno.unwrap_or(args.set_fix_anno);
        let (src, mtu, pmtu) = (args.src, args.mtu, args.pmtu);
        Ok(ICMPError { src, kind, code, bad, mtu, pmtu, fix })
    }
}

#[handlers]
impl ICMPError {
    /// Source address of the errors.
    #[read(src)]
    fn read_src(&self) -> Ipv4Addr {
        self.src
    }
    /// Changes the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { src: Ipv4Addr::from_arg(text, names)?, ..self.clone() })
    }
    /// The longest error.
    #[read(mtu)]
    fn read_mtu(&self) -> String {
        self.mtu.to_string()
    }
    /// Changes the longest error.
    #[write(mtu)]
    fn set_mtu(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { mtu: u32::from_arg(text, names)?, ..self.clone() })
    }
    /// The MTU that is told.
    #[read(pmtu)]
    fn read_pmtu(&self) -> u16 {
        self.pmtu
    }
    /// Changes the MTU that is told.
    #[write(pmtu)]
    fn set_pmtu(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPError { pmtu: u16::from_arg(text, names)?, ..self.clone() })
    }
}

/// The identification of the next error, and the burst's time.
#[derive(Default, Local)]
pub struct Sequence {
    id: u16,
    now: Time,
}

impl PerPacket for ICMPError {
    type On = on::Ipv4;
    type Local = Sequence;
    type Fate = Reply;
    const SHARED: bool = true;

    #[inline]
    fn burst(&self, sequence: &mut Sequence, now: Time) {
        sequence.now = now;
    }

    #[inline]
    fn packet(&self, sequence: &mut Sequence, ip: Ipv4) -> Reply {
        use PacketType::{Broadcast, Multicast};
        let group = matches!(ip.packet().packet_type(), Broadcast | Multicast);
        let bytes = ip.packet().network_bytes();
        if let Err(silence) = icmp_error::check_allowed(bytes, self.kind, group, &self.bad) {
            return silence.into();
        }
        sequence.id = sequence.id.wrapping_add(1);
        let (src, kind, code, pmtu) = (self.src, self.kind, self.code, self.pmtu);
        let (mtu, id, now) = (self.mtu as usize, sequence.id, sequence.now);
        let dst = ip.src();
        let packet = ip.into_packet();
        Message { src, kind, code, mtu, pmtu, id, now }.wrap(packet, dst);
        packet.set_fix_ip_src(self.fix);
        Reply::Error
    }
}
