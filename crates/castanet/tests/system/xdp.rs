//! AF_XDP from outside: its messages and handlers, and that no XDP program stays on an interface.

use castanet_lab::{Namespace, NetworkOptions, Process, Router};

use crate::testbed::{LATER, SOON, TestNetwork, program, router_config};

/// Whether an XDP program is on an interface.
fn has_program(namespace: &Namespace, device: &str) -> bool {
    namespace.ip(&format!("link show {device}")).unwrap().contains("prog/xdp")
}

fn programs(testbed: &TestNetwork) -> [bool; 3] {
    ["lan1", "lan2", "lan3"].map(|device| has_program(&testbed.network.router, device))
}

#[test]
fn it_takes_its_program_along_and_starts_again() {
    let mut testbed = TestNetwork::castanet("xdp-again", &NetworkOptions::default());
    for _ in 0..3 {
        assert_eq!(programs(&testbed), [true; 3]);
        testbed.reached();
        let mut process = testbed.process.take().unwrap();
        process.interrupt();
        let status = process.wait(SOON).unwrap();
        // Not a frame is missing, or it would not end like this.
        assert_eq!(status.code(), Some(0), "{status}: {}", process.stderr());
        assert_eq!(programs(&testbed), [false; 3]);
        testbed.start();
    }
    testbed.reached();
}

#[test]
fn kill_9_in_traffic_leaves_no_program_and_it_starts_again() {
    let mut testbed = TestNetwork::castanet("xdp-kill", &NetworkOptions::default());
    // Not from where others ping: what answers a flood would fill their sockets, too.
    let [_, h2, h3] = testbed.hosts().clone();
    let mut flood = h3.command("ping").args(["-q", "-f", "-w", "60", &h2.address]).spawn().unwrap();
    for _ in 0..3 {
        testbed.reached();
        let mut process = testbed.process.take().unwrap();
        process.kill();
        assert!(!process.wait(SOON).unwrap().success());
        assert_eq!(programs(&testbed), [false; 3]);
        testbed.start();
    }
    testbed.reached();
    assert!(flood.is_running());
    flood.interrupt();
    flood.wait(SOON).unwrap();
}

/// Runs a configuration in the router's namespace and returns its output.
fn output_of(testbed: &TestNetwork, config: &str) -> String {
    let path = testbed.network.lab().directory().join("said.click");
    std::fs::write(&path, config).unwrap();
    let command = testbed.network.router.command(program()).arg("run").arg(&path);
    command.timeout(LATER).output().unwrap().printed()
}

/// A FromDevice's handlers about its device before it stops.
fn device(testbed: &TestNetwork, arguments: &str) -> String {
    output_of(testbed, &probe(arguments))
}

fn probe(arguments: &str) -> String {
    format!("f :: FromDevice({arguments}) -> Discard; Script(print f.device, stop);")
}

#[test]
fn the_chosen_mode_and_the_reason_are_reported() {
    let testbed = TestNetwork::kernel("xdp-why", &NetworkOptions::default());
    let router = &testbed.network.router;
    // The kernel forwards here, so it has addresses.
    let text = device(&testbed, "lan1");
    let why = "not AF_XDP: the host needs lan1, it has the address 10.0.1.1 there";
    assert!(text.contains("lan1: packet socket") && text.contains(why), "{text}");
    let text = device(&testbed, "lan1, OUTBOUND true");
    assert!(text.contains("not AF_XDP: it does not see what the host sends"), "{text}");
    let best = "lan1: AF_XDP in copy mode (without copies the driver cannot), one queue, \
                XDP program in the driver";
    let text = device(&testbed, "lan1, SNIFFER false");
    assert!(text.contains(best) && !text.contains("not AF_XDP"), "{text}");
    router.ip("address flush dev lan1").unwrap();
    let text = device(&testbed, "lan1");
    assert!(text.contains(best), "{text}");
    assert!(!has_program(router, "lan1"));
    // A bridge needs what its ports receive.
    router.ip("link add br0 type bridge").unwrap();
    router.ip("link set lan1 master br0").unwrap();
    let text = device(&testbed, "lan1");
    assert!(text.contains("not AF_XDP: the host needs lan1, its br0 uses it"), "{text}");
}

