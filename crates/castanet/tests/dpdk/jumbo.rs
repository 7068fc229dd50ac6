//! Packets that are longer than one mbuf.

use super::{QUIET, capture, number, packets, pcap, require_dpdk, run};
use crate::program::{RunResult, castanet, folder};

#[test]
fn ports_with_an_mtu_for_them_send_long_packets_in_several_mbufs() {
    let (from, sent) = capture("jumbo", (0..220).map(|n| 60 + n * 41));
    let dump = folder("dpdk").join("jumbo-out.pcap");
    // Long packets between short ones, all in their order; the longest, of 9039 bytes, is longer
    // than Ethernet's header with two tags and 9000 bytes.
    let config = format!(
        "i :: DPDKInfo(2048); FromDump({}, STOP false) -> t :: ToDPDKDevice(0, MTU 9000);
         f :: FromDPDKDevice(0) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         Script(label again, wait 10ms, goto again $(lt $(c.count) 219), wait 10ms, stop)",
        from.display(),
        dump.display()
    );
    let handlers =
        ["c.count", "t.count", "t.byte_count", "t.dropped", "t.longest", "t.how", "i.pool_count"];
    let output = run("--vdev net_ring0", &config, &handlers);
    let fit: Vec<_> = sent.iter().filter(|packet| packet.len() <= 9022).cloned().collect();
    assert_eq!((sent.len(), fit.len()), (220, 219));
    assert!(packets(&dump) == fit, "{output}");
    let bytes = fit.iter().map(Vec::len).sum::<usize>() as u64;
    let counts = ["c.count", "t.count", "t.byte_count", "t.dropped", "t.longest"];
    assert_eq!(counts.map(|it| number(&output, it)), [219, 219, bytes, 1, 9022], "{output}");
    assert!(
        output.contains("packets of up to 9022 bytes, in several mbufs if need be"),
        "{output}"
    );
    assert!(free(&output) >= 1024, "{output}");
}

/// Number of free mbufs of the first pool.
fn free(output: &str) -> usize {
    output.split("i.pool_count:\n0 ").nth(1).unwrap().lines().next().unwrap().parse().unwrap()
}

#[test]
fn other_ports_refuse_long_packets_and_name_the_limit() {
    // net_pcap does not say that it takes several mbufs a packet.
    let (from, sent) = capture("too-long", (0..20).map(|n| if n % 2 == 0 { 1900 } else { 3000 }));
    let to = folder("dpdk").join("too-long-out.pcap");
    let config = "DPDKInfo(2048, MBUF_SIZE 2048);
         f :: FromDPDKDevice(0) -> t :: ToDPDKDevice(0, MTU 4000);
         Script(label again, wait 10ms, goto again $(lt $(f.count) 20), wait 10ms, stop)";
    let handlers = ["t.count", "t.drops.refused", "t.longest"];
    let output = run(&pcap(&from, &to), config, &handlers);
    // 2048 are 33 lines, an odd number, without headroom.
    assert_eq!(handlers.map(|it| number(&output, it)), [10, 10, 33 * 64 - 128], "{output}");
    let short: Vec<_> = sent.into_iter().step_by(2).collect();
    assert!(packets(&to) == short, "{output}");
}

#[test]
fn a_ring_of_the_elements_takes_packets_of_any_length() {
    require_dpdk();
    let (from, sent) = capture("ring-long", (0..300).map(|n| 60 + n * 200));
    let dump = folder("dpdk").join("ring-long-out.pcap");
    let config = format!(
        "i :: DPDKInfo(2048); FromDump({}, STOP false) -> t :: ToDPDKRing(1, a, b, IQUEUE 4000);
         f :: FromDPDKRing(1, a, b) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         Script(label again, wait 10ms, goto again $(lt $(c.count) 300), stop)",
        from.display(),
        dump.display()
    );
    let words = ["run", "--quiet", "--dpdk", QUIET, "-e", &config];
    let RunResult { status, out, err } = castanet(
        &[&words[..], &["--handler", "t.n_sent", "--handler", "i.pool_count"]].concat(),
        b"",
    );
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(number(&out, "t.n_sent"), 300);
    // All mbufs are back, but for those in the caches of workers.
    assert!(free(&out) >= 1024, "{out}");
    assert!(packets(&dump) == sent, "what came out is not what was put in");
}
