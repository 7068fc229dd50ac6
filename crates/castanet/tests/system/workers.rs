//! Several workers on one interface: every packet arrives once, and `explain` names its worker.

use castanet_lab::{Lab, Namespace, Port, Router, require};

use crate::testbed::{LATER, SOON, program};

/// Datagrams that a client sends, by 64 flows, and gets back.
const DATAGRAMS: u64 = 8192;

/// Sends everything back.
const SERVER: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.9.0.2', 7000))
print('ready', flush=True)
while True:
    data, peer = s.recvfrom(2048)
    s.sendto(data, peer)
";

/// Sends numbers, two from each of 64 sockets at a time, and waits until all are back.
const CLIENT: &str = "
import select, socket, sys
total = int(sys.argv[1])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
seen = {}
def receive(patience):
    for s in select.select(sockets, [], [], patience)[0]:
        number = int.from_bytes(s.recv(2048), 'big')
        seen[number] = seen.get(number, 0) + 1
for first in range(0, total, 128):
    for number in range(first, first + 128):
        sockets[number % 64].sendto(number.to_bytes(60, 'big'), ('10.9.0.2', 7000))
    while len(seen) < first + 128:
        before = len(seen)
        receive(10)
        if len(seen) == before:
            sys.exit(f'{len(seen)} of {first + 128} came back')
receive(0.3)
print(len(seen), sum(seen.values()))
";

/// Two hosts and, between them, a machine with an interface of several queues to each.
struct MultiQueueNetwork {
    a: Namespace,
    middle: Namespace,
    b: Namespace,
    lab: Lab,
}

fn between(name: &str, queues: u32) -> MultiQueueNetwork {
    require(&["ip", "ping", "python3"]).unwrap();
    let lab = Lab::new(name).unwrap();
    let [a, middle, b] = ["a", "m", "b"].map(|name| lab.namespace(name).unwrap());
    for (host, address, device) in [(&a, "10.9.0.1/24", "m0"), (&b, "10.9.0.2/24", "m1")] {
        let host = Port::new(host, "eth0").address(address).queues(queues);
        lab.link(host, Port::new(&middle, device).queues(queues)).unwrap();
    }
    MultiQueueNetwork { a, middle, b, lab }
}

