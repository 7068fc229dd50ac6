//! Clients attach to a router that nobody has prepared for them, while it forwards by AF_XDP.

use castanet_lab::{Command, NetworkOptions, Process, Router};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::testbed::{LATER, SOON, TestNetwork, program, router_config};

/// Name of the instance: that of its file.
const NAME: &str = "router";

/// `castanet run` between the hosts, with a runtime directory of its own.
struct AttachNetwork {
    testbed: TestNetwork,
    config: PathBuf,
}

impl AttachNetwork {
    /// A router with the text of `conf/router.click`, as `change` alters it.
    fn new(name: &str, change: impl Fn(String) -> String) -> AttachNetwork {
        let mut testbed = TestNetwork::idle(name, &NetworkOptions::default());
        let config = testbed.network.lab().directory().join("router.click");
        std::fs::write(&config, change(text())).unwrap();
        let command = testbed.network.castanet(program(), &config);
        let command = command.env("RUNTIME_DIRECTORY", testbed.network.lab().directory());
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        assert!(process.stderr().contains("lan1: AF_XDP"), "{}", process.stderr());
        testbed.process = Some(process);
        AttachNetwork { testbed, config }
    }

    /// `castanet` with these words, outside of all namespaces.
    fn client(&self, words: &[&str]) -> Command {
        let program = Command::on_host(program()).timeout(LATER).args(words);
        program.env("RUNTIME_DIRECTORY", self.testbed.network.lab().directory())
    }

    /// Its standard output as JSON.
    fn json(&self, words: &[&str]) -> Value {
        let text = self.client(words).check().unwrap_or_else(|error| panic!("{error}")).stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Starts `ping` from the first host to the second.
    fn ping(&self, words: &[&str]) -> Process {
        let [h1, h2, _] = self.testbed.hosts();
        h1.command("ping").arg("-n").args(words).arg(&h2.address).timeout(LATER).spawn().unwrap()
    }

    /// Has the client end the router, which has to end well.
    fn stop(mut self) {
        let stopped = self.client(&["ctl", NAME, "stop"]).output().unwrap();
        assert!(stopped.success(), "{}", stopped.printed());
        let mut process = self.testbed.process.take().unwrap();
        let status = process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{status}: {}", process.stderr());
        assert!(!self.testbed.network.lab().directory().join("router.sock").exists());
    }
}

/// The text of `conf/router.click`.
fn text() -> String {
    std::fs::read_to_string(router_config()).unwrap()
}

/// The elements of a class.
fn of_class<'v>(record: &'v Value, class: &str) -> Vec<&'v Value> {
    record["elements"].as_array().unwrap().iter().filter(|it| it["class"] == class).collect()
}

/// Repeats until a condition is met.
fn until(complaint: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LATER, "{complaint}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn top_shows_the_devices_of_a_router_under_load() {
    let it = AttachNetwork::new("attach-top", |text| text);
    it.testbed.reached();
    let list = it.json(&["ctl", "--json"]);
    assert_eq!((list.as_array().unwrap().len(), &list[0]["name"]), (1, &NAME.into()));
    let process = it.testbed.process.as_ref().unwrap().id();
    assert_eq!(list[0]["pid"], process);
    // `ping -f` sends as fast as it is answered.
    let mut flood = it.ping(&["-q", "-f", "-w", "30"]);
    let is_device = |device: &Value, interface: &str| {
        device["argument"] == interface && device["packets_per_second"].as_f64() > Some(100.0)
    };
    let mut last = Value::Null;
    until("the devices have no packets", || {
        last = it.json(&["top", NAME, "--once", "--json", "--interval", "0.5"]);
        ["FromDevice", "ToDevice"].iter().all(|class| {
            let devices = of_class(&last, class);
            ["lan1", "lan2"].iter().all(|lan| devices.iter().any(|it| is_device(it, lan)))
        })
    });
    assert!(last["workers"][0]["load"].as_f64() > Some(0.0), "{last}");
    let is_busy = |it: &Value| it["nanoseconds_per_packet"].as_f64() > Some(0.0);
    assert!(last["elements"].as_array().unwrap().iter().any(is_busy), "{last}");
    // The third interface has no packets but those about neighbours.
    let idle = of_class(&last, "FromDevice").into_iter().find(|it| it["argument"] == "lan3");
    assert!(idle.unwrap()["packets_per_second"].as_f64() < Some(100.0), "{last}");
    let table = it.client(&["top", NAME, "--once", "--fold"]).check().unwrap().stdout;
    assert!(table.contains("(lan1)") && table.contains("(compound)"), "{table}");
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    // The client has changed nothing.
    it.testbed.reached();
    it.stop();
}

