//! Two veth pairs between namespaces: packet rates of forwarders from one to the other.
//!
//! ```text
//! generator in0 ── in ┐            the generator's core: makes packets, and brings
//!                     ├ forwarder                        them to the forwarder's interface
//!   counter out0 ─ out ┘           the other core: forwards, sends, and counts
//! ```

use super::castanet::{Castanet, OUT};
use super::clients::PollingClients;
use super::cores::{self, Cores};
use super::meter::{self, Meter, Sample};
use super::{
    Bed, CLIENTS, COUNTER, Comparison, FORWARD, Plan, ROUTER, Record, Reporter, compare, named,
};
use crate::built::{Programs, Target};
use crate::paths;
use castanet_io::af_xdp::MinimalForwarder;
use castanet_io::interface::Interface;
use castanet_io::traffic::{self, Shortcut, Sink, Source};
use castanet_lab::{Lab, Namespace, Port, require};
use castanet_wire::MacAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Length of the warm-up before a run is measured.
const WARM_UP: Duration = Duration::from_millis(200);

/// Packets that the generator sends between two checks of its stop flag: some tens of milliseconds.
const STRIDE: u32 = 256 * 1024;

/// The programs that set the network up.
const TOOLS: &[&str] = &["ip", "ethtool"];

/// The rows: Linux itself, and Castanet by each method.
const ROWS: [(&str, &str); 7] = [
    ("kernel", ROUTER),
    ("af_packet", FORWARD),
    ("af_packet", ROUTER),
    ("af_xdp", FORWARD),
    ("af_xdp", COUNTER),
    ("af_xdp", ROUTER),
    ("af_xdp", CLIENTS),
];

/// Clients that read handlers in the case `clients`.
const POLLING_CLIENTS: usize = 100;

/// The method of a device by which Castanet forwards; none of Linux itself.
fn method(device: &str) -> Option<&'static str> {
    match device {
        "af_packet" => Some("AF_PACKET"),
        "af_xdp" => Some("AF_XDP"),
        _ => None,
    }
}

/// Whether there can be such a network, as far as it is known before it is made.
fn needs(cores: &Cores) -> Result<usize, String> {
    let feed = cores.feed()?;
    require(TOOLS).map_err(|error| error.to_string()).map(|()| feed)
}

/// The configurations of the rows that are wanted and can be measured, with other interfaces.
pub(super) fn targets(plan: &Plan, cores: &Cores) -> Vec<Target> {
    let mut rows = needs(cores).map_or(Vec::new(), |_| plan.rows(ROWS));
    // It is about a program that others look at, and not about its path.
    rows.retain(|&(_, case)| case != CLIENTS);
    let target = |(device, case)| {
        Some(Target {
            name: format!("{device} {case}"),
            text: configuration(method(device)?, case, INTERFACES),
        })
    };
    rows.into_iter().filter_map(target).collect()
}

/// Names in the place of the interfaces, which have others in each run.
const INTERFACES: (&str, &str) = ("in0", "out0");

/// A path of packets between two interfaces.
fn configuration(method: &str, case: &str, (from, to): (&str, &str)) -> String {
    // Linux is not to look at the packets as well.
    let path = paths::find(case).map_or_else(String::new, |path| path.between("in", OUT));
    format!(
        "in :: FromDevice({from}, METHOD {method}, SNIFFER false);
         {OUT} :: ToDevice({to}, METHOD {method});
         {path}"
    )
}

/// Measures the rows between veth pairs.
pub(super) fn run(
    plan: &Plan,
    cores: &Cores,
    programs: Option<&Programs>,
    reporter: &mut dyn Reporter,
) -> Vec<Record> {
    let rows = plan.rows(ROWS);
    if rows.is_empty() {
        return Vec::new();
    }
    match needs(cores).and_then(|feed| VethNetwork::new(cores.forward, feed)) {
        Ok(testbed) => compare(plan, testbed.bed(&rows, programs), None, reporter),
        Err(why) => {
            reporter.missing(&named(&rows), &why);
            Vec::new()
        }
    }
}

/// Time limit for the first packet.
const PATIENCE: Duration = Duration::from_secs(5);

