//! Elements do to the bytes of packets without descriptors what they do to packets, also to hostile ones, in bursts of one
//! packet and of several.

mod common;

use castanet_element::class::{Class, per_batch, source};
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::{Icmp, Ipv4Header, Tcp, Udp, ip_proto};
use castanet_elements::library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use common::{clean, number};
use std::sync::Arc;

/// Sends frames, or lends their bytes.
#[derive(Element)]
struct FrameSource {
    /// How many.
    #[arg]
    limit: u64,
    /// Whether it lends bytes.
    #[arg]
    lends: bool,
}

#[derive(Default, Local)]
struct FrameSourceState {
    /// How many were sent.
    #[read]
    count: u64,
}

impl Source for FrameSource {
    type Local = FrameSourceState;
    type Fate = ();
    fn produce(&self, state: &mut FrameSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let end = self.limit.min(state.count + n as u64);
        let mut frames: Vec<Vec<u8>> = (state.count..end).map(frame).collect();
        state.count = end;
        if frames.is_empty() {
            return NextRun::Done;
        }
        if self.lends {
            cx.bypass(|_: &FrameSink, sink, handler, cx| {
                let count = match handler {
                    Some(handler) => BurstBytes::lend(&mut frames, |bytes| {
                        if handler(bytes) { bytes.packets() } else { 0 }
                    }),
                    None => frames.len(),
                };
                let taken: Vec<Vec<u8>> = frames.drain(..count).collect();
                sink.lent += count as u64;
                taken.iter().for_each(|frame| sink.take(frame));
                cx.count_consumed(count);
                let bytes = taken.iter().map(Vec::len).sum::<usize>() as u64;
                Some(PacketTotals { packets: count as u64, bytes })
            });
        }
        let mut packets: Batch = frames.iter().filter_map(|frame| cx.copy_in(frame)).collect();
        packets.iter_mut().for_each(|packet| packet.set_mac_header(0));
        if !packets.is_empty() {
            cx.emit_batch((), packets);
        }
        NextRun::Again
    }
}

/// Takes packets, and bytes of others.
#[derive(Element)]
#[element(ports = "1/0")]
struct FrameSink;

#[derive(Default, Local)]
struct FrameSinkState {
    /// How many came without descriptors.
    #[read]
    lent: u64,
    /// How many came.
    #[read]
    count: u64,
    /// A hash of all.
    #[read]
    digest: u64,
}