impl MultiQueueNetwork {
    /// A bridge that counts UDP, and by which worker it came from `m0`.
    fn bridge(&self, workers: usize, from: &str, to: &str) -> String {
        let by_worker = |w| format!("s[{w}] -> w{w} :: Counter -> o1;\n");
        let text = format!(
            "f0 :: FromDevice(m0, PROMISC true{from}) -> t0 :: Classifier(12/0800 23/11, -);
             f1 :: FromDevice(m1, PROMISC true{from}) -> t1 :: Classifier(12/0800 23/11, -);
             t0[0] -> u0 :: Counter -> s :: CPUSwitch; t0[1] -> o1 :: ToDevice(m1{to});
             t1[0] -> u1 :: Counter -> o0 :: ToDevice(m0{to}); t1[1] -> o0;
             {}",
            (0..workers).map(by_worker).collect::<String>()
        );
        let path = self.lab.directory().join("bridge.click");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn explain(&self, config: &str, workers: usize) -> String {
        let explain = self.middle.command(program()).args(["explain", "-j", &workers.to_string()]);
        explain.arg(config).check().unwrap().stdout
    }

    /// Carries the client's datagrams there and back; the handlers' values after the end.
    fn carry(&self, config: &str, workers: usize, handlers: &[String]) -> Vec<u64> {
        let command = self.middle.command(program()).args(["run", "-j", &workers.to_string()]);
        let words = handlers.iter().flat_map(|handler| ["--handler", handler]);
        let mut router = command.arg(config).args(words).spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        let mut server = self.b.command("python3").args(["-c", SERVER]).spawn().unwrap();
        server.wait_for("ready", SOON).unwrap();
        self.a.command("ping").args(["-c", "1", "10.9.0.2"]).check().unwrap();
        let client = self.a.command("python3").args(["-c", CLIENT, &DATAGRAMS.to_string()]);
        let output = client.timeout(LATER).output().unwrap();
        assert_eq!(output.stdout, format!("{DATAGRAMS} {DATAGRAMS}\n"), "{}", output.printed());
        server.kill();
        router.interrupt();
        let status = router.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{}", router.stderr());
        let output = router.stdout();
        let value = |handler: &String| {
            let text =
                output.split(&format!("{handler}:\n")).nth(1).unwrap().lines().next().unwrap();
            text.parse().unwrap()
        };
        handlers.iter().map(value).collect()
    }

    /// Every datagram passes once each way, every count is right, and those of `m0` come by the
    /// hands of these workers.
    fn check(&self, config: &str, workers: usize, of_m0: &[usize]) {
        let names = ["u0", "u1", "f0", "o1", "f1", "o0"].map(str::to_owned).into_iter();
        let names = names.chain((0..workers).map(|w| format!("w{w}")));
        let handlers: Vec<String> = names.map(|name| format!("{name}.count")).collect();
        let counts = self.carry(config, workers, &handlers);
        assert_eq!(counts[..2], [DATAGRAMS; 2], "{handlers:?} {counts:?}");
        // All other traffic of the links was forwarded as well.
        assert_eq!((counts[2], counts[4]), (counts[3], counts[5]), "{handlers:?} {counts:?}");
        assert!(counts[2] > DATAGRAMS && counts[4] > DATAGRAMS, "{handlers:?} {counts:?}");
        let took_part: Vec<usize> = (0..workers).filter(|w| counts[6 + w] > 0).collect();
        assert_eq!(took_part, of_m0, "{handlers:?} {counts:?}");
        assert_eq!(counts[6..].iter().sum::<u64>(), DATAGRAMS, "{handlers:?} {counts:?}");
    }
}

#[test]
fn one_worker_polls_all_queues() {
    let net = between("workers-1", 4);
    let config = net.bridge(1, "", "");
    let output = net.explain(&config, 1);
    assert!(output.contains("worker 0 receives from queues 0 to 3"), "{output}");
    assert!(
        output.contains("worker 0 sends to queue 0, alone: it never waits for a lock"),
        "{output}"
    );
    net.check(&config, 1, &[0]);
}

#[test]
fn two_workers_have_an_interface_each() {
    let net = between("workers-2", 4);
    let config = net.bridge(2, "", "");
    let output = net.explain(&config, 2);
    let why = "(1 of 2 workers, divided among 2 devices that receive)";
    assert_eq!(output.matches(why).count(), 2, "{output}");
    net.check(&config, 2, &[0]);
}

#[test]
fn four_workers_have_half_of_an_interface_each() {
    let net = between("workers-4", 4);
    let config = net.bridge(4, "", "");
    let output = net.explain(&config, 4);
    for line in [
        "worker 0 receives from queues 0 to 1",
        "worker 1 receives from queues 2 to 3",
        "worker 2 receives from queues 0 to 1",
        "worker 3 receives from queues 2 to 3",
        "worker 1 sends to queue 1, alone: it never waits for a lock",
        "worker 3 sends to queue 1, alone: it never waits for a lock",
        "o1  {0,1}  several workers: each has its own state, handlers add them up",
    ] {
        assert!(output.contains(line), "{line} is not in\n{output}");
    }
    net.check(&config, 4, &[0, 1]);
}

#[test]
fn all_workers_have_a_queue_of_every_interface_if_told() {
    let net = between("workers-all", 4);
    let config = net.bridge(4, ", SCALE parallel", "");
    let output = net.explain(&config, 4);
    for worker in 0..4 {
        let line = format!("worker {worker} receives from queue {worker}\n");
        assert_eq!(output.matches(&line).count(), 2, "{output}");
    }
    net.check(&config, 4, &[0, 1, 2, 3]);
}

#[test]
fn workers_that_share_a_queue_lock_it() {
    let net = between("workers-lock", 4);
    let config = net.bridge(4, ", SCALE parallel", ", N_QUEUES 2");
    let output = net.explain(&config, 4);
    let line = "worker 0 sends to queue 0, locked for each burst: so does worker 2\n";
    assert_eq!(output.matches(line).count(), 2, "{output}");
    net.check(&config, 4, &[0, 1, 2, 3]);
}

#[test]
fn with_fewer_queues_than_workers_some_are_free() {
    let net = between("workers-few", 1);
    let config = net.bridge(4, "", "");
    let output = net.explain(&config, 4);
    let why = "(1 of 4 workers, divided among 2 devices that receive; it has 1 queue to use)";
    assert_eq!(output.matches(why).count(), 2, "{output}");
    net.check(&config, 4, &[0]);
}

#[test]
fn sockets_share_an_interface_by_flows() {
    let net = between("workers-sockets", 1);
    let config = net.bridge(4, ", METHOD AF_PACKET", ", METHOD AF_PACKET");
    let output = net.explain(&config, 4);
    assert!(output.contains("worker 1 receives from a socket of its own"), "{output}");
    assert!(output.contains("worker 1 sends by a socket of its own: no lock"), "{output}");
    net.check(&config, 4, &[0, 1]);
}

#[test]
fn elements_have_the_queues_that_they_name() {
    let net = between("workers-queue", 4);
    let path = net.lab.directory().join("queues.click");
    let text = "q0 :: FromDevice(m0, QUEUE 0, N_QUEUES 2) -> Discard;
                q2 :: FromDevice(m0, QUEUE 2, N_QUEUES 2) -> Discard;
                Script(wait 10ms, print q0.device, print q2.device, stop)";
    std::fs::write(&path, text).unwrap();
    let run = |path: &std::path::Path| {
        net.middle.command(program()).args(["run", "--quiet"]).arg(path).output().unwrap()
    };
    let output = run(&path).printed();
    assert!(output.contains("4 queues, receives from queues 0 to 1"), "{output}");
    assert!(output.contains("4 queues, receives from queues 2 to 3"), "{output}");
    std::fs::write(&path, text.replace("QUEUE 2", "QUEUE 1")).unwrap();
    let output = run(&path).printed();
    let why = "cannot receive from queue 1 of m0: another element of this configuration does";
    assert!(output.contains(why), "{output}");
    std::fs::write(&path, text.replace("QUEUE 2", "QUEUE 4")).unwrap();
    let output = run(&path).printed();
    assert!(
        output.contains("cannot receive from queue 5 of m0: it has 4, from 0 to 3"),
        "{output}"
    );
    std::fs::write(&path, "FromDevice(m0, QUEUE 0, METHOD AF_PACKET) -> Discard").unwrap();
    let output = run(&path).printed();
    assert!(
        output.contains("QUEUE takes AF_XDP, and that will not do: METHOD says so"),
        "{output}"
    );
}
