//! Reads anything as a capture.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut reader = castanet_wire::pcap::Reader::new(data);
    while let Ok(Some(_)) = reader.next_packet() {}
});