#[test]
fn where_it_cannot_work_the_message_says_why() {
    let testbed = TestNetwork::kernel("xdp-cannot", &NetworkOptions::default());
    let router = &testbed.network.router;
    router.ip("address flush dev lan1").unwrap();
    let text = device(&testbed, "lan1, METHOD AF_XDP, SNIFFER true");
    assert!(text.contains("METHOD AF_XDP will not do: it keeps packets from the host"), "{text}");
    router.ip("link set lan1 mtu 9000").unwrap();
    let text = device(&testbed, "lan1, METHOD AF_XDP");
    assert!(text.contains("one queue, packets in several frames, XDP program"), "{text}");
    router.ip("link set lan1 mtu 60000").unwrap();
    let text = device(&testbed, "lan1, METHOD AF_XDP");
    let why = "cannot use AF_XDP on lan1: packets of its MTU 60000 do not fit in 17 frames";
    assert!(text.contains(why), "{text}");
    let text = device(&testbed, "lan1");
    assert!(text.contains("lan1: packet socket") && text.contains(why), "{text}");
}

#[test]
fn chosen_packets_are_left_to_the_host() {
    let testbed = TestNetwork::kernel("xdp-host", &NetworkOptions::default());
    let (router, [h1, ..]) = (&testbed.network.router, testbed.hosts());
    let (arp, text) = ("HOST_FRAMES 12/0806", "print f.device");
    let config = format!(
        "f :: FromDevice(lan1, {arp}, HOST_IP icmp or tcp port 22) -> c :: Classifier(12/0800 23/11, -);
         c[0] -> udp :: Counter -> Discard; c[1] -> Discard;
         Script({text}, label again, wait 10ms, goto again $(lt $(udp.count) 1), stop);"
    );
    let command = router.command(program()).args(["run", "-e", &config]);
    let mut process = command.spawn().unwrap();
    process.wait_for("lan1: AF_XDP in copy mode", SOON).unwrap();
    // The host answers ARP and ping; it would say that the port is closed, too.
    let answer = testbed.ping(h1, &["-c", "3"], "10.0.1.1");
    assert!(answer.contains("3 received"), "{answer}");
    let send = "echo anybody | nc -n -u -w 1 10.0.1.1 9";
    h1.command("sh").args(["-c", send]).output().unwrap();
    let output = process.finish(SOON).unwrap();
    assert!(output.printed().contains("chosen packets left to the host"), "{}", output.printed());

    let text = device(&testbed, "lan1, HOST_IP tcp prot 22");
    assert!(text.contains("HOST_IP") && text.contains("prot"), "{text}");
    let text = device(&testbed, "lan1, HOST_IP icmp, METHOD AF_PACKET");
    let why = "HOST_IP and HOST_FRAMES take AF_XDP, and that will not do: METHOD says so";
    assert!(text.contains(why), "{text}");
    let text = device(&testbed, "lan1, HOST_FRAMES -, METHOD AF_XDP");
    assert!(text.contains("leaves nothing to receive"), "{text}");
}

#[test]
fn without_the_right_to_load_programs_it_does_with_less() {
    let testbed = TestNetwork::kernel("xdp-right", &NetworkOptions::default());
    let router = &testbed.network.router;
    router.ip("address flush dev lan1").unwrap();
    let with_less = |arguments: &str| {
        let command = router.command("setpriv").arg("--bounding-set=-sys_admin,-net_admin,-bpf");
        command.arg(program()).args(["run", "-e", &probe(arguments)]).output().unwrap().printed()
    };
    let why = "cannot put an XDP program on lan1: not permitted; run as root or with \
               CAP_NET_ADMIN and CAP_BPF";
    let text = with_less("lan1");
    assert!(text.contains("lan1: packet socket"), "{text}");
    assert!(text.contains(&format!("not AF_XDP: {why}")), "{text}");
    let text = with_less("lan1, METHOD AF_XDP");
    assert!(text.contains(why) && !text.contains("packet socket"), "{text}");
}

#[test]
fn a_second_one_on_the_same_interface_is_told() {
    let testbed = TestNetwork::castanet("xdp-second", &NetworkOptions::default());
    // Also if it would take any method: no packet would be left for it.
    let text = device(&testbed, "lan1");
    assert!(text.contains("on lan1: another program holds it"), "{text}");
    testbed.reached();
}

