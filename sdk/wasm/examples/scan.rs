//! scan: looks for a text in whole packets; those that have it leave by output 1 with paint 1.
#![no_std]
#![no_main]

use castanet_wasm_sdk::{count, module, Element, Packet, Verdict};

const MOST: usize = 64;

struct Scan {
    needle: [u8; MOST],
    length: usize,
}

impl Element for Scan {
    const COUNTERS: &'static [&'static str] = &["found\0", "scanned_bytes\0"];

    fn configure(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > MOST {
            return Err("give a text of 1 to 64 bytes to look for");
        }
        let mut needle = [0; MOST];
        needle.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        Ok(Scan { needle, length: text.len() })
    }

    fn packet(&mut self, packet: &mut Packet) -> Verdict {
        let bytes = packet.bytes();
        count(1, bytes.len() as u64);
        let needle = &self.needle[..self.length];
        if bytes.windows(needle.len()).any(|it| it.iter().eq(needle)) {
            packet.set_paint(1);
            count(0, 1);
            return Verdict::Output(1);
        }
        Verdict::Output(0)
    }
}

module!(Scan, snap: 2048, headroom: 0, batch: 32);