impl FrameSinkState {
    fn take(&mut self, bytes: &[u8]) {
        self.count += 1;
        let length = (bytes.len() as u16).to_be_bytes();
        for byte in length.iter().chain(bytes) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl PerBatch for FrameSink {
    type On = on::Any;
    type Local = FrameSinkState;
    type Fate = Never;
    fn batch(&self, sink: &mut FrameSinkState, _: usize, batch: Batch, cx: &mut Cx) {
        batch.iter().for_each(|packet| sink.take(packet.bytes()));
        cx.consume(batch);
    }
}

static CLASSES: [Class; 2] = [
    source::<FrameSource>().with_bypass(&["FrameSink"]).with_lent_bytes(),
    per_batch::<FrameSink>(),
];

/// Frame `n`: of UDP or TCP, mostly right, padded or not, else with wrong bits or cut short.
fn frame(n: u64) -> Vec<u8> {
    let mut random = Random(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..3).for_each(|_| _ = random.below(2));
    let protocol = match random.below(8) {
        0 | 1 => ip_proto::TCP,
        2 => ip_proto::ICMP,
        _ => ip_proto::UDP,
    };
    let mut segment: Vec<u8> = (0..28 + random.below(40)).map(|at| (at + n) as u8).collect();
    let total = Ipv4Header::LEN + segment.len();
    let mut bytes = vec![0; Ipv4Header::LEN];
    if let Some((ip, _)) = Ipv4Header::from_prefix_mut(&mut bytes) {
        ip.set_version_ihl(0x45);
        ip.set_total_len(total as u16);
        ip.set_ttl(1 + random.below(4) as u8);
        ip.set_protocol(protocol);
        ip.set_src(Ipv4Addr::new(10, 0, 0, random.below(8) as u8));
        ip.set_dst(Ipv4Addr::new(10, 0, 1, random.below(8) as u8));
        // Some are fragments, which have no ports.
        ip.set_fragment_offset(if n.is_multiple_of(19) { 8 * (n % 37) as usize } else { 0 });
        ip.update_checksum(&[]);
        let pseudo: Sum = ip.pseudo(segment.len());
        if protocol == ip_proto::TCP {
            segment[12] = 0x50;
            let Some((tcp, rest)) = Tcp::from_prefix_mut(&mut segment) else { return bytes };
            tcp.update_checksum(pseudo, rest);
        } else if protocol == ip_proto::ICMP {
            let Some((icmp, rest)) = Icmp::from_prefix_mut(&mut segment) else { return bytes };
            icmp.update_checksum(rest);
        } else {
            let length = segment.len() as u16;
            let Some((udp, rest)) = Udp::from_prefix_mut(&mut segment) else { return bytes };
            udp.set_length(length);
            udp.update_checksum(pseudo, rest);
        }
    }
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, random.below(3) as u8, 8, 0];
    frame.extend(bytes);
    frame.extend(segment);
    frame.resize(frame.len() + random.below(3) as usize * 4, 0xee);
    // Long runs of frames are right, and others have one that is too short.
    if random.below(if n % 1000 < 500 { 3 } else { 40 }) == 0 {
        let at = random.below(50) as usize;
        frame[at] ^= 1 << random.below(8);
    }
    if random.below(20) == 0 && n % 1000 < 300 {
        frame.truncate(random.below(60) as usize);
    }
    frame
}

/// Numbers that look random (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Values of handlers behind a path on which bytes are lent or not, in bursts of this length; first how many were lent.
fn values(path: &str, more: &[&str], burst: usize, lends: bool) -> (u64, Vec<String>) {
    let text = format!(
        "k :: FrameSink; Idle -> o :: Counter -> Discard; f :: FrameSource(4000, {lends}) -> {path}"
    );
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.simulated, options.burst) = (true, burst);
    let mut library = library();
    CLASSES.iter().for_each(|class| library.add(class));
    let mut router =
        Router::from_text(&text, &library, &options).unwrap_or_else(|wrong| panic!("{wrong}"));
    router.settle(20_000);
    let lent = number(&mut router, "k.lent");
    let fixed = ["f.count", "k.count", "k.digest", "o.count", "drops"];
    let read = |handler: &&str| router.read(handler).unwrap_or_else(|wrong| panic!("{wrong}"));
    let values = fixed.iter().chain(more).map(read).collect();
    clean(router);
    (lent, values)
}

/// Asserts that lent bytes make no difference, and that many are lent.
fn agree(path: &str, more: &[&str]) {
    for burst in [1, 3, 32] {
        let lent = lent(path, more, burst);
        assert!(lent > 200, "{path}: {burst}: {lent}");
    }
    // Of so many packets, one is mostly odd: with some elements none are lent.
    lent(path, more, 150);
}

/// Asserts that lent bytes make no difference with bursts of this length; how many were lent.
fn lent(path: &str, more: &[&str], burst: usize) -> u64 {
    let (none, packets) = values(path, more, burst, false);
    let (lent, bytes) = values(path, more, burst, true);
    assert_eq!(bytes, packets, "{path}: {burst}");
    assert_eq!(none, 0);
    lent
}

#[test]
fn elements_of_ethernet() {
    agree("EtherMirror -> k", &[]);
    agree("EtherRewrite(1:2:3:4:5:6, 7:8:9:a:b:c) -> k", &[]);
    agree("StoreData(40, \\<abcdef>) -> EtherMirror -> k", &[]);
    agree("StoreData(50, \\<abcdef>, MASK \\<f0>, GROW true) -> k", &[]);
    agree(
        "c :: Classifier(11/00, 12/0800 23/11, 30/0a000103, -); c -> k; c[1] -> k; c[2] -> o; c[3] -> k",
        &[],
    );
    agree("h :: HashSwitch(26, 8) -> k; h[1] -> k; h[2] -> o; h[3] -> k", &[]);
    agree("h :: HashSwitch(30, 4) -> k; h[1] -> o", &[]);
    // A burst with a packet that lacks these bytes is not lent.
    agree("h :: HashSwitch(56, 8) -> k; h[1] -> o", &[]);
    agree("h :: HashSwitch(OFFSET 26, LENGTH 3) -> k; h[1] -> k; h[2] -> o", &[]);
    // Packets leave behind a counter: then the burst is not lent, but each of single packets.
    let path = "a :: Counter -> c :: Classifier(11/00, -) -> o; c[1] -> b :: Counter -> k";
    let counters = ["a.count", "a.byte_count", "b.count", "b.byte_count"];
    assert!(lent(path, &counters, 1) > 2000);
    assert_eq!(lent(path, &counters, 32), 0);
    let path = "c :: Classifier(11/00, -) -> o;
        c[1] -> a :: Counter -> Strip(2) -> b :: AverageCounter -> Unstrip(2) -> k";
    agree(path, &counters);
    agree("Strip(20) -> c :: Counter -> Unstrip(20) -> k", &["c.count", "c.byte_count"]);
    agree(
        "Strip(14) -> Strip(7) -> c :: Classifier(5/00, -); c -> o; c[1] -> Unstrip(21) -> k",
        &[],
    );
}

