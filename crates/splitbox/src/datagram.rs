//! Datagrams between the parties: sealed by AES-256-GCM, so that nobody else reads, forges or changes
//! them.

use crate::secret::Key;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use castanet_wire::splitbox::SplitBoxHeader;
use std::fmt::{Debug, Display, Formatter};

/// Bytes of the tag behind the payload.
pub const TAG_BYTES: usize = 16;
/// Bytes that a datagram adds to its payload.
pub const OVERHEAD: usize = SplitBoxHeader::LEN + TAG_BYTES;

/// The payload of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatagramKind {
    /// A blinded header string, for a processor.
    Match,
    /// A packet or a part of one, for the client.
    Rest,
    /// A processor's share of a result, for the client.
    Share,
    /// A chunk of the rows of an epoch, for a processor.
    Rows,
    /// The rows that a processor has, for the client.
    Status,
    /// The epochs that the entry has, for the client.
    Hello,
    /// The permission to use an epoch, for the entry.
    Grant,
}

/// All kinds, with their numbers.
const KINDS: [(DatagramKind, u8); 7] = [
    (DatagramKind::Match, SplitBoxHeader::MATCH),
    (DatagramKind::Rest, SplitBoxHeader::REST),
    (DatagramKind::Share, SplitBoxHeader::SHARE),
    (DatagramKind::Rows, SplitBoxHeader::ROWS),
    (DatagramKind::Status, SplitBoxHeader::STATUS),
    (DatagramKind::Hello, SplitBoxHeader::HELLO),
    (DatagramKind::Grant, SplitBoxHeader::GRANT),
];

impl DatagramKind {
    fn number(self) -> u8 {
        KINDS.iter().find(|it| it.0 == self).map_or(0, |it| it.1)
    }

    #[inline]
    fn of(number: u8) -> Option<DatagramKind> {
        KINDS.get(usize::from(number).wrapping_sub(1)).filter(|it| it.1 == number).map(|it| it.0)
    }
}

/// A link on which datagrams go one way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The payload of its datagrams.
    pub kind: DatagramKind,
    /// The processor at one end; 0 between the entry and the client.
    pub processor: u8,
}

/// A datagram that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramError {
    /// It is shorter than header and tag.
    Truncated,
    /// It has another version.
    Version(u8),
    /// It has a kind that does not exist.
    Kind,
    /// It is of another setup.
    Setup,
    /// It is for another link or another epoch than the key.
    Link,
    /// Its tag is wrong: it was forged, changed, or sealed with another key.
    Tag,
}

impl Display for DatagramError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            DatagramError::Truncated => f.write_str("a truncated datagram"),
            DatagramError::Version(version) => {
                let own = SplitBoxHeader::V1;
                write!(f, "a datagram of version {version}; this is version {own}")
            }
            DatagramError::Kind => f.write_str("a datagram of an unknown kind"),
            DatagramError::Setup => f.write_str("a datagram of another setup"),
            DatagramError::Link => f.write_str("a datagram of another link or epoch"),
            DatagramError::Tag => f.write_str("a forged or changed datagram"),
        }
    }
}

impl std::error::Error for DatagramError {}

/// The header of a datagram as far as it tells which key it is for. It is not authentic yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramInfo {
    /// The link.
    pub link: Link,
    /// The number of the setup.
    pub setup: u32,
    /// The epoch or session.
    pub epoch: u64,
    /// The packet in the epoch, the chunk, or the datagram in the session.
    pub counter: u64,
    /// The part of the packet.
    pub part: u8,
}

impl DatagramInfo {
    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// The datagram is truncated, or of a version or kind that does not exist.
    #[inline]
    pub fn of(datagram: &[u8]) -> Result<DatagramInfo, DatagramError> {
        let (header, rest) =
            SplitBoxHeader::from_prefix(datagram).ok_or(DatagramError::Truncated)?;
        if rest.len() < TAG_BYTES {
            return Err(DatagramError::Truncated);
        }
        if header.version() != SplitBoxHeader::V1 {
            return Err(DatagramError::Version(header.version()));
        }
        let kind = DatagramKind::of(header.kind()).ok_or(DatagramError::Kind)?;
        let link = Link { kind, processor: header.processor() };
        Ok(DatagramInfo {
            link,
            setup: header.setup(),
            epoch: header.epoch(),
            counter: header.counter(),
            part: header.part(),
        })
    }
}

