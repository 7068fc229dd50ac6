//! `castanet bench elements`: a record for every class, whatever it costs.

use crate::program::castanet;
use serde_json::Value;
use std::collections::BTreeMap;

/// Standard output of a successful run, as JSON.
fn records(words: &[&str]) -> Vec<Value> {
    let result = castanet(words, b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{words:?}");
    serde_json::from_str::<Vec<Value>>(&result.out).unwrap()
}

#[test]
fn every_class_has_a_figure_or_a_reason() {
    let listed = records(&["elements", "--json"]);
    let classes: Vec<&Value> = listed.iter().map(|entry| &entry["class"]).collect();
    let records = records(&["bench", "elements", "--milliseconds", "1", "--json"]);
    assert_eq!(records.iter().map(|record| &record["class"]).collect::<Vec<_>>(), classes);
    let mut by_class = BTreeMap::new();
    for record in &records {
        let measured = record["reason"].is_null();
        assert_eq!(record["reason"].as_str().is_some_and(|it| !it.is_empty()), !measured);
        for key in ["ns", "cycles", "burst"] {
            assert_eq!(record[key].as_f64().is_some_and(|it| it >= 0.0), measured, "{record}");
            assert_eq!(record[key].is_null(), !measured, "{record}");
        }
        assert_eq!(record["packets"].as_u64().is_some_and(|it| it >= 1000), measured, "{record}");
        assert_eq!(record["example"].as_u64().is_some_and(|it| it > 0), measured, "{record}");
        by_class.insert(record["class"].as_str().unwrap(), record);
    }
    // Classes whose examples need no device, file or clock are measured.
    for class in ["Counter", "IPFilter", "Queue", "InfiniteSource", "Tee", "ARPQuerier"] {
        assert!(by_class[class]["ns"].is_number(), "{}", by_class[class]);
    }
    assert_eq!(by_class["Counter"]["burst"], 32.0);
    for (class, why) in [
        ("AddressInfo", "it declares something"),
        ("FromDevice", "it needs a device"),
        ("DriverManager", "it is a program"),
    ] {
        let reason = by_class[class]["reason"].as_str().unwrap();
        assert!(reason.starts_with(why), "{class}: {reason}");
    }
}

#[test]
fn classes_are_chosen_by_pattern() {
    let words = ["bench", "elements", "IPFilt*", "Counter", "--milliseconds", "1"];
    let result = castanet(&words, b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let rows: Vec<&str> = result.out.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(rows, ["class", "IPFilter", "Counter", "2"], "{}", result.out);
    let mut json = words.to_vec();
    json.push("--json");
    assert_eq!(records(&json).len(), 2);
    let wrong = castanet(&["bench", "elements", "IPFiler"], b"");
    assert_eq!((wrong.status, wrong.out.as_str()), (Some(1), ""));
    assert_eq!(wrong.err, "castanet: no element class is called IPFiler; did you mean IPFilter?\n");
}
