//! DPDK's devices: what the driver carries, by `dpdk-testpmd` and by Castanet.

use super::castanet::{Castanet, OUT};
use super::cores::Cores;
use super::meter::{Meter, PARTS, Sample, in_parts};
use super::testpmd::{PROGRAM, Testpmd};
use super::{
    Bed, CASES, COUNTER, FORWARD, Plan, ROUTER, Record, Reporter, compare, named, packets,
};
use crate::built::{Programs, Target};
use crate::paths::{self, Path};
use crate::traffic::Traffic;
use castanet_lab::{Command, Lab, is_installed};
use std::path;
use std::time::Duration;

/// Parameters of the ports, the same for both programs.
pub(super) struct Settings {
    pub(super) descriptors: u16,
    pub(super) mbufs: u32,
    pub(super) mbuf_size: u16,
    pub(super) cache: u16,
}

pub(super) const SETTINGS: Settings =
    Settings { descriptors: 1024, mbufs: 16384, mbuf_size: 2176, cache: 256 };

/// Length of the warm-up before a run is measured.
const WARM_UP: Duration = Duration::from_millis(200);

/// A device and, where it leads to another process, that process's device.
struct Device {
    name: &'static str,
    /// The forwarder's device options.
    ours: String,
    /// The packet generator's device options.
    peer: Option<String>,
}

/// Names of the devices.
const NAMES: [&str; 4] = ["net_null", "net_pcap", "net_memif", "vhost"];

/// All of them; their files lie in `folder`. `shared` says that processes can
/// share their memory.
fn devices(folder: &path::Path, shared: bool) -> [Device; 4] {
    let file = |name: &str| folder.join(name).display().to_string();
    let capture = file(CAPTURE);
    let pcap = format!("net_pcap0,rx_pcap={capture},infinite_rx=1");
    let (memif, vhost) = (file("memif"), file("vhost"));
    let memif = format!("net_memif0,socket={memif},socket-abstract=no");
    // The forwarder copies; the peer, where its memory can be shared, does
    // not, so that the peer does not limit the rate.
    let zero_copy = if shared { ",zero-copy=yes" } else { "" };
    let [null, repeated, shared_memory, card] = NAMES;
    [
        Device { name: null, ours: "net_null0,size=64".into(), peer: None },
        Device { name: repeated, ours: pcap, peer: None },
        Device {
            name: shared_memory,
            ours: format!("{memif},role=server"),
            peer: Some(format!("{memif},role=client{zero_copy}")),
        },
        Device {
            name: card,
            ours: format!("net_vhost0,iface={vhost}"),
            peer: Some(format!("net_virtio_user0,path={vhost}")),
        },
    ]
}

/// The file with the packets.
const CAPTURE: &str = "packets.pcap";

/// DPDK's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// In huge pages of so many kilobytes.
    Huge(u64),
    /// In ordinary ones.
    Plain,
}

/// Megabytes that each process gets.
const MEGABYTES: u64 = 192;

impl Memory {
    /// Huge pages, if there are enough for two processes.
    fn choose(wanted: bool) -> Memory {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        if wanted { Memory::of(&text) } else { Memory::Plain }
    }

