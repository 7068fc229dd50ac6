//! `castanet bench classify` from outside: its records, and that table and rules agree.

use crate::program::castanet;

#[test]
fn records_of_every_small_set() {
    // The benchmark itself compares the table with the rules, and fails if they differ.
    let words = "bench classify --rules 1000 --flows 300 --milliseconds 1 --json";
    let result = castanet(&words.split(' ').collect::<Vec<_>>(), b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{}", result.out);
    let records: Vec<serde_json::Value> = serde_json::from_str(&result.out).unwrap();
    let cases: Vec<(&str, u64)> = records
        .iter()
        .map(|it| (it["case"].as_str().unwrap(), it["rules"].as_u64().unwrap()))
        .collect();
    let wanted = [
        ("5-tuples", 10),
        ("5-tuples", 100),
        ("5-tuples", 1000),
        ("access-list", 1000),
        ("tcp-options", 100),
        ("nat", 1),
        ("ipfilter", 10),
        ("ipfilter", 100),
        ("ipfilter", 1000),
        ("ipfilter-list", 10),
        ("ipfilter-list", 100),
        ("ipfilter-list", 1000),
        ("ipclassifier", 100),
        ("ipclassifier", 1000),
        ("classifier", 10),
        ("classifier", 100),
        ("classifier", 200),
    ];
    assert_eq!(cases, wanted);
    for record in &records {
        let has_matcher = record["case"].as_str().unwrap().contains("filter")
            || record["case"].as_str().unwrap().contains("classifier");
        assert_eq!(record["matcher"].is_string(), has_matcher, "{record}");
        assert_eq!(record["insert_us"].is_number(), !has_matcher, "{record}");
        for live in ["live_changes", "live_rate"] {
            let number = record[live].as_f64();
            assert_eq!(number.is_some_and(|number| number > 0.0), !has_matcher, "{record}");
        }
        assert!(record["cycles"].as_f64().unwrap() > 0.0, "{record}");
        assert!(record["hits"].as_f64().unwrap() > 0.3, "{record}");
        assert!(record["reference_ns"].as_f64().unwrap() > 0.0, "{record}");
    }
}

#[test]
fn a_table_of_the_cases_that_were_asked_for() {
    let words = "bench classify --case nat --flows 40 --milliseconds 1";
    let result = castanet(&words.split(' ').collect::<Vec<_>>(), b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{}", result.out);
    let lines: Vec<&str> = result.out.lines().collect();
    assert!(lines[0].starts_with("case ") && lines[1].starts_with("nat "), "{}", result.out);
    assert_eq!(lines.len(), 2, "{}", result.out);
}
