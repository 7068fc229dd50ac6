//! Checksums and segments by the port, or in software: the packets sent are the same.

use super::{number, packets, require_dpdk, run, save};
use crate::program::folder;
use castanet_lab::Lab;
use castanet_wire::{Ipv4Header, Tcp};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Frames of TCP and UDP with checksums that are right, and without; some datagrams end before
/// their packet does, which ports that compute checksums know nothing of.
fn frames() -> [Vec<Vec<u8>>; 2] {
    ["", "badsum badcheck"].map(|wrong| {
        let frame = |n: usize| {
            let (port, len) = (1000 + n, 44 + n * 29 % 1400);
            let transport = match n % 6 {
                0 => "udp",
                3 => "udp ulen 20",
                _ => "tcp",
            };
            let text = format!(
                "eth 2:0:0:0:0:1 > 2:0:0:0:0:2 10.0.0.1:{port} > 10.0.0.2:80 {transport} len {len} {wrong}"
            );
            castanet_wire::sketch::build(&text).unwrap().bytes
        };
        (0..90).map(frame).collect()
    })
}

/// Takes the checksums of a capture for nothing, and sends it by `to`.
fn reset(from: &Path, to: &str) -> String {
    format!(
        "DPDKInfo(4096);
         d :: FromDump({}, STOP false, ACTIVE false) -> EnsureDPDKBuffer -> Strip(14)
             -> MarkIPHeader -> r :: ResetIPChecksum(L4 true)
             -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> {to};",
        from.display()
    )
}

/// Runs a configuration in a namespace with a tap, `dtap0`.
pub(crate) fn beside_a_tap(name: &str, config: &str, handlers: &[&str]) -> String {
    require_dpdk();
    let lab = Lab::new(name).unwrap_or_else(|error| panic!("{error}"));
    let host = lab.namespace("host").unwrap();
    let options = "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --log-level=3 \
                   --vdev net_tap0,iface=dtap0,mac=02:00:00:00:00:02";
    let shown = handlers.iter().flat_map(|handler| ["--handler", *handler]);
    let castanet = host.command(env!("CARGO_BIN_EXE_castanet"));
    let castanet = castanet.args(["run", "--quiet", "--dpdk", options, "-e", config]).args(shown);
    castanet.timeout(PATIENCE).check().unwrap_or_else(|error| panic!("{error}")).stdout
}

/// Packets that the kernel receives from the tap, once there are `count`.
fn kernel_receives(dump: &Path, count: usize) -> String {
    format!(
        "k :: FromDevice(dtap0, SNIFFER true, PROMISC true, METHOD AF_PACKET)
             -> ip :: Classifier(12/0800, -) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         ip[1] -> Discard;
         Script(wait 100ms, write d.active true,
                label again, wait 10ms, goto again $(lt $(c.count) {count}), wait 20ms, stop)",
        dump.display()
    )
}

/// Packets that come back from a loop, once there are `count`.
fn comes_back(dump: &Path, count: usize) -> String {
    format!(
        "f :: FromDPDKDevice(0) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         Script(write d.active true,
                label again, wait 10ms, goto again $(lt $(c.count) {count}), stop)",
        dump.display()
    )
}

#[test]
fn a_port_completes_the_checksums_that_are_left_to_it() {
    let [right, wrong] = frames();
    let from = save("sums", &wrong);
    let dump = folder("dpdk").join("sums-tap.pcap");
    let config = reset(&from, "t :: ToDPDKDevice(0, TCO true, UCO true)")
        + &kernel_receives(&dump, right.len());
    let output = beside_a_tap("sums", &config, &["r.left", "t.how", "t.count"]);
    assert!(output.contains("r.left:\ntrue\n"), "{output}");
    assert!(output.contains("; the port completes checksums of IPv4, TCP, UDP"), "{output}");
    assert_eq!(number(&output, "t.count"), right.len() as u64);
    assert!(packets(&dump) == right, "what was sent is not right");
}

#[test]
fn offloads_that_a_port_lacks_are_done_in_software() {
    let [right, wrong] = frames();
    let from = save("sums-here", &wrong);
    // The tap completes IPv4's alone, and the packets have two owners each.
    let dump = folder("dpdk").join("sums-here-tap.pcap");
    let to = "tee :: Tee; tee[0] -> t :: ToDPDKDevice(0, IPCO true); tee[1] -> Discard";
    let config = reset(&from, to) + &kernel_receives(&dump, right.len());
    let output = beside_a_tap("sums2", &config, &["r.left", "t.how"]);
    assert!(output.contains("r.left:\ntrue\n"), "{output}");
    assert!(output.contains("; the port completes checksums of IPv4\n"), "{output}");
    assert!(packets(&dump) == right, "what was sent is not right");
    // A ring completes nothing.
    let dump = folder("dpdk").join("sums-ring.pcap");
    let config =
        reset(&from, "t :: ToDPDKDevice(0, TCO true, UCO true)") + &comes_back(&dump, right.len());
    let output = run("--vdev net_ring0", &config, &["r.left", "t.how"]);
    assert!(output.contains("r.left:\ntrue\n") && !output.contains("completes"), "{output}");
    assert!(packets(&dump) == right, "what was sent is not right");
}

