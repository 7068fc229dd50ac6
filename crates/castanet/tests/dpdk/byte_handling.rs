//! Elements between two ports get the bytes of packets, without descriptors: they do to them what they do to packets.

use super::{capture, number, packets, pcap, run, save};
use crate::program::{castanet, folder};

/// Values of handlers and packets of the way `elements` to the port `t`, where elements get the bytes of packets, and
/// where `Null` has packets made of them.
fn both_ways(
    name: &str,
    sent: &[Vec<u8>],
    elements: &str,
    more: &[&str],
) -> [(Vec<u64>, Vec<Vec<u8>>); 2] {
    let from = save(name, sent);
    let is_refused = ["unstripped", "shortened", "unmarked"].contains(&name);
    ["", "-> Null"].map(|first| {
        let to = folder("dpdk").join(format!("{name}-there.pcap"));
        let config = format!(
            "DPDKInfo(4096); t :: ToDPDKDevice(0); Idle -> o :: Counter -> Discard;
             f :: FromDPDKDevice(0) {first} -> {elements};
             Script(label again, wait 10ms, goto again $(lt $(f.count) {}), wait 20ms, stop)",
            sent.len()
        );
        let fixed = ["f.count", "f.byte_count", "t.count", "t.byte_count", "t.dropped", "o.count"];
        let handlers = [&fixed, more].concat();
        let output =
            run(&pcap(&from, &to), &config, &[&handlers[..], &["f.direct_count"]].concat());
        // Which way the packets have gone.
        let direct = number(&output, "f.direct_count");
        assert!(direct == 0 || first.is_empty(), "{name}: {direct}");
        assert!(direct > 0 || !first.is_empty() || is_refused, "{name}: {elements}");
        (handlers.iter().map(|it| number(&output, it)).collect(), packets(&to))
    })
}

/// Asserts that both ways agree, and that so many packets come out at least.
fn agree(name: &str, sent: &[Vec<u8>], elements: &str, more: &[&str], least: usize) {
    let [bytes, seen] = both_ways(name, sent, elements, more);
    assert_eq!(bytes.0, seen.0, "{name}");
    assert!(bytes.1 == seen.1, "{name}: other packets");
    assert!(bytes.1.len() >= least, "{name}: {} packets", bytes.1.len());
}

/// Frames of many lengths. Early ones and late ones make their bursts unfit: too long to be sent, in several mbufs, no
/// Ethernet frames.
fn frames(name: &str) -> Vec<Vec<u8>> {
    let length = |n| if [900, 9000].contains(&n) { 3000 } else { 60 + n * 37 % 90 };
    let (_, mut sent) = capture(name, (0..12_000).map(length));
    [950, 9950].into_iter().for_each(|n| sent[n].truncate(13));
    sent
}

#[test]
fn addresses_are_exchanged() {
    let sent = frames("mirrored");
    let mirrored = |packet: &Vec<u8>| [&packet[6..12], &packet[..6], &packet[12..]].concat();
    let fit = |packet: &&Vec<u8>| (14..3000).contains(&packet.len());
    let [bytes, seen] = both_ways("mirrored", &sent, "EtherMirror -> t", &[]);
    assert_eq!(bytes.0, seen.0);
    assert!(bytes.1 == sent.iter().filter(fit).map(mirrored).collect::<Vec<_>>());
}