#[test]
fn elements_that_do_nothing_now_and_marks() {
    agree("Print(a, ACTIVE false) -> IPPrint(b, ACTIVE false) -> EtherMirror -> k", &[]);
    let printed =
        "Strip(14) -> i :: CheckIPHeader -> Print(a, ACTIVE true, MAXLENGTH 0) -> Unstrip(14) -> k";
    assert_eq!(lent(printed, &["i.count"], 1), 0);
    agree("MarkMACHeader -> EtherMirror -> k", &[]);
    let marked = |mark: &str| {
        format!(
            "{mark} -> c :: IPClassifier(udp, ether src 2:0:0:0:0:1, -) -> k; c[1] -> k; c[2] -> o"
        )
    };
    agree(&marked("MarkMACHeader -> MarkIPHeader(14)"), &[]);
    // With a network header behind it, and where the header begins elsewhere than the packet did.
    assert_eq!(lent(&marked("MarkMACHeader(0, 14)"), &[], 1), 0);
    assert_eq!(lent(&marked("MarkMACHeader(2)"), &[], 1), 0);
    assert_eq!(lent("Strip(4) -> MarkMACHeader -> Unstrip(4) -> k", &[], 1), 0);
}

#[test]
fn elements_of_ip() {
    let counts = ["i.count", "i.drops", "i.drop_details"];
    agree("Strip(14) -> i :: CheckIPHeader -> Unstrip(14) -> k", &counts);
    agree("i :: CheckIPHeader(BADSRC 10.0.0.3, OFFSET 14) -> k; i[1] -> o", &counts);
    // Others may be bad sources by a hash of them: these are looked at once more.
    let nets: String = (0..24).map(|n| format!("{n}.{n}.0.1/16 ")).collect();
    let path = format!(
        "Strip(14) -> i :: CheckIPHeader(INTERFACES {nets}) -> Unstrip(14) -> k; i[1] -> o"
    );
    agree(&path, &counts);
    // Bad packets come to the same input as good ones, and no element takes them for good ones.
    agree("i :: CheckIPHeader(OFFSET 14) -> k; i[1] -> k", &counts);
    agree("i :: CheckIPHeader(OFFSET 14) -> p :: IPFilter(allow all) -> k; i[1] -> p", &counts);
    let path = "Strip(9) -> MarkIPHeader(5) -> c :: IPClassifier(ether src 2:0:0:0:0:1, -) -> Unstrip(9) -> k;
        c[1] -> o";
    agree(path, &[]);
    agree(
        "i :: CheckIPHeader2(14) -> c :: Counter -> k",
        &[&counts[..], &["c.byte_count"]].concat(),
    );
    let rules = "deny src host 10.0.0.3, allow udp and ttl > 1, deny tcp and dst port > 9000, allow ip proto tcp";
    agree(&format!("MarkIPHeader(14) -> IPFilter({rules}) -> k"), &[]);
    agree(&format!("Strip(14) -> CheckIPHeader -> IPFilter({rules}) -> Unstrip(14) -> k"), &[]);
    let ports = "deny src port < 32, 1 dst port > 9000 or ip frag, 1 icmp type 4, 0 all";
    for check in ["CheckIPHeader(OFFSET 14)", "MarkIPHeader(14)"] {
        agree(&format!("{check} -> p :: IPFilter({ports}) -> k; p[1] -> o"), &[]);
    }
    let many: String =
        (0..60).map(|n| format!("1 dst host 10.{n}.1.{} and src port {n}, ", n % 8)).collect();
    agree(
        &format!(
            "CheckIPHeader(OFFSET 14) -> p :: IPFilter({many} 1 ttl 3, 0 all) -> k; p[1] -> o"
        ),
        &[],
    );
    agree(
        "CheckIPHeader(OFFSET 14) -> c :: IPClassifier(ether src 2:0:0:0:0:2, udp, -) -> k; c[1] -> k; c[2] -> o",
        &[],
    );
    let counts = ["u.count", "u.drops", "u.drop_details"];
    agree("MarkIPHeader(14) -> u :: CheckUDPHeader -> k", &counts);
    agree(
        "CheckIPHeader(OFFSET 14) -> u :: CheckUDPHeader(CHECKSUM false) -> k; u[1] -> o",
        &counts,
    );
    agree(
        "Strip(14) -> CheckIPHeader -> u :: CheckTCPHeader -> Unstrip(14) -> k; u[1] -> o",
        &counts,
    );
    agree("CheckIPHeader(OFFSET 14) -> IPFilter(allow icmp) -> u :: CheckICMPHeader -> k", &counts);
    agree("CheckIPHeader2(14) -> CheckUDPHeader -> EtherMirror -> StoreData(30, \\<0a>) -> k", &[]);
}

