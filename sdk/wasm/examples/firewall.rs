//! firewall: drops TCP packets to the ports that its configuration lists, a port a line.
#![no_std]
#![no_main]

use castanet_wasm_sdk::{count, module, reset_count, Access, Element, Packet, Text, Verdict};

const MOST_PORTS: usize = 64;

struct Firewall {
    /// The ports, for the handler `denied_ports`.
    ports: [u16; MOST_PORTS],
    count: usize,
    /// A bit for each port: its lookup takes the same time for a list of any length.
    bits: [u8; 65536 / 8],
}

impl Firewall {
    /// Adds the ports of a text.
    fn deny(&mut self, text: &str) -> Result<(), &'static str> {
        for word in text.split_ascii_whitespace() {
            let port: u16 = word.parse().map_err(|_| "a port is a number from 0 to 65535")?;
            *self.ports.get_mut(self.count).ok_or("there can be 64 ports")? = port;
            self.count += 1;
            self.bits[usize::from(port / 8)] |= 1 << (port % 8);
        }
        Ok(())
    }

    fn is_denied(&self, packet: &Packet) -> bool {
        let at = match packet.network() {
            Some(at) => at,
            None => return false,
        };
        let ip = packet.bytes().get(at..).unwrap_or(&[]);
        if ip.len() < 20 {
            return false;
        }
        let header = usize::from(ip[0] & 15) * 4;
        // TCP, and the first fragment.
        if ip[9] != 6 || ip[6] & 0x1f != 0 || ip[7] != 0 {
            return false;
        }
        match ip.get(header + 2..header + 4) {
            Some(port) => {
                let port = u16::from_be_bytes([port[0], port[1]]);
                self.bits[usize::from(port / 8)] >> (port % 8) & 1 != 0
            }
            None => false,
        }
    }
}

impl Element for Firewall {
    const REASONS: &'static [(&'static str, &'static str)] =
        &[("denied_port\0", "TCP packets to a port that the firewall denies.\0")];
    const COUNTERS: &'static [&'static str] = &["denied\0"];
    const HANDLERS: &'static [(&'static str, Access)] = &[
        ("denied_ports\0", Access::Read),
        ("deny\0", Access::Write),
        ("reset\0", Access::Write),
    ];

    fn configure(configuration: &str) -> Result<Self, &'static str> {
        let mut firewall = Firewall { ports: [0; MOST_PORTS], count: 0, bits: [0; 65536 / 8] };
        firewall.deny(configuration)?;
        Ok(firewall)
    }

    fn packet(&mut self, packet: &mut Packet) -> Verdict {
        if self.is_denied(packet) {
            count(0, 1);
            return Verdict::Drop(0);
        }
        Verdict::Output(0)
    }

    fn read(&self, _: usize, out: &mut Text) {
        for (n, port) in self.ports.iter().take(self.count).enumerate() {
            out.text(if n == 0 { "" } else { "\n" }).number((*port).into());
        }
    }

    fn write(&mut self, n: usize, value: &str) -> Result<(), &'static str> {
        if n == 1 {
            return self.deny(value);
        }
        reset_count(0);
        Ok(())
    }
}

module!(Firewall, snap: 64, headroom: 0, batch: 64);
