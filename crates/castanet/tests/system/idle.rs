//! A router with nothing to do costs next to nothing, and misses nothing when something comes.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::time::{Duration, Instant};

use crate::testbed::{SOON, program};

/// Length of the idle time.
const QUIET: Duration = Duration::from_secs(2);

/// The most of one core that may take, in percent. A worker that polls takes 100.
const MOST: u128 = 5;

/// Waits until a started router takes no more processor time than an idle one may.
fn wait_until_idle(router: &Process) {
    const PERIOD: Duration = Duration::from_millis(100);
    let began = Instant::now();
    loop {
        let before = router.cpu_time();
        std::thread::sleep(PERIOD);
        let used = router.cpu_time() - before;
        if used.as_micros() * 100 <= PERIOD.as_micros() * MOST {
            return;
        }
        assert!(began.elapsed() < SOON, "the router is never idle: {used:?} in {PERIOD:?}");
    }
}

/// Asserts that a started router comes to rest, and takes no more processor time than an idle one
/// may.
fn assert_idle(router: &Process) {
    wait_until_idle(router);
    // The test is about processor time in a period, so it sleeps for that period.
    let before = router.cpu_time();
    std::thread::sleep(QUIET);
    let used = router.cpu_time() - before;
    assert!(used.as_micros() * 100 <= QUIET.as_micros() * MOST, "{used:?} in {QUIET:?}");
}

/// Elements that pull from empty queues through switches, schedulers and inactive ports sleep; so
/// do elements that push into full queues.
#[test]
fn the_pull_side_sleeps() {
    let text = "t :: TimedSource(1h) -> Queue -> [0] s :: Suppressor -> [0] w :: PullSwitch
                    -> Bypass -> [0] m :: DRRSched;
                i :: InfiniteSource -> full :: Queue(10) -> [1] s; s[1] -> [1] m; Idle -> [1] w;
                j :: InfiniteSource -> Queue(10) -> Unqueue2 -> Queue(10) -> shut :: Unqueue(ACTIVE false)
                    -> Discard;
                TimedSource(1h) -> Queue -> RED(5, 50, 0.1) -> [0] r :: StrideSched(1, 1);
                TimedSource(1h) -> Queue -> TimeSortedSched -> [1] r;
                r -> Unqueue -> Discard; m -> u :: Unqueue -> c :: Counter -> Discard;
                Script(write s.active1 false, wait 1h)";
    let lab = Lab::new("idle-pull").unwrap();
    let namespace = lab.namespace("m").unwrap();
    let command = namespace.command(program()).args(["run", "-j", "2", "-e", text]);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    assert_idle(&router);
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
}

/// Two hosts and a bridge of `workers` workers between them; checks what the idle bridge costs,
/// and that the first packets then pass, without a second try.
fn idle(name: &str, workers: &str, method: &str) {
    require(&["ip", "ping"]).unwrap();
    let lab = Lab::new(name).unwrap();
    let [a, middle, b]: [Namespace; 3] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
    for (host, end, device) in [(&a, 1, "m0"), (&b, 2, "m1")] {
        let host = Port::new(host, "eth0").address(&format!("10.9.0.{end}/24")).queues(2);
        lab.link(host, Port::new(&middle, device).queues(2)).unwrap();
    }
    // Hosts send nothing by themselves.
    for (namespace, device) in [(&a, "eth0"), (&middle, "m0"), (&middle, "m1"), (&b, "eth0")] {
        namespace.sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "1").unwrap();
    }
    let text = format!(
        "FromDevice(m0, PROMISC true, METHOD {method}) -> ToDevice(m1, METHOD {method});
         FromDevice(m1, PROMISC true, METHOD {method}) -> ToDevice(m0, METHOD {method})"
    );
    let command = middle.command(program()).args(["run", "-j", workers, "-e", &text]);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    assert_idle(&router);
    // The request for the address is the first; it is asked again only after a second.
    let output = a.command("ping").args(["-c", "1", "-W", "0.9", "10.9.0.2"]).output().unwrap();
    assert!(output.stdout.contains(" 1 received"), "{}", output.printed());
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
}

#[test]
fn af_xdp_sleeps_and_wakes() {
    idle("idle-xdp", "1", "AF_XDP");
}

#[test]
fn af_xdp_sleeps_and_wakes_on_several_workers() {
    idle("idle-xdps", "4", "AF_XDP");
}

#[test]
fn packet_sockets_sleep_and_wake() {
    idle("idle-packet", "2", "AF_PACKET");
}