/// The network.
pub(crate) struct VethNetwork {
    forward: usize,
    feed: usize,
    /// The forwarder's interfaces.
    from: String,
    to: String,
    generator: Namespace,
    forwarder: Namespace,
    source: Arc<Source>,
    sink: Sink,
    // Last, so that what runs in the namespaces is gone before them.
    lab: Lab,
}

/// An Ethernet address as `ip` reads it.
fn shown(mac: MacAddr) -> String {
    mac.0.map(|byte| format!("{byte:02x}")).join(":")
}

/// Does something in a namespace.
fn within<T: Send + 'static>(
    namespace: &Namespace,
    run: impl FnOnce() -> Result<T, castanet_io::IoError> + Send + 'static,
) -> Result<T, String> {
    let done = namespace.enter(move || Ok(run().map_err(|error| error.to_string())));
    done.join().map_err(|_| "a thread of the benchmark died")?.map_err(|error| error.to_string())?
}

impl VethNetwork {
    /// Makes it.
    pub(crate) fn new(forward: usize, feed: usize) -> Result<VethNetwork, String> {
        let said = |error: castanet_lab::Error| error.to_string();
        let lab = Lab::new("bench").map_err(said)?;
        let [generator, forwarder, counter] =
            ["source", "forwarder", "sink"].map(|name| lab.namespace(name).map_err(said));
        let (generator, forwarder, counter) = (generator?, forwarder?, counter?);
        // The kernel's threads are named by the interface, in all namespaces.
        let id = std::process::id();
        let (from, to) = (format!("in{id}"), format!("out{id}"));
        let port = |namespace, name: &str| Port::new(namespace, name).offloads(false);
        lab.link(port(&generator, "source0"), port(&forwarder, &from)).map_err(said)?;
        lab.link(port(&forwarder, &to), port(&counter, "sink0")).map_err(said)?;
        let there = within(&counter, || Interface::find("sink0"))?;
        let sink = within(&counter, || Sink::new("sink0"))?;
        let name = from.clone();
        let here = within(&forwarder, move || Interface::find(&name))?;
        let source0 = within(&generator, || Interface::find("source0"))?;
        let mac = |it: &Interface| it.ether.unwrap_or_default();
        let frame = traffic::frame(mac(&here), mac(&source0));
        let source = within(&generator, move || Source::new("source0", &frame))?;
        // Receive offload is what makes veth take bursts without an XDP program.
        let gro = ["-K", &from, "gro", "on"];
        forwarder.command("ethtool").args(gro).check().map_err(said)?;
        let next = "10.9.1.2";
        let (route, neighbour) = (
            format!("route add 20.1.0.0/16 via {next} dev {to} onlink"),
            format!("neigh add {next} lladdr {} dev {to} nud permanent", shown(mac(&there))),
        );
        for words in [&route, &neighbour] {
            forwarder.ip(words).map_err(said)?;
        }
        for name in ["all", "default", &from] {
            let name = format!("net/ipv4/conf/{name}/rp_filter");
            forwarder.sysctl(&name, "0").map_err(said)?;
        }
        let source = Arc::new(source);
        Ok(VethNetwork { forward, feed, from, to, generator, forwarder, source, sink, lab })
    }

    /// The forwarder.
    pub(crate) fn forwarder(&self) -> &Namespace {
        &self.forwarder
    }

    /// The forwarder's interfaces: where packets come in, and where they leave.
    pub(crate) fn interfaces(&self) -> (&str, &str) {
        (&self.from, &self.to)
    }