/// The key of a link for an epoch or a session. A part of a counter must be sealed once at most, or with
/// the same payload each time. The library wipes its key schedule when it goes.
pub struct LinkKey {
    aead: LessSafeKey,
    setup: u32,
    link: Link,
    epoch: u64,
}

impl LinkKey {
    /// The key of a link of a setup, from the secret that both ends of it have. `None` if the library
    /// refuses the key, which it does not for keys of this length.
    pub fn new(secret: &Key, setup: u32, link: Link, epoch: u64) -> Option<LinkKey> {
        let name = [link.kind.number(), link.processor];
        let purpose = "castanet splitbox 1 datagrams of a link";
        let key = secret.derive(purpose, &[&name, &epoch.to_be_bytes()]);
        let key = UnboundKey::new(&AES_256_GCM, key.expose()).ok()?;
        Some(LinkKey { aead: LessSafeKey::new(key), setup, link, epoch })
    }

    /// The keys of the links of one kind with all processors, from the secrets of these links in order;
    /// `None` as [`LinkKey::new`].
    pub fn of_processors(
        secrets: &[Key],
        setup: u32,
        kind: DatagramKind,
        epoch: u64,
    ) -> Option<Vec<LinkKey>> {
        let key = |(processor, secret)| {
            LinkKey::new(secret, setup, Link { kind, processor: processor as u8 }, epoch)
        };
        secrets.iter().enumerate().map(key).collect()
    }

    /// The nonce of a datagram: a key is for one link and one epoch, in which no part of a counter comes
    /// twice.
    fn nonce(counter: u64, part: u8) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[0] = part;
        let counter = counter.to_be_bytes();
        let start = NONCE_LEN - counter.len();
        nonce.iter_mut().skip(start).zip(counter).for_each(|(to, from)| *to = from);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seals a datagram in place. The payload lies between [`SplitBoxHeader::LEN`] bytes in front of
    /// it, for the header, and [`TAG_BYTES`] bytes behind it.
    ///
    /// The tag authenticates the header without associated data: counter and part are the nonce, and
    /// the receiver compares all other fields with the ones that belong to its key. Associated data
    /// would take as long as a third of a header string's payload.
    ///
    /// # Errors
    /// There is no room for header and tag, or the payload is too long for the cipher.
    #[inline]
    pub fn seal(&self, counter: u64, part: u8, datagram: &mut [u8]) -> Result<(), DatagramError> {
        let Link { kind, processor } = self.link;
        let mut header = SplitBoxHeader::new(kind.number());
        header.set_processor(processor);
        header.set_part(part);
        header.set_setup(self.setup);
        header.set_epoch(self.epoch);
        header.set_counter(counter);
        let (place, rest) =
            SplitBoxHeader::from_prefix_mut(datagram).ok_or(DatagramError::Truncated)?;
        *place = header;
        let end = rest.len().checked_sub(TAG_BYTES).ok_or(DatagramError::Truncated)?;
        let (payload, place) = rest.split_at_mut(end);
        let nonce = LinkKey::nonce(counter, part);
        let sealed = self.aead.seal_in_place_separate_tag(nonce, Aad::empty(), payload);
        let tag = sealed.map_err(|_| DatagramError::Truncated)?;
        place.copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Opens a datagram in place and returns its payload. `info` must be that of the datagram, which
    /// [`DatagramInfo::of`] has read: nothing else checks the version.
    ///
    /// # Errors
    /// It is for another link or epoch, or not authentic. Then its payload is destroyed.
    #[inline]
    pub fn open<'d>(
        &self,
        info: &DatagramInfo,
        datagram: &'d mut [u8],
    ) -> Result<&'d mut [u8], DatagramError> {
        if info.setup != self.setup {
            return Err(DatagramError::Setup);
        }
        if info.link != self.link || info.epoch != self.epoch {
            return Err(DatagramError::Link);
        }
        debug_assert_eq!(Ok(*info), DatagramInfo::of(datagram), "is the header that was compared");
        let (_, rest) =
            SplitBoxHeader::from_prefix_mut(datagram).ok_or(DatagramError::Truncated)?;
        let end = rest.len().checked_sub(TAG_BYTES).ok_or(DatagramError::Truncated)?;
        let (payload, tag) = rest.split_at_mut(end);
        let nonce = LinkKey::nonce(info.counter, info.part);
        let opened = self.aead.open_in_place_separate_tag(nonce, Aad::empty(), tag, payload);
        opened.map_err(|_| DatagramError::Tag)
    }
}

