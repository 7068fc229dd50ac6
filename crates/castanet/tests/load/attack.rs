//! Attacks by packets on a router of six ports, all at once: dead neighbours, a sweep of a large
//! network, fragments, new flows, frames that are no packets, and queues that nobody empties. Two
//! hosts go on pinging and downloading. Ten seconds by default; `CASTANET_SOAK_SECONDS=600` makes
//! it ten minutes.

use crate::program::{LATER, SOON, program};
use crate::soak::soak_seconds;
use castanet_lab::{Lab, Namespace, Port, Process, RandomFile, Router, require};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Default length of the attacks.
const SECONDS: u64 = 10;
/// The attack from each port behind the first two, and its frames a second.
const ATTACKS: [(&str, u32); 5] =
    [("neighbours", 2000), ("sweep", 3000), ("fragments", 4000), ("flows", 3000), ("broken", 1000)];
/// Port from which each attack comes; the last has two.
const FROM: [usize; 5] = [3, 4, 5, 6, 3];
/// Pings a second, and how many in a row may stay unanswered on a machine that has other work.
const PINGS: u32 = 50;
const SILENCE: u32 = PINGS * 3 / 2;
/// Most memory of the router, in bytes: its tables and its queues are all full by then.
const MEMORY: u64 = 1 << 30;

/// The class `Interface` of the router that is shipped.
fn interface() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/router.click");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find("elementclass Interface").unwrap();
    let end = begin + text[begin..].find("\n}\n").unwrap() + 3;
    text[begin..end].to_owned()
}

/// The prefix at a port: the fourth has sixteen million addresses.
fn network(port: usize) -> String {
    if port == 4 { "44.0.0.0/8".to_owned() } else { format!("10.0.{port}.0/24") }
}

/// The router's address at a port.
fn gateway(port: usize) -> String {
    if port == 4 { "44.0.0.1".to_owned() } else { format!("10.0.{port}.1") }
}

/// The router's Ethernet address at a port.
fn mac(port: usize) -> String {
    format!("02:00:00:00:{port:02x}:01")
}

/// The configuration of a router of six ports with all that keeps packets.
fn configuration(method: &str) -> String {
    let mut text = String::new();
    let nets: Vec<String> = (1..=6).map(network).collect();
    let mut routes: Vec<String> = (1..=6).map(|n| format!("{} 0", gateway(n))).collect();
    routes.push("0.0.0.0/0 1".to_owned());
    for port in 1..=6 {
        let (ip, mac, net) = (gateway(port), mac(port), network(port));
        text += &format!(
            "side{port} :: Interface({ip}, {mac}, {port}, {}, 1500);
             FromDevice(p{port}, PROMISC true, METHOD {method}) -> side{port}
                 -> ToDevice(p{port}, METHOD {method});
             side{port}[1] -> keepers;
             routes[{}] -> [1] side{port};\n",
            nets.join(" "),
            port + 1
        );
        routes.push(format!("{net} {}", port + 1));
    }
    let routes = format!("routes :: StaticIPLookup({});\n", routes.join(", "));
    [&interface(), &routes, include_str!("attack.click"), &text].concat()
}

/// A router of six ports with a host at each.
struct SixPortRouter {
    hosts: Vec<Namespace>,
    router: Process,
    lab: Lab,
}

