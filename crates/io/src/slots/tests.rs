//! Tests of slot channels in one process: both ends, their wake-ups, a peer that ends or lies.

use super::endpoint::Endpoint;
use super::layout::SlotDescriptor;
use super::link::{Link, receive_memory};
use super::*;
use crate::sys::is_readable;
use crate::sys::shared_slots::SharedMemory;
use castanet_packet::{Packet, PacketType, PoolConfig};
use proptest::prelude::*;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

const GEOMETRY: Geometry = Geometry { slots: 8, stride: 192 };

fn pool() -> Pool {
    Pool::new(PoolConfig { frames: 1024, ..PoolConfig::default() }).unwrap()
}

/// A socket file of a test, removed at its end.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(name: &str) -> SocketPath {
        let name = format!("castanet-slots-{name}-{}", std::process::id());
        SocketPath(std::env::temp_dir().join(name))
    }

    fn endpoint(&self, is_client: bool) -> Arc<Endpoint> {
        let path = self.0.to_str().unwrap().to_owned();
        Arc::new(
            Endpoint::new(SlotOptions { path, is_client, is_passed: false, geometry: GEOMETRY })
                .unwrap(),
        )
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// Both directions of an endpoint.
fn devices(endpoint: &Arc<Endpoint>) -> (SlotDevice, SlotDevice) {
    let device = |direction| SlotDevice::new(endpoint.clone(), direction);
    (device(Direction::Receive), device(Direction::Send))
}

fn batch(range: std::ops::Range<u8>) -> Batch {
    range.map(|n| Packet::from_bytes(&[n; 60])).collect()
}

fn receive(device: &mut SlotDevice, pool: &Pool) -> Vec<u8> {
    let mut batch = Batch::new();
    let n = device.receive(pool, &mut batch, 64).unwrap();
    assert_eq!(n, batch.len());
    batch.iter().map(|packet| packet.bytes()[0]).collect()
}

/// A connected server and client.
fn connected(path: &SocketPath) -> [(SlotDevice, SlotDevice); 2] {
    let (server, client) = (path.endpoint(false), path.endpoint(true));
    let [mut server, mut client] = [devices(&server), devices(&client)];
    assert!(!client.0.attach() && server.0.attach() && client.0.attach());
    assert!(server.1.attach() && client.1.attach());
    [server, client]
}

/// Waits until the pause after a peer is over.
fn attach_after_pause(device: &mut SlotDevice) {
    while !device.attach() {
        std::thread::sleep(device.retry_in().unwrap_or_default());
    }
}

#[test]
fn packets_cross_with_their_annotations_in_both_directions() {
    let (path, pool) = (SocketPath::new("cross"), pool());
    let [(mut server_rx, mut server_tx), (mut client_rx, mut client_tx)] = connected(&path);
    for round in 0..100u8 {
        let mut there = batch(round..round + 5);
        for packet in there.iter_mut() {
            packet.set_paint(round);
            packet.set_packet_type(PacketType::Multicast);
            packet.set_timestamp(i64::from(round) << 40);
        }
        assert_eq!(server_tx.transmit(&mut there).unwrap(), 5);
        let mut got = Batch::new();
        assert_eq!(client_rx.receive(&pool, &mut got, 64).unwrap(), 5);
        for (n, packet) in (round..).zip(got.iter()) {
            assert_eq!(packet.bytes(), [n; 60]);
            assert_eq!((packet.paint(), packet.packet_type()), (round, PacketType::Multicast));
            assert_eq!(packet.timestamp(), i64::from(round) << 40);
        }
        assert_eq!(client_tx.transmit(&mut got).unwrap(), 5);
        assert_eq!(receive(&mut server_rx, &pool), (round..round + 5).collect::<Vec<_>>());
    }
    let sums = (server_rx.stats().received, server_rx.stats().received_bytes);
    assert_eq!(sums, (500, 30_000));
}

#[test]
fn a_full_ring_takes_no_more_and_long_packets_are_refused() {
    let (path, pool) = (SocketPath::new("full"), pool());
    let [(_, mut tx), (mut rx, _)] = connected(&path);
    let mut packets = batch(0..20);
    packets.push(Packet::from_bytes(&[]));
    packets.push(Packet::from_bytes(&[9; 177]));
    packets.push(Packet::from_bytes(&[8; 176]));
    assert_eq!(tx.transmit(&mut packets).unwrap(), 8);
    assert_eq!((packets.len(), tx.stats().tx_full), (15, 1));
    assert_eq!(receive(&mut rx, &pool), (0..8).collect::<Vec<_>>());
    assert_eq!(tx.transmit(&mut packets).unwrap(), 8);
    assert_eq!(receive(&mut rx, &pool), (8..16).collect::<Vec<_>>());
    assert_eq!(tx.transmit(&mut packets).unwrap(), 5);
    assert_eq!((packets.len(), tx.stats().tx_errors), (0, 2));
    assert_eq!(receive(&mut rx, &pool), [16, 17, 18, 19, 8]);
}

#[test]
fn only_a_peer_that_sleeps_is_woken_and_once() {
    let (path, pool) = (SocketPath::new("wake"), pool());
    let [(_, mut tx), (mut rx, _)] = connected(&path);
    let fd = rx.fd().unwrap();
    assert!(receive(&mut rx, &pool).is_empty());
    tx.transmit(&mut batch(0..1)).unwrap();
    assert!(!is_readable(fd));
    // Packets that came before it sleeps keep it awake.
    assert!(!rx.may_sleep());
    assert_eq!(receive(&mut rx, &pool), [0]);
    assert!(receive(&mut rx, &pool).is_empty() && rx.may_sleep());
    tx.transmit(&mut batch(1..2)).unwrap();
    assert!(is_readable(fd));
    assert_eq!(receive(&mut rx, &pool), [1]);
    // The doorbell is read where the ring is found empty.
    assert!(receive(&mut rx, &pool).is_empty() && !is_readable(fd));
    tx.transmit(&mut batch(2..3)).unwrap();
    assert!(!is_readable(fd));
}

#[test]
fn packets_of_a_peer_that_has_ended_are_received_and_a_new_peer_connects() {
    let (path, pool) = (SocketPath::new("end"), pool());
    let [(mut rx, mut tx), (client_rx, mut client_tx)] = connected(&path);
    assert!(receive(&mut rx, &pool).is_empty() && rx.may_sleep());
    client_tx.transmit(&mut batch(0..3)).unwrap();
    tx.transmit(&mut batch(0..2)).unwrap();
    drop((client_rx, client_tx));
    assert!(is_readable(rx.fd().unwrap()));
    assert_eq!(receive(&mut rx, &pool), [0, 1, 2]);
    // The doorbell and the end are one event for a worker: one look finds both.
    assert!(receive(&mut rx, &pool).is_empty());
    assert!(!tx.attach());
    assert_eq!(tx.losses().unread, 2);
    assert!(rx.retry_in().is_some_and(|it| it <= Duration::from_millis(100)));
    let messages = rx.take_messages();
    assert!(messages[0].ends_with(": a peer is connected"), "{messages:?}");
    assert!(messages[1].ends_with(": the peer has gone"), "{messages:?}");
    let client = path.endpoint(true);
    let (mut client_rx, _) = devices(&client);
    assert!(!client_rx.attach());
    attach_after_pause(&mut rx);
    assert!(tx.attach() && client_rx.attach());
    tx.transmit(&mut batch(5..7)).unwrap();
    assert_eq!(receive(&mut client_rx, &pool), [5, 6]);
    assert_eq!(rx.connections(), 2);
}

#[test]
fn an_element_that_follows_another_goes_on_where_it_stopped() {
    let (path, pool) = (SocketPath::new("swap"), pool());
    let (server, client) = (path.endpoint(false), path.endpoint(true));
    let [(mut rx, _), (_, mut tx)] = [devices(&server), devices(&client)];
    assert!(!tx.attach() && rx.attach() && tx.attach());
    tx.transmit(&mut batch(0..4)).unwrap();
    let mut first = Batch::new();
    assert_eq!(rx.receive(&pool, &mut first, 2).unwrap(), 2);
    let (mut next, _) = devices(&server);
    assert!(!next.attach(), "the first element has the ring");
    drop(rx);
    assert_eq!(receive(&mut next, &pool), [2, 3]);
}

/// A link, and the memory as its peer has it.
fn link_and_peer() -> (Link, UnixStream, SharedMemory) {
    let (socket, peer) = UnixStream::pair().unwrap();
    let link = Link::create(socket, GEOMETRY).unwrap();
    let file = receive_memory(&peer).unwrap();
    let memory = SharedMemory::map(file.as_fd(), GEOMETRY.bytes()).unwrap();
    (link, peer, memory)
}

/// The offset of the ring of the peer's packets: both are in pages of their own.
const PEERS_RING: usize = 4096 + 4096;

#[test]
fn wrong_slots_cost_their_packets_by_name() {
    let ((link, _peer, memory), pool) = (link_and_peer(), pool());
    let slots = [(0, 0), (60, 0), (177, 0), (60, 6), (u32::MAX, 0), (176, 4)];
    for (n, (len, kind)) in slots.into_iter().enumerate() {
        let words = SlotDescriptor { len, paint: 0, kind, timestamp: 0 }.words();
        let at = PEERS_RING + 512 + n * 192;
        assert!(memory.write(at, &words[0].to_le_bytes()));
    }
    assert!(memory.write(PEERS_RING, &6u32.to_le_bytes()));
    let (mut consumer, mut batch) = (link.take_consumer().unwrap(), Batch::new());
    let count = consumer.receive(&pool, &mut batch, 64).unwrap();
    assert_eq!(
        (count.received, count.bytes, count.errors.length, count.errors.kind),
        (2, 236, 3, 1)
    );
}

#[test]
fn ends_that_are_moved_too_far_are_faults() {
    let ((link, _peer, memory), pool) = (link_and_peer(), pool());
    let (mut consumer, mut producer) =
        (link.take_consumer().unwrap(), link.take_producer().unwrap());
    memory.write(PEERS_RING, &9u32.to_le_bytes());
    assert!(consumer.receive(&pool, &mut Batch::new(), 64).is_err());
    assert!(!consumer.may_sleep());
    assert_eq!(producer.send(batch(0..8).as_slice()).unwrap().sent, 8);
    // The peer says that it has taken a packet that it was never given.
    memory.write(4096 + 256, &9u32.to_le_bytes());
    assert!(producer.send(batch(0..1).as_slice()).is_err() && producer.waiting().is_err());
}

#[test]
fn memory_that_could_shrink_or_has_another_layout_is_refused() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let seals = SealFlags::SHRINK | SealFlags::GROW;
    for (header, bytes, seals, text) in [
        (GEOMETRY.header(), GEOMETRY.bytes(), SealFlags::GROW, "not sealed"),
        (GEOMETRY.header(), GEOMETRY.bytes() - 1, seals, "no layout"),
        (GEOMETRY.header(), 10, seals, "no layout"),
        ([0; 24], GEOMETRY.bytes(), seals, "no layout"),
    ] {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("test", flags).unwrap();
        ftruncate(&file, bytes as u64).unwrap();
        rustix::io::pwrite(&file, &header[..header.len().min(bytes)], 0).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        let (socket, peer) = UnixStream::pair().unwrap();
        link::send_memory(&peer, &file).unwrap();
        let Err((_, error)) = Link::join(socket) else { panic!("joined") };
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn a_peer_that_lies_is_disconnected_and_another_one_served() {
    let (path, pool) = (SocketPath::new("liar"), pool());
    let (mut rx, mut tx) = devices(&path.endpoint(false));
    let peer = UnixStream::connect(&path.0).unwrap();
    assert!(rx.attach() && tx.attach());
    let file = receive_memory(&peer).unwrap();
    let memory = SharedMemory::map(file.as_fd(), GEOMETRY.bytes()).unwrap();
    memory.write(PEERS_RING, &u32::MAX.to_le_bytes());
    assert!(receive(&mut rx, &pool).is_empty());
    assert_eq!(rx.losses().ring_faults, 1);
    assert!(!tx.attach() && !rx.attach());
    assert!(rx.describe().ends_with("no peer; waits for one to connect"));
    // The next one floods the doorbell.
    let peer = UnixStream::connect(&path.0).unwrap();
    attach_after_pause(&mut rx);
    rustix::net::send(&peer, &[0; 5000], rustix::net::SendFlags::empty()).unwrap();
    assert!(receive(&mut rx, &pool).is_empty());
    assert_eq!(rx.losses().ring_faults, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_hostile_peer_breaks_nothing(script in proptest::collection::vec(any::<u8>(), 0..1200)) {
        run_hostile_peer(&script).unwrap();
    }
}

/// A channel of this test whose connections are passed.
fn passed(name: &str, is_client: bool) -> (String, SlotOptions) {
    let path = format!("{name}-{}", std::process::id());
    (path.clone(), SlotOptions { path, is_client, is_passed: true, geometry: GEOMETRY })
}

#[test]
fn passed_connections_wake_sleepers_and_replace_each_other() {
    let pool = pool();
    let (maker_name, maker) = passed("passed-maker", false);
    let maker = endpoint::open(&maker).unwrap();
    let (mut maker_rx, mut maker_tx) = devices(&maker);
    assert!(maker_rx.may_sleep() && !is_connected(&maker_name));
    assert_eq!(maker_rx.retry_in(), None);
    let mut former: Option<Arc<Endpoint>> = None;
    for round in 0..2u8 {
        let (near, far) = UnixStream::pair().unwrap();
        let (joiner_name, joiner) = passed(&format!("passed-joiner{round}"), true);
        // The connection comes before the elements here, and after them at the maker.
        pass(&joiner_name, far).unwrap();
        pass(&maker_name, near).unwrap();
        let joiner = endpoint::open(&joiner).unwrap();
        let (mut joiner_rx, mut joiner_tx) = devices(&joiner);
        let mut packets = batch(round..round + 3);
        assert_eq!(joiner_tx.transmit(&mut packets).unwrap(), 3);
        // The maker has not looked at the channel since, and is woken.
        assert!(is_readable(maker.raw_fd()));
        let mut received = Vec::new();
        for _ in 0..4 {
            received.extend(receive(&mut maker_rx, &pool));
            assert!(!received.is_empty() || !maker_rx.may_sleep(), "it would sleep for ever");
        }
        assert_eq!(received, [round, round + 1, round + 2]);
        assert_eq!(maker_tx.transmit(&mut batch(7..8)).unwrap(), 1);
        assert_eq!(receive(&mut joiner_rx, &pool), [7]);
        assert!(is_connected(&maker_name));
        former = Some(joiner);
    }
    drop(former);
    while maker_rx.attachment.is_some() {
        assert!(receive(&mut maker_rx, &pool).is_empty());
        maker_rx.may_sleep();
    }
    assert!(!is_connected(&maker_name));
}
