//! Packet sockets that share an interface by a redirection table, and `DeviceBalancer`, which changes it.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::time::{Duration, Instant};

use crate::testbed::{LATER, SOON, program};

/// Sends frames of many flows, of all kinds, to the interface `eth0`; prints their number.
const FRAMES: &str = "
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('eth0', 0))
ether = b'\\xff' * 6 + b'\\2\\0\\0\\0\\0\\1'
def v4(n, protocol=17, fragment=0, options=0):
    head = struct.pack('>BBHHHBBH4s4s', 0x45 + options, 0, 28 + 4 * options, n, fragment, 64, protocol, 0,
                       bytes([10, 9, n >> 8, n & 255]), b'\\12\\11\\0\\2')
    return head + b'\\1' * 4 * options + struct.pack('>HHHH', 1000 + n, 53, 8, 0)
def v6(n, next=17):
    head = struct.pack('>IHBB', 6 << 28, 8, next, 64) + bytes(15) + bytes([n & 255]) + bytes(15) + b'\\2'
    return head + struct.pack('>HHHH', 2000 + n, 53, 8, 0)
frames = []
for n in range(300):
    frames += [ether + b'\\x08\\x00' + v4(n), ether + b'\\x86\\xdd' + v6(n)]
    frames += [ether + b'\\x81\\x00\\0\\5\\x08\\x00' + v4(n, 6), ether + b'\\x81\\x00\\0\\5\\x86\\xdd' + v6(n, 6)]
    frames += [ether + b'\\x08\\x00' + v4(n, 17, 0x2000), ether + b'\\x08\\x00' + v4(n, 17, 100)]
    frames += [ether + b'\\x08\\x00' + v4(n, 132, 0x4000, 3), ether + b'\\x08\\x00' + v4(n, 1)]
for length in range(1, 28):
    frames += [ether + b'\\x08\\x00' + v4(7)[:length], ether + b'\\x86\\xdd' + v6(7)[:length]]
frames += [ether + b'\\x08\\x06' + bytes(28), ether + b'\\x81\\x00\\0\\5\\x81\\x00\\0\\6\\x08\\x00' + v4(9)]
for frame in frames:
    s.send(frame)
print(len(frames))
";

/// Sends datagrams by 64 flows until it is ended.
const FLOWS: &str = "
import socket, time
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
for s in sockets:
    s.connect(('10.9.0.2', 7000))
print('ready', flush=True)
while True:
    for s in sockets:
        s.send(b'x' * 40)
    time.sleep(0.001)
";

struct Net {
    host: Namespace,
    middle: Namespace,
    lab: Lab,
}

fn net(name: &str) -> Net {
    require(&["ip", "python3"]).unwrap();
    let lab = Lab::new(name).unwrap();
    let [host, middle] = ["a", "m"].map(|name| lab.namespace(name).unwrap());
    let end = Port::new(&host, "eth0").address("10.9.0.1/24");
    lab.link(end, Port::new(&middle, "m0")).unwrap();
    host.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev eth0").unwrap();
    Net { host, middle, lab }
}

impl Net {
    /// Starts a router of two workers, with a script that sees to what the test asks for.
    fn router(&self, text: &str) -> Process {
        let path = self.lab.directory().join("config.click");
        std::fs::write(&path, text).unwrap();
        let command = self.middle.command(program()).args(["run", "-j", "2"]).arg(path);
        let mut router = command.pipe_stdin().spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        router
    }

    /// Sends frames of all kinds; returns their number.
    fn send_frames(&self) -> u64 {
        let sent = self.host.command("python3").args(["-c", FRAMES]).check().unwrap();
        sent.stdout.trim().parse().unwrap()
    }
}

/// The lines of an aggregate and its count.
fn counts(lines: &str) -> Vec<(u64, u64)> {
    let pair = |line: &str| {
        let (aggregate, count) = line.split_once(' ')?;
        Some((aggregate.parse().ok()?, count.parse().ok()?))
    };
    lines.lines().filter_map(pair).collect()
}

/// The counts of both workers, by the router's last report that is whole.
fn reported(output: &str) -> [Vec<(u64, u64)>; 2] {
    let report = output.rsplit_once("end\n").map_or("", |(reports, _)| reports);
    let report = report.rsplit("zero\n").next().unwrap_or("");
    let (zero, one) = report.split_once("one\n").unwrap_or(("", ""));
    [zero, one].map(counts)
}

