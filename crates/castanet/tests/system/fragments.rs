//! `castanet middlebox` and fragments: what Linux behind it answers, as scapy sees it.

use castanet_lab::{Lab, Port, Router, require};

use crate::bed::{LATER, SOON, program, root};

#[test]
fn fragments_pass_rules_as_their_packets_do() {
    require(&["ip", "ping", "python3", "scapy"]).unwrap_or_else(|error| panic!("{error}"));
    let lab = Lab::new("frags").unwrap();
    let [left, middle, right] =
        ["left", "middle", "right"].map(|name| lab.namespace(name).unwrap());
    for (outer, name, n) in [(&left, "left", 1), (&right, "right", 2)] {
        let port = Port::new(outer, name)
            .mac(&format!("06:00:00:00:00:0{n}"))
            .address(&format!("10.9.0.{n}/24"));
        lab.link(port, Port::new(&middle, &format!("to-{name}"))).unwrap();
        for which in ["all", name] {
            outer.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0").unwrap();
        }
        outer.ip(&format!("address add fd09::{n}/64 dev {name} nodad")).unwrap();
    }
    // Addresses that nobody has: behind them is whoever sends from them.
    for address in ["10.9.0.77", "10.9.0.99", "fd09::99"] {
        right.ip(&format!("neigh add {address} lladdr 06:00:00:00:00:01 dev right")).unwrap();
    }
    left.ip("neigh add 10.9.0.2 lladdr 06:00:00:00:00:02 dev left").unwrap();
    let socket = lab.directory().join("control");
    let words = ["middlebox", "--in", "to-left", "--out", "to-right", "--control"];
    let mut process = middle.command(program()).args(words).arg(&socket).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    let script = root().join("crates/castanet/tests/system/fragments.py");
    let other = format!("/run/netns/{}", right.name());
    let check = left.command("/usr/bin/python3").arg(script).arg(program());
    let check = check.arg(&socket).arg(other).timeout(LATER * 3);
    let said = check.output().unwrap().printed();
    assert!(said.contains("checks are right"), "{said}\n{}", process.stderr());
    // Nothing that waits is missing at the end.
    process.interrupt();
    let status = process.wait(SOON).unwrap();
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
}
