//! SplitBox among real clients: firewalls, translations and load balancers that clouds compute and
//! cannot read; parties that die, links that lose packets, and attackers.

use crate::splitbox_network::{NumberedStream, Party, SplitBox, SplitBoxNetwork};
use crate::testbed::{LATER, SOON, conf, number, program, root};
use castanet_lab::{Command, Namespace, Process};

const FIREWALL: &str = "\
    deny src net 10.1.0.0/24 and dst net 10.2.0.0/24 and dst udp port 9999
    deny src net 10.1.0.0/24 and dst net 10.2.0.0/24 and dst tcp port 9999
    deny src host 10.1.0.3 and dst net 10.2.0.0/24
    allow src net 10.1.0.0/24 and dst net 10.2.0.0/24
";

/// Few blinds, so that rows come soon.
const FEW: [&str; 2] = ["--blinds", "1024"];

/// A firewall for three processors.
fn firewall(network: &SplitBoxNetwork, words: &[&str]) -> SplitBox {
    let mut split_box = network.split_box(("firewall.txt", FIREWALL), words, 7000);
    split_box = split_box.with_device(&["10.2.0.0/24"]);
    split_box.start_all();
    split_box
}

/// Runs iperf3 to the server, and returns megabits per second at the receiver.
fn iperf3(network: &SplitBoxNetwork, words: &[&str]) -> f64 {
    network.sender.iperf3(&network.server, "10.2.0.2", words).unwrap()
}

/// Sends a UDP datagram with a word.
fn say(from: &Namespace, source: &str, to: &str, port: u16, word: &str) {
    let script = format!("echo {word} | nc -n -u -q 0 -s {source} {to} {port}");
    from.command("sh").args(["-c", &script]).check().unwrap();
}

#[test]
fn clients_pass_a_private_firewall() {
    let network = SplitBoxNetwork::new("sbfirewall", 3);
    let mut split_box = firewall(&network, &["--blinds", "4096"]);
    for (count, options) in [(3, ""), (2, "-s 1472 -M do"), (2, "-s 9000")] {
        let options: Vec<&str> = options.split_whitespace().collect();
        network.sender.ping(&options, count, "10.2.0.2").unwrap();
    }
    let file = network.lab.random_file("large", 100).unwrap();
    let _server = network.server.serve("10.2.0.2", 8000).unwrap();
    // The file comes back past SplitBox, and goes there through it.
    let fetched = network.sender.fetch("http://10.2.0.2:8000/large", LATER).unwrap();
    assert_eq!((fetched.bytes, &fetched.sha256), (100 << 20, &file.sha256));
    let at = "10.1.0.2:9000".parse().unwrap();
    let sent = file.send(&network.sender, at, &network.server, LATER).unwrap();
    assert_eq!((sent.bytes, &sent.sha256), (100 << 20, &file.sha256));
    let rates = [iperf3(&network, &[]), iperf3(&network, &["--udp", "--bitrate", "5M"])];
    println!(
        "100 MB at {:.0} Mbit/s; iperf3 TCP {:.0} Mbit/s, UDP {:.1} Mbit/s",
        sent.megabits_per_second(),
        rates[0],
        rates[1]
    );
    assert!(rates[0] >= 1.0 && rates[1] >= 1.0, "{rates:?}");
    // Packets that the policy drops: each is counted, and one after them arrives.
    let listen = |port: &str| {
        let command = network.server.command("nc").args(["-n", "-u", "-l", "-k", "10.2.0.2", port]);
        command.spawn().unwrap()
    };
    let (denied, mut allowed) = (listen("9999"), listen("9998"));
    let before = split_box.dropped(Party::Client, "policy");
    say(&network.sender, "10.1.0.2", "10.2.0.2", 9999, "denied");
    say(&network.sender, "10.1.0.3", "10.2.0.2", 9998, "denied");
    let refused = network.sender.command("nc").args(["-n", "-z", "-w", "1", "10.2.0.2", "9999"]);
    assert!(!refused.output().unwrap().success());
    say(&network.sender, "10.1.0.2", "10.2.0.2", 9998, "allowed");
    allowed.wait_for("allowed", SOON).unwrap();
    assert!(split_box.dropped(Party::Client, "policy") >= before + 3);
    assert!(!denied.stdout().contains("denied") && !allowed.stdout().contains("denied"));
    // Each packet has arrived whole.
    assert_eq!(split_box.dropped(Party::Client, "forged"), 0);
    split_box.stop();
}

