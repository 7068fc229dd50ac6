//! `AnonymizeIPAddr`: other addresses.

use castanet_engine::prelude::*;
use castanet_kit::anonymize::Anonymizer;

/// Puts other addresses in place of source and destination, the same ones every time.
///
/// Addresses that shared a prefix share one as long afterwards. 0.0.0.0 and
/// 255.255.255.255 stay. Checksums that were right are right afterwards. In ICMP errors the packet
/// that they are about gets other addresses too. Each run has its own
/// mapping, unless SEED says which.
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
#[element(room = "trace", args = Wishes)]
pub struct AnonymizeIPAddr {
    settings: Wishes,
}

#[derive(Args)]
pub struct Wishes {
    /// How many leading ones are kept: 4 for the classes A to D.
    #[arg(keyword, default = 0, range = ..=32)]
    class: u32,
    /// First bytes of addresses that are kept.
    #[arg(keyword, default = Vec::new())]
    preserve_8: Vec<u8>,
    /// Which mapping; 0 for one that nobody knows.
    #[arg(keyword, default = 0)]
    seed: u64,
}

impl Build for AnonymizeIPAddr {
    type Args = Wishes;

    fn build(settings: Wishes, _: &Setup) -> Result<Self, ArgError> {
        Ok(AnonymizeIPAddr { settings })
    }
}

/// The mapping, which all workers share.
#[derive(Default, Local)]
pub struct Mapping {
    map: Option<Anonymizer>,
}

impl PerBatch for AnonymizeIPAddr {
    type On = on::Ipv4;
    type Local = Mapping;
    type Fate = ();
    const SHARED: bool = true;

    fn batch(&self, mapping: &mut Mapping, _: usize, mut batch: Batch, cx: &mut Cx) {
        let Wishes { class, preserve_8, seed } = &self.settings;
        let map = mapping.map.get_or_insert_with(|| {
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
