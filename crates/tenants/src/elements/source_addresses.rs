//! The source addresses of the frames that a tenant sends on a virtual device, and their announcement.

use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_wire::{Arp, Ethernet, arp, ether_type};

/// Addresses that are kept.
const MOST: usize = 16;
/// Announcements, and the time after each, which grows by as much: those of QEMU (`announce-rounds` and so on).
const ANNOUNCEMENTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// Length of the shortest Ethernet frame, without its checksum.
const SHORTEST: usize = 60;

/// The latest source addresses, the latest last.
#[derive(Default)]
pub(super) struct SourceAddresses {
    addresses: Vec<MacAddr>,
    /// The announcements that are yet to be made.
    pending: u32,
}

impl SourceAddresses {
    /// Notes the source address of a frame.
    #[inline]
    pub(super) fn note(&mut self, source: MacAddr) {
        if self.addresses.last() != Some(&source) {
            self.add(source);
        }
    }

    #[inline(never)]
    fn add(&mut self, source: MacAddr) {
        self.addresses.retain(|it| *it != source);
        if source.is_multicast() {
            return;
        }
        if self.addresses.len() == MOST {
            self.addresses.remove(0);
        }
        self.addresses.push(source);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = MacAddr> + use<> {
        self.addresses.clone().into_iter()
    }

    /// Whether the addresses have come from another instance and are to be announced.
    pub(super) fn has_announcement(&self) -> bool {
        self.pending > 0
    }

    /// Begins an announcement, if one is to be made; returns the time until the next.
    pub(super) fn announce(&mut self) -> Option<Duration> {
        self.pending = self.pending.checked_sub(1)?;
        Some(PAUSE * (ANNOUNCEMENTS - self.pending))
    }
}

impl PortableState for SourceAddresses {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        for (at, address) in self.addresses.iter().enumerate() {
            to.write(&(at as u8), &address.octets());
        }
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        self.note(record.value::<[u8; 6]>()?.into());
        self.pending = ANNOUNCEMENTS;
        Ok(())
    }
}

/// A RARP request by which switches learn where an address is.
pub(super) fn announcement(source: MacAddr) -> [u8; SHORTEST] {
    let none = Ipv4Addr::UNSPECIFIED;
    let ethernet = Ethernet::new(MacAddr::BROADCAST, source, ether_type::RARP);
    let message = Arp::new(arp::REVERSE_REQUEST, (source, none), (source, none));
    let mut frame = [0; SHORTEST];
    let (head, rest) = frame.split_at_mut(Ethernet::LEN);
    head.copy_from_slice(ethernet.bytes());
    rest[..Arp::LEN].copy_from_slice(message.bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_addresses_are_kept_and_none_of_a_group() {
        let mut sources = SourceAddresses::default();
        let address = |n: u8| MacAddr([2, 0, 0, 0, 0, n]);
        for n in (0..20).chain([9, 9]) {
            sources.note(address(n));
        }
        sources.note(MacAddr([1, 0, 0, 0, 0, 1]));
        let kept: Vec<u8> = sources.iter().map(|it| it.0[5]).collect();
        assert_eq!(kept, [4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 9]);
        assert!(!sources.has_announcement() && sources.announce().is_none());
    }

    #[test]
    fn an_announcement_is_a_rarp_request() {
        let frame = announcement(MacAddr([2, 0, 0, 0, 0, 7]));
        let (ethernet, rest) = Ethernet::from_prefix(&frame).expect("a header");
        assert_eq!((ethernet.dst(), ethernet.ether_type()), (MacAddr::BROADCAST, 0x8035));
        let (message, _) = Arp::from_prefix(rest).expect("a message");
        assert!(message.is_ethernet_ipv4());
        assert_eq!((message.operation(), message.sender_mac().0[5]), (3, 7));
        assert_eq!(message.target_mac(), ethernet.src());
    }
}
