//! The rules and the dashboard in `share`: whatever they name exists.

use crate::program::{castanet, root, run};
use castanet_lab::require;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// The rules for alerts.
pub(super) const RULES: &str = "share/prometheus/castanet.rules.yml";
/// The dashboard.
const DASHBOARD: &str = "share/grafana/castanet.json";

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_name(c)).filter(|word| word.starts_with("castanet_"));
    words.map(str::to_owned).collect()
}

#[test]
fn rules_and_dashboard_name_metrics_that_exist() {
    let list = castanet(&["elements", "--metrics"], b"");
    assert_eq!(list.status, Some(0), "{}", list.err);
    let rows = list.out.lines().filter_map(|line| line.strip_prefix("| `"));
    let known: BTreeSet<String> =
        rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect();
    assert!(known.len() > 40, "{known:?}");
    for (file, least) in [(RULES, 10), (DASHBOARD, 20)] {
        let named = names(&std::fs::read_to_string(root().join(file)).unwrap());
        assert!(named.len() >= least, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn the_dashboard_is_one_of_grafana() {
    let text = std::fs::read_to_string(root().join(DASHBOARD)).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let identifiers: BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(identifiers.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && panel["title"].is_string(), "{panel}");
        // Each is about the instances that the user has chosen.
        let is_chosen =
            |it: &Value| it["expr"].as_str().unwrap().contains("instance=~\"$instance\"");
        assert!(targets.iter().all(is_chosen), "{panel}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    require(&["promtool"]).unwrap();
    let folder = root().join(RULES).parent().unwrap().to_owned();
    for words in [["check", "rules", "castanet.rules.yml"], ["test", "rules", "castanet.test.yml"]]
    {
        let done = run(Command::new("promtool").args(words).current_dir(&folder), b"");
        assert_eq!(done.status, Some(0), "{}{}", done.out, done.err);
    }
    // Each alert has a test in which it fires.
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (rules, tests) = (read("castanet.rules.yml"), read("castanet.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let test = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels");
        assert!(tests.contains(&test), "no test of {alert}");
    }
}
