//! Ten thousand prefixes in one element, against a naive table.

mod common;

use common::build;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// xorshift: the same numbers every run.
fn next(seed: &mut u64) -> u32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) as u32
}

#[test]
fn ten_thousand_prefixes_are_looked_up_as_in_a_naive_table() {
    const OUTPUTS: u32 = 8;
    let mut seed = 0x1234_5678_9abc_def1;
    let mut routes: Vec<(u32, u32, u32, u32)> = Vec::new();
    while routes.len() < 10_000 {
        let length = 1 + next(&mut seed) % 32;
        let address = next(&mut seed) & (u32::MAX << (32 - length));
        if !routes.iter().any(|r| (r.0, r.1) == (address, length)) {
            routes.push((address, length, next(&mut seed), next(&mut seed) % OUTPUTS));
        }
    }
    let mut text = String::from("Idle -> r :: StaticIPLookup(");
    for (n, (address, length, gateway, output)) in routes.iter().enumerate() {
        let (address, gateway) = (Ipv4Addr::from(*address), Ipv4Addr::from(*gateway));
        let comma = if n == 0 { "" } else { ", " };
        _ = write!(text, "{comma}{address}/{length} {gateway} {output}");
    }
    text += ");\n";
    (0..OUTPUTS).for_each(|n| _ = writeln!(text, "r[{n}] -> Discard;"));
    let mut router = build(&text, 1);
    for _ in 0..10_000 {
        // At least half of the addresses have a matching prefix.
        let mut address = next(&mut seed);
        if seed & 1 == 0 {
            let (base, length, ..) = routes[address as usize % routes.len()];
            address = base | (address & !(u32::MAX << (32 - length)));
        }
        let matches = |r: &&(u32, u32, u32, u32)| (r.0 ^ address) >> (32 - r.1) == 0;
        let expected = match routes.iter().filter(matches).max_by_key(|r| r.1) {
            Some((_, _, gateway, output)) => format!("{output} {}", Ipv4Addr::from(*gateway)),
            None => "-1".to_owned(),
        };
        let handler = format!("r.lookup {}", Ipv4Addr::from(address));
        assert_eq!(router.read(&handler).expect("is a handler").trim(), expected, "{handler}");
    }
}
