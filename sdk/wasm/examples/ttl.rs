//! ttl: decrements the TTL of IPv4 packets and updates the checksum; packets at their last hop leave by
//! output 1, packets without a marked IPv4 header by output 0, unchanged.
#![no_std]
#![no_main]

use castanet_wasm_sdk::{count, module, Element, Packet, Verdict};

struct Ttl;

impl Element for Ttl {
    const COUNTERS: &'static [&'static str] = &["decremented\0"];

    fn configure(_: &str) -> Result<Self, &'static str> {
        Ok(Ttl)
    }

    fn packet(&mut self, packet: &mut Packet) -> Verdict {
        let at = match packet.network() {
            Some(at) if at + 20 <= packet.bytes().len() => at,
            _ => return Verdict::Output(0),
        };
        if packet.bytes()[at + 8] <= 1 {
            return Verdict::Output(1);
        }
        if let Some(bytes) = packet.change::<4>(at + 8) {
            bytes[0] -= 1;
            // RFC 1624: the sum of the header changes by 0x0100.
            let sum = u32::from(u16::from_be_bytes([bytes[2], bytes[3]])) + 0x0100;
            let sum = (sum + (sum >> 16)) as u16;
            bytes[2..].copy_from_slice(&sum.to_be_bytes());
            count(0, 1);
        }
        Verdict::Output(0)
    }
}

module!(Ttl, snap: 32, headroom: 0, batch: 64);