#[test]
fn no_element_sees_a_checksum_that_is_not_right() {
    let [right, wrong] = frames();
    let from = save("sums-seen", &wrong);
    let dump = folder("dpdk").join("sums-seen-out.pcap");
    for (between, left) in [
        ("Null -> Paint(1) -> Strip(14) -> Unstrip(14)", true),
        ("Strip(14) -> CheckIPHeader(VERBOSE true) -> Unstrip(14)", false),
        ("Queue -> Unqueue", false),
        ("tee :: Tee; tee[1] -> Print(ACTIVE false) -> Discard; tee[0]", false),
    ] {
        let config = reset(&from, &format!("{between} -> t :: ToDPDKDevice(0, TCO true)"))
            + &comes_back(&dump, right.len());
        let output = run("--vdev net_ring0", &config, &["r.left", "t.count"]);
        assert!(output.contains(&format!("r.left:\n{left}\n")), "{between}: {output}");
        assert!(packets(&dump) == right, "{between}: what was sent is not right");
    }
}

/// A TCP frame with that much payload, no byte of it like its neighbours.
fn super_frame(seq: u32, len: usize) -> Vec<u8> {
    let text = format!(
        "eth 2:0:0:0:0:1 > 2:0:0:0:0:2 10.0.0.1:5 > 10.0.0.2:80 tcp seq {seq} len {}",
        len + 40
    );
    let mut bytes = castanet_wire::sketch::build(&text).unwrap().bytes;
    let start = bytes.len() - len;
    bytes[start..].iter_mut().enumerate().for_each(|(n, byte)| *byte = (n * 7 + n / 251) as u8);
    let pseudo = Ipv4Header::from_prefix(&bytes[14..]).unwrap().0.pseudo(len + Tcp::LEN);
    let (tcp, rest) = Tcp::from_prefix_mut(&mut bytes[34..]).unwrap();
    tcp.update_checksum(pseudo, rest);
    bytes
}

/// The payload of segments that are right in themselves and follow each other.
fn payload(segments: &[Vec<u8>], mut seq: u32, mtu: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for segment in segments {
        assert!(segment.len() <= mtu + 14, "{} bytes", segment.len());
        let (ip, rest) = Ipv4Header::from_prefix(&segment[14..]).unwrap();
        assert!(ip.checksum_ok(&[]) && usize::from(ip.total_len()) + 14 == segment.len());
        let (tcp, bytes) = Tcp::from_prefix(rest).unwrap();
        assert_eq!(ip.pseudo(rest.len()).slice(rest).checksum(), 0, "TCP's checksum");
        assert_eq!(tcp.seq(), seq);
        let bytes = &bytes[tcp.header_len() - Tcp::LEN..];
        seq = seq.wrapping_add(bytes.len() as u32);
        all.extend(bytes);
    }
    all
}

#[test]
fn tcp_packets_longer_than_the_mtu_are_cut() {
    let (first, second) = (super_frame(1000, 20_000), super_frame(21_000, 1400));
    let from = save("tso", &[first.clone(), second.clone()]);
    let sent = [&first[54..], &second[54..]].concat();
    let source = |arguments: &str| {
        format!(
            "DPDKInfo(4096); d :: FromDump({}, STOP false, ACTIVE false)
                 -> t :: ToDPDKDevice(0, TSO true{arguments});",
            from.display()
        )
    };
    // By the port: 20 000 bytes in segments of 1446, for net_tap counts the header of the link too.
    let dump = folder("dpdk").join("tso-tap.pcap");
    let config = source("") + &kernel_receives(&dump, 14 + 1);
    let output = beside_a_tap("tso", &config, &["t.count", "t.how", "t.dropped"]);
    assert!(output.contains("; the port cuts longer TCP packets"), "{output}");
    assert_eq!((number(&output, "t.count"), number(&output, "t.dropped")), (2, 0), "{output}");
    assert!(payload(&packets(&dump), 1000, 1500) == sent, "{output}");
    // In software, for a port that cannot.
    let dump = folder("dpdk").join("tso-ring.pcap");
    let config = source(", MTU 1000") + &comes_back(&dump, 21 + 2);
    let output = run("--vdev net_ring0", &config, &["t.count", "t.how", "t.dropped"]);
    assert!(output.contains("; longer TCP packets are cut in software"), "{output}");
    assert_eq!((number(&output, "t.count"), number(&output, "t.dropped")), (2, 0), "{output}");
    assert!(payload(&packets(&dump), 1000, 1000) == sent, "{output}");
}