#[test]
fn frames_are_rewritten_classified_and_switched() {
    let sent = frames("bytes");
    let c = "EtherRewrite(1:2:3:4:5:6, 7:8:9:a:b:c) -> StoreData(20, \\<abcd>, MASK \\<f00f>) -> t";
    agree("rewritten", &sent, c, &[], 11_000);
    let c = "c :: Classifier(20/00%03 26/10%10, !21/00%01, -) -> m :: EtherMirror -> t; c[1] -> m; c[2] -> m";
    agree("classified", &sent, c, &[], 11_000);
    let c = "h :: HashSwitch(OFFSET 26, LENGTH 8) -> t; h[1] -> t; h[2] -> t; h[3] -> t";
    agree("switched", &sent, c, &[], 11_000);
    let c = "h :: HashSwitch(OFFSET 30, LENGTH 5) -> k :: Counter -> t; h[1] -> k; h[2] -> k";
    agree("folded", &sent, c, &["k.count", "k.byte_count"], 11_000);
    // One of 256 packets, and half of them, take another way.
    let c = "c :: Classifier(14/62, -) -> o; c[1] -> StoreData(18, \\<00112233>) -> t";
    agree("strayed", &sent, c, &[], 11_000);
    // A counter before packets leave has bytes of these, too.
    let c = "k :: Counter -> c :: Classifier(14/62, -) -> o; c[1] -> l :: Counter -> t";
    agree("counted", &sent, c, &["k.count", "k.byte_count", "l.byte_count"], 11_000);
    agree(
        "halved",
        &sent,
        "c :: Classifier(14/00%01, -) -> EtherMirror -> t; c[1] -> o",
        &[],
        5900,
    );
    // Bytes are stripped and restored, and those between count fewer.
    let c = "Strip(12) -> k :: Counter -> Strip(2) -> Unstrip(14) -> l :: AverageCounter -> t";
    agree("stripped", &sent, c, &["k.byte_count", "l.byte_count"], 11_000);
    // More are restored than were stripped, and fewer.
    agree(
        "unstripped",
        &sent,
        "Strip(4) -> Unstrip(14) -> StoreData(0, \\<00112233445566778899>) -> t",
        &[],
        11_000,
    );
    agree("shortened", &sent, "Strip(14) -> Unstrip(4) -> t", &[], 11_000);
}

/// The sum of RFC 1071.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let words =
        bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | it.get(1).map_or(0, |it| u32::from(*it)));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

/// Frame `n` of IPv4 with `options`, of a protocol, with `data` bytes of payload.
fn ipv4(n: usize, protocol: u8, options: &[u8], data: usize) -> Vec<u8> {
    let (udp, number) = (protocol == 17, (n as u16).to_be_bytes());
    let payload: Vec<u8> = (0..data).map(|at| (at * 7 + n) as u8).collect();
    let transport = if udp { 8 } else { 20 };
    let total = ((20 + options.len() + transport + data) as u16).to_be_bytes();
    let mut ip = vec![
        0x45 + options.len() as u8 / 4,
        0,
        total[0],
        total[1],
        number[0],
        number[1],
        0,
        0,
        64,
        protocol,
        0,
        0,
    ];
    ip.extend([20, number[0], 7, number[1], 2, 0, 0, 9]);
    ip.extend(options);
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum);
    let length = ((transport + data) as u16).to_be_bytes();
    let mut segment = vec![number[1], 80, 0, 53];
    match udp {
        true => segment.extend([length[0], length[1], 0, 0]),
        false => segment.extend([1, 2, 3, 4, 0, 0, 0, 0, 0x50, 16, 9, 9, 0, 0, 0, 0]),
    }
    segment.extend(payload);
    let at = if udp { 6 } else { 16 };
    let sum = checksum(&[&ip[12..20], &[0, protocol], &length, &segment]);
    segment[at..at + 2].copy_from_slice(&sum);
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(ip);
    frame.extend(segment);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Frames of a protocol, mostly right ones, some of them padded. Those of the middle are of all kinds.
fn datagrams(protocol: u8) -> Vec<Vec<u8>> {
    let one = |n: usize| {
        let mut frame = ipv4(n, protocol, &[], 10 + n * 31 % 70);
        match (4000..5000).contains(&n).then_some(n % 40) {
            Some(3) => frame[14 + 25] ^= 1,
            Some(7) => frame[14 + 23] ^= 1,
            Some(11) => frame[40] ^= 4,
            Some(13) => frame = ipv4(n, protocol ^ 23, &[], 40),
            Some(17) => frame = ipv4(n, protocol, &[7, 3, 4, 0], 40),
            Some(19) => frame = ipv4(n, protocol, &[1, 1, 1, 1], 1),
            Some(23) => frame.truncate(50),
            Some(29) => frame.truncate(30),
            Some(31) => frame[14] = 0x65,
            Some(37) => {
                // A fragment that is not the first.
                frame[20..22].copy_from_slice(&[0x20, 9]);
                frame[24..26].copy_from_slice(&[0, 0]);
                let sum = checksum(&[&frame[14..34]]);
                frame[24..26].copy_from_slice(&sum);
            }
            _ => {}
        }
        frame
    };
    (0..9000).map(one).collect()
}

