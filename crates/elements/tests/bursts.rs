//! Elements that decide about bursts together: the same packets by the same outputs as one by one, whatever the burst.

mod common;

use castanet_elements::library;
use castanet_runtime::router::{Options, Router};
use common::{Lines, clean, number};
use std::sync::Arc;

/// Random packets of 40 bytes, among them some of 18.
const BYTES: &str =
    "RandomSource(LENGTH 40, LIMIT 3000) -> s :: Null; RandomSource(LENGTH 18, LIMIT 500) -> s -> ";
/// The same with a mark of an IPv4 header, which some of them have not.
const IPV4: &str =
    "RandomSource(LENGTH 40, LIMIT 3000) -> StoreData(0, \\<45>) -> MarkIPHeader -> s :: Null;
    RandomSource(LENGTH 40, LIMIT 500) -> s -> ";

/// Packets by output and by reason to drop, with bursts of this length.
fn counts(text: &str, outputs: usize, burst: usize) -> Vec<String> {
    let exits: String =
        (0..outputs).map(|n| format!("e[{n}] -> c{n} :: Counter -> Discard;")).collect();
    let text = format!("RandomSeed(7); {text}; {exits}");
    let mut options = Options::new(Arc::new(Lines::default()));
    (options.simulated, options.burst) = (true, burst);
    let mut router =
        Router::from_text(&text, &library(), &options).unwrap_or_else(|wrong| panic!("{wrong}"));
    router.settle(20_000);
    let mut counts: Vec<String> =
        (0..outputs).map(|n| number(&mut router, &format!("c{n}.count")).to_string()).collect();
    counts.push(router.read("e.drops").expect("every element has it"));
    clean(router);
    counts
}

/// Asserts that counts are the same for all bursts, and that each output has packets.
fn same(text: &str, outputs: usize) {
    let single = counts(text, outputs, 1);
    assert!(single[..outputs].iter().all(|count| count != "0"), "{text}: {single:?}");
    for burst in [3, 4, 5, 16, 31, 128] {
        assert_eq!(counts(text, outputs, burst), single, "{text}: {burst}");
    }
}

#[test]
fn classifiers() {
    // Values of one word, words at two places, a negation, and no pattern for what is left.
    same(&format!("{BYTES} e :: Classifier(0/00%c0, 0/40%c0, 0/80%c0, -)"), 4);
    same(&format!("{BYTES} e :: Classifier(4/01%01 20/01%01, !4/00%06, 20/?0)"), 3);
    same(&format!("{BYTES} e :: Classifier(2/10%f0, 17/00%03, 16/00%03, 14/0000%0101)"), 4);
}

#[test]
fn filters_of_ip() {
    let tests = "deny src net 0.0.0.0/3, 1 dst net 64.0.0.0/2 and ip ttl > 90, 2 udp or ip tos > 100, allow all";
    same(&format!("{IPV4} e :: IPFilter({tests})"), 3);
    let nets: String = (0..40).map(|n| format!("1 src net {}.0.0.0/8, ", 3 * n)).collect();
    same(&format!("{IPV4} e :: IPFilter({nets} allow all)"), 2);
    let ports: String = (0..300)
        .map(|n| {
            format!(
                "{} src net {}.{}.0.0/10 and dst net {}.0.0.0/3, ",
                n % 2,
                n % 256,
                n * 7 % 256,
                n * 5 % 256
            )
        })
        .collect();
    same(&format!("{IPV4} e :: IPFilter({ports} 2 all)"), 3);
    same(
        &format!(
            "{IPV4} e :: IPClassifier(ip frag and src net 128.0.0.0/2, ip vers 4 and ip ttl < 100, -)"
        ),
        3,
    );
}

#[test]
fn switches_by_hash() {
    for (args, outputs) in
        [("0, 4", 2), ("16, 8", 4), ("10, 8", 8), ("12, 4", 4), ("3, 8", 3), ("5, 7", 4)]
    {
        same(&format!("{BYTES} e :: HashSwitch({args})"), outputs);
    }
}