#[test]
fn each_party_may_be_killed_and_started_again() {
    let network = SplitBoxNetwork::new("sbkill", 3);
    let mut split_box = firewall(&network, &FEW);
    let mut stream = NumberedStream::start(&network, 500);
    let mut missing = stream.wait_for_whole(100).missing;
    for party in [Party::Processor(2), Party::Entry, Party::Client] {
        let before = split_box.packets("without processor 2");
        split_box.kill(party);
        if party == Party::Processor(2) {
            split_box.wait_until("packets are counted that lack a share", |it| {
                it.packets("without processor 2") > before
            });
        }
        split_box.start(party, &[]);
        let now = stream.wait_for_whole(200);
        let lost = now.missing - missing;
        println!("{party:?} killed: {lost} packets lost, at 500 in a second {} ms", lost * 2);
        missing = now.missing;
        let state = split_box.control(Party::Client).read("client.state");
        assert!(state.contains("in use, rows at 3 of 3 processors"), "{state}");
        assert!(!state.contains("not heard"), "{state}");
    }
    let sent = stream.stop();
    let end = stream.received();
    assert!((end.wrong, end.doubled) == (0, 0) && end.count + end.missing <= sent, "{end:?}");
    // A second instance of a party is refused, and the first one goes on.
    let second = network.processors[0].command(program());
    let second = second.args(["run", "-e", "Socket(UDP, 10.7.0.11, 7000) -> Discard"]);
    assert!(second.output().unwrap().printed().contains("Address already in use"));
    network.sender.ping(&["-i", "0.1"], 3, "10.2.0.2").unwrap();
    split_box.stop();
}

#[test]
fn no_packet_is_lost_where_epochs_follow_each_other() {
    let network = SplitBoxNetwork::new("sbepochs", 2);
    for words in [&FEW[..], &["--once", "--blinds", "256"]] {
        let is_once = words.len() == 3;
        let name = if is_once { "once.txt" } else { "again.txt" };
        let port = 7000 + u16::from(is_once);
        let mut split_box = network.split_box((name, FIREWALL), words, port);
        split_box = split_box.with_device(if is_once { &[] } else { &["10.2.0.0/24"] });
        split_box.start_all();
        if is_once {
            network.a.ip("route replace 10.2.0.0/24 dev box7001").unwrap();
        }
        let epoch = |it: &SplitBox| it.control(Party::Entry).sum(&["entry.epoch"]);
        let mut stream = NumberedStream::start(&network, 500);
        stream.wait_for(100);
        for _ in 0..6 {
            let before = epoch(&split_box);
            if !is_once {
                let rotate = network.cloud.command(program()).args(["splitbox", "rotate"]);
                rotate.arg("--connect").arg(split_box.socket(Party::Client)).check().unwrap();
            }
            split_box.wait_until("the next epoch is used", |it| epoch(it) > before);
        }
        let sent = stream.stop();
        split_box.wait_until("all packets have left", |it| it.packets("complete") >= sent);
        let end = stream.wait_for(0);
        assert_eq!((end.count, end.wrong, end.doubled), (sent, 0, 0), "{words:?}: {end:?}");
        assert_eq!(split_box.packets("incomplete"), 0);
        split_box.stop();
    }
}

#[test]
fn links_that_lose_delay_and_reorder_cost_no_more_than_they_lose() {
    // Frames from the second processor take 50 ms, some from all of the others 3 ms.
    let impair = |port: usize| {
        let (share, delay) = if port == 3 { (0, "50ms") } else { (90, "3ms") };
        format!(
            "RandomSample(DROP 0.01) -> s{port} :: RandomSample(0.{share:02}) -> j{port} :: Null;
             s{port}[1] -> Queue(10000) -> DelayUnqueue({delay}) -> j{port}; j{port}"
        )
    };
    let (network, _switch) = SplitBoxNetwork::impaired("sbloss", 3, impair);
    let mut split_box = firewall(&network, &FEW);
    let mut stream = NumberedStream::start(&network, 300);
    stream.wait_for(1500);
    let sent = stream.stop();
    let ended = |it: &SplitBox| it.packets("complete") + it.packets("incomplete");
    split_box.wait_until("each packet has come or is given up", |it| ended(it) >= sent);
    let (complete, incomplete) = (split_box.packets("complete"), split_box.packets("incomplete"));
    let end = stream.wait_for(0);
    assert_eq!((complete + incomplete, end.wrong, end.doubled), (sent, 0, 0), "{end:?}");
    assert_eq!((end.count, end.missing <= incomplete), (complete, true), "{end:?}");
    // A packet has 3 datagrams to the processors, 1 or 2 to the client, and 3 shares: 7 % or so.
    let late = split_box.dropped(Party::Client, "old");
    println!("{incomplete} of {sent} lost, {late} datagrams came after their packet was given up");
    assert!(incomplete > 0 && incomplete * 100 < sent * 20, "{incomplete} of {sent}");
    // Reports overtake each other too, and are no replays.
    assert_eq!(split_box.dropped(Party::Client, "replayed"), 0);
    split_box.stop();
}