#[test]
fn ip_packets_are_checked_and_filtered() {
    let sent = datagrams(17);
    let more = ["i.count", "i.drops", "u.count", "u.drops", "k.count", "k.byte_count"];
    let c = "Strip(14) -> i :: CheckIPHeader -> u :: CheckUDPHeader -> k :: Counter -> Unstrip(14) -> t";
    agree("checked", &sent, c, &more, 8500);
    // Behind `MarkIPHeader` packets keep their padding.
    let c = "MarkIPHeader(14) -> u :: CheckUDPHeader(CHECKSUM false) -> k :: Counter -> t";
    agree("marked", &sent, c, &["u.count", "u.drops", "k.byte_count"], 8500);
    let filter =
        "deny src host 20.16.7.9, deny src net 20.17.7.0/28 and dst port 53, allow udp, deny all";
    let c = format!("i :: CheckIPHeader(OFFSET 14) -> IPFilter({filter}) -> k :: Counter -> t");
    agree("filtered", &sent, &c, &["i.count", "i.drops", "k.count", "k.byte_count"], 8500);
    // The outputs of a classifier that reads link headers come together again; one does not.
    let c = "Strip(14) -> CheckIPHeader2 -> c :: IPClassifier(src port < 20, ip ttl < 3, ether src 2:0:0:0:0:1, -)
        -> n :: Unstrip(14) -> t; c[1] -> o; c[2] -> n; c[3] -> n";
    agree("divided", &sent, c, &[], 8500);
    let sent = datagrams(6);
    let c = "Strip(14) -> i :: CheckIPHeader(VERBOSE false) -> u :: CheckTCPHeader -> k :: Counter -> Unstrip(14) -> t";
    agree("tcp", &sent, c, &more, 8500);
    // Without a mark of their headers, no packet is IPv4's.
    agree("unmarked", &sent, "IPFilter(allow all) -> t", &[], 0);
}

/// Frames of UDP to eight hosts, some of which have too low a TTL.
fn routed_frames() -> Vec<Vec<u8>> {
    let mut sent = datagrams(17);
    for (n, frame) in sent.iter_mut().enumerate().filter(|(_, frame)| frame.len() >= 34) {
        let header = 14..(14 + usize::from(frame[14] & 15) * 4).min(frame.len());
        let is_right = checksum(&[&frame[header.clone()]]) == [0, 0];
        frame[33] = n as u8 % 8;
        frame[22] = if n % 50 == 0 { n as u8 / 50 % 2 } else { 64 };
        frame[24..26].copy_from_slice(&[0, u8::from(!is_right)]);
        let sum = checksum(&[&frame[header]]);
        frame[24..26].copy_from_slice(&sum);
    }
    sent
}

/// A router with these routes, each way of which ends in an Ethernet header of its own.
fn router(routes: &str, ways: u8) -> String {
    let way = |n: u8| {
        format!(
            "r[{n}] -> DropBroadcasts -> p{n} :: PaintTee(2) -> g{n} :: IPGWOptions(10.0.0.1)
               -> FixIPSrc(10.0.0.1) -> d{n} :: DecIPTTL -> m{n} :: IPFragmenter(1500) -> n{n} :: Counter
               -> EtherEncap(0x0800, 02:00:00:00:01:02, 02:00:00:00:02:{n:02}) -> t;
             p{n}[1] -> o; g{n}[1] -> o; d{n}[1] -> o; m{n}[1] -> o;"
        )
    };
    let ways: String = (0..ways).map(way).collect();
    format!(
        "c :: Classifier(12/0800, -) -> Strip(14) -> i :: CheckIPHeader -> r :: StaticIPLookup({routes});
         c[1] -> o; {ways}"
    )
}

#[test]
fn packets_are_routed() {
    let sent = routed_frames();
    let more = ["i.count", "i.drops", "d0.drops", "n0.count", "n0.byte_count"];
    agree("routed", &sent, &router("0.0.0.0/0 0", 1), &more, 8500);
    // Some have no route.
    agree("unrouted", &sent, &router("2.0.0.0/30 0, 2.0.0.5/32 2.0.0.9 0", 1), &more, 5300);
    // Routers of Click's users set the destination annotation by an element of its own.
    let annotated = router("2.0.0.0/30 0, 2.0.0.4/30 2.0.0.9 0", 1)
        .replace("CheckIPHeader", "CheckIPHeader(INTERFACES 2.0.0.1/24) -> GetIPAddress(16)");
    agree("annotated", &sent, &annotated, &more[2..], 8000);
    let routes = "2.0.0.0/30 0, 2.0.0.4/31 2.0.0.9 1, 2.0.0.6/32 2";
    let more = ["i.drops", "d1.drops", "n0.count", "n1.count", "n1.byte_count", "n2.byte_count"];
    let [bytes, seen] = both_ways("ways", &sent, &router(routes, 3), &more);
    assert_eq!(bytes.0, seen.0);
    // Packets of one way keep their order.
    for way in 0..3 {
        let of_way = |packet: &&Vec<u8>| packet[..6] == [2, 0, 0, 0, 2, way];
        let of = |all: &[Vec<u8>]| all.iter().filter(of_way).cloned().collect::<Vec<_>>();
        assert!(of(&bytes.1).len() > 1000 && of(&bytes.1) == of(&seen.1), "{way}");
    }
    assert_eq!(bytes.1.len(), seen.1.len());
}

