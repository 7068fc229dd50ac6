//! Flows through a NAT gateway go on while configurations replace one another: in `castanet`, and in a
//! program that has compiled chains for one of them.

use crate::hot_swap::{ClientCounts, Datagrams, ask, read, seconds};
use crate::nat::{NatNetwork, text};
use crate::testbed::{Form, LATER, SOON};
use castanet_lab::Process;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Between two configurations.
const PACE: Duration = Duration::from_millis(200);

/// Words of the gateway's configuration and others for them: a configuration of other classes on the way
/// out, one of other arguments on the way in.
const OTHERS: [&[(&str, &str)]; 2] = [
    &[("here[2] -> ttl :: DecIPTTL", "here[2] -> Paint(3) -> more :: Counter -> ttl :: DecIPTTL")],
    &[
        ("frames[2] -> Strip(14)", "frames[2] -> Paint(1) -> Strip(14)"),
        ("12/0800, -", "12/0800%ffff, -"),
    ],
];

/// Downloads a file at a limited rate for as long as the load takes.
fn download(world: &NatNetwork, file: &str) -> Process {
    let rate = ["--limit-rate", "2M", "--max-time", "110", "--output", "got"];
    let curl = world.client.command("curl").current_dir(world.lab.directory()).args(rate);
    let url = format!("http://10.0.3.2:8000/{file}");
    curl.args(["--silent", "--show-error", "--noproxy", "*", &url]).spawn().unwrap()
}

fn flows_go_on(name: &str, form: Form) {
    let first = text("", &[]);
    let mut world = NatNetwork::running(name, form, &["-R", "--pin"], &first);
    let mut control = UnixStream::connect(world.lab.directory().join("control")).unwrap();
    control.set_read_timeout(Some(SOON)).unwrap();
    assert!(control.read(&mut [0; 64]).is_ok(), "it greets");
    let file = world.lab.random_file("large", 2 * seconds()).unwrap();
    let _server = world.server.serve("10.0.3.2", 8000).unwrap();
    let mut curl = download(&world, "large");
    let datagrams = Datagrams::start(&world.client, &world.server, "10.0.3.2:7000");
    let began = Instant::now();
    let mut swaps = 0;
    while began.elapsed() < Duration::from_secs(seconds()) {
        swaps += 1;
        let next = match swaps % 2 {
            0 => first.clone(),
            _ => text("", OTHERS[swaps / 2 % OTHERS.len()]),
        };
        let output = ask(&mut control, &format!("WRITEDATA hotconfig {}\n{next}", next.len()));
        assert!(output.starts_with("200 "), "{output}");
        std::thread::sleep((began + PACE * swaps as u32).saturating_duration_since(Instant::now()));
    }
    assert!(swaps > 4, "{swaps} swaps");
    let (outcome, echoed) = datagrams.end();
    let sent = outcome.sent;
    assert_eq!(outcome, ClientCounts { sent, back: sent, disordered: 0 }, "in {swaps} swaps");
    // One flow: the gateway has not forgotten it, or it would have another port.
    assert_eq!((echoed.count, echoed.peers.len()), (sent, 1), "{:?}", echoed.peers);
    assert!(curl.wait(LATER).unwrap().success(), "{}", curl.stderr());
    let sums = world.client.command("sha256sum").arg("got").current_dir(world.lab.directory());
    assert!(sums.check().unwrap().stdout.starts_with(&file.sha256));
    let events = read(&mut control, "flows.mapping_events");
    assert!(events.starts_with("2\tadded\n0\texpired\n"), "{events}");
    let drops = read(&mut control, "flows.drops");
    assert!(drops.lines().all(|line| line.ends_with(" 0")), "{drops}");
    world.nat.interrupt();
    assert_eq!(world.nat.wait(SOON).unwrap().code(), Some(0), "{}", world.nat.stderr());
}

#[test]
fn flows_go_on_when_configurations_replace_one_another() {
    flows_go_on("natswap", Form::Plain);
}

#[test]
fn flows_go_on_when_a_built_configuration_and_others_replace_one_another() {
    flows_go_on("natswapb", Form::Built);
}
