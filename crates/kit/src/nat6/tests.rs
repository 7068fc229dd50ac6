//! Translation of packets by static mappings and pools.

use super::*;
use castanet_wire::sketch;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn endpoint(text: &str) -> Endpoint {
    let (address, port) = text.rsplit_once('/').unwrap_or((text, "0"));
    Endpoint { address: address.parse().expect(text), port: port.parse().expect(text) }
}

/// Translates a packet; its new sketch, or why there is none.
fn translate(
    config: &Config,
    bindings: &mut Bindings,
    direction: Direction,
    text: &str,
    now: u64,
) -> Result<String, Option<Refusal>> {
    let mut packet = sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes;
    let endpoints = parse_endpoints(&packet, direction).ok_or(None)?;
    let new = bindings.translate(config, direction, &endpoints, now).map_err(Some)?;
    rewrite(&mut packet, direction, new);
    Ok(sketch::print(&packet, sketch::Layer::Network))
}

fn canonical(text: &str) -> Result<String, Option<Refusal>> {
    let packet = sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes;
    Ok(sketch::print(&packet, sketch::Layer::Network))
}

use Direction::{Inward, Outward};

#[test]
fn static_mappings_match_address_or_port() {
    let fixed = [(endpoint("1::1/80"), endpoint("2::2/8080"))];
    let mut none = Bindings::default();
    let config = Config::new(&fixed, true, Pool::None, Outward, 0);
    for (direction, from, to) in [
        (Outward, "[1::1]:80 > [9::9]:5 tcp", "[2::2]:8080 > [9::9]:5 tcp"),
        (Inward, "[9::9]:5 > [2::2]:8080 udp", "[9::9]:5 > [1::1]:80 udp"),
        (Outward, "1::1 > 9::9 icmp6 ident 7", "2::2 > 9::9 icmp6 ident 7"),
        (
            Inward,
            "8::8 > 2::2 icmp6 type 3 [[2::2]:8080 > [9::9]:5 tcp]",
            "8::8 > 1::1 icmp6 type 3 [[1::1]:80 > [9::9]:5 tcp]",
        ),
        (
            Outward,
            "1::1 > 9::9 icmp6 type 1 [[9::9]:5 > [1::1]:80 udp]",
            "2::2 > 9::9 icmp6 type 1 [[9::9]:5 > [2::2]:8080 udp]",
        ),
    ] {
        assert_eq!(translate(&config, &mut none, direction, from, 0), canonical(to), "{from}");
    }
    let unmapped = translate(&config, &mut none, Outward, "[1::1]:81 > [9::9]:5 tcp", 0);
    assert_eq!(unmapped, Err(Some(Refusal::Unmapped)));
    let config = Config::new(&fixed, false, Pool::None, Outward, 0);
    for (direction, from, to) in [
        (Outward, "[1::1]:81 > [9::9]:5 tcp", "[2::2]:81 > [9::9]:5 tcp"),
        (Inward, "9::9 > 2::2 udp id 7 frag 8 len 64", "9::9 > 1::1 udp id 7 frag 8 len 64"),
    ] {
        assert_eq!(translate(&config, &mut none, direction, from, 0), canonical(to), "{from}");
    }
    for other in ["1::1 > 9::9 proto 99", "1::1 > 9::9 icmp6 type 135", "1::1 > 9::9 tcp short 14"]
    {
        assert_eq!(translate(&config, &mut none, Outward, other, 0), Err(None), "{other}");
    }
    let nested = "8::8 > 2::2 icmp6 type 3 [2::2 > 9::9 icmp6 type 3 [[9::9]:1 > [2::2]:2 udp]]";
    assert_eq!(translate(&config, &mut none, Inward, nested, 0), Err(None));
}

#[test]
fn addresses_are_bound_and_reused() {
    let pool = Pool::Addresses(["2::1", "2::2"].map(|a| a.parse().expect(a)).to_vec());
    let config = Config::new(&[], false, pool, Outward, 10 * SECOND);
    let mut bindings = Bindings::default();
    let unsolicited = translate(&config, &mut bindings, Inward, "[9::9]:5 > [2::1]:6 udp", 0);
    assert_eq!(unsolicited, Err(Some(Refusal::Unmapped)));
    for (n, to) in [("1", "2::1"), ("2", "2::2"), ("1", "2::1")] {
        let from = format!("[1::{n}]:5 > [9::9]:6 udp");
        let to = canonical(&format!("[{to}]:5 > [9::9]:6 udp"));
        assert_eq!(translate(&config, &mut bindings, Outward, &from, SECOND), to);
    }
    let back = translate(&config, &mut bindings, Inward, "[8::8]:5 > [2::2]:6 tcp", 5 * SECOND);
    assert_eq!(back, canonical("[8::8]:5 > [1::2]:6 tcp"));
    let third = |bindings: &mut Bindings, at| {
        translate(&config, bindings, Outward, "[1::3]:5 > [9::9]:6 udp", at * SECOND)
    };
    assert_eq!(third(&mut bindings, 10), Err(Some(Refusal::Exhausted)));
    assert_eq!(third(&mut bindings, 11), canonical("[2::1]:5 > [9::9]:6 udp"), "1::1's");
    let back = translate(&config, &mut bindings, Inward, "[9::9]:6 > [2::1]:5 udp", 11 * SECOND);
    assert_eq!(back, canonical("[9::9]:6 > [1::3]:5 udp"));
    assert_eq!(bindings.len(), 2);
}

