//! Two processes, or a process and the kernel, over DPDK's virtual devices.

use super::{capture, number, packets, require_dpdk};
use crate::program::{folder, root};
use castanet_lab::{Command, Lab, Namespace, Process};
use std::time::Duration;

/// Memory that two processes can share, without huge pages.
const SHARING: &str =
    "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --single-file-segments --log-level=3";

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives back all that comes.
const ECHO: &str = "DPDKInfo(8192); f :: FromDPDKDevice(0) -> c :: Counter -> ToDPDKDevice(0)";

/// `castanet run` with these devices and this configuration.
fn castanet(devices: &str, config: &str, handlers: &[&str]) -> Command {
    require_dpdk();
    let handlers = handlers.iter().flat_map(|handler| ["--handler", handler]);
    let options = format!("{SHARING} {devices}");
    Command::on_host(env!("CARGO_BIN_EXE_castanet"))
        .current_dir(root())
        .args(["run", "--dpdk", &options, "-e", config])
        .args(handlers)
        .timeout(PATIENCE)
}

/// Starts what gives back all that comes to a device.
fn echo(device: &str) -> Process {
    let mut echo = castanet(device, ECHO, &["c.count"]).spawn().unwrap();
    echo.wait_for("castanet: running", PATIENCE).unwrap();
    echo
}

/// Sends a capture over `near` when the link is up; what comes back over the
/// device at the far end is what was sent.
fn comes_back(name: &str, near: &str, far: &str) {
    let (from, sent) = capture(name, (0..500).map(|n| 60 + n * 2));
    let dump = folder("dpdk").join(format!("{name}-back.pcap"));
    let config = format!(
        "DPDKInfo(8192);
         d :: FromDump({}, ACTIVE false) -> t :: ToDPDKDevice(0);
         f :: FromDPDKDevice(0) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         Script(label up, wait 10ms, goto up $(lt $(f.carrier) 1), write d.active true,
                label again, wait 10ms, goto again $(lt $(c.count) 500), stop)",
        from.display(),
        dump.display()
    );
    let far = echo(far);
    let output = castanet(near, &config, &["t.count", "t.dropped", "f.byte_count"]).check();
    let output = output.unwrap_or_else(|error| panic!("{error}")).stdout;
    assert_eq!((number(&output, "t.count"), number(&output, "t.dropped")), (500, 0), "{output}");
    assert_eq!(number(&output, "f.byte_count"), sent.iter().map(|it| it.len() as u64).sum::<u64>());
    assert!(packets(&dump) == sent, "what came back is not what was sent");
    far.interrupt();
    assert_eq!(far.finish(PATIENCE).unwrap().stdout, "500\n");
}

/// The two ends of a shared memory interface of this name.
fn memif(name: &str, more: &str) -> [String; 2] {
    let socket = format!("castanet-{}-{name}", std::process::id());
    ["client", "server"].map(|role| {
        let more = if role == "client" { more } else { "" };
        format!("--vdev net_memif0,role={role},socket={socket}{more}")
    })
}

#[test]
fn memif_brings_packets_to_another_process_and_back() {
    let [near, far] = memif("copy", "");
    comes_back("memif-copy", &near, &far);
}

#[test]
fn memif_without_copies_too() {
    let [near, far] = memif("zero", ",zero-copy=yes");
    comes_back("memif-zero", &near, &far);
}

#[test]
fn a_virtual_machine_reaches_castanet_as_its_switch() {
    let socket = folder("dpdk").join(format!("vhost-{}", std::process::id()));
    _ = std::fs::remove_file(&socket);
    let near = format!("--vdev net_virtio_user0,path={}", socket.display());
    let far = format!("--vdev net_vhost0,iface={}", socket.display());
    comes_back("vhost", &near, &far);
}

#[test]
fn a_peer_may_come_late_die_and_come_back() {
    let [near, far] = memif("late", "");
    // A packet that cannot be sent is dropped at once, so that all can be counted.
    let config = "DPDKInfo(8192);
         s :: RatedSource(RATE 2000) -> all :: Counter -> t :: ToDPDKDevice(0, IQUEUE 0);
         f :: FromDPDKDevice(0) -> c :: Counter -> Discard;
         Script(label one, wait 10ms, goto one $(lt $(c.count) 500), print \"first\",
                label two, wait 10ms, goto two $(gt $(f.carrier) 0), print \"gone\",
                label three, wait 10ms, goto three $(lt $(f.carrier) 1), write c.reset,
                label four, wait 10ms, goto four $(lt $(c.count) 500), print \"second\",
                write s.active false, wait 50ms, stop)";
    let handlers = ["all.count", "t.count", "t.dropped"];
    let mut client = castanet(&near, config, &handlers).spawn().unwrap();
    client.wait_for("castanet: running", PATIENCE).unwrap();
    // Time is tested here: the client runs for a while before it has a peer.
    std::thread::sleep(Duration::from_millis(500));
    let mut server = echo(&far);
    client.wait_for("first", PATIENCE).unwrap();
    server.kill();
    server.wait(PATIENCE).unwrap();
    client.wait_for("gone", PATIENCE).unwrap();
    let server = echo(&far);
    client.wait_for("second", PATIENCE).unwrap();
    let output = client.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    let [all, went, dropped] = handlers.map(|handler| number(&output.stdout, handler));
    assert_eq!(all, went + dropped, "{}", output.stdout);
    assert!(went >= 1000 && dropped > 0, "{}", output.stdout);
    server.interrupt();
    assert!(server.finish(PATIENCE).unwrap().success());
}

