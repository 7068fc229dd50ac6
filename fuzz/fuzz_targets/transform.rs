//! Runs the transformations of Click's tools on two configurations, patterns and
//! links, with zero bytes between them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_lang::fuzz_tools(data));