#[test]
fn the_table_decides_which_worker_has_a_flow() {
    let net = net("rss-table");
    let table: Vec<&str> = (0..128).map(|entry| if entry < 100 { "1" } else { "0" }).collect();
    let mut router = net.router(&format!(
        "fd :: FromDevice(m0, PROMISC true, RSS_AGGREGATE true) -> s :: CPUSwitch;
         s[0] -> a0 :: AggregateCounterVector(127) -> Discard;
         s[1] -> a1 :: AggregateCounterVector(127) -> Discard;
         Script(print \"size\", print $(fd.rss_reta_size), write fd.rss_reta {}, print \"set\");
         Script(TYPE ACTIVE, label more, wait 100ms, print \"zero\", print $(a0.dump), print \"one\",
                print $(a1.dump), print \"end\", goto more);",
        table.join(" ")
    ));
    router.wait_for("size\n128\nset\n", SOON).unwrap();
    let mut sent = 0;
    for round in 0..2 {
        if round == 1 {
            // Sockets of an interface that was down are in their group again, in the same order.
            net.middle.ip("link set m0 down").unwrap();
            net.middle.ip("link set m0 up").unwrap();
            net.host.ip("neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev eth0").unwrap();
            std::thread::sleep(Duration::from_millis(500));
        }
        sent += net.send_frames();
        let begun = Instant::now();
        let [zero, one] = loop {
            let counts = reported(&router.stdout());
            // Packets of the host's own stack come in addition.
            if counts.iter().flatten().map(|(_, count)| count).sum::<u64>() >= sent {
                break counts;
            }
            assert!(begun.elapsed() < SOON, "{sent} sent, {counts:?} counted");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(zero.iter().all(|(entry, _)| *entry >= 100 || *entry == 0), "{zero:?}");
        assert!(one.iter().all(|(entry, _)| *entry < 100), "{one:?}");
        assert!(zero.len() > 20 && one.len() > 80, "{} and {} entries", zero.len(), one.len());
    }
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
}

#[test]
fn flows_get_a_second_worker_when_one_has_too_much_load() {
    let net = net("rss-balance");
    let mut router = net.router(
        "fd :: FromDevice(m0, PROMISC true, RSS_AGGREGATE true)
             -> agg :: AggregateCounterVector(MASK 511)
             -> WorkPackage(S 0, N 0, R 0, PAYLOAD false, W 20000) -> s :: CPUSwitch;
         s[0] -> c0 :: Counter -> Discard; s[1] -> c1 :: Counter -> Discard;
         db :: DeviceBalancer(METHOD rsspp, DEV fd, RSSCOUNTER agg, TIMER 50, AUTOSCALE true,
                              STARTCPU 1, TARGET_LOAD 0.05, VERBOSE 1);
         Script(wait 200ms, print \"one: $(fd.rss_reta)\");
         Script(TYPE ACTIVE, label more, wait 100ms, print \"c0 $(c0.count) c1 $(c1.count)\",
                goto more $(or $(lt $(c0.count) 100) $(lt $(c1.count) 100)),
                print \"two: $(fd.rss_reta)\", print $(db.loads), print $(db.run_stats),
                print \"moves $(db.moves)\");",
    );
    let one = format!("one: {}\n", "0 ".repeat(128));
    router.wait_for(&one, SOON).unwrap();
    let mut client = net.host.command("python3").args(["-c", FLOWS]).spawn().unwrap();
    client.wait_for("ready", SOON).unwrap();
    router.wait_for("moves ", LATER).unwrap();
    client.kill();
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    let output = router.stdout();
    let table = output.split("two: ").nth(1).unwrap().lines().next().unwrap();
    let moved = table.split(' ').filter(|queue| *queue == "1").count();
    assert!((1..128).contains(&moved), "{output}");
    let printed = format!("{output}{}", router.stderr());
    assert!(printed.contains("entries moved, 2 queues, imbalance "), "{printed}");
}

#[test]
fn a_balancer_wants_a_table_and_a_counter() {
    let net = net("rss-errors");
    let check = |config: &str| {
        let command = net.middle.command(program()).args(["check", "-e", config]);
        command.output().unwrap().printed()
    };
    let device = "fd :: FromDevice(m0, RSS_AGGREGATE true) -> c :: Counter -> Discard;";
    for (balancer, error) in [
        ("METHOD rsspp, DEV fd", "METHOD rsspp needs RSSCOUNTER, an AggregateCounterVector"),
        ("METHOD rsspp, DEV fd, RSSCOUNTER c", "'c :: Counter' has no read handler 'dump'"),
        ("METHOD rss, DEV c", "'c :: Counter' has no write handler 'rss_reta'"),
        ("METHOD rss, DEV gone", "no element named 'gone'"),
        ("METHOD metron, DEV fd", "`metron` is not supported"),
        ("METHOD rss, DEV fd, TARGET_LOAD 2", "TARGET_LOAD: 2 is not from 0 to 1"),
        (
            "METHOD rss, DEV fd, CYCLES queue",
            "'fd :: FromDevice' has no read handler 'queue_count'",
        ),
    ] {
        let printed = check(&format!("{device} DeviceBalancer({balancer})"));
        assert!(printed.contains(error), "{balancer}: {printed}");
    }
    let printed = check(&format!("{device} DeviceBalancer(METHOD rss, DEV fd)"));
    assert!(!printed.contains("error"), "{printed}");
}
