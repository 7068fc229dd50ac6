//! Traffic profiles: header strings of sample packets, from captures.

use crate::bits::Bits;
use crate::header::{SourceHash, header_string};
use crate::secret::Key;
use castanet_wire::headers::{Headers, frame_payload};
use castanet_wire::pcap::{self, Reader, link_type};
use castanet_wire::{Ethernet, ether_type};
use std::collections::HashMap;
use std::fmt::{Display, Formatter};
use std::io::Read;

/// Header strings of sample packets, and how often each occurs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    counts: HashMap<Bits, u64>,
}

impl Profile {
    /// Adds a packet.
    pub fn add(&mut self, string: Bits) {
        *self.counts.entry(string).or_default() += 1;
    }

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The most frequent strings with only these bits of them, at most `most`, with their counts; the most
    /// frequent first.
    pub(super) fn masked(&self, bits: Bits, most: usize) -> Vec<(Bits, u64)> {
        let mut counts: HashMap<Bits, u64> = HashMap::new();
        for (&string, count) in &self.counts {
            *counts.entry(string & bits).or_default() += count;
        }
        let mut all: Vec<(Bits, u64)> = counts.into_iter().collect();
        all.sort_unstable_by_key(|&(string, count)| (u64::MAX - count, string));
        all.truncate(most);
        all
    }
}

impl FromIterator<Bits> for Profile {
    fn from_iter<I: IntoIterator<Item = Bits>>(strings: I) -> Profile {
        let mut profile = Profile::default();
        strings.into_iter().for_each(|it| profile.add(it));
        profile
    }
}

/// A capture that is no traffic profile.
#[derive(Debug)]
pub enum ProfileError {
    /// The capture cannot be read.
    Capture(pcap::Error),
    /// Its packets have another link layer than Ethernet or none.
    LinkType(u32),
    /// It has no IP packet with whole headers.
    Empty,
}

impl Display for ProfileError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            ProfileError::Capture(error) => write!(f, "{error}"),
            ProfileError::LinkType(number) => write!(
                f,
                "link type {number}: a traffic profile has packets with Ethernet headers, or IP packets"
            ),
            ProfileError::Empty => f.write_str("the capture has no IP packet with whole headers"),
        }
    }
}

impl std::error::Error for ProfileError {}

impl From<pcap::Error> for ProfileError {
    fn from(error: pcap::Error) -> ProfileError {
        ProfileError::Capture(error)
    }
}

/// Maximum number of VLAN tags before an IP header.
const MAX_TAGS: usize = 8;

/// Reads a capture (pcap or pcapng). Packets that are not IP, and those with cut headers, are left out,
/// as entries refuse them. Sources are hashed with a key of its own: hashes of addresses are as frequent
/// as with another key.
///
/// # Errors
/// The capture cannot be read, or has no packet of use.
pub fn read_profile(capture: impl Read) -> Result<Profile, ProfileError> {
    let hash = SourceHash::new(&Key::from_bytes([0; 32]));
    let (mut reader, mut profile) = (Reader::new(capture)?, Profile::default());
    while let Some(packet) = reader.next_packet()? {
        let at = network_offset(packet.link_type, packet.data)?;
        let headers = at.and_then(|at| Headers::of(packet.data, at));
        if let Some(headers) = headers.filter(|it| !it.is_cut()) {
            let mut string = header_string(packet.data, &headers);
            hash.put(&headers, &mut string);
            profile.add(string);
        }
    }
    if profile.counts.is_empty() { Err(ProfileError::Empty) } else { Ok(profile) }
}

/// The offset of the IP header; `None` without one.
fn network_offset(link: u32, bytes: &[u8]) -> Result<Option<usize>, ProfileError> {
    match link {
        link_type::ETHERNET => {
            let payload = frame_payload(bytes, MAX_TAGS).filter(|_| bytes.len() >= Ethernet::LEN);
            let is_ip = |it: &(u16, usize)| matches!(it.0, ether_type::IPV4 | ether_type::IPV6);
            Ok(payload.filter(is_ip).map(|it| it.1))
        }
        link_type::RAW | link_type::IPV4 | link_type::IPV6 => Ok(Some(0)),
        old if link_type::RAW_OLD.contains(&old) => Ok(Some(0)),
        other => Err(ProfileError::LinkType(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::SOURCE_HASH;
    use castanet_wire::pcap::{Precision, Writer};
    use castanet_wire::{Timestamp, sketch};

    fn capture(link: u32, packets: &[&str]) -> Vec<u8> {
        let mut writer =
            Writer::new(Vec::new(), link, Precision::Micros, 65535).expect("is written");
        for text in packets {
            let bytes = sketch::build(text).expect(text).bytes;
            let len = bytes.len() as u32;
            writer.write(Timestamp::new(1, 0), len, &bytes).expect("is written");
        }
        writer.into_inner()
    }

    #[test]
    fn captures_become_header_strings() {
        let packets =
            ["1.0.0.1:5 > 2.0.0.2:80 udp", "[::1]:5 > [::2]:6 tcp", "1.0.0.1:5 > 2.0.0.2:80 udp"];
        let frames = packets.map(|it| format!("eth 0:0:0:0:0:1 > 0:0:0:0:0:2 {it}"));
        let frames: Vec<&str> = frames.iter().map(|it| &it[..]).collect();
        let raw = read_profile(&capture(link_type::RAW, &packets)[..]).expect("is a profile");
        let ethernet =
            read_profile(&capture(link_type::ETHERNET, &frames)[..]).expect("is a profile");
        assert_eq!((raw.packets(), raw.counts.len()), (3, 2));
        assert_eq!(raw.counts, ethernet.counts);
        let all = raw.masked(Bits::first(512), 9);
        assert_eq!(all.iter().map(|it| it.1).collect::<Vec<_>>(), [2, 1]);
        assert!(all.iter().all(|it| it.0.0[SOURCE_HASH.at / 8..][..2] != [0, 0]));
        assert_eq!(raw.masked(Bits::ZERO, 9), [(Bits::ZERO, 3)]);
        assert_eq!(raw.masked(Bits::first(512), 1), all[..1]);
    }

    #[test]
    fn captures_without_use_are_errors() {
        let message = |bytes: &[u8]| read_profile(bytes).map(|_| ()).unwrap_err().to_string();
        let other =
            "link type 6: a traffic profile has packets with Ethernet headers, or IP packets";
        assert_eq!(message(&capture(link_type::TOKEN_RING, &["1.0.0.1 > 2.0.0.2 udp"])), other);
        let empty = "the capture has no IP packet with whole headers";
        assert_eq!(message(&capture(link_type::RAW, &[])), empty);
        let text = read_profile(&b"no capture at all, but long enough"[..]);
        assert!(matches!(text, Err(ProfileError::Capture(_))));
    }
}
