//! Runs both ends of a slot channel against a peer that writes the input to the shared memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = castanet_io::slots::run_hostile_peer(data) {
        panic!("the kernel refuses: {error}");
    }
});
