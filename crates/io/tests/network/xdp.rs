//! Tests of an AF_XDP bridge between two hosts that leave checksums and segmentation to it.

use crate::forwarder::Forwarder;
use crate::{test_network, transfer};
use castanet_io::Device;
use castanet_io::af_xdp::{AfXdp, Options};
use castanet_lab::Namespace;
use castanet_packet::{Batch, Packet, PacketType, Pool, PoolConfig};
use std::time::{Duration, Instant};

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).unwrap()
}

fn open(namespace: &Namespace, name: &'static str, pool: &Pool) -> Result<AfXdp, String> {
    open_with(namespace, name, pool, Options::default())
}

pub(crate) fn open_with(
    namespace: &Namespace,
    name: &'static str,
    pool: &Pool,
    options: Options,
) -> Result<AfXdp, String> {
    let pool = pool.clone();
    let opened = namespace
        .enter(move || Ok(AfXdp::open(name, &pool, options).map_err(|error| error.to_string())));
    opened.join().unwrap().unwrap()
}

fn bridge(namespace: &Namespace) -> Forwarder {
    bridge_with(namespace, pool())
}

fn bridge_with(namespace: &Namespace, pool: Pool) -> Forwarder {
    let device = |name| Box::new(open(namespace, name, &pool).unwrap()) as Box<dyn Device>;
    Forwarder::with([device("m0"), device("m1")], pool.clone())
}

/// Returns whether an XDP program is attached to an interface.
fn program_on(namespace: &Namespace, name: &str) -> bool {
    namespace.ip(&format!("link show {name}")).unwrap().contains("xdp")
}

