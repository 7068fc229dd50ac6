//! `castanet bench router --built`: the program of a path measures itself.

use crate::builds;
use serde_json::Value;

#[test]
fn the_program_of_the_router_path_is_measured_beside_castanet() {
    let mut bench = builds::castanet();
    let words = "bench router --case router-4-ways --frames 512 -j 1 --rounds 1 --milliseconds 150";
    bench.args(words.split(' ')).args(["--json", "--built"]);
    bench.args(["--profile", &builds::profile()]);
    let output = bench.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("castanet: router-4-ways: built in "), "{errors}");
    let records: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let programs: Vec<&Value> = records.iter().map(|record| &record["program"]).collect();
    assert_eq!(programs, ["plain", "built"], "{errors}");
    for record in &records {
        assert!(record["ns_per_packet"].as_f64().is_some_and(|ns| ns > 0.0), "{record}");
    }
}
