//! `WorkPackage`: artificial work for each packet.

use super::work_package_state::{WorkPackageState, next};
use castanet_element::prelude::*;
use std::hint::black_box;

/// Bytes of an Ethernet, an IP and a TCP header: the part of a packet that is read without PAYLOAD.
const HEADERS: usize = 54;
/// Bytes of a megabyte.
const MEGABYTE: usize = 1 << 20;

/// Spends time on each packet: computation and memory accesses, as a network function would.
///
/// For each packet it makes W steps of a random number generator and N accesses at random places. R
/// percent of the accesses read the packet, the first 54 bytes or all of it with PAYLOAD; the others read a
/// table of S megabytes that all workers share.
///
/// ```click
/// in -> work :: WorkPackage(S 1, N 10, R 50, PAYLOAD false, W 100) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = work.cycles_work 0
/// = work.cycles 0
/// ```
/// ```click
/// Idle -> work :: WorkPackage(S 0, N 2, R 100, PAYLOAD true, W 5, ANALYSIS true) -> Discard
/// in -> [1] work;  work[1] -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = work.cycles_work 10
/// ! work.cycles
/// = work.cycles_work 0
/// = work.cycles_per_work 0
/// = work.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "measure", args = WorkPackageArgs, ports = "1-/=", processing = "h/h", flow = "#/#")]
pub struct WorkPackage {
    table: Vec<u32>,
    accesses: u32,
    packet_reads: u32,
    payload: bool,
    steps: u32,
    analysis: bool,
}

/// Arguments of [`WorkPackage`].
#[derive(Args)]
pub struct WorkPackageArgs {
    /// Size of the table in megabytes.
    #[arg(range = 0..=1024)]
    s: usize,
    /// Accesses for each packet.
    #[arg]
    n: u32,
    /// Percentage of the accesses that read the packet.
    #[arg(range = 0..=100)]
    r: u32,
    /// Whether the whole packet is read, and not just its headers.
    #[arg]
    payload: bool,
    /// Steps of the random number generator for each packet.
    #[arg(default = 1)]
    w: u32,
    /// Whether to count the cycles of the work.
    #[arg(keyword, default = false)]
    analysis: bool,
}

impl Build for WorkPackage {
    type Args = WorkPackageArgs;

    fn build(args: WorkPackageArgs, _: &Setup) -> Result<Self, ArgError> {
        let WorkPackageArgs { s, n, r, payload, w, analysis } = args;
        if s == 0 && n > 0 && r < 100 {
            let error = ArgError::new("S: a table of 0 megabytes cannot be read");
            return Err(error.help("with R 100 all accesses read the packet"));
        }
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let numbers = s * MEGABYTE / size_of::<u32>();
        let table = (0..numbers).map(|_| next(&mut random) as u32).collect();
        Ok(WorkPackage { table, accesses: n, packet_reads: r, payload, steps: w, analysis })
    }
}

impl WorkPackage {
    fn work(&self, random: &mut u64, bytes: &[u8]) {
        for _ in 0..self.steps {
            black_box(next(random));
        }
        let most = if self.payload { bytes.len() } else { bytes.len().min(HEADERS) };
        for _ in 0..self.accesses {
            let random = next(random);
            let place = (random >> 8) as usize;
            if random as u32 % 100 < self.packet_reads {
                black_box(bytes.get(place % most.max(1)).copied());
            } else {
                black_box(self.table.get(place % self.table.len().max(1)).copied());
            }
        }
    }
}

impl PerBatch for WorkPackage {
    type On = on::Any;
    type Local = WorkPackageState;
    type Fate = Port;

    fn apply_config(&self, state: &mut WorkPackageState) {
        state.count_cycles(self.analysis);
    }

    fn batch(&self, state: &mut WorkPackageState, port: usize, batch: Batch, cx: &mut Cx) {
        let before = state.begin();
        batch.iter().for_each(|packet| self.work(&mut state.random, packet.bytes()));
        state.end(before, u64::from(self.steps) * batch.len() as u64);
        // There are as many outputs as inputs.
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
