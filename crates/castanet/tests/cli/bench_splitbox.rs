//! `castanet bench splitbox` from outside: its records.

use crate::program::castanet;

#[test]
fn records_of_small_cases() {
    let words = "bench splitbox --rules 1,6 --blinds 64 -j 1,2 --loads 20 --rounds 1 \
                 --milliseconds 5 --json";
    let words: Vec<&str> = words.split_whitespace().collect();
    let result = castanet(&words, b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{}", result.out);
    let records: Vec<serde_json::Value> = serde_json::from_str(&result.out).unwrap();
    // Three cases of two numbers of rules and of workers, and one of delays.
    assert_eq!(records.len(), 3 * 2 * 2 + 1, "{}", result.out);
    for record in &records {
        for number in ["entry_ns", "processor_ns", "client_ns", "gbps", "processor_gbps"] {
            assert!(record[number].as_f64().unwrap() > 0.0, "{record}");
        }
        let is_delay = record["case"] == "delay";
        assert_eq!(record["p50_us"].is_number(), is_delay, "{record}");
        assert_eq!(record["plain_gbps"].is_number(), !is_delay, "{record}");
        assert_eq!(record["packet"], 1000);
        let rules = record["rules"].as_u64().unwrap();
        assert_eq!(record["projections"].as_u64().unwrap(), rules.min(4), "{record}");
    }
}

#[test]
fn cases_that_are_too_large_are_named() {
    let words = "bench splitbox --case by-projection --rules 1000 --blinds 1000000 -j 1 --rounds 1 \
                 --milliseconds 5 --json";
    let words: Vec<&str> = words.split_whitespace().collect();
    let result = castanet(&words, b"");
    assert_eq!((result.status, result.out.trim()), (Some(0), "[]"), "{}", result.err);
    let why = "the rows of all epochs take 45776 MB, more than 1024 MB";
    let line = |hash| {
        format!(
            "castanet: without by-projection, {hash}, 1000 rules, 1000000 blinds, 1 workers: {why}\n"
        )
    };
    assert_eq!(result.err, line("BLAKE3") + &line("SHA-1"));
}