/// The packets that three ports send of those that the first receives, where `begin` stands at its input, and how many go
/// without descriptors. `@` in the elements of each port's way is its number; `first` are commands before the packets.
fn routed_over_ports(
    name: &str,
    begin: &str,
    [output, querier]: [&str; 2],
    first: &str,
) -> (Vec<Vec<Vec<u8>>>, u64) {
    // Long runs to each port, and then a mixture.
    let host = |n: usize| match n {
        0..24_000 => (n / 8000) as u8,
        _ => (n % 4) as u8,
    };
    let mut sent: Vec<_> = (0..26_000).map(|n| ipv4(n, 17, &[], 10 + n * 31 % 70)).collect();
    for (n, frame) in sent.iter_mut().enumerate() {
        frame[33] = host(n);
        frame[24..26].fill(0);
        let sum = checksum(&[&frame[14..34]]);
        frame[24..26].copy_from_slice(&sum);
    }
    let from = save(name, &sent);
    let to = [0, 1, 2].map(|port| folder("dpdk").join(format!("{name}-{port}.pcap")));
    let devices = format!(
        "{} --vdev net_pcap1,tx_pcap={} --vdev net_pcap2,tx_pcap={}",
        pcap(&from, &to[0]),
        to[1].display(),
        to[2].display()
    );
    let way = |n: u8| {
        let way = format!("t@ :: ToDPDKDevice(@); q@ :: {querier} -> t@; r[@] -> {output} -> q@;");
        way.replace('@', &n.to_string())
    };
    let ways: String = (0..3).map(way).collect();
    let config = format!(
        "DPDKInfo(4096); o :: Counter -> Discard; f :: FromDPDKDevice(0, ACTIVE false) {begin} -> c :: Classifier(12/0806, 12/0800, -);
         c[0] -> o; c[2] -> o;
         c[1] -> Paint(9) -> Strip(14) -> CheckIPHeader
           -> r :: StaticIPLookup(2.0.0.0/32 0, 2.0.0.1/32 10.0.1.9 1, 2.0.0.2/32 2); {ways}
         Script(TYPE ACTIVE, {first} write f.active true, label again, wait 10ms, goto again $(lt $(f.count) 26000), wait 20ms, stop)",
    );
    let output = run(&devices, &config, &["f.count", "f.direct_count", "drops"]);
    assert_eq!(number(&output, "f.count"), 26_000, "{name}");
    (to.iter().map(|path| packets(path)).collect(), number(&output, "f.direct_count"))
}

#[test]
fn packets_are_routed_to_several_ports() {
    let combination = "e@ :: IPOutputCombo(3, 10.0.0.1, 1500); e@[1] -> o; e@[2] -> o; e@[3] -> o; e@[4] -> o; e@";
    let elements =
        "DropBroadcasts -> p@ :: PaintTee(3) -> g@ :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1)
        -> d@ :: DecIPTTL -> IPFragmenter(1500) -> q@; p@[1] -> o; g@[1] -> o; d@[1] -> o; Idle";
    let header = "EtherEncap(0x0800, 2:0:0:0:1:@, 2:0:0:0:9:9)";
    let querier = "ARPQuerier(10.0.0.1, 2:0:0:0:9:9); Idle -> [1] q@; q@";
    let addresses = "write q0.insert 2.0.0.0 2:0:0:0:1:0, write q1.insert 10.0.1.9 2:0:0:0:1:1,
        write q2.insert 2.0.0.2 2:0:0:0:1:2,";
    for (name, way, first) in [
        ("ports-combo", [combination, header], ""),
        ("ports-elements", [elements, header], ""),
        ("ports-arp", [elements, querier], addresses),
    ] {
        let [(bytes, direct), (seen, none)] =
            ["", "-> Null"].map(|begin| routed_over_ports(name, begin, way, first));
        assert_eq!(none, 0, "{name}");
        // Where the way changes, and in a mixture, the source makes packets for some runs.
        assert!(direct > 14_000, "{name}: {direct}");
        for (port, (bytes, seen)) in bytes.iter().zip(&seen).enumerate() {
            assert!(bytes == seen && bytes.len() > 8000, "{name}: {port}: {}", bytes.len());
        }
    }
}

