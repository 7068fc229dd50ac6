//! Full load over DPDK with mbufs held in a queue: memory stays as it is, and at the end not an mbuf
//! is missing. A few seconds by default; `CASTANET_SOAK_SECONDS=600` makes it ten minutes.

use super::{QUIET, number, require_dpdk};
use castanet_lab::Command;
use std::time::Duration;

/// Default length of the load.
const SECONDS: u64 = 4;
/// Number of mbufs.
const MBUFS: u64 = 16384;
/// Capacity of the queue in packets.
const HELD: u64 = 5000;
/// Bytes by which the memory may grow after a quarter of the time: an allocator may keep what it was
/// given once, but no packet may cost memory.
const SLACK: u64 = 512 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

fn seconds() -> u64 {
    let setting = std::env::var("CASTANET_SOAK_SECONDS").ok();
    setting.map_or(SECONDS, |text| text.parse().expect("CASTANET_SOAK_SECONDS is a number"))
}

/// Fills a queue from the loop of a port and empties it more slowly, shares packets, copies them on
/// write, sends them in several mbufs, drops them; and in the end asks for every mbuf there is. A
/// ring keeps those: a `Queue` copies packets out of the last free mbufs.
fn config(seconds: u64) -> String {
    format!(
        "i :: DPDKInfo({MBUFS});
         s :: InfiniteSource(BURST 32, LENGTH 60) -> t :: ToDPDKDevice(0, BLOCKING false, IQUEUE 64,
             MTU 9000);
         l :: RatedSource(RATE 1000, LENGTH 6000) -> t;
         f :: FromDPDKDevice(0) -> all :: Counter -> q :: Queue({HELD})
             -> u :: RatedUnqueue(20000) -> c :: Counter -> tee :: Tee -> Discard;
         tee[1] -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Discard;
         every :: InfiniteSource(BURST 32, LENGTH 60, LIMIT {}, ACTIVE false)
             -> e :: EnsureDPDKBuffer -> kept :: ToDPDKRing(1, every, mbuf, NDESC {});
         Script(wait {seconds}s, write s.active false, write l.active false, write u.rate 1000000,
                label drain, wait 10ms, goto drain $(gt $(q.length) 0), wait 200ms,
                write every.active true,
                label all, wait 10ms, goto all $(lt $(every.count) {}), stop)",
        2 * MBUFS,
        2 * MBUFS,
        2 * MBUFS,
    )
}

#[test]
fn dpdk_under_full_load_keeps_its_memory_and_its_mbufs() {
    require_dpdk();
    let (time, options) = (seconds(), format!("{QUIET} --vdev net_ring0"));
    let handlers =
        ["all.count", "c.count", "q.highwater_length", "q.drops", "kept.length", "e.dropped"];
    let shown = handlers.iter().flat_map(|handler| ["--handler", *handler]);
    let mut router = Command::on_host(env!("CARGO_BIN_EXE_castanet"))
        .args(["run", "-j", "1", "--dpdk", &options, "-e", &config(time)])
        .args(shown)
        .spawn()
        .unwrap();
    router.wait_for("castanet: running", PATIENCE).unwrap();
    // The test compares the memory at two times.
    std::thread::sleep(Duration::from_secs(time) / 4);
    let before = router.memory();
    std::thread::sleep(Duration::from_secs(time) * 5 / 8);
    let after = router.memory();
    assert!(before > 0 && after <= before + SLACK, "{before} bytes became {after}");
    let output = router.finish(PATIENCE + Duration::from_secs(time)).unwrap();
    assert!(output.success(), "{}", output.printed());
    let [all, sent, most, dropped, kept, without] =
        handlers.map(|handler| number(&output.stdout, handler));
    println!("{all} packets in {time} s, {dropped} of them found the queue full");
    assert_eq!(most, HELD, "{}", output.stdout);
    assert_eq!(all, sent + dropped);
    // One worker has all caches, so an mbuf that it cannot get is lost.
    assert_eq!((kept, without), (MBUFS, MBUFS), "{}", output.stdout);
}
