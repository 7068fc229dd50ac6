//! Two configurations, patterns and links, with zero bytes between them: what
//! Click's tools make of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_lang::fuzz_tools(data));
