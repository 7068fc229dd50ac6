//! Hostile packets for tests.

use castanet_packet::{Packet, PacketType};

/// Makes hostile packets, the same for the same seed.
pub(super) struct Hostile {
    state: u64,
    /// Whether header offsets may lie behind the bytes, where no element sets them.
    pub(super) has_wild_offsets: bool,
    /// Kept so that clones of it are shared while elements write.
    shared: Option<Packet>,
}

impl Hostile {
    pub(super) fn new(seed: u64) -> Hostile {
        Hostile { state: seed | 1, has_wild_offsets: false, shared: None }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A packet that is garbage, or almost like `model`.
    pub(super) fn packet(&mut self, model: &Packet) -> Packet {
        let mut packet = match self.below(8) {
            0 => self.garbage(),
            1 => return self.clone_of_one(model),
            _ => self.almost(model),
        };
        self.mark(&mut packet, model);
        packet
    }

    fn garbage(&mut self) -> Packet {
        let length = match self.below(4) {
            0 => self.below(4),
            1 => self.below(70),
            2 => self.below(1600),
            _ => self.below(20_000),
        };
        let bytes: Vec<u8> = (0..length).map(|_| self.next() as u8).collect();
        Packet::from_bytes(&bytes)
    }

    /// A model's bytes, cut, stretched and with some of them changed.
    fn almost(&mut self, model: &Packet) -> Packet {
        let mut bytes = model.bytes().to_vec();
        match self.below(4) {
            0 => bytes.truncate(self.below(bytes.len() + 1)),
            1 => bytes.resize(bytes.len() + self.below(3000), 0xa5),
            _ => {}
        }
        for _ in 0..self.below(6) {
            // Header bytes are the interesting ones.
            let at = self.below(bytes.len().min(60));
            let value = match self.below(4) {
                0 => 0,
                1 => 0xff,
                2 => 0x45 ^ self.below(16) as u8,
                _ => self.next() as u8,
            };
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        Packet::from_bytes(&bytes)
    }

    fn clone_of_one(&mut self, model: &Packet) -> Packet {
        if self.shared.is_none() || self.below(16) == 0 {
            let mut packet = self.almost(model);
            self.mark(&mut packet, model);
            self.shared = Some(packet);
        }
        match self.shared.as_mut() {
            Some(packet) => packet.share(),
            None => self.garbage(),
        }
    }

    /// Header marks as those of the model, or in wrong places.
    fn mark(&mut self, packet: &mut Packet, model: &Packet) {
        let end = if self.has_wild_offsets { 20_000 } else { packet.len() as isize };
        if let Some(at) = model.mac_offset().filter(|_| self.below(8) > 0) {
            packet.set_mac_header(at.min(end));
        }
        let network = match model.network_offset() {
            Some(at) if self.below(8) > 0 => Some((at, model.network_header_len().max(20))),
            _ if self.below(4) == 0 => {
                Some((self.below(packet.len() + 1) as isize, self.below(60)))
            }
            _ => None,
        };
        if let Some((at, header)) = network {
            let at = at.min(end);
            packet.set_network_header(at, header.min((end - at) as usize));
        }
        packet.set_dst((self.next() as u32).into());
        packet.set_paint(self.below(6) as u8);
        packet.set_fix_ip_src(self.below(4) == 0);
        let kinds = [
            PacketType::Host,
            PacketType::Broadcast,
            PacketType::Multicast,
            PacketType::OtherHost,
            PacketType::Outgoing,
        ];
        packet.set_packet_type(kinds[self.below(kinds.len())]);
    }
}
