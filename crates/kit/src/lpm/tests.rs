//! Tests of the tables against a linear search, and of Click's text forms.

use proptest::prelude::*;

use super::*;
use crate::address::Address;
use crate::text::mask_of;

/// The value of the longest prefix that covers an address.
fn naive(list: &[(u32, u32, u32)], address: u32) -> Option<u32> {
    let covers = |&&(a, l, _): &&(u32, u32, u32)| (a ^ address) & mask_of(l).unwrap() == 0;
    list.iter().filter(covers).max_by_key(|e| e.1).map(|e| e.2)
}

fn upsert(list: &mut Vec<(u32, u32, u32)>, new: (u32, u32, u32)) {
    list.retain(|e| (e.0, e.1) != (new.0, new.1));
    list.push(new);
}

/// Addresses close enough to each other that prefixes nest.
fn address() -> impl Strategy<Value = u32> {
    (0u32..4, 0u32..4, 0u32..4, any::<u8>())
        .prop_map(|(a, b, c, d)| a << 30 | b << 22 | c << 13 | u32::from(d & 0x93))
}

fn prefix() -> impl Strategy<Value = (u32, u32)> {
    (address(), 0u32..=32).prop_map(|(a, l)| (a & mask_of(l).unwrap(), l))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn agrees_with_a_linear_search(
        start in prop::collection::vec((prefix(), 0u32..5), 0..400),
        steps in prop::collection::vec((any::<bool>(), prefix(), 0u32..5), 0..80),
        probes in prop::collection::vec(address(), 1..100),
    ) {
        let mut list = Vec::new();
        start.iter().for_each(|&((a, l), v)| upsert(&mut list, (a, l, v)));
        let mut lpm = Lpm::build(start.into_iter().map(|((a, l), v)| (a, l, v)));
        let (snapshot, old) = (lpm.clone(), list.clone());
        for (insert, (a, l), v) in steps {
            let before = list.iter().find(|e| (e.0, e.1) == (a, l)).map(|e| e.2);
            if insert {
                upsert(&mut list, (a, l, v));
                prop_assert_eq!(lpm.insert(a, l, v), before);
            } else {
                list.retain(|e| (e.0, e.1) != (a, l));
                prop_assert_eq!(lpm.remove(a, l), before);
            }
        }
        prop_assert_eq!(lpm.len(), list.len());
        let mut batch = vec![0; probes.len()];
        lpm.lookup_batch(&probes, &mut batch);
        for (&address, batch) in probes.iter().zip(batch) {
            let expected = naive(&list, address);
            prop_assert_eq!(lpm.lookup(address), expected);
            prop_assert_eq!(batch, expected.unwrap_or(NONE));
            prop_assert_eq!(snapshot.lookup(address), naive(&old, address));
        }
        for (a, l, _) in list {
            lpm.remove(a, l);
        }
        prop_assert!(lpm.is_empty());
        prop_assert_eq!(lpm.nodes(), 0, "memory comes back");
    }

    #[test]
    fn values_are_counted(steps in prop::collection::vec((any::<bool>(), prefix(), 0u32..5), 0..60)) {
        let mut list: Vec<(u32, u32, u32)> = Vec::new();
        let mut table = Table::build(Vec::new());
        for (insert, (a, l), v) in steps {
            if insert {
                upsert(&mut list, (a, l, v));
                table.insert(a, l, format!("hop {v}"));
            } else {
                list.retain(|e| (e.0, e.1) != (a, l));
                table.remove(a, l);
            }
            for &(a, l, v) in &list {
                let value = format!("hop {v}");
                prop_assert_eq!(table.get(a, l), Some(&value));
            }
        }
    }

    #[test]
    fn next_hops_are_those_of_the_longest_prefix(
        start in prop::collection::vec((prefix(), 0u32..3, 0u32..3), 0..40),
        steps in prop::collection::vec((any::<bool>(), prefix(), 0u32..3, 0u32..3), 0..60),
        probes in prop::collection::vec(any::<u32>(), 1..20),
    ) {
        let route = |(address, length): (u32, u32), gateway, port| {
            Route { address: address.prefix(length), length, gateway, port: Some(port) }
        };
        let start: Vec<_> = start.into_iter().map(|(a, g, p)| route(a, g, p)).collect();
        let mut routes = Routes::new(3);
        routes.configure(&start).unwrap();
        let mut list: Vec<Route> = Vec::new();
        for it in start {
            if !list.iter().any(|e| (e.address, e.length) == (it.address, it.length)) {
                list.push(it);
            }
        }
        for (insert, prefix, gateway, port) in steps {
            let it = route(prefix, gateway, port);
            list.retain(|e| (e.address, e.length) != (it.address, it.length));
            if insert {
                routes.set(it);
                list.push(it);
            } else {
                _ = routes.remove(&Route { port: None, ..it });
            }
            for address in probes.iter().copied().chain(list.iter().map(|it| it.address)) {
                let covers = list.iter().filter(|e| address.prefix(e.length) == e.address);
                let longest = covers.max_by_key(|e| e.length);
                let expected = longest.map(|e| (e.gateway, e.port));
                let found = routes.next_hop(address).map(|hop| (hop.gateway, Some(hop.port)));
                prop_assert_eq!(found, expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn agrees_with_a_linear_search_in_128_bits(
        start in prop::collection::vec((prefix6(), 0u32..5), 0..300),
        steps in prop::collection::vec((any::<bool>(), prefix6(), 0u32..5), 0..60),
        probes in prop::collection::vec(address6(), 1..60),
    ) {
        let mut list: Vec<(u128, u32, u32)> = Vec::new();
        let mut lpm = Lpm::build(start.iter().map(|&((a, l), v)| (a, l, v)));
        for ((a, l), v) in start {
            list.retain(|e| (e.0, e.1) != (a, l));
            list.push((a, l, v));
        }
        for (insert, (a, l), v) in steps {
            let at = list.iter().position(|e| (e.0, e.1) == (a, l));
            let before = at.map(|at| list.swap_remove(at).2);
            if insert {
                list.push((a, l, v));
                prop_assert_eq!(lpm.insert(a, l, v), before);
            } else {
                prop_assert_eq!(lpm.remove(a, l), before);
            }
        }
        let mut batch = vec![0; probes.len()];
        lpm.lookup_batch(&probes, &mut batch);
        for (&address, batch) in probes.iter().zip(batch) {
            let covers = list.iter().filter(|e| address.prefix(e.1) == e.0);
            let expected = covers.max_by_key(|e| e.1).map(|e| e.2);
            prop_assert_eq!(lpm.lookup(address), expected);
            prop_assert_eq!(batch, expected.unwrap_or(NONE));
        }
        for (a, l, _) in list {
            lpm.remove(a, l);
        }
        prop_assert!(lpm.is_empty());
        prop_assert_eq!(lpm.nodes(), 0, "memory comes back");
    }
}

/// IPv6 addresses close enough to each other that prefixes nest.
fn address6() -> impl Strategy<Value = u128> {
    (0u128..4, 0u128..4, 0u128..4, any::<u8>())
        .prop_map(|(a, b, c, d)| a << 126 | b << 94 | c << 61 | u128::from(d & 0x93))
}

fn prefix6() -> impl Strategy<Value = (u128, u32)> {
    (address6(), 0u32..=128).prop_map(|(a, l)| (a.prefix(l), l))
}

#[test]
fn ipv6_routes_have_clicks_text_form() {
    let mut routes: Routes<u128> = Routes::new(2);
    let arguments = ["2001:db8::1/32 0", "::/0 fe80::1 1", "::1 ::0 0"];
    let arguments = arguments.map(|text| Route::parse(text).expect(text));
    assert_eq!(routes.configure(&arguments), Ok(0));
    let listing = "2001:db8::/32\t\t-\t\t0\n::/0\t\tfe80::1\t\t1\n::0.0.0.1/128\t\t-\t\t0\n";
    assert_eq!(routes.listing(), listing);
    assert_eq!(routes.lookup_text(0x2001_0db8 << 96 | 9), "0");
    assert_eq!(routes.lookup_text(9), "1 fe80::1");
    let removal = Route::parse_removal("::/0").expect("a prefix");
    assert_eq!(routes.remove(&removal).map(|route| route.port), Ok(Some(1)));
    assert_eq!(routes.lookup_text(9), "-1");
    assert_eq!(Route::<u128>::parse("1.0.0.0/8 1"), None);
}

/// A deterministic pseudorandom sequence.
fn noise(seed: &mut u64) -> u32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as u32
}

#[test]
fn ten_thousand_prefixes() {
    let mut seed = 7;
    let mut list = Vec::new();
    for i in 0..10_000 {
        let length = 8 + noise(&mut seed) % 25;
        list.push((noise(&mut seed) << 1 & mask_of(length).unwrap(), length, i));
    }
    let lpm = Lpm::build(list.iter().copied());
    let mut grown = Lpm::new();
    for &(a, l, v) in &list {
        grown.insert(a, l, v);
    }
    let mut unique = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for &e in list.iter().rev() {
        if seen.insert((e.0, e.1)) {
            unique.push(e);
        }
    }
    for i in 0..2000 {
        let near = list[i * 5].0 | noise(&mut seed) & 0xFF;
        for address in [near, noise(&mut seed) << 1] {
            let expected = naive(&unique, address);
            assert_eq!(lpm.lookup(address), expected, "{address:x}");
            assert_eq!(grown.lookup(address), expected, "{address:x}");
        }
    }
}

#[test]
fn small_tables_stay_small() {
    let lpm = Lpm::<u32>::build([(0, 0, 1), (0x0a00_0000, 8, 2), (0x0a01_0000, 16, 3)]);
    assert_eq!(lpm.nodes(), 1);
    assert!(lpm.memory() <= 1024 + 65536);
    assert_eq!(lpm.lookup(0x0a01_0203), Some(3));
    assert_eq!(lpm.lookup(0x0b01_0203), Some(1));
}

fn route(text: &str) -> Route<u32> {
    Route::parse(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn routes_have_clicks_text_form() {
    let r = route("18.26.4.9/24 18.26.4.1 2");
    assert_eq!(r.to_string(), "18.26.4.0/24 18.26.4.1 2");
    assert_eq!(route("0/0 1").to_string(), "0.0.0.0/0 - 1");
    assert_eq!(route("1.2.3.4 - 0").to_string(), "1.2.3.4/32 - 0");
    assert_eq!(route("1.2.0.0/255.255.0.0 3").length, 16);
    for bad in [
        "",
        "1.2.3.4",
        "1.2.3.4/33 1",
        "1.2.3.4/24 1 2 3",
        "1.0.0.0/8 x",
        "1/8 1.2.3.4",
        "1.0.0.0/255.0.255.0 1",
        "1.0.0.0/8 -1",
    ] {
        assert_eq!(Route::<u32>::parse(bad), None, "{bad}");
    }
    assert_eq!(Route::<u32>::parse_removal("1.0.0.0/8").unwrap().port, None);
}

#[test]
fn listings_are_aligned_and_reuse_slots() {
    let mut routes = Routes::new(2);
    let arguments = ["1.0.0.0/8 0", "192.168.100.0/24 192.168.100.1 1", "1.0.0.0/8 1"].map(route);
    assert_eq!(routes.configure(&arguments), Ok(1));
    assert_eq!(routes.listing(), "1.0.0.0/8\t\t-\t\t0\n192.168.100.0/24\t192.168.100.1\t1\n");
    assert_eq!(routes.lookup_text(0x0102_0304), "0");
    assert_eq!(routes.lookup_text(0xc0a8_6407), "1 192.168.100.1");
    assert_eq!(routes.lookup_text(0x0202_0304), "-1");
    let error = routes.add(route("1.0.0.0/8 1")).unwrap_err();
    assert_eq!(error.to_string(), "conflict with existing route '1.0.0.0/8 - 0'");
    assert_eq!(routes.set(route("1.0.0.0/8 1")).map(|r| r.port), Some(Some(0)));
    routes.add(route("2.0.0.0/8 0")).unwrap();
    let order: Vec<u32> = routes.iter().map(|r| r.address >> 24).collect();
    assert_eq!(order, [2, 192, 1]);
    let error = routes.remove(&route("1.0.0.0/8 0")).unwrap_err();
    assert_eq!(error.to_string(), "route '1.0.0.0/8 - 0' not found");
    assert_eq!(routes.configure(&[route("9.0.0.0/8 7")]), Err(vec![(0, RouteError::BadOutput)]));
}

#[test]
fn ctrl_undoes_the_lines_before_a_failure() {
    let mut routes = Routes::new(2);
    routes.ctrl("add 1.0.0.0/8 0\nadd 2.0.0.0/8 1\n\n").unwrap();
    let before: Vec<Route> = routes.iter().copied().collect();
    let text = "remove 1.0.0.0/8\nset 2.0.0.0/8 0\nadd 3.0.0.0/8 0\n";
    for (line, error) in [
        ("frob", "bad command 'frob'"),
        ("add 4.0.0.0/8", "expected 'ADDR/MASK [GATEWAY] OUTPUT'"),
        ("add 4.0.0.0/8 2", "bad OUTPUT"),
        ("remove", "expected 'ADDR/MASK [GATEWAY OUTPUT]'"),
        ("remove 7.0.0.0/8", "route '7.0.0.0/8 - -1' not found"),
    ] {
        let failed = routes.ctrl(&format!("{text}{line}")).unwrap_err();
        assert_eq!(failed.to_string(), error);
        let mut after: Vec<Route> = routes.iter().copied().collect();
        after.sort_by_key(|r| r.address);
        assert_eq!(after, before);
        assert_eq!(routes.lookup_text(0x0200_0001), "1");
    }
    routes.ctrl(text).unwrap();
    assert_eq!(routes.len(), 2);
}