#[test]
fn ping_passes_at_once_and_the_program_goes() {
    let net = test_network("xping");
    let bridge = bridge(&net.middle);
    assert!(program_on(&net.middle, "m0") && program_on(&net.middle, "m1"));
    let ping = net.a.command("ping").args(["-c", "50", "-i", "0.02", "-q", "10.9.0.2"]);
    let output = ping.check().unwrap();
    assert!(output.stdout.contains("50 received"), "{}", output.stdout);
    let stats = bridge.finish();
    assert!(stats[0].received >= 50 && stats[1].sent >= 50, "{stats:?}");
    for name in ["m0", "m1"] {
        // A process that another test has just forked holds this one's descriptors until it
        // executes another program.
        let mut again = 0..100;
        while program_on(&net.middle, name) {
            assert!(again.next().is_some(), "the program stays on {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn tcp_passes_with_offloads_on_and_every_checksum_right() {
    let net = test_network("xtcp");
    let bridge = bridge(&net.middle);
    transfer(&net);
    let stats = bridge.finish();
    println!("{stats:?}");
    assert_eq!([stats[0].tx_errors, stats[1].tx_errors], [0, 0], "{stats:?}");
}

#[test]
fn a_closed_interface_opens_again_and_a_taken_one_is_named() {
    let net = test_network("xagain");
    let pool = pool();
    for _ in 0..20 {
        let device = open(&net.middle, "m0", &pool).unwrap();
        assert!(device.describe().starts_with("m0: AF_XDP in copy mode (without copies the driver cannot), one queue, XDP program in the driver"), "{}", device.describe());
        assert!(pool.in_use() > 0);
        drop(device);
        Pool::flush_thread();
        assert_eq!(pool.in_use(), 0);
    }
    let _first = open(&net.middle, "m0", &pool).unwrap();
    let other = Pool::new(PoolConfig::default()).unwrap();
    let error = open(&net.middle, "m0", &other).err().unwrap();
    assert_eq!(error, "cannot open an AF_XDP socket on m0: another program holds it");
}

#[test]
fn packets_are_frames_of_the_pool_in_place_and_annotated() {
    let net = test_network("xplace");
    let pool = pool();
    let mut m0 = open(&net.middle, "m0", &pool).unwrap();
    let mut m1 = open(&net.middle, "m1", &pool).unwrap();
    net.a.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:99 dev eth0").unwrap();
    let capture = net.b.capture_arriving("eth0", "icmp").unwrap();
    net.a.command("ping").args(["-c", "1", "-W", "1", "10.9.0.2"]).output().unwrap();
    let mut batch = Batch::new();
    let mut seen = 0;
    let (base, len) = pool.memory();
    while m0.receive(&pool, &mut batch, 32).unwrap() > 0 {
        for packet in &batch {
            let at = packet.bytes().as_ptr().addr() - base.as_ptr().addr();
            assert!(at < len && packet.pool_id() == pool.id());
            // After the frame's header and the kernel's headroom.
            assert_eq!(at % pool.stride(), 64 + 256);
            assert!(packet.timestamp() > 1_600_000_000_000_000_000);
            assert_eq!(packet.packet_type(), PacketType::OtherHost);
            seen += 1;
        }
        let in_use = pool.in_use();
        m1.transmit(&mut batch).unwrap();
        m1.flush().unwrap();
        // The sent frames are the received ones: no frame was allocated for a copy.
        assert!(batch.is_empty() && pool.in_use() <= in_use);
    }
    assert_eq!(seen, 1);
    assert!(capture.finish().unwrap().contains("ICMP echo request"));
    for device in [m0, m1] {
        drop(device);
    }
    Pool::flush_thread();
    assert_eq!(pool.in_use(), 0);
}

/// Forwards packets, at most 32 at once, until `expected` have been forwarded, and 20 ms longer;
/// returns their number.
fn forward_packets(from: &mut AfXdp, to: &mut AfXdp, expected: usize) -> usize {
    let (began, mut all, mut more) = (Instant::now(), 0, 20);
    while more > 0 && began.elapsed() < Duration::from_secs(10) {
        let count = from.forward(to, 32).packets as usize;
        assert!(count <= 32);
        all += count;
        more -= usize::from(all >= expected);
        std::thread::sleep(Duration::from_millis(1));
    }
    all
}

/// Returns the length of the next packet that is received.
fn next(device: &mut AfXdp, pool: &Pool) -> usize {
    let (began, mut batch) = (Instant::now(), Batch::new());
    while batch.is_empty() && began.elapsed() < Duration::from_secs(10) {
        device.receive(pool, &mut batch, 1).unwrap();
    }
    batch.iter().map(Packet::len).sum()
}

#[test]
fn descriptors_alone_pass_what_is_whole_and_fits() {
    let net = test_network("xpass");
    net.a.ip("link set eth0 mtu 3000").unwrap();
    net.middle.ip("link set m0 mtu 3000").unwrap();
    let pool = pool();
    let mut m0 = open(&net.middle, "m0", &pool).unwrap();
    let mut m1 = open(&net.middle, "m1", &pool).unwrap();
    let mut sender = open(&net.a, "eth0", &Pool::new(PoolConfig::default()).unwrap()).unwrap();
    let mut send = |lengths: &[usize]| {
        let packets = lengths.iter().map(|&len| Packet::from_bytes(&vec![0xee; len]));
        assert_eq!(sender.transmit(&mut packets.collect()).unwrap(), lengths.len());
        sender.flush().unwrap();
    };
    assert_eq!(forward_packets(&mut m0, &mut m1, 0), 0);
    send(&[60; 40]);
    let in_use = pool.in_use();
    assert_eq!(forward_packets(&mut m0, &mut m1, 40), 40);
    // 1519 bytes exceed m1's MTU; 2500 bytes occupy two frames.
    send(&[60, 1519, 61, 2500, 62]);
    assert_eq!(forward_packets(&mut m0, &mut m1, 1), 1);
    assert_eq!(next(&mut m0, &pool), 1519);
    assert_eq!(forward_packets(&mut m0, &mut m1, 1), 1);
    assert_eq!(next(&mut m0, &pool), 2500);
    assert_eq!(forward_packets(&mut m0, &mut m1, 1), 1);
    let (from, to) = (m0.stats(), m1.stats());
    assert_eq!((from.received, from.received_bytes), (45, 43 * 60 + 1 + 2 + 1519 + 2500));
    assert_eq!((to.sent, to.sent_bytes, to.tx_errors), (43, 43 * 60 + 1 + 2, 0));
    // Sent frames are free to receive into again.
    assert!(pool.in_use() <= in_use, "{} of {in_use}", pool.in_use());
    // If the link is down, or the devices use different pools, all packets are for `receive`.
    net.middle.ip("link set m1 down").unwrap();
    send(&[60]);
    assert_eq!(forward_packets(&mut m0, &mut m1, 1), 1);
    send(&[60]);
    assert_eq!(forward_packets(&mut m0, &mut m1, 0), 0);
    drop(m1);
    net.middle.ip("link set m1 up").unwrap();
    let mut other = open(&net.middle, "m1", &Pool::new(PoolConfig::default()).unwrap()).unwrap();
    assert_eq!(forward_packets(&mut m0, &mut other, 0), 0);
    assert_eq!(next(&mut m0, &pool), 60);
    drop((m0, other));
    Pool::flush_thread();
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_handful_of_frames_is_enough_to_go_on() {
    let net = test_network("xfew");
    let frames = Pool::new(PoolConfig { frames: 8, ..PoolConfig::default() }).unwrap();
    let bridge = bridge_with(&net.middle, frames);
    // More packets at once than there are frames: only packets are lost.
    let flood = ["-q", "-f", "-c", "2000", "-l", "64", "-w", "10", "10.9.0.2"];
    net.a.command("ping").args(flood).output().unwrap();
    let ping = net.a.command("ping").args(["-c", "10", "-i", "0.05", "-q", "10.9.0.2"]);
    let output = ping.check().unwrap();
    assert!(output.stdout.contains("10 received"), "{}", output.stdout);
    let stats = bridge.finish();
    assert!(stats[0].kernel_drops > 0, "{stats:?}");
}

#[test]
fn packets_longer_than_a_frame_lie_in_several() {
    let net = test_network("xjumbo");
    for (namespace, name) in
        [(&net.a, "eth0"), (&net.middle, "m0"), (&net.middle, "m1"), (&net.b, "eth0")]
    {
        namespace.ip(&format!("link set {name} mtu 9000")).unwrap();
    }
    let pool = pool();
    let devices = ["m0", "m1"].map(|name| open(&net.middle, name, &pool).unwrap());
    assert!(devices[0].describe().contains(", packets in several frames"));
    let devices = devices.map(|device| Box::new(device) as Box<dyn Device>);
    let bridge = Forwarder::with(devices, pool.clone());
    for size in ["64", "1400", "2000", "3800", "8972"] {
        // For the last answer `ping` waits no longer than the interval between two packets.
        let ping = net.a.command("ping").args(["-c", "5", "-i", "0.2", "-M", "do", "-s", size]);
        let output = ping.args(["-q", "10.9.0.2"]).check().unwrap();
        assert!(output.stdout.contains("5 received"), "{size}: {}", output.stdout);
    }
    let file = net.lab.random_file("random", 20).unwrap();
    let _server = net.b.serve("10.9.0.2", 8000).unwrap();
    let fetched = net.a.fetch("http://10.9.0.2:8000/random", Duration::from_secs(30)).unwrap();
    assert_eq!((fetched.bytes, fetched.sha256), (file.bytes, file.sha256));
    let stats = bridge.finish();
    assert_eq!([stats[0].tx_errors, stats[1].tx_errors], [0, 0], "{stats:?}");
    assert!(stats[1].received_bytes / stats[1].received > 3000, "{stats:?}");
    Pool::flush_thread();
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn the_driver_can_be_polled_busily() {
    let net = test_network("xbusy");
    let pool = pool();
    let options = Options { busy_poll: 64, ..Options::default() };
    let device = |name| open_with(&net.middle, name, &pool, options.clone()).unwrap();
    let devices = ["m0", "m1"].map(device);
    assert!(devices[0].describe().ends_with(", polled busily, XDP program in the driver"));
    let devices = devices.map(|device| Box::new(device) as Box<dyn Device>);
    let bridge = Forwarder::with(devices, pool.clone());
    let ping = net.a.command("ping").args(["-c", "50", "-i", "0.02", "-q", "10.9.0.2"]);
    let output = ping.check().unwrap();
    assert!(output.stdout.contains("50 received"), "{}", output.stdout);
    bridge.finish();
}

#[test]
fn packets_that_the_link_cannot_carry_are_refused() {
    let net = test_network("xlong");
    let pool = pool();
    let mut device = open(&net.middle, "m0", &pool).unwrap();
    let mut batch: Batch =
        [13, 14, 1518, 1519].map(|len| Packet::from_bytes(&vec![0; len])).into_iter().collect();
    assert_eq!(device.transmit(&mut batch).unwrap(), 2);
    device.flush().unwrap();
    let stats = device.stats();
    assert_eq!((stats.sent, stats.sent_bytes, stats.tx_errors), (2, 14 + 1518, 2), "{stats:?}");
    assert!(batch.is_empty());
    net.middle.ip("link set m0 down").unwrap();
    // The first packet finds the link down, the second is rejected for it.
    for _ in 0..2 {
        batch.push(Packet::from_bytes(&[0; 60]));
        device.transmit(&mut batch).unwrap();
        device.flush().unwrap();
    }
    assert_eq!(device.stats().tx_errors, 3, "{:?}", device.stats());
    net.middle.ip("link set m0 up").unwrap();
    batch.push(Packet::from_bytes(&[0; 60]));
    assert_eq!(device.transmit(&mut batch).unwrap(), 1);
}

#[test]
fn a_changed_mtu_is_the_one_that_counts() {
    let net = test_network("xmtu");
    let pool = pool();
    let mut device = open(&net.middle, "m0", &pool).unwrap();
    let sent = |device: &mut AfXdp, len: usize| {
        let mut batch: Batch = [Packet::from_bytes(&vec![0; len])].into_iter().collect();
        let sent = device.transmit(&mut batch).unwrap();
        assert!(batch.is_empty());
        sent
    };
    assert_eq!((sent(&mut device, 1518), sent(&mut device, 1519)), (1, 0));
    net.middle.ip("link set m0 mtu 1600").unwrap();
    assert_eq!((sent(&mut device, 1618), sent(&mut device, 1619)), (1, 0));
    net.middle.ip("link set m0 mtu 1000").unwrap();
    // A `receive` without packets detects the new MTU.
    let mut batch = Batch::new();
    while device.receive(&pool, &mut batch, 32).unwrap() > 0 {}
    assert_eq!((sent(&mut device, 1018), sent(&mut device, 1019)), (1, 0));
    assert_eq!((device.stats().sent, device.stats().tx_errors), (3, 3));
}
