//! Fuzzes modules of `WasmElement`: the bytes are refused with a message, or are a module that gets
//! packets and handler calls within its limits.
#![no_main]

use castanet_element::packet::Packet;
use castanet_element::time::Time;
use castanet_wasm::{Limits, Meter, Module, copy_in, copy_out};

const LIMITS: Limits =
    Limits { instructions: 100_000, memory: 1 << 20, meter: Meter::Fuel };
/// Lengths of the packets.
const LENGTHS: [usize; 4] = [0, 1, 60, 1500];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let made = Module::compile(data, LIMITS).and_then(|it| it.instantiate("22", Time::default()));
    let mut instance = match made {
        Ok(instance) => instance,
        Err(message) => return assert!(!message.trim().is_empty(), "an error without a word"),
    };
    for round in 0..3 {
        let mut packets: Vec<Packet> =
            LENGTHS.iter().map(|length| Packet::from_bytes(&vec![round; *length])).collect();
        let packets = &mut packets[..LENGTHS.len().min(instance.interface().capacity())];
        let mut fates = vec![0; packets.len()];
        let (memory, interface) = instance.memory_mut();
        copy_in(memory, interface, packets, round);
        if instance.process(packets.len(), Time(1)).is_err() {
            return;
        }
        let (memory, interface) = instance.memory_mut();
        let done = copy_out(memory, interface, packets, 2, &mut fates);
        packets.iter().for_each(|packet| packet.check_bounds().expect("bounds"));
        if done.is_err() || instance.read(0, Time(1)).is_err() {
            return;
        }
        if instance.write(0, "1", Time(1)).is_err() || instance.update("23", Time(1)).is_err() {
            return;
        }
    }
});