#[test]
fn nothing_of_an_attacker_is_accepted() {
    let network = SplitBoxNetwork::new("sbattack", 2);
    network.let_all_hear();
    let mut split_box = firewall(&network, &FEW);
    let parties = [Party::Entry, Party::Client, Party::Processor(1), Party::Processor(2)];
    let addresses = ["10.7.0.1", "10.7.0.2", "10.7.0.11", "10.7.0.12"];
    let script = root().join("crates/castanet/tests/system/splitbox_attack.py");
    let attacker = network.attacker.command("python3").args(["-u", "-B"]).arg(script);
    let mut attacker = attacker.arg("7000").args(addresses).pipe_stdin().spawn().unwrap();
    attacker.wait_for("listening", SOON).unwrap();
    let mut stream = NumberedStream::start(&network, 200);
    stream.wait_for(50);
    // A new epoch, so that the attacker hears rows and a permission.
    let epoch = |it: &SplitBox| it.control(Party::Entry).sum(&["entry.epoch"]);
    let first = epoch(&split_box);
    let rotate = network.cloud.command(program()).args(["splitbox", "rotate", "--connect"]);
    rotate.arg(split_box.socket(Party::Client)).check().unwrap();
    split_box.wait_until("the next epoch is used", |it| epoch(it) > first);
    stream.wait_for(100);
    attacker.write_line("attack").unwrap();
    attacker.wait_for("kinds 1 2 3 4 5 6 7\n", LATER).unwrap();
    let output = attacker.stdout();
    for (party, address) in parties.into_iter().zip(addresses) {
        let sent = number(&output, address);
        // Each datagram of the attacker is counted for a reason, and no other one is.
        split_box.wait_until(&format!("{party:?} has dropped {sent}"), |it| {
            it.all_dropped(party) >= sent
        });
        let reasons = ["forged", "malformed", "foreign", "replayed"];
        let counts = reasons.map(|it| split_box.dropped(party, it));
        println!("{party:?}: {sent} sent; {reasons:?} {counts:?}");
        assert!(counts.iter().all(|&count| count > 0), "{party:?}: {counts:?}");
        assert_eq!(split_box.all_dropped(party), sent, "{party:?}");
    }
    let sent = stream.stop();
    split_box.wait_until("all packets have left", |it| it.packets("complete") >= sent);
    let end = stream.wait_for(0);
    assert_eq!((end.count, end.wrong, end.doubled), (sent, 0, 0), "{end:?}");
    assert_eq!(split_box.packets("complete"), sent);
    drop(stream);
    // More than there is time for.
    let mut stream = NumberedStream::start(&network, 200);
    attacker.write_line("flood").unwrap();
    attacker.wait_for("flooded", LATER).unwrap();
    let end = stream.wait_for_whole(200);
    println!("{end:?} during a flood");
    assert_eq!((end.wrong, end.doubled), (0, 0));
    split_box.stop();
}

const MAPS: &str = r#"
rest = "drop"
[[nat.map]]
inside = "10.2.0.2"
outside = "203.0.113.10"
[[nat.map]]
inside = "10.2.0.3:8000"
outside = "203.0.113.20:80"
protocol = "tcp"
[[nat.map]]
inside = "fd02::2"
outside = "2001:db8::10"
"#;

