//! The metrics of running instances: their listener, their values, and the files for Prometheus.

mod access;
mod exposition;
mod files;
mod hostile;
mod prometheus;

use crate::ctl::RuntimeFolder;
use crate::http::get;
use crate::program::wait_until;
use castanet_lab::Process;
use std::net::SocketAddr;

/// A running instance, and the address of its metrics.
struct Target {
    it: RuntimeFolder,
    process: Process,
    address: SocketAddr,
}

impl Target {
    /// An instance of this configuration with the name `one`.
    fn new(name: &str, text: &str) -> Target {
        Target::with(name, text, &["--metrics", "0"])
    }

    /// The same with these options.
    fn with(name: &str, text: &str, options: &[&str]) -> Target {
        let it = RuntimeFolder::new(name);
        it.write("one.click", text);
        let process = it.run(&[&["one.click"], options].concat());
        let address = address(&process);
        Target { it, process, address }
    }

    /// The page of the metrics.
    fn metrics(&self) -> String {
        let reply = get(self.address, "/metrics", &[]);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }

    /// The value of a series, which has to be there.
    fn value(&self, series: &str) -> f64 {
        let text = self.metrics();
        value(&text, series).unwrap_or_else(|| panic!("no {series} in {text}"))
    }

    /// Waits until a series has a value.
    fn wait_for(&self, series: &str, wanted: f64) {
        wait_until(&format!("{series} never is {wanted}"), || {
            value(&self.metrics(), series) == Some(wanted)
        });
    }
}

/// The address that a start message names.
fn address(process: &Process) -> SocketAddr {
    let said = process.stderr();
    let address = said.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
    let (address, _) = address.unwrap_or_else(|| panic!("no address in {said}"));
    address.parse().unwrap()
}

/// The value of a series in a text.
fn value(text: &str, series: &str) -> Option<f64> {
    let is_it = |line: &&str| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' '));
    text.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}
