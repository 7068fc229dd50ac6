//! `castanet bench wasm`: elements that are WebAssembly modules, beside native ones that do the same.

use super::measure::{Run, is_selected, median, watched};
use super::router::{build_with, count, run_counted};
use super::traffic::{FLOWS, Traffic, frames};
use castanet_element::class::Library;
use castanet_element::packet::Packet;
use castanet_element::time::Time;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use castanet_wasm::{Limits, Meter, Module, ModuleInstance, copy_in, copy_out};
use serde::Serialize;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One line of the table: an element in its path.
#[derive(Serialize)]
pub struct Record {
    /// The work of the element.
    pub case: &'static str,
    /// Whether native elements in a row may run as one pass.
    pub fused: bool,
    /// Packets in a batch.
    pub burst: usize,
    /// Nanoseconds of processor time a packet on the path without the element.
    pub path_ns: f64,
    /// Nanoseconds that the native element adds.
    pub native_ns: f64,
    /// Nanoseconds that the module adds.
    pub wasm_ns: f64,
    /// The module's cost as a multiple of the native element's.
    pub ratio: f64,
    /// The cost of the whole path with the module as a multiple of that with the native element.
    pub path_ratio: f64,
}

/// One line of the second table: parts of a call, with one way to limit its time.
#[derive(Serialize)]
pub struct CallRecord {
    /// The module.
    pub module: &'static str,
    /// How the time of a call is limited.
    pub meter: &'static str,
    /// Packets in a batch.
    pub burst: usize,
    /// Nanoseconds to copy a packet and its descriptor in.
    pub copy_in_ns: f64,
    /// Nanoseconds of the call for a packet.
    pub call_ns: f64,
    /// Nanoseconds to copy a packet's answer out.
    pub copy_out_ns: f64,
    /// Nanoseconds of a call without packets.
    pub empty_call_ns: f64,
}

/// Extent of the measurement.
pub struct Plan {
    /// The cases to measure; all of them if it is empty.
    pub cases: Vec<String>,
    /// Packets in a batch.
    pub bursts: Vec<usize>,
    /// Frames in rotation.
    pub frames: usize,
    /// Runs of each side.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
}

/// An element in WebAssembly, and a native one that does the same.
struct Case {
    name: &'static str,
    native: &'static str,
    module: &'static str,
    bytes: &'static [u8],
    configuration: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        name: "ttl",
        native: "DecIPTTL",
        module: "ttl.wasm",
        bytes: include_bytes!("../../../sdk/wasm/modules/ttl.wasm"),
        configuration: "",
    },
    Case {
        name: "firewall",
        native: "IPFilter(deny tcp dst port 22, deny tcp dst port 23, deny tcp dst port 25, \
                 deny tcp dst port 110, allow all)",
        module: "firewall.wasm",
        bytes: include_bytes!("../../../sdk/wasm/modules/firewall.wasm"),
        configuration: ", 22, 23, 25, 110",
    },
    Case {
        name: "scan",
        native: "{ input -> s :: Search(needle) -> Discard; s[1] -> output }",
        module: "scan.wasm",
        bytes: include_bytes!("../../../sdk/wasm/modules/scan.wasm"),
        configuration: ", needle",
    },
];

/// The names of the cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Files of the modules, which go with it.
struct ModuleFiles(PathBuf);

impl ModuleFiles {
    fn new() -> Result<ModuleFiles, String> {
        let folder = std::env::temp_dir().join(format!("castanet-wasm-{}", std::process::id()));
        let files = ModuleFiles(folder);
        let failed = |error: std::io::Error| format!("{}: {error}", files.0.display());
        std::fs::create_dir_all(&files.0).map_err(failed)?;
        for case in &CASES {
            std::fs::write(files.0.join(case.module), case.bytes).map_err(failed)?;
        }
        Ok(files)
    }
}