    /// The references, and each row by this program and by the one that was built from it.
    fn bed<'a>(
        &'a self,
        rows: &[(&'static str, &'static str)],
        programs: Option<&'a Programs>,
    ) -> Bed<'a> {
        let mut bed = Bed::default();
        let kernel = bed.side("kernel forwarding", |time| self.kernel(time));
        let shortcut = bed.side("XDP redirect in the kernel", |time| self.shortcut(time));
        let minimal = bed.side("minimal AF_XDP forwarder", |time| self.minimal(time));
        for &(device, case) in rows {
            let Some(method) = method(device) else {
                let (ours, theirs) = (kernel, shortcut);
                bed.rows.push(Comparison { device, case, built: false, ours, theirs });
                continue;
            };
            if case == CLIENTS {
                let name = format!("castanet {method}, {POLLING_CLIENTS} clients");
                let ours = bed.side(name, move |time| self.polled(method, time));
                let run = move |time| self.castanet(method, ROUTER, None, time);
                let theirs = bed.side(format!("castanet {method} {ROUTER}"), run);
                bed.rows.push(Comparison { device, case, built: false, ours, theirs });
                continue;
            }
            let theirs = if device == "af_xdp" { minimal } else { kernel };
            let built = programs.and_then(|it| it.path(&configuration(method, case, INTERFACES)));
            let run = move |built: Option<&Path>, time| self.castanet(method, case, built, time);
            bed.path((device, case), &format!("{method} {case}"), built, theirs, run);
        }
        bed
    }

    /// Sends packets and counts those that come through; `meter` is the time
    /// of the forwarder.
    pub(crate) fn measure(&self, time: Duration, meter: &Meter) -> Result<Sample, String> {
        // The counter's side of the work may be left to the kernel's thread.
        let meter = meter.clone().soft_interrupts(self.forward);
        let (generator, feeder) = Generator::start(self)?;
        std::thread::sleep(WARM_UP);
        let count = || self.sink.count().map_err(|error| error.to_string());
        let part = |time| {
            let (began, before) = (Instant::now(), count()?);
            std::thread::sleep(time);
            Ok((count()? - before) as f64 / 1e6 / began.elapsed().as_secs_f64())
        };
        let began = Instant::now();
        // On a busy machine a short run may be over before it got a core.
        let sample = loop {
            let sample = meter::in_parts(time, (&meter, &feeder), part);
            let nothing = sample.as_ref().is_ok_and(|sample| sample.mpps == 0.0);
            if !nothing || began.elapsed() > PATIENCE {
                break sample;
            }
        };
        generator.end()?;
        match sample {
            Ok(Sample { mpps: 0.0, .. }) => Err("no packets came through".into()),
            sample => sample,
        }
    }

    /// Linux routes.
    pub(crate) fn kernel(&self, time: Duration) -> Result<Sample, String> {
        let forwarding = |value| self.forwarder.sysctl("net/ipv4/ip_forward", value);
        forwarding("1").map_err(|error| error.to_string())?;
        let sample = self.in_the_kernel(time);
        forwarding("0").map_err(|error| error.to_string())?;
        sample
    }

    /// The driver sends on.
    fn shortcut(&self, time: Duration) -> Result<Sample, String> {
        let (from, to) = (self.from.clone(), self.to.clone());
        let _until_measured = within(&self.forwarder, move || Shortcut::new(&from, &to))?;
        self.in_the_kernel(time)
    }

    /// Measures with a kernel's thread that receives on the forwarder's core:
    /// otherwise the generator's would do all the work.
    fn in_the_kernel(&self, time: Duration) -> Result<Sample, String> {
        set_threaded(&self.forwarder, &self.from, true)?;
        let sample = pin_receiver(&self.from, self.forward)
            .and_then(|folder| self.measure(time, &Meter::default().thread(folder)));
        set_threaded(&self.forwarder, &self.from, false)?;
        sample
    }

    /// Two sockets, four rings, a loop.
    fn minimal(&self, time: Duration) -> Result<Sample, String> {
        let (from, to) = (self.from.clone(), self.to.clone());
        let mut minimal = within(&self.forwarder, move || MinimalForwarder::open(&from, &to))?;
        let worker =
            Worker::start(&self.forwarder, self.forward, move |stop| minimal.run(stop).map(drop))?;
        let sample = self.measure(time, &Meter::default().thread(worker.folder.clone()));
        worker.end()?;
        sample
    }

    /// Castanet with the router path, while clients read all its handlers. The clients and the control thread are
    /// on a third core; where there are only two, the clients are with the generator, and the control thread is
    /// with the worker.
    fn polled(&self, method: &str, time: Duration) -> Result<Sample, String> {
        let config = configuration(method, ROUTER, self.interfaces());
        let socket = self.lab.directory().join("control");
        let command = self.forwarder.command(super::castanet::program(None)?);
        let words = ["--control".to_owned(), socket.display().to_string()];
        let castanet = Castanet::start(self.forward, command, &words, &config, time)?;
        let third = cores::third([self.forward, self.feed]);
        third.map_or(Ok(()), |core| castanet.move_others(core))?;
        let core = third.unwrap_or(self.feed);
        let clients = PollingClients::start(&socket, POLLING_CLIENTS, core)?;
        let sample = self.measure(time, &castanet.meter());
        match clients.end()? {
            0 => Err("no client was answered".into()),
            _ => sample,
        }
    }

    /// Starts a configuration, whose `out` sends, on the forwarder's core.
    pub(crate) fn start(&self, configuration: &str, time: Duration) -> Result<Castanet, String> {
        self.start_program(None, configuration, time)
    }

    /// The same by a program that was built, or by this one.
    fn start_program(
        &self,
        built: Option<&Path>,
        configuration: &str,
        time: Duration,
    ) -> Result<Castanet, String> {
        let command = self.forwarder.command(super::castanet::program(built)?);
        Castanet::start(self.forward, command, &[], configuration, time)
    }

    /// Castanet with a path, by a program that was built from it or by this one.
    fn castanet(
        &self,
        method: &str,
        case: &str,
        built: Option<&Path>,
        time: Duration,
    ) -> Result<Sample, String> {
        let config = configuration(method, case, self.interfaces());
        let castanet = self.start_program(built, &config, time)?;
        self.measure(time, &castanet.meter())
    }
}

