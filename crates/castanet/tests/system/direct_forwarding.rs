//! AF_XDP interfaces between which no element looks at packets: results are the same as with an
//! element between them.

use castanet_io::Device;
use castanet_io::af_packet::{AfPacket, Options};
use castanet_io::traffic::frame_between;
use castanet_lab::{Lab, Namespace, Port, Router, require};
use castanet_packet::{Batch, Packet, Pool, PoolConfig};
use castanet_wire::MacAddr;
use std::net::Ipv4Addr;
use std::time::Instant;

use crate::testbed::{SOON, number, program};

/// Two hosts and a forwarder between them, from `m0` to `m1` and back.
struct ForwarderNetwork {
    hosts: [Namespace; 2],
    middle: Namespace,
    // Last, so that processes in the namespaces are gone before them.
    _lab: Lab,
}

fn between(name: &str, mtu: [u32; 2], queues: u32) -> ForwarderNetwork {
    require(&["ip", "ping"]).unwrap();
    let lab = Lab::new(name).unwrap();
    let [a, middle, b] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
    for (n, host) in [&a, &b].into_iter().enumerate() {
        let here = Port::new(host, "eth0").address(&format!("10.9.0.{}/24", n + 1)).mtu(4000);
        let there = Port::new(&middle, &format!("m{n}")).mtu(mtu[n]);
        lab.link(here.queues(queues), there.queues(queues)).unwrap();
    }
    ForwarderNetwork { hosts: [a, b], middle, _lab: lab }
}

/// A packet socket on a host's `eth0`.
fn socket(host: &Namespace) -> AfPacket {
    let options = Options { promiscuous: true, ..Options::default() };
    let open = move || Ok(AfPacket::open("eth0", options).map_err(|error| error.to_string()));
    host.enter(open).join().unwrap().unwrap().unwrap()
}

/// Frames of many lengths and flows, for neither of the hosts.
fn frames() -> Vec<Vec<u8>> {
    let mac = |n| MacAddr([2, 0, 0, 0, 9, n]);
    let frame = |n: usize| {
        let at = |net, n: usize| Ipv4Addr::new(net, 0, (n >> 8) as u8, n as u8);
        let mut frame = frame_between((mac(1), at(10, n)), (mac(2), at(20, n * 7))).to_vec();
        // One in ten does not fit in a frame of AF_XDP.
        let len = if n % 10 == 3 { 2100 + n } else { 14 + n * 37 % 1500 };
        frame.resize(len, n as u8);
        frame
    };
    (0..400).map(frame).collect()
}

const HANDLERS: [&str; 5] = ["f.count", "f.byte_count", "t.count", "t.byte_count", "t.errors"];

/// Packets that get through with `path` between the interfaces, and the counters at the end. Sends
/// so few at a time that none is lost; waits for those that `fit`. It ends once all have come.
fn passed(
    net: &ForwarderNetwork,
    path: &str,
    workers: u32,
    fit: impl Fn(&[u8]) -> bool,
) -> (Vec<Vec<u8>>, [u64; 5]) {
    let text = format!(
        "f :: FromDevice(m0, PROMISC true, METHOD AF_XDP) {path} -> t :: ToDevice(m1, METHOD AF_XDP);
         Script(label again, wait 10ms, goto again $(lt $(f.count) {}), stop)",
        frames().len()
    );
    let shown = HANDLERS.iter().flat_map(|handler| ["--handler", *handler]);
    let command = net.middle.command(program()).args(["run", "-j", &workers.to_string()]);
    let mut router = command.args(["-e", &text]).args(shown).spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    let [mut from, mut to] = [0, 1].map(|n| socket(&net.hosts[n]));
    let pool = Pool::new(PoolConfig { data_capacity: 4096, ..PoolConfig::default() }).unwrap();
    let (mut came, mut wanted) = (Batch::new(), 0);
    for some in frames().chunks(50) {
        let mut batch: Batch = some.iter().map(|frame| Packet::from_bytes(frame)).collect();
        while !batch.is_empty() {
            from.transmit(&mut batch).unwrap();
            from.flush().unwrap();
        }
        wanted += some.iter().filter(|frame| fit(frame)).count();
        let began = Instant::now();
        while came.len() < wanted && began.elapsed() < SOON {
            to.receive(&pool, &mut came, 64).unwrap();
        }
    }
    assert_eq!(from.stats().tx_errors, 0);
    // Not a frame is missing, or it would not end like this.
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    let output = router.stdout();
    let came = came.iter().map(|packet| packet.bytes().to_vec()).collect();
    (came, HANDLERS.map(|handler| number(&output, handler)))
}

/// Compares what passes by with what passes an element, on interfaces of these MTUs.
fn same(name: &str, mtu: [u32; 2], queues: u32, workers: u32) {
    let net = between(name, mtu, queues);
    let fit = |frame: &[u8]| frame.len() <= mtu[1] as usize + 18;
    let (mut straight, numbers) = passed(&net, "", workers, fit);
    let (mut seen, others) = passed(&net, "-> Null", workers, fit);
    assert_eq!(numbers, others);
    let mut expected: Vec<_> = frames().into_iter().filter(|frame| fit(frame)).collect();
    if queues > 1 {
        // There is no order between them.
        [&mut straight, &mut seen, &mut expected].into_iter().for_each(|all| all.sort());
    }
    assert!(straight == seen, "other packets");
    assert!(straight == expected, "{} packets of {}", straight.len(), expected.len());
    let bytes = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).sum::<usize>() as u64;
    let (all, few) = (frames(), &expected);
    let refused = all.len() - few.len();
    let [all, few] = [&all, few].map(|it| [it.len() as u64, bytes(it)]);
    assert_eq!(numbers[..], [&all[..], &few[..], &[refused as u64]].concat());
}

#[test]
fn lengths_that_do_not_fit_are_refused_and_the_rest_passes() {
    same("straight", [4000, 1000], 1, 1);
}

#[test]
fn packets_in_several_frames_keep_their_place_between_others() {
    same("straight-long", [4000, 4000], 1, 1);
}

#[test]
fn queues_take_turns_and_workers_share_them() {
    same("straight-queues", [4000, 1000], 3, 1);
    same("straight-workers", [4000, 4000], 3, 2);
}

#[test]
fn a_link_that_goes_is_used_again_when_it_comes() {
    let net = between("straight-link", [1500, 1500], 1);
    let text = "FromDevice(m0, PROMISC true, METHOD AF_XDP) -> t :: ToDevice(m1, METHOD AF_XDP);
                FromDevice(m1, PROMISC true, METHOD AF_XDP) -> ToDevice(m0, METHOD AF_XDP)";
    let command = net.middle.command(program()).args(["run", "-e", text, "--handler", "t.errors"]);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    let answered = || {
        let ping = net.hosts[0].command("ping").args(["-q", "-c", "3", "-i", "0.5", "-W", "2"]);
        ping.arg("10.9.0.2").output().unwrap().printed().contains("3 received")
    };
    assert!(answered());
    net.middle.ip("link set m1 down").unwrap();
    assert!(!answered());
    net.middle.ip("link set m1 up").unwrap();
    assert!(answered());
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    assert!(number(&format!("errors: {}", router.stdout()), "errors") > 0, "{}", router.stdout());
}