impl Drop for ModuleFiles {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Measures every case, in turn without the element, with the native one and with the module.
///
/// # Errors
/// A path cannot be built, or loses packets.
pub fn run(
    plan: &Plan,
    library: &Library,
    on_record: &mut dyn FnMut(Record),
) -> Result<(), String> {
    let files = ModuleFiles::new()?;
    for case in CASES.iter().filter(|case| is_selected(&plan.cases, case.name)) {
        for fused in [true, false] {
            for &burst in &plan.bursts {
                on_record(measure(case, fused, burst, plan, &files.0, library)?);
            }
        }
    }
    Ok(())
}

fn measure(
    case: &Case,
    fused: bool,
    burst: usize,
    plan: &Plan,
    folder: &Path,
    library: &Library,
) -> Result<Record, String> {
    let module = folder.join(case.module);
    let wasm = format!("WasmElement({}{})", module.display(), case.configuration);
    let build = |element: &str| {
        let mut options = Options::new(Arc::new(SilentConsole));
        (options.workers, options.pin, options.fuse, options.burst) = (1, true, fused, burst);
        options.frames = Some(2 * plan.frames + 8192);
        let element = if element.is_empty() { String::new() } else { format!("-> {element}") };
        let text = format!(
            "r :: BenchRing({}, TRAFFIC tcp) -> Strip(14) -> CheckIPHeader {element} -> Unstrip(14) -> r;",
            plan.frames
        );
        build_with(&text, library, &options)
    };
    let mut routers = [build("")?, build(case.native)?, build(&wasm)?];
    let mut runs: [Vec<Run>; 3] = Default::default();
    for _ in 0..plan.rounds {
        for (router, runs) in routers.iter_mut().zip(&mut runs) {
            let counted = |router: &mut Router| count(router, "r.count");
            runs.push(watched(1, || run_counted(router, plan.time, counted)));
        }
    }
    for router in &mut routers {
        let drops = router.read("drops").unwrap_or_default();
        if !drops.is_empty() {
            return Err(format!("{}: packets were dropped: {drops}", case.name));
        }
    }
    let [path, native, wasm] = runs.map(|runs| median(&runs));
    let (native_ns, wasm_ns) = (native - path, wasm - path);
    Ok(Record {
        case: case.name,
        fused,
        burst,
        path_ns: path,
        native_ns,
        wasm_ns,
        ratio: wasm_ns / native_ns,
        path_ratio: wasm / native,
    })
}

/// Measures the parts of calls, with each way to limit their time.
///
/// # Errors
/// A module fails.
pub fn run_calls(plan: &Plan, on_record: &mut dyn FnMut(CallRecord)) -> Result<(), String> {
    let meters = [("fuel", Meter::Fuel), ("epoch", Meter::Epoch), ("none", Meter::Unlimited)];
    for case in CASES.iter().filter(|case| is_selected(&plan.cases, case.name)) {
        for (meter, by) in meters {
            let limits = Limits { instructions: 10_000_000, memory: 16 << 20, meter: by };
            let configuration = case.configuration.trim_start_matches(", ").replace(", ", "\n");
            for &burst in &plan.bursts {
                let module = Module::compile(case.bytes, limits)?;
                let mut instance = module.instantiate(&configuration, Time::default())?;
                on_record(call_record(case.name, meter, burst, plan, &mut instance)?);
            }
        }
    }
    Ok(())
}

fn call_record(
    module: &'static str,
    meter: &'static str,
    burst: usize,
    plan: &Plan,
    instance: &mut ModuleInstance,
) -> Result<CallRecord, String> {
    let mut packets: Vec<Packet> = frames(Traffic::Tcp, FLOWS).iter().take(burst).map(ip).collect();
    let mut fates = vec![0; packets.len()];
    let count = packets.len();
    let fault = |fault: castanet_wasm::Fault| format!("{module}: {fault}");
    let rounds = plan.rounds.max(1);
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        times[0].push(each(plan.time, || {
            let (memory, interface) = instance.memory_mut();
            copy_in(memory, interface, &packets, 0);
            Ok(())
        })?);
        times[1].push(each(plan.time, || instance.process(count, Time(1)).map_err(fault))?);
        // The descriptors are those of a call that has just been made.
        let (memory, interface) = instance.memory_mut();
        copy_in(memory, interface, &packets, 0);
        instance.process(count, Time(1)).map_err(fault)?;
        times[2].push(each(plan.time, || {
            let (memory, interface) = instance.memory_mut();
            copy_out(memory, interface, &mut packets, 2, &mut fates).map_err(fault)
        })?);
        times[3].push(each(plan.time, || instance.process(0, Time(1)).map_err(fault))?);
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [copy_in_ns, call_ns, copy_out_ns, empty_call_ns] = times.each_mut().map(middle);
    let packet = count as f64;
    Ok(CallRecord {
        module,
        meter,
        burst,
        copy_in_ns: copy_in_ns / packet,
        call_ns: call_ns / packet,
        copy_out_ns: copy_out_ns / packet,
        empty_call_ns,
    })
}

/// The IPv4 packet in a frame, with its header marked.
fn ip(frame: &[u8; super::traffic::FRAME]) -> Packet {
    let mut bytes = *frame;
    // A TTL that lasts for all rounds is not needed: the module marks the same bytes as changed.
    bytes[22] = 255;
    let mut packet = Packet::from_bytes(&bytes[14..]);
    packet.set_network_header(0, 20);
    packet
}

/// Nanoseconds of one call of `work`, which is called for about `time`.
fn each(time: Duration, mut work: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let (started, mut calls) = (Instant::now(), 0u32);
    while started.elapsed() < time {
        for _ in 0..256 {
            black_box(work()?);
        }
        calls += 256;
    }
    Ok(started.elapsed().as_nanos() as f64 / f64::from(calls))
}