    fn of(meminfo: &str) -> Memory {
        let number = |name: &str| -> u64 {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let size = number("Hugepagesize");
        let free = number("HugePages_Free") * size;
        if free >= 2 * MEGABYTES * 1024 { Memory::Huge(size) } else { Memory::Plain }
    }

    /// As the user reads it.
    fn shown(self) -> String {
        match self {
            Memory::Huge(size) => format!("huge pages of {} MB", size / 1024),
            Memory::Plain => "no huge pages".into(),
        }
    }

    /// As DPDK reads it.
    fn options(self) -> Vec<String> {
        let text = match self {
            // One file, because two processes share memory by file descriptors.
            Memory::Huge(_) => format!("--in-memory --single-file-segments -m {MEGABYTES}"),
            Memory::Plain => "--no-huge -m 512 --no-shconf".into(),
        };
        let all = text + " --no-pci --no-telemetry --log-level=4";
        all.split(' ').map(str::to_owned).collect()
    }
}

/// The configurations of the rows that are wanted and can be measured: all devices have the same.
pub(super) fn targets(plan: &Plan, cores: &Cores) -> Vec<Target> {
    let devices = devices(path::Path::new(""), false);
    let ready = devices.iter().filter(|device| needs(device, cores).is_ok());
    let rows: Vec<_> = ready.flat_map(|device| plan.rows(rows(device.name))).collect();
    let cases = CASES.into_iter().filter(|case| rows.iter().any(|row| row.1 == *case));
    let target = |path: &Path| Target {
        name: format!("{} between DPDK's ports", path.name),
        text: configuration(path),
    };
    cases.filter_map(paths::find).map(target).collect()
}

/// Measures the rows of DPDK's devices.
pub(super) fn run(
    plan: &Plan,
    cores: &Cores,
    programs: Option<&Programs>,
    reporter: &mut dyn Reporter,
) -> Vec<Record> {
    if NAMES.iter().all(|name| plan.rows(rows(name)).is_empty()) {
        return Vec::new();
    }
    let memory = Memory::choose(plan.huge);
    let lab = Lab::new("bench").map_err(|error| error.to_string());
    let folder = lab.as_ref().map_or(path::Path::new(""), |lab| lab.directory());
    let mut records = Vec::new();
    for device in &devices(folder, memory != Memory::Plain) {
        let rows = plan.rows(rows(device.name));
        if rows.is_empty() {
            continue;
        }
        let ready = lab.as_ref().map_err(Clone::clone).and_then(|_| needs(device, cores));
        match ready {
            Ok(()) => {
                let testbed = DeviceBench { device, folder, memory, cores };
                let bed = testbed.bed(&rows, programs);
                let pages = Some(memory.shown());
                records.extend(compare(plan, bed, pages.as_deref(), reporter));
            }
            Err(why) => reporter.missing(&named(&rows), &why),
        }
    }
    records
}

/// Whether a device can be measured.
fn needs(device: &Device, cores: &Cores) -> Result<(), String> {
    if !castanet_io::dpdk::is_built_in() {
        return Err(
            "this castanet was built without DPDK: apt-get install libdpdk-dev, and build again"
                .into(),
        );
    }
    if !is_installed(PROGRAM) {
        return Err(format!("{PROGRAM} is not installed: apt-get install dpdk-dev"));
    }
    match device.peer {
        Some(_) => cores.feed().map(drop),
        None => Ok(()),
    }
}

/// The rows of a device. `net_null` makes no IP packets, and where a peer brings the packets its
/// rate and the rings' limit most rows.
fn rows(device: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let [null, repeated, ..] = NAMES;
    let has = move |case: &&str| match device {
        _ if device == null => [FORWARD, COUNTER].contains(case),
        _ if device == repeated => true,
        _ => [FORWARD, COUNTER, ROUTER].contains(case),
    };
    CASES.into_iter().filter(has).map(move |case| (device, case))
}

/// A device and the parameters of the forwarders that are run on it.
struct DeviceBench<'a> {
    device: &'a Device,
    folder: &'a path::Path,
    memory: Memory,
    cores: &'a Cores,
}