impl Debug for LinkKey {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let LinkKey { link, epoch, .. } = self;
        f.debug_struct("LinkKey").field("link", link).field("epoch", epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINK: Link = Link { kind: DatagramKind::Share, processor: 2 };

    fn key(link: Link, epoch: u64) -> LinkKey {
        LinkKey::new(&Key::from_bytes([9; 32]), 5, link, epoch).expect("is a key")
    }

    fn sealed(payload: &[u8], counter: u64) -> Vec<u8> {
        let mut datagram = vec![0; SplitBoxHeader::LEN];
        datagram.extend(payload);
        datagram.extend([0; TAG_BYTES]);
        key(LINK, 7).seal(counter, 3, &mut datagram).expect("is sealed");
        datagram
    }

    fn open(key: &LinkKey, datagram: &mut [u8]) -> Result<Vec<u8>, DatagramError> {
        let info = DatagramInfo::of(datagram)?;
        key.open(&info, datagram).map(|payload| payload.to_vec())
    }

    proptest! {
        #[test]
        fn datagrams_open_unchanged_only(
            payload in prop::collection::vec(any::<u8>(), 0..100),
            counter: u64,
            change in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let whole = sealed(&payload, counter);
            prop_assert_eq!(whole.len(), payload.len() + OVERHEAD);
            let info = DatagramInfo::of(&whole);
            let expected = DatagramInfo { link: LINK, setup: 5, epoch: 7, counter, part: 3 };
            prop_assert_eq!(info, Ok(expected));
            prop_assert_eq!(open(&key(LINK, 7), &mut whole.clone()), Ok(payload));
            let mut changed = whole.clone();
            changed[change.index(whole.len())] ^= 1 << bit;
            prop_assert!(open(&key(LINK, 7), &mut changed).is_err());
            let mut cut = whole[..change.index(whole.len())].to_vec();
            prop_assert!(open(&key(LINK, 7), &mut cut).is_err());
        }

        #[test]
        fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(open(&key(LINK, 7), &mut bytes.clone()).is_err());
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let whole = sealed(b"share", 1);
        let error = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut datagram = whole.clone();
            change(&mut datagram);
            open(&key(LINK, 7), &mut datagram).unwrap_err()
        };
        assert_eq!(error(&|it| it.truncate(39)), DatagramError::Truncated);
        assert_eq!(error(&|it| it[SplitBoxHeader::VERSION] = 2), DatagramError::Version(2));
        assert_eq!(error(&|it| it[SplitBoxHeader::KIND] = 9), DatagramError::Kind);
        assert_eq!(error(&|it| it[SplitBoxHeader::KIND] = 0), DatagramError::Kind);
        assert_eq!(error(&|it| it[SplitBoxHeader::SETUP] = 1), DatagramError::Setup);
        assert_eq!(error(&|it| it[SplitBoxHeader::PART] = 1), DatagramError::Tag);
        assert_eq!(error(&|it| it[SplitBoxHeader::PROCESSOR] = 1), DatagramError::Link);
        assert_eq!(error(&|it| it[SplitBoxHeader::COUNTER] = 1), DatagramError::Tag);
        let other = Link { processor: 3, ..LINK };
        assert_eq!(open(&key(other, 7), &mut whole.clone()), Err(DatagramError::Link));
        assert_eq!(open(&key(LINK, 8), &mut whole.clone()), Err(DatagramError::Link));
        let debug = format!("{:?}", key(LINK, 7));
        assert!(!debug.contains("aead"), "{debug}");
    }
}
