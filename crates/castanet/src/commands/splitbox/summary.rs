//! The summary of a new setup: files, shape, memory, and the rates that follow.

use castanet_splitbox::bits::Bits;
use castanet_splitbox::digest::ProjectionHash;
use castanet_splitbox::party_file::Party;
use castanet_splitbox::policy::OrderReport;
use castanet_splitbox::report::{FunctionReport, LeakageReport, LowWeightMatches, SetupCost};
use castanet_splitbox::secret::Key;
use castanet_splitbox::setup::{BlindUse, Setup, SetupOptions};
use serde::Serialize;
use std::fmt::{Display, Formatter};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// The bit rate of a link to a processor, for which rates are stated.
const LINK_BITS_PER_SECOND: f64 = 1e9;

/// The summary of a setup.
#[derive(Serialize)]
pub(super) struct Summary {
    setup: String,
    files: Vec<PathBuf>,
    processors: usize,
    header_bits: usize,
    blinds: u64,
    lanes: usize,
    uses_blinds_once: bool,
    function: Option<FunctionReport>,
    low_weight: Vec<LowWeightMatches>,
    /// Expected matches for a packet, before and after the order for a traffic profile.
    expected_matches: Option<[f64; 2]>,
    cost: SetupCost,
    /// A hash of this machine, in nanoseconds.
    hash_ns: f64,
    blinds_again: Again,
    blinds_once: Once,
}

/// The cost if blinds are used again.
#[derive(Serialize)]
struct Again {
    /// Memory of an epoch at each processor.
    epoch_bytes: u64,
    /// The time in which the client makes the digests of an epoch.
    client_seconds_per_epoch: f64,
    /// The hashes of a processor for a packet.
    processor_ns_per_packet: f64,
    /// Packets that one core of a processor hashes in a second.
    packets_per_second: f64,
}

/// The cost if each blind is used once.
#[derive(Serialize)]
struct Once {
    /// Digests that the client sends to each processor for a packet.
    bytes_per_packet: u64,
    /// The time in which the client makes them.
    client_ns_per_packet: f64,
    /// Packets that a link of 1 Gbit/s to each processor carries digests for.
    link_packets_per_second: f64,
    /// Packets that one core of the client makes digests for.
    client_packets_per_second: f64,
    /// The lesser of the two.
    packets_per_second: f64,
}

impl Summary {
    /// The summary of a setup that is in these files.
    pub(super) fn new(
        setup: &Setup,
        files: Vec<PathBuf>,
        low: Vec<LowWeightMatches>,
        order: Option<OrderReport>,
    ) -> Summary {
        let options = &setup.client.info.options;
        let (cost, hash_ns) = match setup.processors.first() {
            Some(it) => (SetupCost::new(&it.function, options), measure(setup)),
            None => (SetupCost::default(), 0.0),
        };
        let per_second = |ns: f64| 1e9 / ns;
        let client = cost.client_ns(hash_ns);
        let processor = cost.processor_ns(hash_ns);
        let link = cost.packets_per_second(LINK_BITS_PER_SECOND);
        let report = LeakageReport::new(&Party::Client(setup.client.clone().into()));
        Summary {
            setup: report.setup,
            files,
            processors: options.processors,
            header_bits: options.header_bits,
            blinds: options.blinds,
            lanes: options.lanes,
            uses_blinds_once: options.blind_use == BlindUse::Once,
            function: report.function,
            low_weight: low,
            expected_matches: order.map(|it| [it.before, it.after]),
            hash_ns,
            blinds_again: Again {
                epoch_bytes: cost.epoch_bytes(),
                client_seconds_per_epoch: client * options.blinds as f64 / 1e9,
                processor_ns_per_packet: processor,
                packets_per_second: per_second(processor),
            },
            blinds_once: Once {
                bytes_per_packet: cost.row_bytes,
                client_ns_per_packet: client,
                link_packets_per_second: link,
                client_packets_per_second: per_second(client),
                packets_per_second: link.min(per_second(client)),
            },
            cost,
        }
    }
}

