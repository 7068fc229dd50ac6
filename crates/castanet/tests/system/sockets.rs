//! Raw and multicast sockets between two hosts.

use crate::testbed::program;
use castanet_lab::{Lab, Namespace, Port, Process};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts with a cable between them, at 10.9.0.1 and 10.9.0.2.
fn hosts(name: &str) -> (Lab, [Namespace; 2]) {
    let lab = Lab::new(name).unwrap();
    let hosts = ["a", "b"].map(|name| lab.namespace(name).unwrap());
    let [a, b] = &hosts;
    let port = |host, address| Port::new(host, "eth0").address(address);
    lab.link(port(a, "10.9.0.1/24"), port(b, "10.9.0.2/24")).unwrap();
    (lab, hosts)
}

fn start(host: &Namespace, config: &str) -> Process {
    let command = host.command(program()).args(["run", "-e", config]).timeout(PATIENCE);
    let mut process = command.spawn().unwrap();
    process.wait_for("castanet: running", PATIENCE).unwrap();
    process
}

#[test]
fn raw_sockets_carry_whole_ipv4_packets() {
    let (_lab, [a, b]) = hosts("raw");
    let mut hears =
        start(&a, "FromRawSocket(UDP, 5000) -> CheckIPHeader -> IPPrint(in) -> Discard");
    let config =
        "RatedSource(DATA \"whole\", RATE 20) -> UDPIPEncap(10.9.0.2, 1234, 10.9.0.1, 5000)
        -> r :: RawSocket(UDP) -> IPPrint(back) -> Discard;
        Idle -> ToRawSocket(ICMP)";
    let _says = start(&b, config);
    hears.wait_for("in: ", PATIENCE).unwrap();
    hears.wait_for("10.9.0.2.1234 > 10.9.0.1.5000: udp", PATIENCE).unwrap();
    // The port is taken: the host has no reason to say that nobody is there.
    let taken = a.command(program()).args(["run", "-e", "Socket(UDP, 0.0.0.0, 5000) -> Discard"]);
    let output = taken.timeout(PATIENCE).output().unwrap();
    assert!(output.printed().contains("bind: Address already in use"), "{}", output.printed());
    // Data that is no IP packet cannot be sent.
    let config = "InfiniteSource(DATA short, LIMIT 3, STOP true) -> r :: RawSocket(UDP);
                  DriverManager(pause, print r.drops)";
    let result =
        b.command(program()).args(["run", "-e", config]).timeout(PATIENCE).output().unwrap();
    assert!(result.stdout.contains("refused 3"), "{}", result.printed());
}

#[test]
fn a_multicast_member_receives_all_but_its_own_packets() {
    let (_lab, [a, b]) = hosts("mcast");
    let member = |source: &str, word: &str| {
        format!(
            "m :: McastSocket(239.1.2.3, 4000, {source}) -> Print(heard) -> Discard;
             RatedSource(DATA {word}, RATE 20) -> m"
        )
    };
    let mut first = start(&a, &member("10.9.0.1", "aaaa"));
    let mut second = start(&b, &member("10.9.0.2", "bbbb"));
    first.wait_for("heard:    4 | 62626262", PATIENCE).unwrap();
    second.wait_for("heard:    4 | 61616161", PATIENCE).unwrap();
    assert!(!first.stderr().contains("61616161") && !second.stderr().contains("62626262"));
    second.interrupt();
    second.finish(PATIENCE).unwrap();
    // Without an address of its own it uses the host's route, and hears itself, too.
    b.ip("route add 239.0.0.0/8 dev eth0").unwrap();
    let plain = "m :: McastSocket(239.1.2.3, 4000) -> Print(heard) -> Discard;
                 RatedSource(DATA cccc, RATE 20) -> Queue -> m";
    let mut third = start(&b, plain);
    third.wait_for("heard:    4 | 63636363", PATIENCE).unwrap();
    third.wait_for("heard:    4 | 61616161", PATIENCE).unwrap();
    first.wait_for("heard:    4 | 63636363", PATIENCE).unwrap();
    third.interrupt();
    third.finish(PATIENCE).unwrap();
    let mut silent = start(&b, &plain.replace("4000)", "4000, LOOP false)"));
    silent.wait_for("heard:    4 | 61616161", PATIENCE).unwrap();
    // Time is tested here: four packets are sent meanwhile, none of which may come back.
    std::thread::sleep(Duration::from_millis(200));
    assert!(!silent.stderr().contains("63636363"));
}
