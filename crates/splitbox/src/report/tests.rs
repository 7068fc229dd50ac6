//! Reports of all parties of a setup.

use super::*;
use crate::function::{Node, Policy};
use crate::header::{HeaderField, IP4};
use crate::policy::ip_filter;
use crate::setup::{Setup, SetupOptions};

fn options(header_bits: usize) -> SetupOptions {
    SetupOptions {
        processors: 3,
        hash: HashKind::Blake3,
        header_bits,
        blinds: 100,
        blind_use: BlindUse::Again,
        lanes: 1,
        has_constant_work: false,
    }
}

fn setup() -> Setup {
    let rules = [
        "deny src 10.0.0.0/8",
        "deny src 11.0.0.0/8",
        "allow src host 1.2.3.4 and dst host 5.6.7.8 and dst tcp port 80",
        "allow dst host 9.9.9.9",
        "allow all",
    ];
    let compiled = ip_filter(&rules).expect("are rules");
    Setup::new(&compiled.function, options(compiled.header_bits)).expect("is possible")
}

#[test]
fn processors_know_projections_and_guesses() {
    let setup = setup();
    let report = LeakageReport::new(&Party::Processor(setup.processors[1].clone().into()));
    assert_eq!(report.party, "processor 2 of 3");
    let function = report.function.as_ref().expect("is known");
    assert!(function.is_list);
    assert_eq!((function.rules, function.actions, function.longest_path), (6, 6, 6));
    let of = |bits: u32| {
        let mut all = function.projections.iter().filter(|it| it.guess_bits == bits);
        all.next().unwrap_or_else(|| panic!("no projection of {bits} bits in {function:?}"))
    };
    assert_eq!((of(8).matches, of(8).guesses), (2, 256.0));
    assert_eq!(of(8).ip4, ["IP version", "src/8"]);
    assert_eq!(of(32).ip4, ["IP version", "dst"]);
    assert!((of(32).seconds - 4.294_967_296).abs() < 1e-9);
    let text = report.to_string();
    assert!(
        text.contains("\n  2 matches on IP version, src/8: 9 bits, 2^8 guesses (less than 1 ms)\n"),
        "{text}"
    );
    assert!(text.contains("  1 match on IP version: 1 bits, nothing to guess\n"), "{text}");
    assert!(text.contains("whose numbers differ by a multiple of 100"), "{text}");
    assert!(report.dummies_per_million.is_none());
}

#[test]
fn processors_know_lanes_and_mostly_dummies() {
    let text = |lanes, blind_use| {
        let mut party = setup().processors.remove(0);
        let options = &mut party.info.options;
        (options.lanes, options.blind_use) = (lanes, blind_use);
        LeakageReport::new(&Party::Processor(party.into())).to_string()
    };
    // Each of four lanes has 25 of the 100 blinds.
    let four = text(4, BlindUse::Again);
    assert!(four.contains("of one lane whose numbers differ by a multiple of 25"), "{four}");
    assert!(four.contains("the lane of each packet"), "{four}");
    assert!(!text(1, BlindUse::Once).contains("the lane of each packet"));
    let dummies = |text: &str| text.contains("which packets are dummies");
    assert!(dummies(&four) && !dummies(&text(4, BlindUse::Once)));
}

#[test]
fn entries_know_no_function_and_clients_know_all() {
    let setup = setup();
    let entry = LeakageReport::new(&Party::Entry(setup.entry.clone().into()));
    assert!(entry.function.is_none() && entry.to_string().contains("n = 216 bits"), "{entry}");
    let client = LeakageReport::new(&Party::Client(setup.client.clone().into()));
    let processor = LeakageReport::new(&Party::Processor(setup.processors[0].clone().into()));
    assert_eq!(client.function, processor.function);
    // With another policy of the same width, the entry has the same report.
    let other = ip_filter(&["allow src 1.2.3.4"]).expect("is a rule");
    let other = Setup::new(&other.function, options(216)).expect("is possible");
    let other = LeakageReport::new(&Party::Entry(other.entry.into()));
    assert_eq!(LeakageReport { setup: entry.setup.clone(), ..other }, entry);
}

/// A report is as long as its projections: nothing in it depends on values.
#[test]
fn reports_of_processors_do_not_depend_on_values() {
    let report = |address: &str| {
        let rule = format!("allow src host {address} and dst port 7");
        let compiled = ip_filter(&[&rule]).expect("is a rule");
        let setup =
            Setup::new(&compiled.function, options(compiled.header_bits)).expect("is possible");
        let report = LeakageReport::new(&Party::Processor(setup.processors[0].clone().into()));
        LeakageReport { setup: String::new(), ..report }
    };
    assert_eq!(report("1.2.3.4"), report("200.100.50.25"));
}

#[test]
fn trees_are_no_lists_and_have_longest_paths() {
    let policy = |n: u128| Policy {
        condition: Ternary::ANY.with(40, 8, n),
        action: Ternary::ANY.with(8 * n as usize, 8, n),
    };
    let to = |policy, matched, otherwise| Node::Match { policy, matched, otherwise };
    let nodes = vec![to(0, 1, 2), to(1, 3, 3), to(2, 3, 3), Node::Leaf];
    let function = NetworkFunction::new((0..3).map(policy).collect(), nodes).expect("is right");
    let report = FunctionReport::new(&PrivateFunction::new(&function).0, 3);
    assert!(!report.is_list);
    assert_eq!((report.rules, report.longest_path, report.matches), (3, 2, 3));
    let empty = NetworkFunction::first_match(vec![]);
    let report = FunctionReport::new(&PrivateFunction::new(&empty).0, 0);
    assert_eq!((report.rules, report.longest_path), (0, 0));
}

#[test]
fn matches_with_few_bits_are_found_by_projection() {
    let function = &setup().client.function;
    let low = low_weight(function, 33);
    assert_eq!(low.len(), 2);
    assert_eq!((low[0].guess_bits, low[0].matches), (8, 2));
    assert_eq!(low[0].policies, [0, 1]);
    assert_eq!((low[1].guess_bits, &low[1].policies[..]), (32, &[3][..]));
    assert_eq!(low[1].fields, ["IP version", "dst"]);
    assert!(low_weight(function, 8).is_empty(), "a match of all packets tells nothing");
    assert_eq!(low_weight(function, 32).len(), 1);
}

#[test]
fn costs_follow_from_matches_and_projections() {
    let setup = setup();
    let function = &setup.processors[0].function;
    let cost = SetupCost::new(function, &setup.entry.info.options);
    assert_eq!(cost.row_bytes, 16 * cost.matches as u64);
    assert_eq!(cost.digest_bytes, 100 * cost.row_bytes);
    let rows = setup.rows(1).expect("is small");
    assert_eq!(cost.row_bytes, 16 * rows.row(0).len() as u64);
    let rate = cost.packets_per_second(1e9);
    assert!((rate * cost.row_bytes as f64 * 8.0 - 1e9).abs() < 1.0);
}

#[test]
fn times_of_guesses_have_units() {
    for (bits, expected) in [
        (8, "less than 1 ms"),
        (24, "17 ms"),
        (32, "4 s"),
        (40, "18 min"),
        (48, "3 days"),
        (64, "585 years"),
        (96, "10^12 years"),
    ] {
        assert_eq!(guess_time(bits), expected);
    }
}

/// The field of a header string, for a reader of [`fields`].
#[test]
fn fields_of_rules_are_those_of_the_rules() {
    let HeaderField { at, width } = IP4.ttl;
    let condition = Ternary::ANY.with(at, width, 7);
    assert_eq!(fields(&condition.projection(), false), ["TTL"]);
}