/// The elements of a router's path from the lookup on, with these routes, arguments of `PaintTee` and MTU.
fn routed(routes: &str, paint: u8, mtu: u16) -> String {
    format!(
        "r :: StaticIPLookup({routes}) -> b :: DropBroadcasts -> t :: PaintTee({paint})
           -> g :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1) -> d :: DecIPTTL -> m :: IPFragmenter({mtu})
           -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> n :: Counter -> k;
         t[1] -> o; g[1] -> o; d[1] -> o; m[1] -> o"
    )
}

#[test]
fn elements_of_routers() {
    const COUNTS: [&str; 7] =
        ["i.count", "i.drops", "d.drops", "m.fragments", "n.count", "n.byte_count", "b.drops"];
    const BEGIN: &str = "c :: Classifier(12/0800, -) -> Strip(14) -> i :: CheckIPHeader";
    const ROUTES: &str = "10.0.1.0/30 0, 10.0.1.4/31 10.0.1.9 0, 10.0.1.6/32 1";
    let path = |begin: &str, rest: &str| format!("{begin} -> {rest}; c[1] -> o; r[1] -> o");
    agree(&path(BEGIN, &routed(ROUTES, 2, 1500)), &COUNTS);
    let painted = format!("p :: Paint(3) -> {BEGIN}");
    agree(&path(&painted, &routed(ROUTES, 2, 1500)), &COUNTS);
    // Packets of the paint are copied.
    assert_eq!(lent(&path(&painted, &routed(ROUTES, 3, 1500)), &COUNTS, 1), 0);
    // Long packets are fragmented: in long bursts there is always one.
    assert!(lent(&path(BEGIN, &routed(ROUTES, 2, 70)), &COUNTS, 1) > 200);
    assert_eq!(lent(&path(BEGIN, &routed(ROUTES, 2, 60)), &COUNTS, 32), 0);
    // No element has checked headers: then there are no annotations of addresses, and TTLs stay.
    let unchecked = "c :: Classifier(12/0800, -) -> Strip(14) -> i :: MarkIPHeader";
    let counts = &["b.drops"];
    assert_eq!(
        lent(&path(unchecked, &routed("0.0.0.0/0 0, 10.0.1.6/32 1", 2, 1500)), counts, 1),
        0
    );
    let unchecked = "Strip(14) -> MarkIPHeader -> DecIPTTL -> Unstrip(14) -> k";
    assert_eq!(lent(unchecked, &[], 1), 0);
    let marked =
        "Strip(14) -> i :: CheckIPHeader -> MarkIPHeader -> d :: DecIPTTL -> Unstrip(14) -> k";
    assert_eq!(lent(marked, &["d.drops"], 1), 0);
}

#[test]
fn several_next_hops() {
    let way = |n: u8, to: &str| {
        format!(
            "r[{n}] -> DropBroadcasts -> d{n} :: DecIPTTL -> IPFragmenter(1500) -> n{n} :: Counter
               -> EtherEncap(0x0800, 2:0:0:0:1:{n}, 2:0:0:0:1:1) -> {to}; d{n}[1] -> o;"
        )
    };
    let ways: String = (0..3).map(|n| way(n, "k")).collect();
    let path = format!(
        "Strip(14) -> i :: CheckIPHeader
           -> r :: StaticIPLookup(10.0.1.0/30 0, 10.0.1.4/31 10.0.1.9 1, 10.0.1.6/32 2, 10.0.1.7/32 3);
         {ways} {}",
        way(3, "o")
    );
    let counts =
        ["i.count", "d0.drops", "d1.drops", "d2.drops", "n0.count", "n1.byte_count", "n2.count"];
    for burst in [1, 3, 32] {
        // Packets of different next hops change places, as they do where they are packets.
        let values = |lends| values(&path, &counts, burst, lends);
        let ((_, mut packets), (lent, mut bytes)) = (values(false), values(true));
        assert!(lent > 200, "{burst}: {lent}");
        // `k.digest` depends on the order.
        packets.remove(2);
        bytes.remove(2);
        assert_eq!(bytes, packets, "{burst}");
    }
}

