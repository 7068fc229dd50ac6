//! Benchmark of classification and route lookup, in nanoseconds per operation.
//!
//! `cargo run --release -p castanet-kit --example cost`; pin it (`taskset -c 1`) for steady
//! numbers.

use std::hint::black_box;
use std::time::Instant;

use castanet_kit::classify::{Pattern, Program, Rule};
use castanet_kit::lpm::Lpm;

/// Prints the best of several runs of `work`, each over `n` items.
fn measure(name: &str, n: usize, mut work: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_nanos() as f64 / n as f64);
    }
    println!("{best:8.2} ns  {name}");
}

fn main() {
    let mut seed = 1;
    classifiers(&mut seed);
    routes(&mut seed);
}

/// A deterministic pseudorandom sequence.
fn noise(seed: &mut u64) -> u32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 32) as u32
}

fn pattern(parsed: Result<Pattern, impl std::fmt::Debug>) -> Pattern {
    parsed.unwrap_or_else(|e| panic!("{e:?}"))
}

fn classifiers(seed: &mut u64) {
    let texts = ["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"];
    let rules = texts.iter().zip(0..).map(|(t, i)| Rule::new(pattern(Pattern::bytes(t)), Some(i)));
    let ethernet = Program::compile(&rules.collect::<Vec<_>>());
    let mut frames = vec![[0u8; 64]; 1024];
    frames.iter_mut().for_each(|f| f[12] = 8);
    run("Classifier, all IP", &frames, |f| ethernet.run_bytes(f));
    for f in &mut frames {
        f[13] = if noise(seed).is_multiple_of(16) { 6 } else { 0 };
        f[21] = 1;
    }
    run("Classifier, one in 16 ARP", &frames, |f| ethernet.run_bytes(f));

    let packets: Vec<[u8; 64]> = (0..1024).map(|_| packet(noise(seed), noise(seed))).collect();
    let small = [
        "deny src net 10.0.0.0/8",
        "deny dst port 23",
        "1 tcp dst port 80 or 443",
        "1 udp",
        "allow icmp",
        "allow tcp",
        "deny all",
    ];
    run_filter("IPFilter, 7 rules", &packets, small.iter().map(|t| t.to_string()).collect());
    let hosts = (0..10_000).map(|i| format!("deny src host {}", quad(i * 7919)));
    run_filter("IPFilter, 10000 hosts", &packets, hosts.chain(["allow all".into()]).collect());
    let nets = (0..10_000u32).map(|i| {
        let (net, length) = (quad(noise(seed)), 12 + i % 17);
        format!("{} src net {net}/{length} && tcp dst port {}", i % 2, i % 7)
    });
    let nets: Vec<String> = nets.chain(["allow all".into()]).collect();
    run_filter("IPFilter, 10000 nets and ports", &packets, nets);
}

fn quad(n: u32) -> std::net::Ipv4Addr {
    n.into()
}

fn packet(src: u32, rest: u32) -> [u8; 64] {
    let mut p = [0; 64];
    p[..12].copy_from_slice(&[0x45, 0, 0, 64, 0, 0, 0, 0, 64, 6, 0, 0]);
    p[12..16].copy_from_slice(&src.to_be_bytes());
    p[16..20].copy_from_slice(&rest.to_be_bytes());
    p[20..24].copy_from_slice(&[0, 99, 0, (rest % 100) as u8]);
    p
}

fn run_filter(name: &str, packets: &[[u8; 64]], rules: Vec<String>) {
    let rules: Vec<Rule> = rules
        .iter()
        .map(|text| Rule::filter(text, 2).unwrap_or_else(|e| panic!("{text}: {e:?}")))
        .collect();
    let start = Instant::now();
    let program = Program::compile(&rules);
    let took = start.elapsed();
    run(&format!("{name} (compiled in {took:.1?})"), packets, |p| program.run_ip(p));
}

fn run(name: &str, packets: &[[u8; 64]], decide: impl Fn(&[u8]) -> Option<u8>) {
    const ROUNDS: usize = 200;
    measure(name, packets.len() * ROUNDS, || {
        for _ in 0..ROUNDS {
            let mut sum = 0;
            for packet in black_box(packets) {
                sum += u32::from(decide(&packet[..]).unwrap_or(255));
            }
            black_box(sum);
        }
    });
}

fn routes(seed: &mut u64) {
    let few =
        Lpm::build([(0, 0, 1), (0x0a00_0000, 8, 2), (0x0a01_0000, 16, 3), (0xc0a8_0100, 24, 4)]);
    let hot: Vec<u32> = (0..4096).map(|i| 0x0a01_0000 + i % 512).collect();
    lookups("LPM, 4 routes", &few, &hot);
    // Lengths as in Internet routing tables: more than half are /24, few are longer.
    let lengths = [24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 18, 16, 24, 24];
    let prefixes: Vec<(u32, u32, u32)> = (0..1_000_000)
        .map(|i| {
            let length = lengths[i % 16];
            (
                (0x0100_0000 + noise(seed) % 0xDE00_0000) & (u32::MAX << (32 - length)),
                length,
                i as u32 % 64,
            )
        })
        .collect();
    for n in [500_000, 1_000_000] {
        let start = Instant::now();
        let lpm = Lpm::build(prefixes[..n].iter().copied());
        println!(
            "{:8.0} ms  building {} routes, {} MiB for lookups",
            start.elapsed().as_secs_f64() * 1e3,
            lpm.len(),
            lpm.memory() >> 20
        );
        let any: Vec<u32> = (0..1 << 20).map(|_| noise(seed)).collect();
        lookups(&format!("LPM, {n} routes, any address"), &lpm, &any);
        let near: Vec<u32> = (0..4096).map(|i| any[i % 256]).collect();
        lookups(&format!("LPM, {n} routes, 256 addresses"), &lpm, &near);
        updates(&lpm, seed);
    }
}

fn lookups(name: &str, lpm: &Lpm, addresses: &[u32]) {
    let rounds = (1 << 20) / addresses.len();
    let n = addresses.len() * rounds;
    measure(&format!("{name}, one by one"), n, || {
        for _ in 0..rounds {
            let sum: u32 = black_box(addresses).iter().map(|&a| lpm.lookup(a).unwrap_or(0)).sum();
            black_box(sum);
        }
    });
    let mut numbers = [0; 32];
    measure(&format!("{name}, by batches of 32"), n, || {
        for _ in 0..rounds {
            for batch in black_box(addresses).chunks_exact(32) {
                lpm.lookup_batch(batch, &mut numbers);
                black_box(&numbers);
            }
        }
    });
}

fn updates(lpm: &Lpm, seed: &mut u64) {
    let mut own = lpm.clone();
    measure("clone", 1, || drop(black_box(lpm.clone())));
    measure("insert and remove a /24 after a clone", 1, || {
        let snapshot = own.clone();
        let address = noise(seed);
        own.insert(address, 24, 1);
        own.remove(address, 24);
        drop(snapshot);
    });
    measure("insert and remove a /24", 1000, || {
        for _ in 0..1000 {
            let address = noise(seed);
            own.insert(address, 24, 1);
            own.remove(address, 24);
        }
    });
}