impl DeviceBench<'_> {
    /// The reference, and each row's path by this program and by the one that was built from it.
    fn bed<'a>(
        &'a self,
        rows: &[(&'static str, &'static str)],
        programs: Option<&'a Programs>,
    ) -> Bed<'a> {
        let mut bed = Bed::default();
        let theirs = bed.side(PROGRAM, |time| self.testpmd(time));
        for &(device, case) in rows {
            let Some(path) = paths::find(case) else { continue };
            let built = programs.and_then(|it| it.path(&configuration(path)));
            let run = move |built: Option<&path::Path>, time| self.castanet(path, built, time);
            bed.path((device, case), case, built, theirs, run);
        }
        bed
    }

    /// The options of DPDK's environment.
    fn environment(&self, devices: &[&str]) -> Vec<String> {
        let mut words = self.memory.options();
        words.extend(devices.iter().map(|device| format!("--vdev={device}")));
        words
    }

    /// Starts the packet generator of the device: it sends the capture's packets again and
    /// again, and drops the packets that it receives. It waits for room: mbufs that it drops
    /// for lack of room are the next that it offers to be written to, and lie in its own core's
    /// cache, so that the forwarder would wait for that core.
    fn peer(&self) -> Result<Option<Testpmd>, String> {
        let Some(device) = &self.device.peer else { return Ok(None) };
        let capture = self.folder.join(CAPTURE);
        let source = format!("net_pcap0,rx_pcap={},infinite_rx=1", capture.display());
        let environment = self.environment(&[&source, device]);
        let mut peer = Testpmd::start(self.cores.feed()?, &environment)?;
        peer.wait_for_room()?;
        Ok(Some(peer))
    }

    /// Takes the sockets of the run before away, and writes the packets of this one.
    fn prepare(&self, traffic: Traffic) -> Result<(), String> {
        for name in ["memif", "vhost"] {
            // There are none in the first run.
            _ = std::fs::remove_file(self.folder.join(name));
        }
        packets::write_capture(&self.folder.join(CAPTURE), traffic)
    }

    fn testpmd(&self, time: Duration) -> Result<Sample, String> {
        self.prepare(Traffic::Plain)?;
        let environment = self.environment(&[&self.device.ours]);
        let mut forwards = Testpmd::start(self.cores.forward, &environment)?;
        let peer = self.peer()?;
        forwards.warm_up(WARM_UP)?;
        forwards.measure(time, &feeder(peer.as_ref()))
    }

    /// Castanet with a path, by a program that was built from it or by this one.
    fn castanet(
        &self,
        path: &Path,
        built: Option<&path::Path>,
        time: Duration,
    ) -> Result<Sample, String> {
        self.prepare(path.traffic)?;
        let core = self.cores.forward;
        let mut words: Vec<String> = self.environment(&[&self.device.ours]);
        words.push(format!("--lcores=0@{core}"));
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let program = super::castanet::program(built)?;
        let words = ["--dpdk".to_owned(), quoted.join(" ")];
        let config = configuration(path);
        let command = Command::on_host(program);
        let mut forwards = Castanet::start(core, command, &words, &config, time / PARTS)?;
        let peer = self.peer()?;
        let (meter, feeder) = (forwards.meter(), feeder(peer.as_ref()));
        forwards.warm_up(WARM_UP)?;
        forwards.look_anew()?;
        in_parts(time, (&meter, &feeder), |_| Ok(forwards.look_anew()? / 1e6))
    }
}

/// The packet generator's meter, if there is a packet generator.
fn feeder(peer: Option<&Testpmd>) -> Meter {
    peer.map(Testpmd::meter).unwrap_or_default()
}

/// One port, and the path between its two directions. The forwarder polls all the time, as
/// dpdk-testpmd does: one that sleeps while the peer has no core would seem to need less time.
fn configuration(path: &Path) -> String {
    let Settings { descriptors, mbufs, mbuf_size, cache } = SETTINGS;
    let path = path.between("in", OUT);
    format!(
        "DPDKInfo({mbufs}, MBUF_SIZE {mbuf_size}, MBUF_CACHE_SIZE {cache});
         in :: FromDPDKDevice(0, NDESC {descriptors}, BUSY true);
         {OUT} :: ToDPDKDevice(0, NDESC {descriptors});
         {path}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_used_where_there_are_enough() {
        let of = |free| Memory::of(&format!("HugePages_Free: {free}\nHugepagesize: 2048 kB\n"));
        assert_eq!((of(192), of(191)), (Memory::Huge(2048), Memory::Plain));
        assert_eq!(Memory::of(""), Memory::Plain);
    }
}
