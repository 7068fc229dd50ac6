//! `cargo xtask demo`: shows the router of the Click paper forwarding between three hosts.

mod rates;
mod replay;
mod report;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::demo::report::Terminal;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::three_hosts::{Host, NetworkOptions, Router, ThreeHosts};
use crate::tools::{is_installed, require};

pub use replay::{replay, run};
pub use report::{DemoReport, DemoStep};

/// TCP port of the demo's file transfer.
const PORT: u16 = 8000;

/// Megabytes of each transfer: some seconds of work even without optimization.
const MEGABYTES: u64 = 100;

/// Time without progress after which a transfer fails.
const STALL: Duration = Duration::from_secs(20);

/// Runs the demo with the program `castanet`, prints its progress, and returns its report.
///
/// Without root, namespaces, `ip` or `ping` it prints a message and replays a pcap file instead.
pub fn demo(castanet: &Path) -> Result<DemoReport> {
    let terminal = Terminal::new();
    let built =
        require(&["ip", "ping"]).and_then(|()| ThreeHosts::new("demo", &NetworkOptions::default()));
    match built {
        Ok(network) => forward(&terminal, castanet, &network),
        Err(error) if error.is_unsupported() => {
            terminal.print(&format!("No test network: {error}."));
            terminal.print("Replaying conf/sample.pcap through the same router instead.\n");
            let report = replay(castanet)?;
            terminal.table(&report);
            Ok(report)
        }
        Err(error) => Err(error),
    }
}

/// Returns the path of a file in the repository's `conf` directory.
pub(crate) fn conf(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf").join(name)
}

/// Starts the router, runs all steps of the demo, and stops the router.
fn forward(terminal: &Terminal, castanet: &Path, network: &ThreeHosts) -> Result<DemoReport> {
    terminal.network();
    let config = conf("router.click");
    let mut router = start(terminal, castanet, &config, network)?;
    let [h1, h2, h3] = &network.hosts;
    let mut report = DemoReport::default();
    let mut record = |step: DemoStep| {
        terminal.step(&step);
        report.steps.push(step);
    };
    for (from, to) in [(h1, h2), (h2, h3), (h3, h1), (h2, h1), (h3, h2), (h1, h3)] {
        record(ping(from, &to.address, &[], "ping"));
    }
    record(ping(h1, &h1.gateway, &[], "ping the router"));
    record(ping(h1, &h3.address, &["-s", "4000"], "ping, fragments"));
    record(traceroute(h1, h2));
    for (from, to) in [(h2, h1), (h1, h3)] {
        record(send(network, from, to));
    }
    record(stop(&mut router));
    terminal.table(&report);
    Ok(report)
}

/// Starts the router, which prints its rates as one line a second on the terminal.
fn start(
    terminal: &Terminal,
    castanet: &Path,
    config: &Path,
    network: &ThreeHosts,
) -> Result<Process> {
    let live = terminal.clone();
    let mut router = network
        .castanet(castanet, config)
        .args(["--watch", "--json"])
        .on_line(move |line| {
            live.router_line(&rates::device_rates(line).unwrap_or_else(|| line.into()))
        })
        .spawn()?;
    router.wait_for(Router::READY, Duration::from_secs(20))?;
    Ok(router)
}

fn ping(from: &Host, to: &str, more: &[&str], what: &str) -> DemoStep {
    let options = [&["-i", "0.2"], more].concat();
    let outcome = from.namespace.ping(&options, 3, to).map(|output| {
        let times = output.stdout.lines().find_map(|line| line.split(" = ").nth(1));
        let average = times.and_then(|times| times.split('/').nth(1)).unwrap_or("?");
        (true, format!("3 sent, {average} ms on average"))
    });
    DemoStep::new(what, &from.address, to, outcome)
}

fn traceroute(from: &Host, to: &Host) -> DemoStep {
    if !is_installed("traceroute") {
        let advice = "skipped: apt-get install traceroute".to_owned();
        return DemoStep::new("traceroute", &from.address, &to.address, Ok((true, advice)));
    }
    let outcome = from
        .namespace
        .traceroute(&["-U"], &to.address, 4)
        .map(|hops| (hops == [&*from.gateway, &to.address], format!("by {}", hops.join(", "))));
    DemoStep::new("traceroute", &from.address, &to.address, outcome)
}

fn send(network: &ThreeHosts, from: &Host, to: &Host) -> DemoStep {
    let outcome = || -> Result<(bool, String)> {
        let file = network.lab().random_file(&format!("from-{}", from.address), MEGABYTES)?;
        let ip: IpAddr = from.address.parse().map_err(|_| {
            Error::Io(format!("read {}", from.address), std::io::ErrorKind::InvalidInput.into())
        })?;
        let at = SocketAddr::new(ip, PORT);
        let got = file.send(&from.namespace, at, &to.namespace, STALL)?;
        let same = got.sha256 == file.sha256;
        let verdict = if same { "SHA-256 the same" } else { "SHA-256 DIFFERS" };
        let rate = got.megabits_per_second();
        Ok((same, format!("{MEGABYTES} MB, {rate:.0} Mbit/s, {verdict}")))
    };
    DemoStep::new("TCP", &from.address, &to.address, outcome())
}

fn stop(router: &mut Process) -> DemoStep {
    let started = Instant::now();
    router.interrupt();
    let outcome = router.wait(Duration::from_secs(10)).map(|status| {
        let clean = matches!(status.code(), Some(0 | 130));
        (clean, format!("{status} after {} ms", started.elapsed().as_millis()))
    });
    DemoStep::new("Ctrl-C", "router", "", outcome)
}