/// Sets whether the kernel receives on an interface in threads of its own.
pub(crate) fn set_threaded(namespace: &Namespace, interface: &str, on: bool) -> Result<(), String> {
    let file = format!("/sys/class/net/{interface}/threaded");
    let line = "echo \"$1\" > \"$2\"";
    let words = ["-c", line, "sh", if on { "1" } else { "0" }, &file];
    let outcome = namespace.command("sh").args(words).check();
    outcome.map(drop).map_err(|_| "this kernel receives in no threads; it takes Linux 5.12".into())
}

/// Puts the kernel's thread that receives on an interface on a core; its folder in `/proc`.
pub(crate) fn pin_receiver(interface: &str, core: usize) -> Result<PathBuf, String> {
    let (number, folder) = meter::kernel_thread(&format!("napi/{interface}-"))
        .ok_or("the kernel's thread is not found")?;
    cores::pin(number, core)?;
    Ok(folder)
}

/// A thread of the benchmark's own, on one core within a namespace.
struct Worker {
    /// Its folder in `/proc`.
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<castanet_lab::Result<Result<(), String>>>,
}

impl Worker {
    /// Starts it; `run` goes on until it sees the stop sign.
    fn start(
        namespace: &Namespace,
        core: usize,
        run: impl FnOnce(&AtomicBool) -> Result<(), castanet_io::IoError> + Send + 'static,
    ) -> Result<Worker, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sign, (sender, started)) = (Arc::clone(&stop), channel());
        let thread = namespace.enter(move || {
            Ok(settle(core, &sender).and_then(|()| run(&sign).map_err(|error| error.to_string())))
        });
        match started.recv() {
            Ok(folder) => Ok(Worker { folder, stop, thread }),
            Err(_) => Err(ended(thread).err().unwrap_or_default()),
        }
    }

    /// Ends it.
    fn end(self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        ended(self.thread)
    }
}

/// Puts the calling thread on its core, and says where in `/proc` it is.
fn settle(core: usize, started: &Sender<PathBuf>) -> Result<(), String> {
    cores::pin(0, core)?;
    let folder = std::fs::read_link("/proc/thread-self").map_err(|error| error.to_string())?;
    started.send(PathBuf::from("/proc").join(folder)).map_err(|error| error.to_string())
}

/// Result of a thread that has ended.
fn ended(thread: JoinHandle<castanet_lab::Result<Result<(), String>>>) -> Result<(), String> {
    thread
        .join()
        .map_err(|_| "a thread of the benchmark died")?
        .map_err(|error| error.to_string())?
}

/// The thread that makes the packets.
struct Generator(Worker);

impl Generator {
    fn start(testbed: &VethNetwork) -> Result<(Generator, Meter), String> {
        let source = Arc::clone(&testbed.source);
        let worker = Worker::start(&testbed.generator, testbed.feed, move |stop| {
            while !stop.load(Ordering::Relaxed) {
                source.send(STRIDE)?;
            }
            Ok(())
        })?;
        let meter = Meter::default().thread(worker.folder.clone());
        Ok((Generator(worker), meter))
    }

    fn end(self) -> Result<(), String> {
        self.0.end()
    }
}
