//! `AnonymizeIPAddr`: anonymizes IPv4 addresses with their prefixes preserved.

use castanet_element::prelude::*;
use castanet_kit::anonymize::Anonymizer;

/// Anonymizes source and destination addresses of IPv4 packets, and preserves prefixes.
///
/// An address is always replaced by the same one. Addresses that share a prefix share one
/// of the same length afterwards. 0.0.0.0 and 255.255.255.255 stay. Checksums that were
/// correct stay correct. In ICMP errors the quoted packet is anonymized too. Each run has
/// a mapping of its own, unless SEED selects one.
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
#[derive(Element)]
#[element(room = "trace", args = AnonymizeIPAddrArgs)]
pub struct AnonymizeIPAddr {
    args: AnonymizeIPAddrArgs,
}

#[derive(Args)]
pub struct AnonymizeIPAddrArgs {
    /// Number of leading one bits to preserve: 4 for the address classes A to D.
    #[arg(keyword, default = 0, range = ..=32)]
    class: u32,
    /// Values of the first byte that are preserved.
    #[arg(keyword, default = Vec::new())]
    preserve_8: Vec<u8>,
    /// The seed of the mapping; 0 for a random one.
    #[arg(keyword, default = 0)]
    seed: u64,
}

impl Build for AnonymizeIPAddr {
    type Args = AnonymizeIPAddrArgs;

    fn build(args: AnonymizeIPAddrArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(AnonymizeIPAddr { args })
    }
}

/// The mapping, which all workers share.
#[derive(Default, Local)]
pub struct AnonymizeIPAddrState {
    map: Option<Anonymizer>,
}

impl PerBatch for AnonymizeIPAddr {
    type On = on::Ipv4;
    type Local = AnonymizeIPAddrState;
    type Fate = ();
    const SHARED: bool = true;

    fn batch(&self, state: &mut AnonymizeIPAddrState, _: usize, mut batch: Batch, cx: &mut Cx) {
        let AnonymizeIPAddrArgs { class, preserve_8, seed } = &self.args;
        let map = state.map.get_or_insert_with(|| {
            let seed = if *seed == 0 { cx.random() } else { *seed };
            Anonymizer::new(seed, *class, preserve_8.clone())
        });
        for packet in &mut batch {
            let at = packet.network_offset().and_then(|at| usize::try_from(at).ok());
            if let Some(bytes) = at.and_then(|at| packet.bytes_mut().get_mut(at..)) {
                castanet_kit::anonymize::anonymize_datagram(map, bytes);
            }
        }
        cx.emit_batch((), batch);
    }
}
