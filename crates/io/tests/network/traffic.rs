//! Packets that the kernel makes, counts and sends on, and the minimal forwarder between them.

use crate::{Between, between};
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

/// Fewer than a veth pair's ring holds, so that none is lost.
const FEW: u32 = 200;

/// What comes before the payload.
const HEADERS: usize = Ethernet::LEN + size_of::<Ipv4Header>() + size_of::<Udp>();

/// Does something in a namespace.
fn within<T: Send + 'static>(
    namespace: &Namespace,
    run: impl FnOnce() -> Result<T, IoError> + Send + 'static,
) -> T {
    let done = namespace.enter(move || Ok(run().map_err(|error| error.to_string())));
    done.join().unwrap().unwrap().unwrap()
}

/// Packets from the first host to the middle.
fn source(net: &Between) -> Arc<Source> {
    let to = within(&net.middle, || Interface::find("m0")).ether.unwrap();
    Arc::new(within(&net.a, move || {
        let from = Interface::find("eth0")?.ether.unwrap();
        let mut frame = frame(to, from);
        frame[HEADERS..].fill(0x5a);
        Source::new("eth0", &frame)
    }))
}

fn send(net: &Between, source: &Arc<Source>, packets: u32) {
    let source = Arc::clone(source);
    within(&net.a, move || source.send(packets));
}

/// Waits until that many have come, and a little for more.
fn counted(sink: &Sink, packets: u64) {
    let began = Instant::now();
    while sink.count().unwrap() < packets && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(sink.count().unwrap(), packets);
}

#[test]
fn packets_come_as_they_were_made_each_time() {
    let net = between("tsource");
    let source = source(&net);
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let theirs = pool.clone();
    let mut device = within(&net.middle, move || AfXdp::open("m0", &theirs, Options::default()));
    let mut destinations = Vec::new();
    // Frames come back as they were left, and are used again.
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

/// Copies of all descriptors by which programs are on interfaces, as a process has them that is
/// being started, until it is another program.
fn copies() -> Vec<OwnedFd> {
    let myself = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_link = |path: &PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_default();
        target.to_str().is_some_and(|it| it.starts_with("anon_inode:") && it.contains("bpf_link"))
    };
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let numbers: Vec<i32> = entries.filter(is_link).filter_map(number).collect();
    // Another test may have closed one meanwhile.
    let copy = |fd| pidfd_getfd(&myself, fd, PidfdGetfdFlags::empty()).ok();
    numbers.into_iter().filter_map(copy).collect()
}

#[test]
fn an_interface_is_free_at_once_whoever_has_copies_of_descriptors() {
    let net = between("tfree");
    let first = source(&net);
    let copies = copies();
    assert!(!copies.is_empty());
    drop(first);
    drop(source(&net));
}

#[test]
fn the_driver_sends_on_what_it_is_told_to() {
    let net = between("tshort");
    let source = source(&net);
    let sink = within(&net.b, || Sink::new("eth0"));
    send(&net, &source, FEW);
    counted(&sink, 0);
    let shortcut = within(&net.middle, || Shortcut::new("m0", "m1"));
    send(&net, &source, FEW);
    counted(&sink, u64::from(FEW));
    drop(shortcut);
    send(&net, &source, FEW);
    counted(&sink, u64::from(FEW));
}

#[test]
fn the_minimal_forwarder_loses_nothing_and_uses_each_frame_again() {
    let net = between("tminimal");
    let source = source(&net);
    let sink = within(&net.b, || Sink::new("eth0"));
    let mut minimal = within(&net.middle, || MinimalForwarder::open("m0", "m1"));
    let stop = Arc::new(AtomicBool::new(false));
    let sign = Arc::clone(&stop);
    let thread = std::thread::spawn(move || minimal.run(&sign));
    // More than it has frames.
    for round in 1..=20 {
        send(&net, &source, FEW);
        counted(&sink, round * u64::from(FEW));
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().unwrap().unwrap(), 20 * u64::from(FEW));
}
