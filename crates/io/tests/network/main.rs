//! Devices against the kernel's own network stack, in namespaces; needs root.
#![allow(clippy::unwrap_used)] // a test

mod annotations;
mod bridge;
mod elements;
mod forwarder;
mod tap;
mod traffic;
mod xdp;

use castanet_lab::{Lab, Namespace, Port, require};

/// What the tests run.
const TOOLS: &[&str] = &["ip", "ping", "curl", "tcpdump", "python3", "sha256sum"];

/// Two hosts and, between them, a machine with an interface to each.
struct Between {
    a: Namespace,
    middle: Namespace,
    b: Namespace,
    // Last, so that processes in the namespaces are gone before them.
    lab: Lab,
}

/// 10.9.0.1 and 10.9.0.2, with offloads on as Linux makes links by default.
fn between(name: &str) -> Between {
    require(TOOLS).expect("these tests build networks");
    let lab = Lab::new(name).expect("a lab");
    let namespace = |name| lab.namespace(name).expect("a namespace");
    let (a, middle, b) = (namespace("a"), namespace("m"), namespace("b"));
    lab.link(Port::new(&a, "eth0").address("10.9.0.1/24"), Port::new(&middle, "m0"))
        .expect("a link");
    lab.link(Port::new(&b, "eth0").address("10.9.0.2/24"), Port::new(&middle, "m1"))
        .expect("a link");
    Between { a, middle, b, lab }
}