#[test]
fn a_link_that_goes_and_comes_is_used_again() {
    let testbed = TestNetwork::castanet("xdp-link", &NetworkOptions::default());
    testbed.reached();
    testbed.network.router.ip("link set lan2 down").unwrap();
    let [h1, h2, _] = testbed.hosts();
    let text = testbed.ping(h1, &["-c", "2"], &h2.address);
    assert!(text.contains("0 received"), "{text}");
    testbed.network.router.ip("link set lan2 up").unwrap();
    testbed.reached();
}

#[test]
fn an_interface_that_is_removed_is_reported_once() {
    let mut testbed = TestNetwork::castanet("xdp-gone", &NetworkOptions::default());
    testbed.network.router.ip("link del lan3").unwrap();
    testbed.reached();
    let process: &mut Process = testbed.process.as_mut().unwrap();
    process.wait_for("castanet: lan3 is gone", SOON).unwrap();
    // Time is tested here: in a second and a half more reports would come, if there were any.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    // The first line is that of the start.
    assert_eq!(process.stderr().matches("lan3").count(), 2, "{}", process.stderr());
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

#[test]
fn several_queues_are_one_device() {
    let wiring = NetworkOptions { queues: 4, ..NetworkOptions::default() };
    let testbed = TestNetwork::castanet("xdp-queues", &wiring);
    testbed.reached();
    let [h1, h2, _] = testbed.hosts();
    let file = testbed.network.lab().random_file("spread", 10).unwrap();
    let at = format!("{}:9000", h1.address).parse().unwrap();
    let got = file.send(&h1.namespace, at, &h2.namespace, LATER).unwrap();
    assert_eq!(got.sha256, file.sha256);
}

#[test]
fn workers_share_an_interface_for_sending() {
    let mut testbed = TestNetwork::kernel("xdp-workers", &NetworkOptions::default());
    for device in ["lan1", "lan2", "lan3"] {
        testbed.network.router.ip(&format!("address flush dev {device}")).unwrap();
    }
    testbed.network.router.sysctl("net/ipv4/ip_forward", "0").unwrap();
    let router = testbed.network.castanet(program(), &router_config()).args(["-j", "3"]);
    let mut process = router.spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    testbed.process = Some(process);
    assert_eq!(programs(&testbed), [true; 3]);
    // Two of the workers send to the third's interface at a time.
    let [h1, h2, h3] = testbed.hosts();
    let flood = ["-q", "-f", "-w", "3", &h3.address];
    let floods = [h1, h2].map(|host| host.command("ping").args(flood).spawn().unwrap());
    for mut flood in floods {
        flood.wait(SOON).unwrap();
        let answer = flood.stdout();
        let lost = answer.split(", ").find_map(|part| part.split_once("% packet loss"));
        let lost: f64 = lost.unwrap().0.parse().unwrap();
        assert!(lost < 1.0, "{answer}");
    }
    let process = testbed.process.as_mut().unwrap();
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

#[test]
fn generic_mode_serves_where_the_driver_cannot() {
    let testbed = TestNetwork::kernel("xdp-generic", &NetworkOptions::default());
    let router = &testbed.network.router;
    router.ip("link add br0 type bridge").unwrap();
    router.ip("link set br0 up").unwrap();
    let text = device(&testbed, "br0, METHOD AF_XDP");
    assert!(text.contains("br0: AF_XDP in copy mode"), "{text}");
    assert!(text.contains("generic XDP program (in the driver it cannot"), "{text}");
    let text = device(&testbed, "br0");
    assert!(text.contains("br0: packet socket"), "{text}");
    assert!(text.contains("not AF_XDP: cannot put an XDP program on br0"), "{text}");
}

#[test]
fn explain_foresees_it() {
    let testbed = TestNetwork::castanet("xdp-explain", &NetworkOptions::default());
    let explain = testbed.network.router.command(program()).arg("explain").arg(router_config());
    let answer = explain.args(["dev0=lan1", "dev1=lan2", "dev2=no-such0"]).check().unwrap().stdout;
    assert!(answer.contains("FromDevice: lan1 by AF_XDP where its driver supports it"), "{answer}");
    assert!(answer.contains("ToDevice: lan2 by AF_XDP"), "{answer}");
    assert!(answer.contains("no network interface is called ‘no-such0’"), "{answer}");
    let bridge = ["explain", "-e", "FromDevice(lan1) -> ToDevice(lan2)"];
    let answer = testbed.network.router.command(program()).args(bridge).check().unwrap().stdout;
    let passed = "FromDevice@1 -> ToDevice@2, without a look at the packets where devices allow it";
    assert!(answer.contains(passed), "{answer}");
}