/// Answers what comes from the kernel's side of a tap, looking for packets as is said; beside it,
/// a script.
fn answers(host: &Namespace, looking: &str, script: &str) -> Process {
    require_dpdk();
    let config = format!(
        "DPDKInfo(8192);
         f :: FromDPDKDevice(0{looking}) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
         c[0] -> ARPResponder(10.9.0.2 2:0:0:0:0:9) -> t :: ToDPDKDevice(0);
         c[1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder -> echoed :: Counter
              -> EtherEncap(0x0800, 2:0:0:0:0:9, 2:0:0:0:0:1) -> t;
         c[2] -> Discard; {script}"
    );
    let options = "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --log-level=3 \
                   --vdev net_tap0,iface=dtap0,mac=02:00:00:00:00:01";
    let castanet = host.command(env!("CARGO_BIN_EXE_castanet"));
    let words = ["run", "-R", "--dpdk", options, "-e", &config, "--handler", "echoed.count"];
    let mut castanet = castanet.args(words).spawn().unwrap();
    castanet.wait_for("castanet: running", PATIENCE).unwrap();
    for words in [
        "link set dtap0 address 02:00:00:00:00:01",
        "addr add 10.9.0.1/24 dev dtap0",
        "link set dtap0 up",
    ] {
        host.ip(words).unwrap();
    }
    castanet
}

/// Has the kernel ping three times.
fn ping(host: &Namespace) {
    host.ping(&["-i", "0.2"], 3, "10.9.0.2").unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_kernel_pings_castanet_over_a_tap() {
    let lab = Lab::new("dpdk").unwrap_or_else(|error| panic!("{error}"));
    let host = lab.namespace("host").unwrap();
    let castanet = answers(&host, "", "");
    ping(&host);
    castanet.interrupt();
    assert_eq!(castanet.finish(PATIENCE).unwrap().stdout, "3\n");
}

/// Number of times that the threads of a process have gone to sleep.
fn sleeps(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |entry: std::fs::DirEntry| -> u64 {
        let text = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let count = text.split("\nvoluntary_ctxt_switches:").nth(1).unwrap_or_default();
        count.lines().next().unwrap_or_default().trim().parse().unwrap_or(0)
    };
    threads.map(|entry| of_thread(entry.unwrap())).sum()
}

#[test]
fn a_port_interrupt_wakes_a_sleeping_worker() {
    let lab = Lab::new("dpdk-intr").unwrap_or_else(|error| panic!("{error}"));
    let host = lab.namespace("host").unwrap();
    let slept = |looking| {
        let castanet = answers(&host, looking, "");
        ping(&host);
        let before = sleeps(castanet.id());
        // The test counts how often a worker wakes in a second.
        std::thread::sleep(Duration::from_secs(1));
        let slept = sleeps(castanet.id()) - before;
        ping(&host);
        castanet.interrupt();
        assert_eq!(castanet.finish(PATIENCE).unwrap().stdout, "6\n");
        slept
    };
    // A worker that polls does so every millisecond.
    let (called, looks) = (slept(", RX_INTR 0"), slept(""));
    assert!(called < 100 && looks > 300, "{called} and {looks} times");
}

#[test]
fn a_worker_wakes_by_interrupt_after_the_port_is_set_up_anew() {
    let lab = Lab::new("dpdk-anew").unwrap_or_else(|error| panic!("{error}"));
    let host = lab.namespace("host").unwrap();
    // A second queue in one direction only is refused by net_tap: the port restarts as it was.
    let script = "Script(wait 1s, print \"anew\",
        writeq hotconfig \"FromDPDKDevice(0, QUEUE 1) -> Discard\", print \"so\")";
    let mut castanet = answers(&host, ", RX_INTR 0", script);
    castanet.wait_for("so", PATIENCE).unwrap();
    // Time is tested here: longer than the worker goes on polling.
    std::thread::sleep(Duration::from_millis(100));
    ping(&host);
    castanet.interrupt();
    let output = castanet.finish(PATIENCE).unwrap();
    assert!(output.stderr.contains("cannot open DPDK port 0: "), "{}", output.printed());
    assert!(output.stdout.ends_with("so\n3\n"), "{}", output.stdout);
}