#[test]
fn bytes_are_changed_once_where_packets_find_no_room() {
    let (from, _) = capture("bytes-full", (0..3000).map(|n| 60 + n % 100));
    let devices = format!("--vdev net_pcap0,rx_pcap={} --vdev net_ring0", from.display());
    let config = "i :: DPDKInfo(4096); f :: FromDPDKDevice(0) -> EtherMirror
             -> t :: ToDPDKDevice(1, NDESC 512, IQUEUE 5000, BLOCKING false);
         g :: FromDPDKDevice(1, ACTIVE false) -> c :: Classifier(0/020000000001, -) -> right :: Counter -> Discard;
         c[1] -> wrong :: Counter -> Discard;
         Script(wait 200ms, write g.active true, label again, wait 10ms,
                goto again $(lt $(add $(right.count) $(wrong.count)) 3000), stop)";
    let handlers = ["t.count", "t.dropped", "right.count", "wrong.count", "f.direct_count"];
    let output = run(&devices, config, &handlers);
    let [there @ .., direct] = handlers.map(|it| number(&output, it));
    assert_eq!(there, [3000, 0, 3000, 0]);
    assert!(direct > 0);
}

#[test]
fn explain_shows_where_elements_get_bytes() {
    let config = "FromDPDKDevice(0) -> c :: Classifier(12/0800, -) -> m :: EtherMirror -> t :: ToDPDKDevice(1);
        c[1] -> m";
    let explanation = castanet(&["explain", "-e", config], b"").out;
    let line = "FromDPDKDevice@1 -> c -> m -> t, by the bytes of the packets";
    assert!(explanation.contains(line), "{explanation}");
    let config = "FromDPDKDevice(0) -> Strip(14) -> CheckIPHeader -> r :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1)
           -> f :: FixIPSrc(1.0.0.1) -> d :: DecIPTTL -> x :: EtherEncap(0x0800, 1:2:3:4:5:6, 1:2:3:4:5:7)
           -> t :: ToDPDKDevice(1); r[1] -> Discard";
    let explanation = castanet(&["explain", "-e", config], b"").out;
    let line = "CheckIPHeader@3 -> r -> f -> d -> x -> t, by the bytes of the packets";
    assert!(explanation.contains(line), "{explanation}");
    // Each of several ways.
    let config = "FromDPDKDevice(0) -> c :: Classifier(12/0806, 12/0800, -) -> [1] q :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1)
             -> t :: ToDPDKDevice(1); c[1] -> s :: Strip(14) -> q; c[2] -> u :: ToDPDKDevice(2)";
    let explanation = castanet(&["explain", "-e", config], b"").out;
    for line in ["-> c -> s -> q -> t, by the bytes", "-> c -> u, by the bytes"] {
        assert!(explanation.contains(line), "{line}: {explanation}");
    }
    assert!(!explanation.contains("-> c -> q -> t, by"), "{explanation}");
    // More of them than are looked for.
    for outputs in [64, 65] {
        let patterns: Vec<String> = (1..outputs).map(|n| format!("0/{n:02x}")).collect();
        let paints = (0..outputs).map(|n| format!("c[{n}] -> Paint({n}) -> t;"));
        let paints: String = paints.collect();
        let config = format!(
            "FromDPDKDevice(0) -> c :: Classifier({}, -); t :: ToDPDKDevice(1); {paints}",
            patterns.join(", ")
        );
        let explanation = castanet(&["explain", "-e", &config], b"").out;
        assert_eq!(explanation.matches("-> t, by the bytes").count(), 64, "{explanation}");
        let line = "FromDPDKDevice@1: no more than these 64 ways are known";
        assert_eq!(explanation.contains(line), outputs > 64, "{explanation}");
    }
}
