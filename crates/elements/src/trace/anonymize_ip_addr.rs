//! `AnonymizeIPAddr`: anonymizes IPv4 addresses with their prefixes preserved.

use castanet_element::prelude::*;
use castanet_kit::anonymize::Anonymizer;

/// Anonymizes source and destination addresses of IPv4 packets, and preserves prefixes.
///
/// An address is always replaced by the same one. Addresses that share a prefix share one
/// of the same length afterwards. 0.0.0.0 and 255.255.255.255 stay. Checksums that were
/// correct stay correct. In ICMP errors the quoted packet is anonymized too. Each run has
/// a mapping of its own, unless SEED selects one. Other packets leave by output 1, or are dropped if
/// it is not connected.
///
/// ```click
/// in -> AnonymizeIPAddr(SEED 7) -> out
/// > in  0.0.0.0 > 255.255.255.255 udp
/// < out 0.0.0.0 > 255.255.255.255 udp
/// ```
///
/// ```click
/// in -> a :: AnonymizeIPAddr(CLASS 4, PRESERVE_8 10 18) -> c :: CheckIPHeader -> f :: IPFilter(allow src net 10.0.0.0/8) -> Discard
/// > in  10.0.0.1 > 2.0.0.2 udp
/// > in  hex 01 02
/// = f.drops.unmatched 0
/// = a.drops.not_ip 1
/// = c.drops 0
/// ```
///
/// ```click
/// in -> a :: AnonymizeIPAddr(CLASS 99, SEED false) -> out;  a[1] -> other
/// > in    hex 01 02
/// < other hex 01 02
/// ```
#[derive(Element)]
#[element(room = "trace", args = AnonymizeIPAddrArgs)]
pub struct AnonymizeIPAddr {
    args: AnonymizeIPAddrArgs,
}

#[derive(Args)]
pub struct AnonymizeIPAddrArgs {
    /// Number of leading one bits to preserve: 4 for the address classes A to D. At most 32; 99 means 32.
    #[arg(keyword, default = 0)]
    class: u32,
    /// Values of the first byte that are preserved.
    #[arg(keyword, default = Vec::new())]
    preserve_8: Vec<u8>,
    /// The seed of the mapping; 0 or a boolean for a random one.
    #[arg(keyword, default = MappingSeed(0), shown = "0")]
    seed: MappingSeed,
}

/// The seed of the mapping; 0 for a random one.
struct MappingSeed(u64);

impl FromArg for MappingSeed {
    const SYNTAX: &'static str = "a number or a boolean";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let number = u64::from_arg(text, names);
        // FastClick takes a boolean here, and ignores it.
        number
            .or_else(|error| bool::from_arg(text, names).map(|_| 0).map_err(|_| error))
            .map(MappingSeed)
    }
}

impl Build for AnonymizeIPAddr {
    type Args = AnonymizeIPAddrArgs;

    fn build(args: AnonymizeIPAddrArgs, _: &Setup) -> Result<Self, ArgError> {
        match args.class {
            0..=32 | 99 => Ok(AnonymizeIPAddr { args }),
            _ => Err(ArgError::new("CLASS must be between 0 and 32")),
        }
    }
}

/// The mapping, which all workers share.
#[derive(Default, Local)]
pub struct AnonymizeIPAddrState {
    map: Option<Anonymizer>,
}

#[derive(Fate)]
pub enum AnonymizeIPAddrExit {
    /// IPv4 packets with other addresses.
    Anonymized,
    /// Packets without a marked IPv4 header.
    #[optional]
    NotIp,
}

impl PerBatch for AnonymizeIPAddr {
    type On = on::Any;
    type Local = AnonymizeIPAddrState;
    type Fate = AnonymizeIPAddrExit;
    const SHARED: bool = true;

    fn batch(&self, state: &mut AnonymizeIPAddrState, _: usize, batch: Batch, cx: &mut Cx) {
        let AnonymizeIPAddrArgs { class, preserve_8, seed } = &self.args;
        let map = state.map.get_or_insert_with(|| {
            let seed = if seed.0 == 0 { cx.random() } else { seed.0 };
            Anonymizer::new(seed, (*class).min(32), preserve_8.clone())
        });
        for mut packet in batch {
            if packet.ipv4().is_none() {
                cx.emit(AnonymizeIPAddrExit::NotIp, packet);
                continue;
            }
            let at = packet.network_offset().and_then(|at| usize::try_from(at).ok());
            if let Some(bytes) = at.and_then(|at| packet.bytes_mut().get_mut(at..)) {
                castanet_kit::anonymize::anonymize_datagram(map, bytes);
            }
            cx.emit(AnonymizeIPAddrExit::Anonymized, packet);
        }
    }
}