#[test]
fn hosts_behind_a_private_translation_talk_both_ways() {
    let network = SplitBoxNetwork::new("sbnat", 2);
    network.add_ip6();
    let policy = |direction: &str| format!("[nat]\ndirection = \"{direction}\"{MAPS}");
    let mut inbound = network.split_box(("in.toml", &policy("inbound")), &FEW, 7000);
    let mut outbound = network.split_box(("out.toml", &policy("outbound")), &FEW, 7001).backwards();
    // Nothing comes back past SplitBox.
    for route in ["10.1.0.0/24 via 10.7.0.1", "fd01::/64 via fd07::1"] {
        network.c.ip(&format!("route del {route}")).unwrap();
    }
    inbound.start_all();
    outbound.start_all();
    inbound.add_routes(&["203.0.113.0/24", "2001:db8::/64"]);
    outbound.add_routes(&["10.1.0.0/24", "fd01::/64"]);
    let file = network.lab.random_file("file", 2).unwrap();
    let _servers =
        ["10.2.0.2", "10.2.0.3", "fd02::2"].map(|it| network.server.serve(it, 8000).unwrap());
    for server in ["203.0.113.10:8000", "203.0.113.20:80", "[2001:db8::10]:8000"] {
        let fetched = network.sender.fetch(&format!("http://{server}/file"), LATER).unwrap();
        assert_eq!(fetched.sha256, file.sha256, "{server}");
    }
    for address in ["203.0.113.10", "2001:db8::10"] {
        for size in ["56", "1400"] {
            network.sender.ping(&["-i", "0.1", "-s", size], 3, address).unwrap();
        }
    }
    // From inside: the other host sees the outer address.
    for (host, url, seen) in [
        ("10.1.0.2", "http://10.1.0.2:8000/file", "203.0.113.10 - - "),
        ("fd01::2", "http://[fd01::2]:8000/file", "2001:db8::10 - - "),
    ] {
        let mut server = network.sender.serve(host, 8000).unwrap();
        let fetched = network.server.fetch(url, LATER).unwrap();
        assert_eq!(fetched.sha256, file.sha256, "{url}");
        server.wait_for(seen, SOON).unwrap();
    }
    // A port that has no inside is dropped.
    let refused = network.sender.command("nc").args(["-n", "-z", "-w", "1", "203.0.113.20", "81"]);
    assert!(!refused.output().unwrap().success());
    assert!(inbound.dropped(Party::Client, "policy") > 0);
    inbound.stop();
    outbound.stop();
}

const BALANCER: &str = r#"
[load_balancer]
service = "203.0.113.30:5000"
protocol = "udp"
buckets = 64
rest = "drop"
[[load_balancer.backend]]
address = "10.2.0.2"
weight = 3
[[load_balancer.backend]]
address = "10.2.0.3"
"#;

/// Answers datagrams at both backends from the address at which they came.
const BACKENDS: &str = r#"
import select, socket
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for sock, host in zip(socks, ["10.2.0.2", "10.2.0.3"]): sock.bind((host, 5000))
print("ready")
while True:
    for sock in select.select(socks, [], [])[0]: sock.sendto(*sock.recvfrom(2048))
"#;

/// 120 clients, each with an address, that ask three times; prints how many have which backend.
const CLIENTS: &str = r#"
import socket
backends = {}
for client in range(120):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(20)
    sock.bind((f"10.1.0.{128 + client}", 0))
    answers = set()
    for question in range(3):
        sock.sendto(b"%d" % question, ("203.0.113.30", 5000))
        data, (host, _) = sock.recvfrom(2048)
        assert data == b"%d" % question
        answers.add(host)
    assert len(answers) == 1, answers
    host = answers.pop()
    backends[host] = backends.get(host, 0) + 1
print(*[f"{host}: {count}" for host, count in sorted(backends.items())])
"#;

#[test]
fn clients_of_a_private_load_balancer_keep_their_backend() {
    let network = SplitBoxNetwork::new("sbbalance", 2);
    let mut split_box = network.split_box(("balancer.toml", BALANCER), &FEW, 7000);
    split_box = split_box.with_device(&["203.0.113.0/24"]);
    split_box.start_all();
    network.sender.ip("route add local 10.1.0.128/25 dev lo").unwrap();
    let python = |host: &Namespace, text| host.command("python3").args(["-u", "-c", text]);
    let mut backends = python(&network.server, BACKENDS).spawn().unwrap();
    backends.wait_for("ready", SOON).unwrap();
    let output = python(&network.sender, CLIENTS).timeout(LATER).check().unwrap().stdout;
    let [first, second] = ["10.2.0.2", "10.2.0.3"].map(|it| number(&output, it));
    println!("{output}");
    // Three to one, by a hash.
    assert!(first > second && first + second == 120, "{output}");
    split_box.stop();
}

