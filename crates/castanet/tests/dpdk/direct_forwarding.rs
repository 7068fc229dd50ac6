//! Bursts that pass from one port to the next, directly or by a queue, count as if other elements lay between.

use super::{capture, number, packets, pcap, run, save};
use crate::program::{castanet, folder};

/// Handlers of each port that are read at the end.
const HANDLERS: [&str; 9] = [
    "f.count",
    "f.byte_count",
    "f.no_frame_drops",
    "t.count",
    "t.byte_count",
    "t.dropped",
    "t.drops.refused",
    "t.drops.full",
    "i.pool_count",
];

/// The numbers of all handlers but the last, of packets that pass by `between`, and how many mbufs
/// are free then.
fn numbers(devices: &str, between: &str, how: &str, until: &str) -> (Vec<u64>, u64) {
    let config = format!(
        "i :: DPDKInfo(2048); f :: FromDPDKDevice(0) {between} -> t :: ToDPDKDevice({how});
         Script(label again, wait 10ms, goto again $(lt {until}), wait 20ms, stop)"
    );
    let output = run(devices, &config, &HANDLERS);
    let pool = output.split("i.pool_count:\n0 ").nth(1).and_then(|it| it.lines().next());
    let free: u64 = pool.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{output}"));
    (HANDLERS[..8].iter().map(|it| number(&output, it)).collect(), free)
}

#[test]
fn adjacent_ports_carry_the_same_as_with_an_element_between() {
    // Some come in several mbufs, and are longer than this port sends, some are no Ethernet frames,
    // and are sent like others.
    let lengths = (0..2500).map(|n| if n % 100 == 75 { 3000 } else { 14 + n * 37 % 1700 });
    let (_, mut sent) = capture("straight", lengths);
    sent.iter_mut().skip(30).step_by(250).for_each(|packet| packet.truncate(13));
    let from = save("straight", &sent);
    let to = |name: &str| folder("dpdk").join(format!("straight-{name}.pcap"));
    let pass = |name: &str, between: &str| {
        let count = "$(add $(t.count) $(t.drops.refused)) 2500";
        let (numbers, free) = numbers(&pcap(&from, &to(name)), between, "0", count);
        // All are back, but for those in the caches of workers.
        assert!(free >= 1024, "{free}");
        (numbers, packets(&to(name)))
    };
    let (straight, there) = pass("next", "");
    let (seen, through) = pass("between", "-> Null");
    assert_eq!(straight, seen);
    assert!(there == through, "other packets");
    let fit: Vec<_> = sent.iter().filter(|it| it.len() < 3000).cloned().collect();
    assert!(there == fit && fit.len() == 2475, "{} packets", there.len());
    let bytes = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(straight, [2500, bytes(&sent), 0, 2475, bytes(&fit), 25, 25, 0]);
}

#[test]
fn packets_without_room_behind_others_wait_or_are_dropped() {
    let (from, _) = capture("straight-full", (0..3000).map(|n| 60 + n % 100));
    let devices = format!("--vdev net_pcap0,rx_pcap={} --vdev net_ring0", from.display());
    // No process takes the packets out of the ring.
    let pass = |between| {
        let how = "1, NDESC 512, IQUEUE 100, BLOCKING false";
        numbers(&devices, between, how, "$(f.count) 3000").0
    };
    let (straight, seen) = (pass(""), pass("-> Null"));
    assert_eq!(straight, seen);
    let [received, sent, dropped] = [0, 3, 7].map(|at| straight[at]);
    assert_eq!((received, sent + 100 + dropped, dropped), (3000, 3000, straight[5]));
    assert!(sent > 0 && dropped > 0, "{straight:?}");
}

#[test]
fn counters_between_ports_count_packets_that_pass_directly() {
    // Some are longer than this port sends, or come in several mbufs.
    let lengths = (0..2500).map(|n| if n % 100 == 75 { 3000 } else { 14 + n * 37 % 1700 });
    let (from, sent) = capture("counted", lengths);
    let to = folder("dpdk").join("counted-there.pcap");
    let count = |counters: &str| {
        let config = format!(
            "f :: FromDPDKDevice(0) {counters} -> t :: ToDPDKDevice(0);
             Script(label again, wait 10ms, goto again $(lt $(f.count) 2500), wait 20ms, stop)"
        );
        let handlers = ["c.count", "c.byte_count", "a.count", "a.byte_count", "t.count"];
        let output = run(&pcap(&from, &to), &config, &handlers);
        handlers.map(|it| number(&output, it))
    };
    let bytes = sent.iter().map(Vec::len).sum::<usize>() as u64;
    let expected = [2500, bytes, 2500, bytes, 2475];
    assert_eq!(count("-> c :: Counter -> a :: AverageCounter"), expected);
    // The element with which packets are looked at makes no difference.
    assert_eq!(count("-> c :: Counter -> Null -> a :: AverageCounter"), expected);
    let config = "FromDPDKDevice(0) -> Counter -> AverageCounter -> ToDPDKDevice(1)";
    let explanation = castanet(&["explain", "-e", config], b"").out;
    let line =
        "FromDPDKDevice@1 -> Counter@2 -> AverageCounter@3 -> ToDPDKDevice@4, without a look";
    assert!(explanation.contains(line), "{explanation}");
}

#[test]
fn a_queue_between_ports_is_emptied_as_fast_as_it_is_filled() {
    let (from, _) = capture("queued", (0..4000).map(|n| 60 + n % 100));
    let to = folder("dpdk").join("queued-there.pcap");
    for reader in ["-> Unqueue", ""] {
        let config = format!(
            "f :: FromDPDKDevice(0) -> q :: Queue(500) {reader} -> t :: ToDPDKDevice(0);
             Script(label again, wait 10ms, goto again $(lt $(f.count) 4000), wait 20ms, stop)"
        );
        let output = run(&pcap(&from, &to), &config, &["t.count", "q.drops"]);
        assert_eq!(["t.count", "q.drops"].map(|it| number(&output, it)), [4000, 0], "{reader}");
    }
}
