//! Costs of the parties of SplitBox on one core, in nanoseconds a packet: the least of several runs.
//!
//! `cargo run --release -p castanet-splitbox --example costs [WORD]` prints a line for each case whose
//! name contains the word.

use castanet_splitbox::bits::{Bits, Ternary};
use castanet_splitbox::datagram::{DatagramInfo, DatagramKind, Link, LinkKey, OVERHEAD};
use castanet_splitbox::digest::{DIGEST_BYTES, HashKind};
use castanet_splitbox::epoch::{EpochRows, EpochSecrets, RowMaker};
use castanet_splitbox::function::{NetworkFunction, Policy};
use castanet_splitbox::party::{BlindedHeader, Processor};
use castanet_splitbox::private::PrivateFunction;
use castanet_splitbox::secret::Key;
use castanet_splitbox::setup::{BlindUse, Setup, SetupOptions};
use castanet_splitbox::share::ActionShare;
use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bits of a header string, as many as IPv6 and TCP need.
const HEADER_BITS: usize = 464;
/// Packets of a burst.
const BURST: usize = 64;
/// Packets of a case: more than blinds, so that no row is still in a cache that is too small for all.
const PACKETS: usize = 1 << 17;
/// Cases that need more memory are left out.
const MEMORY: u64 = 2 << 30;

/// Prints the least time that an operation takes, if the case is wanted.
struct Report {
    word: String,
}

impl Report {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.word)
    }

    /// `operation` does something `count` times.
    fn measure(
        &self,
        name: &str,
        count: usize,
        mut operation: impl FnMut(),
    ) -> std::io::Result<()> {
        if !self.wants(name) {
            return Ok(());
        }
        let (mut least, begin) = (Duration::MAX, Instant::now());
        for run in 0.. {
            let start = Instant::now();
            operation();
            least = least.min(start.elapsed());
            if run >= 4 && begin.elapsed() > Duration::from_millis(600) {
                break;
            }
        }
        let nanoseconds = least.as_nanos() as f64 / count as f64;
        writeln!(std::io::stdout(), "{name:60} {nanoseconds:9.1} ns")
    }
}

/// A firewall whose rules have four projections, in turn; rule `n` tests the number n.
fn firewall(rules: usize) -> NetworkFunction {
    let rule = |n: usize| Policy {
        condition: Ternary::ANY.with(96 + 64 * (n % 4), 32, n as u128),
        action: Ternary::ANY.with(8 * (n % 8), 8, 1),
    };
    NetworkFunction::first_match((0..rules).map(rule).collect())
}

fn options(hash: HashKind, blinds: u64) -> SetupOptions {
    SetupOptions {
        processors: 2,
        hash,
        header_bits: HEADER_BITS,
        blinds,
        blind_use: BlindUse::Again,
        lanes: 1,
        has_constant_work: false,
    }
}

/// Packets that match one of the last rules, in an order that cannot be predicted.
fn headers(rules: usize, is_last: bool) -> Vec<Bits> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let header = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let rule = if is_last { rules - 1 } else { (state >> 33) as usize % rules };
        let mut header = Bits::ZERO;
        (0..4).for_each(|at| header.put(96 + 64 * at, 32, 0xffff_0000 | u128::from(state >> 50)));
        header.0[12 + 8 * (rule % 4)..16 + 8 * (rule % 4)]
            .copy_from_slice(&(rule as u32).to_be_bytes());
        header
    };
    (0..PACKETS).map(header).collect()
}

fn processors(report: &Report) -> Result<(), Box<dyn Error>> {
    for hash in [HashKind::Blake3, HashKind::Sha1] {
        for blinds in [64, 1024, 65_536] {
            for rules in [1, 10, 60, 1000, 10_000] {
                let case = format!("{hash:?}, {rules} rules, {blinds} blinds");
                let names = ["by projections", "constant work", "as written"]
                    .map(|how| format!("processor {how}, {case}"));
                let (function, _) = PrivateFunction::new(&firewall(rules));
                if EpochRows::memory_bytes(&function, blinds) > MEMORY
                    || !names.iter().any(|it| report.wants(it))
                {
                    continue;
                }
                processor(report, rules, options(hash, blinds), &names)?;
            }
        }
    }
    Ok(())
}