#[test]
fn drops_name_a_packet_whose_ttl_expires() {
    const ANSWERED: &str = "    ttl[1] -> ICMPError($ip, timeexceeded) -> [1] output;\n";
    let it = AttachNetwork::new("attach-drops", |text| {
        assert!(text.contains(ANSWERED));
        text.replace(ANSWERED, "")
    });
    it.testbed.reached();
    let [h1, h2, _] = it.testbed.hosts();
    // By AF_XDP, with other packets at the same time.
    let mut flood = it.ping(&["-q", "-f", "-w", "30"]);
    let words = ["drops", NAME, "--interval", "0", "--only", "expired", "--json"];
    assert_eq!(it.json(&words), Value::Array(Vec::new()));
    // The first packet is counted, and one behind a read is kept as an example.
    let mut last = Value::Null;
    until("no packet expires", || {
        it.testbed.ping(h1, &["-t", "1", "-c", "2", "-W", "0.2"], &h2.address);
        last = it.json(&words);
        !last[0]["example"].is_null()
    });
    let drop = &last[0];
    assert_eq!((&drop["element"], &drop["class"]), (&"side1/ttl".into(), &"DecIPTTL".into()));
    assert!(drop["packets"].as_u64() >= Some(1), "{drop}");
    let packet = drop["example"]["text"].as_str().unwrap();
    assert!(packet.contains("10.0.1.2 > 10.0.2.2 icmp") && packet.contains("ttl 1"), "{packet}");
    let told = it.client(&["drops", NAME, "--interval", "0"]).check().unwrap().stdout;
    assert!(told.contains("side1/ttl :: DecIPTTL: expired"), "{told}");
    assert!(told.contains("Packets whose TTL has expired"), "{told}");
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
    it.stop();
}

#[test]
fn sighup_under_a_hundred_pings_a_second_loses_none() {
    const RELOADS: usize = 8;
    let it = AttachNetwork::new("attach-hup", |text| text);
    it.testbed.reached();
    let mut ping = it.ping(&["-q", "-i", "0.01", "-c", "500", "-W", "5"]);
    let process = it.testbed.process.as_ref().unwrap();
    let said = format!("castanet: {} runs anew\n", it.config.display());
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
    for n in 1..=RELOADS {
        let extra = ["", "-> Null ", "-> Counter "][n % 3];
        let text = text().replace("-> FixIPSrc($ip)", &format!("{extra}-> FixIPSrc($ip)"));
        std::fs::write(&it.config, text).unwrap();
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
        until("SIGHUP does nothing", || process.stderr().matches(&said).count() == n);
        std::thread::sleep(Duration::from_millis(200));
    }
    // A broken file, too.
    std::fs::write(&it.config, text() + "FromDevice(lan1) -> Bluh;").unwrap();
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGHUP).unwrap();
    let stays = "castanet: the running configuration stays";
    until("SIGHUP does nothing", || process.stderr().contains(stays));
    assert!(process.stderr().contains("undeclared element 'Bluh'"), "{}", process.stderr());
    assert!(ping.is_running(), "the reloads took longer than the pings");
    ping.wait(LATER).unwrap();
    let answer = ping.stdout();
    assert!(answer.contains("500 packets transmitted, 500 received"), "{answer}");
    assert_eq!(it.json(&["ctl", NAME, "info", "--json"])["replaced"], RELOADS);
    it.stop();
}
