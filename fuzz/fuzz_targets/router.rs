//! Takes the input for an example such as stands in an element's
//! documentation: builds its configuration and does what its script says, in
//! simulated time and without devices.
#![no_main]

use castanet_engine::class::Library;
use castanet_engine::example::survive;
use std::cell::LazyCell;

thread_local! {
    static LIBRARY: LazyCell<Library> = const { LazyCell::new(castanet_elements::library) };
}

/// Long enough for every element, too short for what is only large.
const LONGEST: usize = 2000;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(&data[..data.len().min(LONGEST)]);
    // An hour of traffic is no defect, only an hour.
    let lines = text.lines().map(|line| if line.starts_with('+') { "+ 100ms" } else { line });
    let text = lines.collect::<Vec<_>>().join("\n");
    let burst = [1, 4, 64][text.len() % 3];
    LIBRARY.with(|library| survive(&text, library, burst)).expect("packets balance");
});