fn processor(
    report: &Report,
    rules: usize,
    options: SetupOptions,
    names: &[String; 3],
) -> Result<(), Box<dyn Error>> {
    let mut setup = Setup::new(&firewall(rules), options)?;
    let rows = Arc::new(setup.rows(1)?);
    let mut entry = setup.entry(1);
    let split = |is_last| -> Vec<BlindedHeader> {
        headers(rules, is_last).into_iter().filter_map(|it| entry.split(it)).collect()
    };
    let [random, last] = [false, true].map(split);
    let mut shares: Vec<ActionShare> = Vec::new();
    for (has_constant_work, name) in [(false, &names[0]), (true, &names[1])] {
        setup.processors[0].info.options.has_constant_work = has_constant_work;
        let mut processor = Processor::new(&setup.processors[0], rows.clone());
        report.measure(name, PACKETS, || {
            for packets in random.chunks(BURST) {
                processor.process_burst(black_box(packets), &mut shares);
                black_box(&shares);
            }
        })?;
    }
    let processor = Processor::new(&setup.processors[0], rows);
    let count = PACKETS.min(PACKETS * 60 / rules);
    report.measure(&names[2], count, || {
        for packet in &last[..count] {
            black_box(processor.process_each_match(black_box(packet)));
        }
    })?;
    Ok(())
}

fn entry_and_client(report: &Report) -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(&firewall(60), options(HashKind::Blake3, 65_536))?;
    let (headers, mut entry) = (headers(60, false), setup.entry(1));
    report.measure("entry split", PACKETS, || {
        for header in &headers {
            black_box(entry.split(black_box(*header)));
        }
    })?;
    let packets: Vec<BlindedHeader> = headers.iter().filter_map(|it| entry.split(*it)).collect();
    let (mut client, shares) = (setup.client(1), [ActionShare::ZERO; 2]);
    report.measure("client merge, 2 shares", PACKETS, || {
        for packet in &packets {
            black_box(client.merge(black_box(packet), black_box(&shares)));
        }
    })?;
    Ok(())
}

fn rows(report: &Report) -> Result<(), Box<dyn Error>> {
    let key = Key::from_bytes([1; 32]);
    let secrets = EpochSecrets { blinds: &key, hash: &key };
    for hash in [HashKind::Blake3, HashKind::Sha1] {
        for rules in [1, 10, 60, 1000, 10_000] {
            let (function, matches) = PrivateFunction::new(&firewall(rules));
            let blinds = 65_536.min(1_000_000 / rules as u64);
            let count = blinds as usize * rules;
            let mut maker = RowMaker::new(&function, &matches, secrets, hash, 1, blinds);
            let mut bytes = vec![0; count * DIGEST_BYTES];
            let case = format!("{hash:?}, {rules} rules");
            report.measure(&format!("client row making, {case}, a digest"), count, || {
                maker.fill(0, black_box(&mut bytes));
            })?;
            let part = 75 * DIGEST_BYTES;
            report.measure(
                &format!("client row making in chunks, {case}, a digest"),
                count,
                || {
                    for (chunk, bytes) in bytes.chunks_mut(part).enumerate() {
                        maker.fill(75 * chunk as u64, black_box(bytes));
                    }
                },
            )?;
            report.measure(&format!("processor row insertion, {case}, a digest"), count, || {
                let empty = EpochRows::empty(&function, &key, hash, 1, blinds, MEMORY);
                if let Ok(mut rows) = empty {
                    for (chunk, bytes) in bytes.chunks(part).enumerate() {
                        black_box(rows.insert(75 * chunk as u64, bytes).is_ok());
                    }
                }
            })?;
        }
    }
    Ok(())
}

fn datagrams(report: &Report) -> Result<(), Box<dyn Error>> {
    let link = Link { kind: DatagramKind::Share, processor: 1 };
    let key = LinkKey::new(&Key::from_bytes([1; 32]), 1, link, 1).ok_or("the key is refused")?;
    for payload in [64, 128, 1024] {
        let mut sealed = vec![0; payload + OVERHEAD];
        report.measure(&format!("datagram seal, {payload} bytes"), 1000, || {
            for counter in 0..1000 {
                black_box(key.seal(counter, 0, black_box(&mut sealed)).is_ok());
            }
        })?;
        key.seal(7, 0, &mut sealed)?;
        let mut datagram = sealed.clone();
        report.measure(&format!("datagram open, {payload} bytes, with a copy"), 1000, || {
            for _ in 0..1000 {
                datagram.copy_from_slice(&sealed);
                let info = DatagramInfo::of(&datagram);
                black_box(info.and_then(|info| key.open(&info, &mut datagram).map(|_| ())).is_ok());
            }
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let report = Report { word: std::env::args().nth(1).unwrap_or_default() };
    entry_and_client(&report)?;
    datagrams(&report)?;
    processors(&report)?;
    rows(&report)
}