/// The time of a hash on this machine, in nanoseconds, for the widest projection of a setup.
fn measure(setup: &Setup) -> f64 {
    /// Enough for a millisecond or so.
    const COUNT: u32 = 10_000;
    let SetupOptions { hash, header_bits, .. } = setup.client.info.options;
    let bits = Bits::first(header_bits);
    let key = Key::from_bytes([0; castanet_splitbox::secret::KEY_BYTES]);
    let hash = ProjectionHash::new(hash, &key, 0, &bits);
    let started = Instant::now();
    for _ in 0..COUNT {
        black_box(hash.digest(black_box(bits)));
    }
    started.elapsed().as_nanos() as f64 / f64::from(COUNT)
}

/// A number with three digits and a unit of powers of 1000.
fn scaled(number: f64) -> String {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let mut rest = number;
    for unit in UNITS {
        if rest < 1000.0 {
            let digits = if rest < 10.0 && !unit.is_empty() { 1 } else { 0 };
            return format!("{rest:.digits$}{unit}");
        }
        rest /= 1000.0;
    }
    format!("{:.0} P", rest)
}

fn bytes(count: u64) -> String {
    let text = scaled(count as f64);
    format!("{text}{}B", if text.contains(' ') { "" } else { " " })
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        writeln!(f, "setup {}: {} files", self.setup, self.files.len())?;
        self.files.iter().try_for_each(|file| writeln!(f, "  {}", file.display()))?;
        if let Some(function) = &self.function {
            write!(f, "{function}")?;
        }
        if let Some([before, after]) = self.expected_matches {
            writeln!(f, "matches for a packet of the profile: {after:.1}, {before:.1} as written")?;
        }
        let Summary { blinds, cost, hash_ns, .. } = self;
        let SetupCost { matches, projections, .. } = cost;
        writeln!(
            f,
            "memory of an epoch at each processor: {blinds} blinds × {matches} matches × 16 bytes = \
             {}, and {} of tables",
            bytes(cost.digest_bytes),
            bytes(cost.table_bytes),
        )?;
        let chosen = |is_chosen: bool| if is_chosen { " (chosen)" } else { "" };
        let again = &self.blinds_again;
        writeln!(
            f,
            "blinds used again{}: two packets of a lane that are {} apart have one blind\n  the client \
             makes an epoch in {:.3} s; a processor hashes a packet {projections} times, which \
             takes {:.0} ns: {}packets/s a core",
            chosen(!self.uses_blinds_once),
            blinds / self.lanes as u64,
            again.client_seconds_per_epoch,
            again.processor_ns_per_packet,
            rate(again.packets_per_second),
        )?;
        let once = &self.blinds_once;
        writeln!(
            f,
            "each blind used once{}: no two packets have one blind\n  a packet costs {matches} × 16 = \
             {} bytes to each processor and {:.0} ns of the client\n  a link of 1 Gbit/s to each \
             processor carries {}packets/s, a core of the client makes {}packets/s",
            chosen(self.uses_blinds_once),
            once.bytes_per_packet,
            once.client_ns_per_packet,
            rate(once.link_packets_per_second),
            rate(once.client_packets_per_second),
        )?;
        writeln!(f, "measured here: {hash_ns:.0} ns a hash")
    }
}

/// A rate, with the space and the prefix of its unit.
fn rate(number: f64) -> String {
    let text = scaled(number);
    if text.contains(' ') { text } else { text + " " }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!([0.0, 999.0, 1234.0, 65_536.0].map(scaled), ["0", "999", "1.2 k", "66 k"]);
        assert_eq!([bytes(12), bytes(5_242_880)], ["12 B", "5.2 MB"]);
        assert_eq!(rate(12_500_000.0) + "packets/s", "12 Mpackets/s");
        assert_eq!(rate(12.0) + "packets/s", "12 packets/s");
    }
}
