//! Reads any input as a capture, prints each packet in every format, and writes the capture again.
#![no_main]

use castanet_wire::pcap::{Precision, Reader, Writer};
use castanet_wire::print::{ArpPrint, IpPrint, Print};
use castanet_wire::sketch::{self, Layer};
use castanet_wire::{Ethernet, Timestamp};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(data) else { return };
    let mut packets = Vec::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        print(packet.data, packet.timestamp);
        packets.push((packet.timestamp, packet.wire_len, packet.data.to_vec()));
    }
    check_writer(&packets);
});

/// Prints a packet as each element does, and checks that its sketch builds the same bytes.
fn print(bytes: &[u8], timestamp: Timestamp) {
    let ether = Ethernet::from_prefix(bytes).map(|(ether, _)| ether);
    let timestamp = Some(timestamp);
    let mut line = String::new();
    Print { timestamp, max: None, ..Print::default() }.line(bytes, &mut line);
    for network in [0, 14] {
        IpPrint { ether, timestamp, id: true, ttl: true, ..IpPrint::default() }
            .line(bytes, network, &mut line);
        ArpPrint { ether, timestamp, ..ArpPrint::default() }
            .line(bytes.get(network..).unwrap_or_default(), &mut line);
    }
    for layer in [Layer::Ethernet, Layer::Network] {
        let printed = sketch::print(bytes, layer);
        let built = sketch::build(&printed).map(|sketch| (sketch.bytes, sketch.layer));
        let (built, _) = built.unwrap_or_else(|e| panic!("{printed}: {e}"));
        assert_eq!(built, bytes, "{printed}");
    }
}

/// Checks that a written capture reads back the same packets.
fn check_writer(packets: &[(Timestamp, u32, Vec<u8>)]) {
    let mut writer = Writer::new(Vec::new(), 1, Precision::Nanos, u32::MAX).expect("memory");
    for (timestamp, wire_len, bytes) in packets {
        writer.write(*timestamp, *wire_len, bytes).expect("memory");
    }
    let written = writer.into_inner();
    let read = Reader::new(&written[..]).expect("what was written");
    let read: Result<Vec<_>, _> = read.map(|packet| packet.map(|packet| packet.data)).collect();
    let read = read.expect("what was written");
    assert!(read.iter().eq(packets.iter().map(|(.., bytes)| bytes)));
}
