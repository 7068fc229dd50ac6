//! Full load: with frames held in a queue memory stays as it is, and at the end not a frame is
//! missing; no packet costs a system call. A few seconds by default, with rests;
//! `CASTANET_SOAK_SECONDS=600` makes it ten minutes without any.

use castanet_io::interface::Interface;
use castanet_io::traffic::{Source, frame};
use castanet_lab::{Command, Lab, Namespace, Port, Router, require};
use std::time::{Duration, Instant};

use crate::program::{SOON, number, program};

/// Default length of the load.
const SECONDS: u64 = 4;
/// Capacity of the queue in packets.
const HELD: usize = 5000;
/// Packets of one portion of the load.
const PACKETS: u32 = 1 << 16;
/// Pause between portions.
const REST: Duration = Duration::from_millis(20);
/// Bytes by which the memory may grow after a quarter of the time: an allocator may keep what it was
/// given once, but no packet may cost memory.
const SLACK: u64 = 512 << 10;

/// Length of the load, if the environment gives one.
pub(crate) fn soak_seconds() -> Option<u64> {
    let setting = std::env::var("CASTANET_SOAK_SECONDS").ok();
    setting.map(|text| text.parse().expect("CASTANET_SOAK_SECONDS is a number"))
}

/// Loads `eth0` of a namespace as the kernel can, until the time is over. If nobody says how long,
/// it does so by fits and starts: other tests run beside it, and have to make their networks.
fn load(namespace: &Namespace, time: Duration) {
    let rest = if soak_seconds().is_some() { Duration::ZERO } else { REST };
    let thread = namespace.enter(move || {
        let sent = || {
            let interface = Interface::find("eth0")?;
            // For nobody, from the one end of the veth to the other.
            let frame = frame([2, 0, 0, 0, 0, 9].into(), interface.ether.unwrap());
            let source = Source::new("eth0", &frame)?;
            let began = Instant::now();
            while began.elapsed() < time {
                source.send(PACKETS)?;
                std::thread::sleep(rest);
            }
            Ok(())
        };
        Ok(sent().map_err(|error: castanet_io::IoError| error.to_string()))
    });
    thread.join().unwrap().unwrap().unwrap();
}

/// A namespace that makes packets, one that forwards from `m0` to `m1`, one behind that.
fn namespaces(lab: &Lab) -> [Namespace; 3] {
    let [a, middle, b]: [Namespace; 3] = ["a", "m", "b"].map(|it| lab.namespace(it).unwrap());
    for (host, device) in [(&a, "m0"), (&b, "m1")] {
        lab.link(Port::new(host, "eth0"), Port::new(&middle, device)).unwrap();
    }
    // A veth takes packets that the kernel makes only if it batches what it receives.
    middle.command("ethtool").args(["-K", "m0", "gro", "on"]).check().unwrap();
    [a, middle, b]
}

/// Runs a configuration, whose `m0` is loaded, until the time is over; what its handlers say then.
fn soak(name: &str, text: &str, handlers: &[&str]) -> Vec<u64> {
    require(&["ethtool", "ip"]).unwrap();
    let lab = Lab::new(name).unwrap();
    let [a, middle, _b] = namespaces(&lab);
    let shown = handlers.iter().flat_map(|handler| ["--handler", *handler]);
    let command = middle.command(program()).args(["run", "-e", text]).args(shown);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    let time = Duration::from_secs(soak_seconds().unwrap_or(SECONDS));
    load(&a, time / 4);
    let before = router.memory();
    load(&a, time - time / 4);
    let after = router.memory();
    assert!(before > 0 && after <= before + SLACK, "{before} bytes became {after}");
    router.interrupt();
    let status = router.wait(SOON).unwrap();
    // Not a frame is missing, or it would not end like this.
    assert_eq!(status.code(), Some(0), "{status}: {}", router.stderr());
    let output = router.stdout();
    println!("{name}: {output}");
    handlers.iter().map(|handler| number(&output, handler)).collect()
}

/// A queue fills up and stays full: what is sent is less than what comes.
fn hold(name: &str, method: &str) {
    let text = format!(
        "FromDevice(m0, PROMISC true, METHOD {method}) -> q :: Queue({HELD})
             -> RatedUnqueue(20000) -> c :: Counter -> ToDevice(m1, METHOD {method});
         FromDevice(m1, PROMISC true, METHOD {method}) -> ToDevice(m0, METHOD {method})"
    );
    let output = soak(name, &text, &["q.highwater_length", "q.drops", "c.count"]);
    assert!(output[0] == HELD as u64 && output[1] > 0 && output[2] > 0, "{output:?}");
}

/// The system calls of a process while `run` runs, by `strace -c`.
fn system_calls(lab: &Lab, process: u32, run: impl FnOnce()) -> (u64, String) {
    let path = lab.directory().join("calls");
    let words = ["-f", "-c", "-o", path.to_str().unwrap(), "-p", &process.to_string()];
    let mut strace = Command::on_host("strace").args(words).spawn().unwrap();
    strace.wait_for("attached", SOON).unwrap();
    run();
    strace.interrupt();
    strace.wait(SOON).unwrap();
    let table = std::fs::read_to_string(path).unwrap();
    let total =
        table.lines().find(|line| line.ends_with(" total")).unwrap_or_else(|| panic!("{table}"));
    // Share of time, seconds, microseconds a call, calls.
    (total.split_whitespace().nth(3).unwrap().parse().unwrap(), table)
}

/// Insists that few system calls are made for the packets that pass by `path`.
fn calls(path: &str) {
    require(&["ethtool", "ip", "strace"]).unwrap();
    let lab = Lab::new("calls").unwrap();
    let [a, middle, _b] = namespaces(&lab);
    let text = format!(
        "FromDevice(m0, PROMISC true, METHOD AF_XDP) {path} -> t :: ToDevice(m1, METHOD AF_XDP);"
    );
    let shown = ["--handler", "t.count", "--handler", "t.errors"];
    let command = middle.command(program()).args(["run", "-e", &text]).args(shown);
    let mut router = command.spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    let (calls, table) = system_calls(&lab, router.id(), || load(&a, Duration::from_secs(1)));
    router.interrupt();
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    let packets = number(&router.stdout(), "t.count");
    println!("{calls} calls, {packets} packets:\n{table}");
    // One call sends a burst of up to 64 packets; pauses cost some more calls.
    assert!(packets > 1000 && calls * 8 < packets, "{calls} calls, {packets} packets:\n{table}");
}

#[test]
fn af_xdp_makes_no_system_call_for_each_packet() {
    calls("-> Null");
    calls("");
}

#[test]
fn af_xdp_under_full_load_keeps_its_memory() {
    hold("soak-xdp", "AF_XDP");
}

#[test]
fn af_xdp_that_only_passes_on_keeps_its_memory() {
    let text =
        "f :: FromDevice(m0, PROMISC true, METHOD AF_XDP) -> t :: ToDevice(m1, METHOD AF_XDP);
                FromDevice(m1, PROMISC true, METHOD AF_XDP) -> ToDevice(m0, METHOD AF_XDP)";
    let output = soak("soak-straight", text, &["f.count", "t.count"]);
    assert!(output[0] == output[1] && output[0] > 1000, "{output:?}");
}

#[test]
fn packet_sockets_under_full_load_keep_their_memory() {
    hold("soak-packet", "AF_PACKET");
}
