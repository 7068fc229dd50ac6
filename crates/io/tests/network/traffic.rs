//! Tests of the kernel's traffic sources and sinks, and of the minimal forwarder between them.

use crate::{TestNetwork, test_network};
use castanet_io::Device;
use castanet_io::IoError;
use castanet_io::af_xdp::MinimalForwarder;
use castanet_io::af_xdp::{AfXdp, Options};
use castanet_io::interface::Interface;
use castanet_io::traffic::{Shortcut, Sink, Source, frame};
use castanet_lab::Namespace;
use castanet_packet::{Batch, Pool, PoolConfig};
use castanet_wire::{Ethernet, Ipv4Header, Udp};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Fewer packets than a veth pair's ring holds, so that none is lost.
const FEW: u32 = 200;

/// Length of the headers before the payload.
const HEADERS: usize = Ethernet::LEN + size_of::<Ipv4Header>() + size_of::<Udp>();

/// Runs a function in a namespace and unwraps its result.
fn in_namespace<T: Send + 'static>(
    namespace: &Namespace,
    run: impl FnOnce() -> Result<T, IoError> + Send + 'static,
) -> T {
    let done = namespace.enter(move || Ok(run().map_err(|error| error.to_string())));
    done.join().unwrap().unwrap().unwrap()
}

/// Creates a source that sends from the first host to the middle.
fn source(net: &TestNetwork) -> Arc<Source> {
    let to = in_namespace(&net.middle, || Interface::find("m0")).ether.unwrap();
    Arc::new(in_namespace(&net.a, move || {
        let from = Interface::find("eth0")?.ether.unwrap();
        let mut frame = frame(to, from);
        frame[HEADERS..].fill(0x5a);
        Source::new("eth0", &frame)
    }))
}

fn send(net: &TestNetwork, source: &Arc<Source>, packets: u32) {
    let source = Arc::clone(source);
    in_namespace(&net.a, move || source.send(packets));
}

/// Waits until the sink has counted this number, and 20 ms for surplus packets.
fn await_count(sink: &Sink, packets: u64) {
    let began = Instant::now();
    while sink.count().unwrap() < packets && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(sink.count().unwrap(), packets);
}

#[test]
fn packets_come_as_they_were_made_each_time() {
    let net = test_network("tsource");
    let source = source(&net);
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let theirs = pool.clone();
    let mut device =
        in_namespace(&net.middle, move || AfXdp::open("m0", &theirs, Options::default()));
    let mut destinations = Vec::new();
    // The kernel returns frames as the program left them, and uses them again.
    for _ in 0..5 {
        send(&net, &source, FEW);
        let (began, mut batch) = (Instant::now(), Batch::new());
        while batch.len() < FEW as usize && began.elapsed() < Duration::from_secs(10) {
            device.receive(&pool, &mut batch, 64).unwrap();
        }
        assert_eq!(batch.len(), FEW as usize);
        for packet in batch.iter_mut() {
            let bytes = packet.bytes_mut();
            assert_eq!((bytes.len(), bytes[63]), (64, 0x5a));
            let (ip, _) = Ipv4Header::from_prefix(&bytes[Ethernet::LEN..]).unwrap();
            assert!(ip.checksum_ok(&[]) && ip.ttl() == 64, "{bytes:?}");
            assert_eq!(ip.src_u32() & 0xffff, !ip.dst_u32() & 0xffff);
            destinations.push(ip.dst_u32());
        }
    }
    destinations.sort_unstable();
    destinations.dedup();
    assert!(destinations.len() > 900, "{}", destinations.len());
}

/// Copies the descriptors of all programs attached to interfaces, as a child process holds them
/// between fork and exec.
fn copy_link_descriptors() -> Vec<OwnedFd> {
    let myself = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_link = |path: &PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_default();
        target.to_str().is_some_and(|it| it.starts_with("anon_inode:") && it.contains("bpf_link"))
    };
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let numbers: Vec<i32> = entries.filter(is_link).filter_map(number).collect();
    // Another test may have closed the descriptor meanwhile.
    let copy = |fd| pidfd_getfd(&myself, fd, PidfdGetfdFlags::empty()).ok();
    numbers.into_iter().filter_map(copy).collect()
}

#[test]
fn an_interface_is_free_at_once_despite_copies_of_its_descriptors() {
    let net = test_network("tfree");
    let first = source(&net);
    let copies = copy_link_descriptors();
    assert!(!copies.is_empty());
    drop(first);
    drop(source(&net));
}

#[test]
fn the_driver_redirects_packets_while_a_shortcut_exists() {
    let net = test_network("tshort");
    let source = source(&net);
    let sink = in_namespace(&net.b, || Sink::new("eth0"));
    send(&net, &source, FEW);
    await_count(&sink, 0);
    let shortcut = in_namespace(&net.middle, || Shortcut::new("m0", "m1"));
    send(&net, &source, FEW);
    await_count(&sink, u64::from(FEW));
    drop(shortcut);
    send(&net, &source, FEW);
    await_count(&sink, u64::from(FEW));
}

#[test]
fn the_minimal_forwarder_loses_nothing_and_uses_each_frame_again() {
    let net = test_network("tminimal");
    let source = source(&net);
    let sink = in_namespace(&net.b, || Sink::new("eth0"));
    let mut minimal = in_namespace(&net.middle, || MinimalForwarder::open("m0", "m1"));
    let stop = Arc::new(AtomicBool::new(false));
    let sign = Arc::clone(&stop);
    let thread = std::thread::spawn(move || minimal.run(&sign));
    // More packets than the forwarder has frames.
    for round in 1..=20 {
        send(&net, &source, FEW);
        await_count(&sink, round * u64::from(FEW));
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().unwrap().unwrap(), 20 * u64::from(FEW));
}