impl SixPortRouter {
    fn new(name: &str, method: &str) -> SixPortRouter {
        require(&["curl", "ethtool", "ip", "ping", "python3", "sha256sum"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let middle = lab.namespace("router").unwrap();
        let hosts: Vec<Namespace> = (1..=6)
            .map(|port| {
                let host = lab.namespace(&format!("h{port}")).unwrap();
                let prefix = network(port).split_once('/').unwrap().1.to_owned();
                let address = gateway(port).rsplit_once('.').unwrap().0.to_owned() + ".2";
                let end = Port::new(&host, "eth0")
                    .address(&format!("{address}/{prefix}"))
                    .route(&format!("default via {}", gateway(port)));
                let device = format!("p{port}");
                lab.link(end, Port::new(&middle, &device).mac(&mac(port))).unwrap();
                host
            })
            .collect();
        let path = lab.directory().join("attack.click");
        std::fs::write(&path, configuration(method)).unwrap();
        // Ahead of those who attack: what is tested is who gets frames, not who gets the processor.
        let command = middle.command("nice").args(["-n", "-10"]).arg(program());
        let mut router = command.arg("run").arg(path).spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        SixPortRouter { hosts, router, lab }
    }

    /// Starts all attacks, which end by themselves.
    fn attack(&self, time: Duration) -> Vec<Process> {
        let start = |(&(kind, rate), &port): (&(&str, u32), &usize)| {
            let words = [kind, &mac(port), &rate.to_string(), &time.as_secs().to_string()];
            let script = include_str!("attack.py");
            let command = self.hosts[port - 1].command("python3").args(["-u", "-c", script]);
            command.args(words).spawn().unwrap()
        };
        ATTACKS.iter().zip(&FROM).map(start).collect()
    }
}

/// Fetches a file from the second host again and again until it is over; how often, or what
/// went wrong.
fn download(client: &Namespace, file: &RandomFile, over: &AtomicBool) -> Result<u32, String> {
    let name = file.path.file_name().unwrap().to_str().unwrap();
    let url = format!("http://10.0.2.2:8001/{name}");
    let mut times = 0;
    while !over.load(Ordering::Relaxed) {
        let fetched = client.fetch(&url, LATER).map_err(|error| error.to_string())?;
        if fetched.sha256 != file.sha256 {
            return Err("what arrived is not what was sent".to_owned());
        }
        times += 1;
    }
    Ok(times)
}

/// The numbers of the answers that `ping` printed.
fn answers(output: &str) -> Vec<u32> {
    let of = |line: &str| line.split_once("icmp_seq=")?.1.split(' ').next()?.parse().ok();
    output.lines().filter(|line| line.contains("bytes from")).filter_map(of).collect()
}

/// The most that stayed unanswered in a row, of `sent` pings.
fn silence(answers: &[u32], sent: u32) -> u32 {
    let mut received = answers.to_vec();
    received.extend([0, sent + 1]);
    received.sort_unstable();
    received.windows(2).map(|pair| pair[1].saturating_sub(pair[0] + 1)).max().unwrap_or(sent)
}

/// Insists that two hosts go on while the others attack.
fn goes_on(name: &str, method: &str) {
    let mut six = SixPortRouter::new(name, method);
    let time = Duration::from_secs(soak_seconds().unwrap_or(SECONDS));
    let file = six.lab.random_file("file", 1).unwrap();
    let _web = six.hosts[1].serve("10.0.2.2", 8001).unwrap();
    let pings = (time.as_secs() as u32 * PINGS).to_string();
    let interval = (1.0 / f64::from(PINGS)).to_string();
    let (client, over) = (&six.hosts[0], AtomicBool::new(false));
    let (output, downloads) = std::thread::scope(|scope| {
        let downloads = scope.spawn(|| download(client, &file, &over));
        let attacks = six.attack(time);
        let ping = client.command("ping").args(["-n", "-i", &interval, "-c", &pings]);
        let output = ping.args(["-W", "1", "10.0.2.2"]).timeout(time * 2 + LATER).output();
        for attack in attacks {
            println!("{}", attack.finish(LATER).unwrap().printed());
        }
        over.store(true, Ordering::Relaxed);
        (output.unwrap().stdout, downloads.join().unwrap())
    });
    let (answers, memory) = (answers(&output), six.router.memory());
    let quiet = silence(&answers, pings.parse().unwrap());
    println!(
        "{name}: {} of {pings} pings answered, {quiet} in a row not; downloads: {downloads:?}; {} MB",
        answers.len(),
        memory >> 20
    );
    six.router.interrupt();
    let status = six.router.wait(LATER).unwrap();
    assert_eq!(status.code(), Some(0), "{status}: {}", six.router.stderr());
    assert!(quiet <= SILENCE, "{quiet} pings in a row were not answered:\n{}", six.router.stderr());
    assert!(downloads.as_ref().is_ok_and(|times| *times > 1), "downloads: {downloads:?}");
    assert!(memory < MEMORY, "{memory} bytes");
}

#[test]
fn af_xdp_goes_on_under_all_attacks() {
    goes_on("attack-xdp", "AF_XDP");
}

#[test]
fn packet_sockets_go_on_under_all_attacks() {
    goes_on("attack-packet", "AF_PACKET");
}
