//! A Prometheus that scrapes an instance, with the rules of `share`.

use super::Target;
use super::files::RULES;
use crate::control::PATIENCE;
use crate::http::get;
use crate::program::{root, wait_until};
use castanet_lab::{Command, require};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// More packets than a queue takes; a rule drops the others.
const DROPPING: &str = "
    s :: RatedSource(LENGTH 60, RATE 1000) -> q :: Queue(10) -> slow :: RatedUnqueue(10) -> Discard;
    Idle -> Middlebox(proto udp drop) -> Discard;\n";

/// The rules with short times.
fn quick_rules() -> String {
    let rules = std::fs::read_to_string(root().join(RULES)).unwrap();
    let quick = rules.replace("[5m]", "[4s]");
    let lines = quick.lines().map(|line| match line.trim_start().strip_prefix("for: ") {
        Some(_) => "        for: 1s",
        None => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Writes the configuration of a Prometheus that scrapes `target` into a folder.
fn configure(folder: &Path, target: SocketAddr) {
    let text = format!(
        "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }}\n\
         rule_files: [rules.yml]\n\
         scrape_configs:\n\
         \x20 - job_name: castanet\n\
         \x20   static_configs: [{{ targets: [\"{target}\"] }}]\n"
    );
    std::fs::write(folder.join("prometheus.yml"), text).unwrap();
    std::fs::write(folder.join("rules.yml"), quick_rules()).unwrap();
}

/// A port that is free at the moment.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The answer of Prometheus's interface.
fn api(prometheus: SocketAddr, path: &str) -> Value {
    let reply = get(prometheus, &format!("/api/v1/{path}"), &[]);
    serde_json::from_str(&reply.body).unwrap_or_default()
}

#[test]
fn prometheus_scrapes_an_instance_and_alerts_of_drops() {
    require(&["prometheus"]).unwrap();
    let target = Target::new("m-prometheus", DROPPING);
    let folder = target.it.0.join("prometheus");
    std::fs::create_dir(&folder).unwrap();
    configure(&folder, target.address);
    let address = free_port();
    let mut prometheus = Command::on_host("prometheus")
        .current_dir(&folder)
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
        .arg(format!("--web.listen-address={address}"))
        .timeout(PATIENCE * 4)
        .spawn()
        .unwrap();
    prometheus.wait_for("Server is ready to receive web requests", PATIENCE).unwrap();
    let health = |word: &str| {
        let targets = api(address, "targets");
        targets["data"]["activeTargets"][0]["health"] == word
    };
    wait_until("the instance is never scraped", || health("up"));
    let firing = |alert: &str| {
        let alerts = api(address, "alerts");
        let alerts = alerts["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|it| it["labels"]["alertname"] == alert && it["state"] == "firing")
    };
    wait_until("no alert of drops", || firing("CastanetDrops"));
    wait_until("no alert of a full queue", || firing("CastanetQueueFull"));
    assert!(!firing("CastanetDown") && !firing("CastanetReloadFailed"));
    let query = "query?query=castanet_element_dropped_packets_total%7Belement=%22q%22%7D";
    let labels = api(address, query)["data"]["result"][0]["metric"].clone();
    assert_eq!((&labels["class"], &labels["reason"]), (&"Queue".into(), &"full".into()));
    // The metadata came by OpenMetrics, which alone has units.
    let metadata = api(address, "metadata?metric=castanet_worker_cpu_seconds");
    let of_cpu = &metadata["data"]["castanet_worker_cpu_seconds"][0];
    assert_eq!((&of_cpu["type"], &of_cpu["unit"]), (&"counter".into(), &"seconds".into()));
    target.it.output(&["ctl", "one", "stop"]);
    wait_until("no alert of an instance that is down", || firing("CastanetDown"));
    prometheus.interrupt();
    prometheus.finish(PATIENCE).unwrap();
}
