//! Mappings of all kinds, and packets through them.

use super::*;
use castanet_wire::sketch;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn endpoint(text: &str) -> Endpoint {
    let (address, port) = text.rsplit_once('/').unwrap_or((text, "0"));
    Endpoint { address: address.parse().expect(text), port: port.parse().expect(text) }
}

/// Translates a packet; what it has become, or why not.
fn through(
    plan: &Plan,
    bindings: &mut Bindings,
    way: Way,
    text: &str,
    now: u64,
) -> Result<String, Option<Nobody>> {
    let mut packet = sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes;
    let parties = parties(&packet, way).ok_or(None)?;
    let new = bindings.translate(plan, way, &parties, now).map_err(Some)?;
    rewrite(&mut packet, way, new);
    Ok(sketch::print(&packet, sketch::Layer::Network))
}

fn canonical(text: &str) -> Result<String, Option<Nobody>> {
    let packet = sketch::build(text).unwrap_or_else(|e| panic!("{text}: {e}")).bytes;
    Ok(sketch::print(&packet, sketch::Layer::Network))
}

use Way::{Inward, Outward};

#[test]
fn static_mappings_go_by_address_or_port() {
    let fixed = [(endpoint("1::1/80"), endpoint("2::2/8080"))];
    let mut none = Bindings::default();
    let plan = Plan::new(&fixed, true, Pool::Nothing, Outward, 0);
    for (way, from, to) in [
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
        assert_eq!(through(&plan, &mut none, way, from, 0), canonical(to), "{from}");
    }
    let missed = through(&plan, &mut none, Outward, "[1::1]:81 > [9::9]:5 tcp", 0);
    assert_eq!(missed, Err(Some(Nobody::Unmapped)));
    let plan = Plan::new(&fixed, false, Pool::Nothing, Outward, 0);
    for (way, from, to) in [
        (Outward, "[1::1]:81 > [9::9]:5 tcp", "[2::2]:81 > [9::9]:5 tcp"),
        (Inward, "9::9 > 2::2 udp id 7 frag 8 len 64", "9::9 > 1::1 udp id 7 frag 8 len 64"),
    ] {
        assert_eq!(through(&plan, &mut none, way, from, 0), canonical(to), "{from}");
    }
    for other in ["1::1 > 9::9 proto 99", "1::1 > 9::9 icmp6 type 135", "1::1 > 9::9 tcp short 14"]
    {
        assert_eq!(through(&plan, &mut none, Outward, other, 0), Err(None), "{other}");
    }
    let nested = "8::8 > 2::2 icmp6 type 3 [2::2 > 9::9 icmp6 type 3 [[9::9]:1 > [2::2]:2 udp]]";
    assert_eq!(through(&plan, &mut none, Inward, nested, 0), Err(None));
}

#[test]
fn addresses_are_given_out_and_taken_back() {
    let pool = Pool::Addresses(["2::1", "2::2"].map(|a| a.parse().expect(a)).to_vec());
    let plan = Plan::new(&[], false, pool, Outward, 10 * SECOND);
    let mut given = Bindings::default();
    let unasked = through(&plan, &mut given, Inward, "[9::9]:5 > [2::1]:6 udp", 0);
    assert_eq!(unasked, Err(Some(Nobody::Unmapped)));
    for (n, to) in [("1", "2::1"), ("2", "2::2"), ("1", "2::1")] {
        let from = format!("[1::{n}]:5 > [9::9]:6 udp");
        let to = canonical(&format!("[{to}]:5 > [9::9]:6 udp"));
        assert_eq!(through(&plan, &mut given, Outward, &from, SECOND), to);
    }
    let back = through(&plan, &mut given, Inward, "[8::8]:5 > [2::2]:6 tcp", 5 * SECOND);
    assert_eq!(back, canonical("[8::8]:5 > [1::2]:6 tcp"));
    let third = |given: &mut Bindings, at| {
        through(&plan, given, Outward, "[1::3]:5 > [9::9]:6 udp", at * SECOND)
    };
    assert_eq!(third(&mut given, 10), Err(Some(Nobody::Exhausted)));
    assert_eq!(third(&mut given, 11), canonical("[2::1]:5 > [9::9]:6 udp"), "1::1's");
    let back = through(&plan, &mut given, Inward, "[9::9]:6 > [2::1]:5 udp", 11 * SECOND);
    assert_eq!(back, canonical("[9::9]:6 > [1::3]:5 udp"));
    assert_eq!(given.len(), 2);
}

