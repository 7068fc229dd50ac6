//! Compiles anything as a pattern, and runs it on the rest of the input.
#![no_main]

use castanet_kit::classify::{Pattern, Program, Rule};
use castanet_wire::sketch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (text, packet) = data.split_at(data.len() / 2);
    let text = String::from_utf8_lossy(text);
    for pattern in [Pattern::ip(&text), Pattern::bytes(&text)].into_iter().flatten() {
        let program = Program::compile(&[Rule::new(pattern, Some(0))]);
        _ = (program.run_ip(packet), program.run_bytes(packet), program.to_string());
    }
    if let Ok(built) = sketch::build(&text) {
        let printed = sketch::print(&built.bytes, built.layer);
        assert_eq!(sketch::build(&printed).map(|s| s.bytes), Ok(built.bytes));
    }
});
