//! Runs commands of `Middlebox` and packets; see `castanet_middlebox::fuzz_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_middlebox::fuzz_entry(data));
