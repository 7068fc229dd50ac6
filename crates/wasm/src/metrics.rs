//! The metrics of a `WasmElement`.

use castanet_element::prelude::*;

pub(crate) const COUNTERS: Metric =
    Metric::counter("wasm_counters", "Counters of a WebAssembly module, by the counter's name.")
        .by("counter");

pub(crate) const FAULTS: Metric = Metric::counter(
    "wasm_faults",
    "Faults of a WebAssembly module: traps, limits, malformed answers.",
);
