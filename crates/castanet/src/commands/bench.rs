//! `castanet bench`.

mod built;
mod classify;
mod elements;
mod firewall;
mod flows;
mod io;
mod models;
mod observe;
mod paths;
mod router;
mod scale;
mod shared;
mod shared_packets;
mod slots;
mod splitbox;
mod tenants;
#[cfg(feature = "wasm")]
mod wasm;

use super::{CommandResult, write_json, write_out};
use crate::terminal::{bold, colours_on_stdout};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Arguments of `castanet bench`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Bare forwarding and the whole router path, replayed from memory
    Router(router::Arguments),
    #[command(
        about = "What a packet costs in each element class, from the manual's examples",
        long_about = None
    )]
    Elements(elements::Arguments),
    /// Devices: packets through one core, beside programs that only forward
    Io(io::Arguments),
    /// Ways to divide one path between workers: full push, queues, pipelines
    Models(models::Arguments),
    /// A router that is looked at, beside one that is not
    Observe(observe::Arguments),
    /// Short paths for exact numbers of packets, for tools that count instructions
    Paths(paths::Arguments),
    /// Workers that visit the same elements: what they carry together
    Scale(scale::Arguments),
    /// A table of flows: adding, finding and ending them, beside a hash map
    Flows(flows::Arguments),
    /// Connections and mappings that workers share: what they carry together
    Shared(shared::Arguments),
    /// Packets that are shared, kept or made, beside a copy of their bytes by hand
    SharedPackets(shared_packets::Arguments),
    /// Rules: what a packet costs against sets of many sizes and kinds
    Classify(classify::Arguments),
    /// SplitBox: what each party carries, beside the function in the plain
    #[command(name = "splitbox")]
    SplitBox(splitbox::Arguments),
    /// Slot channels: packets to another process and back
    Slots(slots::Arguments),
    /// Virtual routers that share a worker: rates, overhead, and a limit that holds
    Tenants(tenants::Arguments),
    /// Elements in WebAssembly, beside native ones that do the same
    #[cfg(feature = "wasm")]
    Wasm(wasm::Arguments),
    /// Rules by the thousand between interfaces, beside nftables, iptables and Linux
    Firewall(firewall::Arguments),
}

/// Runs the benchmark that the command line names.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    match &arguments.benchmark {
        Benchmark::Router(arguments) => router::main(arguments),
        Benchmark::Elements(arguments) => elements::main(arguments),
        Benchmark::Io(arguments) => io::main(arguments),
        Benchmark::Models(arguments) => models::main(arguments),
        Benchmark::Observe(arguments) => observe::main(arguments),
        Benchmark::Paths(arguments) => paths::main(arguments),
        Benchmark::Scale(arguments) => scale::main(arguments),
        Benchmark::Flows(arguments) => flows::main(arguments),
        Benchmark::Shared(arguments) => shared::main(arguments),
        Benchmark::SharedPackets(arguments) => shared_packets::main(arguments),
        Benchmark::Classify(arguments) => classify::main(arguments),
        Benchmark::SplitBox(arguments) => splitbox::main(arguments),
        Benchmark::Slots(arguments) => slots::main(arguments),
        Benchmark::Tenants(arguments) => tenants::main(arguments),
        #[cfg(feature = "wasm")]
        Benchmark::Wasm(arguments) => wasm::main(arguments),
        Benchmark::Firewall(arguments) => firewall::main(arguments),
    }
}

/// Runs a benchmark and shows each record as it comes, unless they are wanted as JSON.
fn run_and_print<R: Serialize>(
    json: bool,
    heading: &str,
    row: impl Fn(&R) -> String,
    run: impl FnOnce(&mut dyn FnMut(R)) -> Result<(), String>,
) -> CommandResult {
    let mut records = Vec::new();
    let mut written = if json { Ok(()) } else { write_out(None, heading) };
    run(&mut |record| match json {
        true => records.push(record),
        false if written.is_ok() => written = write_out(None, &row(&record)),
        false => {}
    })?;
    if json { write_json(&records) } else { written }
}

/// The first line of a table.
fn title(columns: &str) -> String {
    bold(columns, colours_on_stdout()) + "\n"
}

/// Shows on a terminal what a benchmark is doing, instead of the last text.
fn show_progress(doing: &str) {
    if std::io::stderr().is_terminal() {
        // Progress messages are lost if standard error is closed.
        _ = write!(std::io::stderr(), "\r\x1b[K{doing}");
    }
}
