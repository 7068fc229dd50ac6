//! A bridge by `castanet middlebox` between two hosts.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};

use crate::testbed::{LATER, SOON, program, root};

/// A middlebox between two hosts.
pub(crate) struct MiddleboxNetwork {
    pub(crate) lab: Lab,
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
    pub(crate) process: Process,
}

impl MiddleboxNetwork {
    pub(crate) fn new(name: &str) -> MiddleboxNetwork {
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
        // Addresses that no interface has: a sender uses them as its source.
        for address in ["10.9.0.77", "10.9.0.99", "fd09::99"] {
            right.ip(&format!("neigh add {address} lladdr 06:00:00:00:00:01 dev right")).unwrap();
        }
        left.ip("neigh add 10.9.0.2 lladdr 06:00:00:00:00:02 dev left").unwrap();
        let socket = lab.directory().join("control");
        let words = ["middlebox", "--in", "to-left", "--out", "to-right", "--control"];
        // The directory into which tests put the files that they load.
        let files = ["--handler-files", lab.directory().to_str().unwrap()];
        let command = middle.command(program()).args(words).arg(&socket).args(files);
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        MiddleboxNetwork { lab, left, right, process }
    }

    /// The answer of the middlebox to a command.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let command = self.left.command(program()).args(["middlebox", "--connect"]);
        command.arg(self.lab.directory().join("control")).args(words).check().unwrap().stdout
    }

    /// Runs a script of this folder at the left host, which is to say `right` in the end; then ends
    /// the middlebox.
    pub(crate) fn check(mut self, script: &str, right: &str) {
        let script = root().join("crates/castanet/tests/system").join(script);
        let other = format!("/run/netns/{}", self.right.name());
        // Debian puts scapy beside its own Python.
        let check = self.left.command("/usr/bin/python3").arg("-B").arg(script).arg(program());
        let check = check.arg(self.lab.directory().join("control")).arg(other);
        let output = check.timeout(LATER * 3).output().unwrap().printed();
        assert!(output.contains(right), "{output}\n{}", self.process.stderr());
        // Not a frame is missing, and nothing panicked, or it would not end like this.
        self.process.interrupt();
        let status = self.process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.process.stderr());
    }
}
