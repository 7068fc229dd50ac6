//! Takes the input for an example such as stands in an element's
//! documentation: builds its configuration and does what its script says, in
//! simulated time and without devices.
#![no_main]

use castanet_fuzz::{live_through, text};

libfuzzer_sys::fuzz_target!(|data: &[u8]| live_through(&text(data)));
