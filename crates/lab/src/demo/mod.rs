//! What `cargo xtask demo` shows: the router of the Click paper between three hosts, at work.

mod rates;
mod replay;
mod report;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::demo::report::Screen;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::three::{Host, Router, ThreeHosts, Wiring};
use crate::tools::{have, require};

pub use replay::{replay, run};
pub use report::{Row, Seen};

/// The port that the demo's file is offered on.
const PORT: u16 = 8000;

/// Megabytes sent each way: some seconds of work even for a build without optimization.
const MEGABYTES: u64 = 100;

/// How long a transfer may stand still.
const STALL: Duration = Duration::from_secs(20);

/// Runs the demo with a built `castanet`, prints what happens, and returns what was seen.
///
/// Without root, namespaces, `ip` or `ping` it says so and replays a pcap file instead.
pub fn demo(castanet: &Path) -> Result<Seen> {
    let screen = Screen::new();
    let built = require(&["ip", "ping"]).and_then(|()| ThreeHosts::new("demo", &Wiring::default()));
    match built {
        Ok(network) => forward(&screen, castanet, &network),
        Err(why) if why.is_unsupported() => {
            screen.say(&format!("No test network: {why}."));
            screen.say("Replaying conf/sample.pcap through the same router instead.\n");
            let seen = replay(castanet)?;
            screen.table(&seen);
            Ok(seen)
        }
        Err(why) => Err(why),
    }
}

/// A file of the repository's `conf` directory.
pub(crate) fn conf(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf").join(name)
}

/// Forwards between the hosts of a network and shows it.
fn forward(screen: &Screen, castanet: &Path, network: &ThreeHosts) -> Result<Seen> {
    screen.map();
    let config = conf("router.click");
    let mut router = start(screen, castanet, &config, network)?;
    let [h1, h2, h3] = &network.hosts;
    let mut seen = Seen::default();
    let mut note = |row: Row| {
        screen.row(&row);
        seen.rows.push(row);
    };
    for (from, to) in [(h1, h2), (h2, h3), (h3, h1), (h2, h1), (h3, h2), (h1, h3)] {
        note(ping(from, &to.address, &[], "ping"));
    }
    note(ping(h1, &h1.gateway, &[], "ping the router"));
    note(ping(h1, &h3.address, &["-s", "4000"], "ping, fragments"));
    note(traceroute(h1, h2));
    for (from, to) in [(h2, h1), (h1, h3)] {
        note(send(network, from, to));
    }
    note(stop(&mut router));
    screen.table(&seen);
    Ok(seen)
}

/// Starts the router with live rates, a line a second on the screen.
fn start(screen: &Screen, castanet: &Path, config: &Path, network: &ThreeHosts) -> Result<Process> {
    let live = screen.clone();
    let mut router = network
        .castanet(castanet, config)
        .args(["--watch", "--json"])
        .on_line(move |line| live.live(&rates::of_devices(line).unwrap_or_else(|| line.into())))
        .spawn()?;
    router.wait_for(Router::READY, Duration::from_secs(20))?;
    Ok(router)
}

fn ping(from: &Host, to: &str, more: &[&str], what: &str) -> Row {
    let command = from.command("ping").args(["-n", "-c", "3", "-i", "0.2", "-W", "2"]);
    let outcome = command.args(more).arg(to).check().map(|output| {
        let times = output.stdout.lines().find_map(|line| line.split(" = ").nth(1));
        let average = times.and_then(|times| times.split('/').nth(1)).unwrap_or("?");
        let lossless = output.stdout.contains(" 0% packet loss");
        (lossless, format!("3 sent, {average} ms on average"))
    });
    Row::new(what, &from.address, to, outcome)
}

fn traceroute(from: &Host, to: &Host) -> Row {
    if !have("traceroute") {
        let advice = "skipped: apt-get install traceroute".to_owned();
        return Row::new("traceroute", &from.address, &to.address, Ok((true, advice)));
    }
    let outcome = from
        .namespace
        .trace(&["-U"], &to.address, 4)
        .map(|hops| (hops == [&*from.gateway, &to.address], format!("by {}", hops.join(", "))));
    Row::new("traceroute", &from.address, &to.address, outcome)
}

fn send(network: &ThreeHosts, from: &Host, to: &Host) -> Row {
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
    Row::new("TCP", &from.address, &to.address, outcome())
}

fn stop(router: &mut Process) -> Row {
    let started = Instant::now();
    router.interrupt();
    let outcome = router.wait(Duration::from_secs(10)).map(|status| {
        let clean = matches!(status.code(), Some(0 | 130));
        (clean, format!("{status} after {} ms", started.elapsed().as_millis()))
    });
    Row::new("Ctrl-C", "router", "", outcome)
}
