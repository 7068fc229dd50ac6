//! Runs the input as an example like those in the documentation of elements:
//! builds its configuration and runs its script, in simulated time and without
//! devices.
#![no_main]

use castanet_fuzz::{run_example, text};

libfuzzer_sys::fuzz_target!(|data: &[u8]| run_example(&text(data)));
