//! The metrics of running instances: their listener, their values, and the files for Prometheus.

mod access;
mod exposition;
mod files;
mod hostile;
mod prometheus;

use crate::control::PATIENCE;
use crate::ctl::RuntimeFolder;
use crate::program::wait_until;
use castanet_lab::Process;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

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

/// The answer to a request.
struct Reply {
    status: u16,
    /// The line of the status, and the headers.
    head: String,
    body: String,
}

/// Asks for a page.
fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: castanet\r\nConnection: close\r\n{headers}\r\n"),
    )
}

/// Sends a request, and receives until the other side closes.
fn ask(address: SocketAddr, request: &str) -> Reply {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {head}"));
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// A connection whose reads end.
fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The value of a series in a text.
fn value(text: &str, series: &str) -> Option<f64> {
    let is_it = |line: &&str| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' '));
    text.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}
