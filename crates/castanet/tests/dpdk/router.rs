//! A router between three networks of Linux hosts, by packets without descriptors where these can go so.

use super::{number, require_dpdk};
use castanet_lab::{Command, NetworkOptions, ThreeHosts};
use std::time::Duration;

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of pings.
const PINGS: usize = 20;

/// A router as Click's, which asks for the Ethernet address of each neighbour and confirms it every second.
fn config() -> String {
    let port = |n: usize| {
        let (net, color) = (n + 1, n + 10);
        let mac = format!("02:00:00:00:{net:02x}:01");
        format!(
            "f{n} :: FromDPDKDevice({n}) -> c{n} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
             t{n} :: ToDPDKDevice({n});
             q{n} :: ARPQuerier(10.0.{net}.1, {mac}, POLL_TIMEOUT 1s) -> t{n};
             c{n} -> ARPResponder(10.0.{net}.1 {mac}) -> t{n}; c{n}[1] -> [1] q{n}; c{n}[2] -> Paint({color}) -> ip;
             c{n}[3] -> Discard;
             rt[{n}] -> DropBroadcasts -> p{n} :: PaintTee({color}) -> g{n} :: IPGWOptions(10.0.{net}.1)
               -> FixIPSrc(10.0.{net}.1) -> d{n} :: DecIPTTL -> m{n} :: IPFragmenter(1500) -> q{n};
             p{n}[1] -> ICMPError(10.0.{net}.1, redirect, host) -> rt;
             g{n}[1] -> ICMPError(10.0.{net}.1, parameterproblem) -> rt;
             d{n}[1] -> ICMPError(10.0.{net}.1, timeexceeded) -> rt;
             m{n}[1] -> ICMPError(10.0.{net}.1, unreachable, needfrag) -> rt;\n"
        )
    };
    let ports: String = (0..3).map(port).collect();
    let rest = "DPDKInfo(8192);
        ip :: Strip(14) -> CheckIPHeader -> rt :: StaticIPLookup(10.0.1.1/32 3, 10.0.2.1/32 3, 10.0.3.1/32 3,
            10.0.1.0/24 0, 10.0.2.0/24 1, 10.0.3.0/24 2);
        rt[3] -> ICMPPingResponder -> rt;\n";
    rest.to_owned() + &ports
}

/// The result of a step that must succeed.
fn check<T>(done: castanet_lab::Result<T>) -> T {
    done.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn hosts_of_three_networks_reach_each_other() {
    require_dpdk();
    let options = NetworkOptions { offloads: false, ..NetworkOptions::default() };
    let hosts = check(ThreeHosts::new("dpdk-rt", &options));
    let devices: String =
        (0..3).map(|n| format!(" --vdev net_af_packet{n},iface=lan{}", n + 1)).collect();
    let devices =
        format!("--no-huge -m 512 --no-pci --no-shconf --no-telemetry --log-level=3{devices}");
    let (config, program) = (config(), env!("CARGO_BIN_EXE_castanet"));
    let shown = [
        "f0.direct_count",
        "f1.direct_count",
        "f2.direct_count",
        "q1.queries",
        "q1.drops",
        "q2.drops",
    ];
    let words = ["run", "--dpdk", &devices, "-e", &config];
    let command: Command = hosts.router.command(program).args(words);
    let handlers = shown.iter().flat_map(|handler| ["--handler", *handler]);
    let mut router = command.args(handlers).spawn().unwrap();
    router.wait_for("castanet: running", PATIENCE).unwrap();
    let [first, second, third] = &hosts.hosts;
    // The way of the first port's packets changes with each of these.
    for to in [&first.gateway, &second.address, &third.address, &second.address] {
        check(first.namespace.ping(&["-i", "0.05"], PINGS, to));
    }
    for (from, to) in [(first, second), (second, third), (third, first)] {
        let rate = check(from.namespace.iperf3(&to.namespace, &to.address, &["--time", "2"]));
        assert!(rate > 1.0, "{from:?} to {to:?}: {rate} Mbit/s");
    }
    let output = check(
        first.command("traceroute").args(["-n", "-m", "3", "-w", "5", &third.address]).check(),
    );
    let hops: Vec<_> =
        output.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(hops, [&first.gateway, &third.address], "{}", output.stdout);
    router.interrupt();
    let output = router.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    let [ways @ .., queries, lost, more] = shown.map(|handler| number(&output.stdout, handler));
    assert!(ways.iter().all(|direct| *direct > 100), "{ways:?}");
    // The address of the second host was confirmed again and again, though packets had no descriptors.
    assert!(queries >= 4, "{queries}");
    assert_eq!((lost, more), (0, 0));
}