/// Runs a configuration of `conf/splitbox`: its name, the file of the party, and more variables.
fn on_devices(network: &SplitBoxNetwork, host: &Namespace, words: &[&str]) -> Process {
    // The host has no address of its own there.
    for device in ["lan", "eth0"] {
        _ = host.ip(&format!("address flush dev {device}"));
    }
    let key = network.lab.directory().join("key");
    let command = host.command(program()).arg("run").arg(conf("splitbox").join(words[0]));
    let file = network.lab.directory().join(words[1]);
    let command = command.arg(format!("file={}", file.display()));
    let command = command.arg(format!("key={}", key.display())).args(&words[2..]);
    let mut process = command.args(["-j", "2"]).spawn().unwrap();
    process.wait_for(castanet_lab::Router::READY, LATER).unwrap();
    process
}

#[test]
fn parties_run_on_devices_with_two_lanes() {
    let network = SplitBoxNetwork::new("sbdevices", 2);
    let castanet = || network.cloud.command(program()).arg("splitbox");
    let at = network.lab.directory();
    castanet().arg("key").arg(at.join("key")).check().unwrap();
    let setup = castanet().arg("setup").arg(conf("splitbox/firewall.txt")).arg("--out").arg(at);
    let setup = setup.args(["--clouds", "2", "--lanes", "2", "--blinds", "1024", "--key-file"]);
    setup.arg(at.join("key")).check().unwrap();
    for policy in ["nat.toml", "balancer.toml"] {
        let out = at.join(format!("of-{policy}"));
        std::fs::create_dir(&out).unwrap();
        let setup = castanet().arg("setup").arg(conf("splitbox").join(policy)).arg("--out");
        let setup = setup.arg(out).args(["--clouds", "2", "--allow-low-weight", "--key-file"]);
        setup.arg(at.join("key")).check().unwrap();
    }
    let devices = ["lan=lan", "dev=eth0"];
    let mut parties = Vec::new();
    for (n, host) in (1..).zip(&network.processors) {
        let (file, ip) = (format!("processor-{n}.splitbox"), format!("ip=10.7.0.1{n}"));
        let words = ["processor.click", &file, devices[1], &ip];
        parties.push(on_devices(&network, host, &words));
    }
    let words = ["client.click", "client.splitbox", devices[0], devices[1]];
    parties.push(on_devices(&network, &network.c, &words));
    let words = ["entry.click", "entry.splitbox", devices[0], devices[1]];
    parties.push(on_devices(&network, &network.a, &words));
    let limit = std::time::Instant::now() + LATER;
    while !network.ping(&["-c", "1"], "10.2.0.2").contains(" 0% packet loss") {
        assert!(std::time::Instant::now() < limit, "no answer");
    }
    for size in ["56", "1472"] {
        network.sender.ping(&["-i", "0.1", "-s", size], 3, "10.2.0.2").unwrap();
    }
    let rate = iperf3(&network, &["--parallel", "4"]);
    println!("on devices: {rate} Mbit/s");
    let refused = network.sender.command("nc").args(["-n", "-z", "-w", "1", "10.2.0.2", "23"]);
    assert!(!refused.output().unwrap().success());
    for process in &mut parties {
        process.interrupt();
        assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
    }
}

#[test]
fn the_demo_runs_and_leaves_nothing() {
    let lab = castanet_lab::Lab::new("sbdemo").unwrap();
    // If it must be killed, the next lab removes what has this lab's name.
    let mark = lab.directory().file_name().unwrap().to_str().unwrap();
    let demo = Command::on_host("timeout").args(["--signal=INT", "60"]);
    let demo = demo.arg(conf("splitbox/demo.sh")).env("CASTANET", program()).env("MARK", mark);
    let output = demo.timeout(LATER * 2).check().unwrap().printed();
    let parts =
        ["3 received, 0% packet loss", "a page of the server", "no answer", "it cannot know"];
    for part in parts {
        assert!(output.contains(part), "no `{part}` in\n{output}");
    }
    let left = Command::on_host("ip").args(["netns", "list"]).check().unwrap().printed();
    assert!(!left.contains(mark), "{left}");
}
