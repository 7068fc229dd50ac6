//! `castanet middlebox` between real interfaces: every example rule, as scapy sees it.

use castanet_lab::{Lab, Namespace, Port, Process, require};

use crate::bed::{LATER, SOON, program, root};

/// A middlebox between two hosts.
struct Between {
    lab: Lab,
    left: Namespace,
    right: Namespace,
    process: Process,
}

impl Between {
    fn new(name: &str) -> Between {
        require(&["ip", "python3", "scapy"]).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new(name).unwrap();
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
        // Who is behind the translated address.
        right.ip("neigh add 10.9.0.77 lladdr 06:00:00:00:00:01 dev right").unwrap();
        let socket = lab.directory().join("control");
        let words = ["middlebox", "--in", "to-left", "--out", "to-right", "--control"];
        let command = middle.command(program()).args(words).arg(&socket);
        let mut process = command.spawn().unwrap();
        process.wait_for(castanet_lab::Router::READY, SOON).unwrap();
        Between { lab, left, right, process }
    }
}

#[test]
fn rules_do_on_the_wire_what_they_say() {
    let mut between = Between::new("rules");
    let script = root().join("crates/castanet/tests/system/rules.py");
    let other = format!("/run/netns/{}", between.right.name());
    // Debian puts scapy beside its own Python.
    let check = between.left.command("/usr/bin/python3").arg(script).arg(program());
    let check = check.arg(between.lab.directory().join("control")).arg(other);
    let said = check.timeout(LATER * 3).output().unwrap().printed();
    assert!(said.contains("cases are right"), "{said}\n{}", between.process.stderr());
    // Not a frame is missing, and nothing panicked, or it would not end like this.
    between.process.interrupt();
    let status = between.process.wait(SOON).unwrap();
    assert_eq!(status.code(), Some(0), "{}", between.process.stderr());
}