#[test]
fn ports_are_given_to_flows_of_the_way_that_allocates() {
    let pool = || Pool::Ports { address: endpoint("2::2").address, low: 6000, high: 6001 };
    let mut given = Bindings::default();
    let plan = Plan::new(&[], false, pool(), Outward, 10 * SECOND);
    for (way, from, to) in [
        (Outward, "[1::1]:5 > [9::9]:80 tcp", "[2::2]:6000 > [9::9]:80 tcp"),
        (Outward, "1::1 > 9::9 icmp6 ident 77", "2::2 > 9::9 icmp6 ident 6001"),
        (Inward, "[9::9]:80 > [2::2]:6000 tcp", "[9::9]:80 > [1::1]:5 tcp"),
        (Inward, "9::9 > 2::2 icmp6 type 129 ident 6001", "9::9 > 1::1 icmp6 type 129 ident 77"),
    ] {
        assert_eq!(through(&plan, &mut given, way, from, SECOND), canonical(to), "{from}");
    }
    for from in [
        "[9::9]:81 > [2::2]:6000 tcp",
        "[9::9]:80 > [2::2]:6000 udp",
        "[9::9]:80 > [2::2]:5999 tcp",
        "[9::9]:80 > [2::2]:6002 tcp",
    ] {
        let refused = through(&plan, &mut given, Inward, from, SECOND);
        assert_eq!(refused, Err(Some(Nobody::Unmapped)), "{from}");
    }
    let full = through(&plan, &mut given, Outward, "[1::2]:5 > [9::9]:80 tcp", SECOND);
    assert_eq!(full, Err(Some(Nobody::Exhausted)));

    let mut given = Bindings::default();
    let plan = Plan::new(&[], false, pool(), Inward, 10 * SECOND);
    let inward = through(&plan, &mut given, Inward, "[9::9]:5 > [3::3]:80 tcp", 0);
    assert_eq!(inward, canonical("[9::9]:5 > [2::2]:6000 tcp"));
    let outward = through(&plan, &mut given, Outward, "[2::2]:6000 > [9::9]:5 tcp", 0);
    assert_eq!(outward, canonical("[3::3]:80 > [9::9]:5 tcp"));
}

proptest! {
    #[test]
    fn what_comes_back_goes_to_who_asked(
        flows in prop::collection::vec((0u8..4, 1u16..4, 0u8..3, 1u16..4, any::<bool>()), 1..60),
    ) {
        let pool = Pool::Ports { address: endpoint("2::2").address, low: 100, high: 120 };
        let plan = Plan::new(&[], false, pool, Outward, SECOND);
        let mut given = Bindings::default();
        for (i, (host, port, peer, peer_port, tcp)) in flows.into_iter().enumerate() {
            let now = i as u64 * SECOND / 10;
            let protocol = if tcp { "tcp" } else { "udp" };
            let out = format!("[1::{host}]:{port} > [9::{peer}]:{peer_port} {protocol} \"x\"");
            let packet = sketch::build(&out).unwrap().bytes;
            let parties = parties(&packet, Outward).unwrap();
            let Ok(new) = given.translate(&plan, Outward, &parties, now) else { continue };
            let sent = through(&plan, &mut given, Outward, &out, now).unwrap();
            prop_assert!(!sent.contains("check"), "{}", sent);
            let Endpoint { address, port: mapped } = new;
            let answer = format!("[9::{peer}]:{peer_port} > [{address}]:{mapped} {protocol}");
            let wanted = format!("[9::{peer}]:{peer_port} > [1::{host}]:{port} {protocol}");
            prop_assert_eq!(through(&plan, &mut given, Inward, &answer, now), canonical(&wanted));
            prop_assert!(given.len() <= 21 && given.by_near.len() == given.len());
        }
    }
}
