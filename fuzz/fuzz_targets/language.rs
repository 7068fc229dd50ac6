//! Parses, expands and prints a configuration, and parses it again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_lang::fuzz_entry(data));