#[test]
fn routes_by_gateways_go_before_addresses() {
    let two = |first: &str| {
        format!(
            "Strip(14) -> CheckIPHeader -> StaticIPLookup(10.0.1.0/24 {first})
               -> r :: RadixIPLookup(10.0.1.0/30 0, 0.0.0.0/0 1) -> Unstrip(14) -> k; r[1] -> o"
        )
    };
    agree(&two("0"), &[]);
    // The second looks for the gateway.
    agree(&two("10.0.1.1 0"), &["r.drops"]);
    assert_eq!(lent(&two("10.0.1.5 0"), &["r.drops"], 1), 0);
    agree(
        "Strip(14) -> CheckIPHeader -> StaticIPLookup(10.0.1.0/24 10.0.1.1 0) -> Unstrip(14) -> k",
        &[],
    );
}

/// An `ARPQuerier` that has the Ethernet addresses of these hosts, behind elements of a router.
fn querier(routes: &str, hosts: &[&str]) -> String {
    let known = hosts.iter().enumerate();
    let known: Vec<_> =
        known.map(|(n, host)| format!("write q.insert {host} 2:0:0:0:2:{n}")).collect();
    format!(
        "a :: Classifier(12/0806, -) -> [1] q :: ARPQuerier(10.0.0.1, 2:0:0:0:1:1); Script({});
         a[1] -> Strip(14) -> i :: CheckIPHeader -> r :: StaticIPLookup({routes}) -> d :: DecIPTTL
           -> q -> n :: Counter -> k; q[1] -> o; r[1] -> o; d[1] -> o",
        known.join(", ")
    )
}

#[test]
fn next_hops_get_their_ethernet_addresses() {
    const COUNTS: [&str; 6] =
        ["d.drops", "n.count", "n.byte_count", "q.table", "q.drops", "q.length"];
    let hosts: Vec<_> = (0..8).map(|n| format!("10.0.1.{n}")).collect();
    let hosts: Vec<_> = hosts.iter().map(String::as_str).collect();
    agree(&querier("10.0.1.0/24 0", &hosts), &COUNTS);
    // By gateways, some of them.
    let routes = "10.0.1.0/30 0, 10.0.1.4/31 10.0.0.9 0, 10.0.1.6/32 10.0.0.8 0, 10.0.1.7/32 1";
    let gateways = [&hosts[..4], &["10.0.0.8", "10.0.0.9"]].concat();
    agree(&querier(routes, &gateways), &COUNTS);
    // Packets to groups need no address.
    let groups = "10.0.1.0/30 224.0.0.5 0, 10.0.1.4/31 255.255.255.255 0, 10.0.1.6/31 10.0.1.0 0";
    agree(&querier(groups, &hosts[..1]), &COUNTS);
    // One is queried for: its packets wait.
    let queries = [&COUNTS[..], &["q.queries"]].concat();
    assert!(lent(&querier("10.0.1.0/24 0", &hosts[1..]), &queries, 1) > 200);
    // Few long bursts have no packet to it.
    let long = lent(&querier("10.0.1.0/24 0", &hosts[1..]), &queries, 32);
    assert!(long < 400, "{long}");
    // Without an address of its own, and without room for the header.
    let stopped =
        querier("10.0.1.0/24 0", &hosts).replacen("Script(", "Script(write q.ipaddr 0.0.0.0, ", 1);
    assert_eq!(lent(&stopped, &COUNTS, 1), 0);
    let unstripped = querier("10.0.1.0/24 0", &hosts)
        .replace("Strip(14) -> i :: CheckIPHeader", "i :: CheckIPHeader(OFFSET 14)");
    assert_eq!(lent(&unstripped, &COUNTS, 1), 0);
}