#[test]
fn ports_are_bound_to_flows_of_the_allocating_direction() {
    let pool = || Pool::Ports { address: endpoint("2::2").address, low: 6000, high: 6001 };
    let mut bindings = Bindings::default();
    let config = Config::new(&[], false, pool(), Outward, 10 * SECOND);
    for (direction, from, to) in [
        (Outward, "[1::1]:5 > [9::9]:80 tcp", "[2::2]:6000 > [9::9]:80 tcp"),
        (Outward, "1::1 > 9::9 icmp6 ident 77", "2::2 > 9::9 icmp6 ident 6001"),
        (Inward, "[9::9]:80 > [2::2]:6000 tcp", "[9::9]:80 > [1::1]:5 tcp"),
        (Inward, "9::9 > 2::2 icmp6 type 129 ident 6001", "9::9 > 1::1 icmp6 type 129 ident 77"),
    ] {
        assert_eq!(
            translate(&config, &mut bindings, direction, from, SECOND),
            canonical(to),
            "{from}"
        );
    }
    for from in [
        "[9::9]:81 > [2::2]:6000 tcp",
        "[9::9]:80 > [2::2]:6000 udp",
        "[9::9]:80 > [2::2]:5999 tcp",
        "[9::9]:80 > [2::2]:6002 tcp",
    ] {
        let refused = translate(&config, &mut bindings, Inward, from, SECOND);
        assert_eq!(refused, Err(Some(Refusal::Unmapped)), "{from}");
    }
    let full = translate(&config, &mut bindings, Outward, "[1::2]:5 > [9::9]:80 tcp", SECOND);
    assert_eq!(full, Err(Some(Refusal::Exhausted)));

    let mut bindings = Bindings::default();
    let config = Config::new(&[], false, pool(), Inward, 10 * SECOND);
    let inward = translate(&config, &mut bindings, Inward, "[9::9]:5 > [3::3]:80 tcp", 0);
    assert_eq!(inward, canonical("[9::9]:5 > [2::2]:6000 tcp"));
    let outward = translate(&config, &mut bindings, Outward, "[2::2]:6000 > [9::9]:5 tcp", 0);
    assert_eq!(outward, canonical("[3::3]:80 > [9::9]:5 tcp"));
}

proptest! {
    #[test]
    fn replies_reach_the_host_that_opened_the_flow(
        flows in prop::collection::vec((0u8..4, 1u16..4, 0u8..3, 1u16..4, any::<bool>()), 1..60),
    ) {
        let pool = Pool::Ports { address: endpoint("2::2").address, low: 100, high: 120 };
        let config = Config::new(&[], false, pool, Outward, SECOND);
        let mut bindings = Bindings::default();
        for (i, (host, port, peer, peer_port, tcp)) in flows.into_iter().enumerate() {
            let now = i as u64 * SECOND / 10;
            let protocol = if tcp { "tcp" } else { "udp" };
            let out = format!("[1::{host}]:{port} > [9::{peer}]:{peer_port} {protocol} \"x\"");
            let packet = sketch::build(&out).unwrap().bytes;
            let endpoints = parse_endpoints(&packet, Outward).unwrap();
            let Ok(new) = bindings.translate(&config, Outward, &endpoints, now) else { continue };
            let sent = translate(&config, &mut bindings, Outward, &out, now).unwrap();
            prop_assert!(!sent.contains("check"), "{}", sent);
            let Endpoint { address, port: mapped } = new;
            let answer = format!("[9::{peer}]:{peer_port} > [{address}]:{mapped} {protocol}");
            let expected = format!("[9::{peer}]:{peer_port} > [1::{host}]:{port} {protocol}");
            prop_assert_eq!(translate(&config, &mut bindings, Inward, &answer, now), canonical(&expected));
            prop_assert!(bindings.len() <= 21 && bindings.by_key.len() == bindings.len());
        }
    }
}
