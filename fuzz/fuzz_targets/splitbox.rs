//! Compiles policies of SplitBox and sends packets through them; see `castanet_splitbox::fuzz_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| castanet_splitbox::fuzz_entry(data));