#[test]
fn elements_that_combine_those_of_routers() {
    const COUNTS: [&str; 5] = ["i.count", "i.drops", "i.drop_details", "n.count", "n.byte_count"];
    let path = |paint: u8, mtu: u16| {
        format!(
            "c :: Classifier(12/0800, -) -> i :: IPInputCombo(3, 10.0.0.3) -> r :: StaticIPLookup(10.0.1.0/24 0)
               -> p :: IPOutputCombo({paint}, 10.0.0.1, {mtu}) -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1)
               -> n :: Counter -> k; c[1] -> o; i[1] -> o; p[1] -> o; p[2] -> o; p[3] -> o; p[4] -> o"
        )
    };
    agree(&path(2, 1500), &COUNTS);
    // Packets of the paint are copied, and long ones leave by an output of their own.
    assert_eq!(lent(&path(3, 1500), &COUNTS, 1), 0);
    assert!(lent(&path(2, 70), &COUNTS, 1) > 200);
    assert_eq!(lent(&path(2, 60), &COUNTS, 32), 0);
    // No element has checked the headers.
    let unchecked =
        "Strip(14) -> MarkIPHeader -> p :: IPOutputCombo(2, 10.0.0.1, 1500) -> Unstrip(14) -> k;
        p[1] -> o; p[2] -> o; p[3] -> o; p[4] -> o";
    assert_eq!(lent(unchecked, &[], 1), 0);
}

#[test]
fn addresses_that_packets_are_annotated_with() {
    let path = |begin: &str| {
        format!(
            "Strip(14) -> i :: CheckIPHeader(BADSRC 10.0.0.3) -> {begin}
               -> r :: StaticIPLookup(10.0.1.0/30 0, 10.0.0.0/30 0, 10.0.1.6/32 1) -> d :: DecIPTTL
               -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> k; r[1] -> o; d[1] -> o"
        )
    };
    let counts = ["i.count", "r.drops", "d.drops"];
    agree(&path("GetIPAddress(16)"), &counts);
    agree(&path("GetIPAddress(12)"), &counts);
    // No element has checked the headers.
    agree(
        "Strip(14) -> GetIPAddress(16) -> r :: RadixIPLookup(10.0.1.0/30 0, 0/0 1) -> Unstrip(14) -> k; r[1] -> o",
        &[],
    );
    // Behind an element that may write to the address, with another annotation, by a field, or beyond short packets.
    for begin in [
        "DecIPTTL -> GetIPAddress(16)",
        "GetIPAddress(16, 4)",
        "GetIPAddress(IP src)",
        "GetIPAddress(90)",
    ] {
        assert_eq!(lent(&path(begin), &counts, 1), 0, "{begin}");
    }
}

#[test]
fn elements_write_where_they_stand() {
    // Each at its own offset, in the order of the path.
    agree(
        "StoreData(0, \\<abcd>) -> Strip(3) -> StoreData(0, \\<ef>) -> Unstrip(3) -> EtherMirror -> k",
        &[],
    );
    agree(
        "Strip(14) -> EtherEncap(0x1234, 1:2:3:4:5:6, 7:8:9:a:b:c) -> StoreData(1, \\<77>) -> k",
        &[],
    );
    agree("EtherMirror -> Strip(14) -> EtherEncap(0x1234, 1:2:3:4:5:6, 7:8:9:a:b:c) -> k", &[]);
    let path = "Strip(14) -> CheckIPHeader -> d :: DecIPTTL -> StoreData(8, \\<40>) -> Unstrip(14) -> k; d[1] -> o";
    agree(path, &["d.drops"]);
    // A header that starts elsewhere than the packet did, and decisions about what was written.
    for path in [
        "Strip(20) -> EtherEncap(0x1234, 1:2:3:4:5:6, 7:8:9:a:b:c) -> k",
        "EtherEncap(0x1234, 1:2:3:4:5:6, 7:8:9:a:b:c) -> k",
        "Strip(14) -> CheckIPHeader -> DecIPTTL -> DecIPTTL -> Unstrip(14) -> k",
        "CheckIPHeader(OFFSET 14) -> DecIPTTL(ACTIVE false) -> k",
        "CheckIPHeader(OFFSET 14) -> StoreData(14, \\<46>) -> g :: IPGWOptions(10.0.0.1) -> k; g[1] -> o",
        "CheckIPHeader(OFFSET 14) -> StoreData(14, \\<65>) -> FixIPSrc(1.1.1.1) -> k",
        "Strip(14) -> CheckIPHeader -> Strip(14) -> EtherEncap(0x0800, 1:2:3:4:5:6, 7:8:9:a:b:c) -> FixIPSrc(1.1.1.1)
           -> Unstrip(14) -> k",
    ] {
        assert_eq!(lent(path, &[], 1), 0, "{path}");
    }
}
