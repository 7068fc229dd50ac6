//! ICMP messages (RFC 792).

use crate::checksum::{self, Delta};

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Source quench (deprecated by RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO: u8 = 8;
/// Router advertisement (RFC 1256).
pub const ROUTER_ADVERTISEMENT: u8 = 9;
/// Router solicitation (RFC 1256).
pub const ROUTER_SOLICITATION: u8 = 10;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Timestamp request.
pub const TIMESTAMP: u8 = 13;
/// Timestamp reply.
pub const TIMESTAMP_REPLY: u8 = 14;
/// Information request.
pub const INFO_REQUEST: u8 = 15;
/// Information reply.
pub const INFO_REPLY: u8 = 16;
/// Address mask request (RFC 950).
pub const MASK_REQUEST: u8 = 17;
/// Address mask reply (RFC 950).
pub const MASK_REPLY: u8 = 18;

header! {
    /// The header of an ICMP message, in the form of an echo; the second word
    /// differs from type to type.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |     Type      |     Code      |           Checksum            |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |           Identifier          |        Sequence Number        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Icmp [8] {
        /// Message type: [`ECHO`], [`UNREACHABLE`] ...
        kind, set_kind: u8 = KIND @ 0;
        /// Message code, which depends on the type.
        code, set_code: u8 = CODE @ 1;
        /// Checksum over the whole message.
        checksum, set_checksum: u16 = CHECKSUM @ 2;
        /// Identifier of an echo message.
        id, set_id: u16 = ID @ 4;
        /// Sequence number of an echo message; next-hop MTU of "fragmentation needed".
        seq, set_seq: u16 = SEQ @ 6;
        /// The whole second word: gateway of a redirect, unused in most errors.
        rest, set_rest: u32 = REST @ 4;
        /// First byte of the second word: pointer of a parameter problem.
        pointer, set_pointer: u8 = POINTER @ 4;
    }
}

/// Whether messages of this type are errors, which quote a packet.
#[inline]
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Whether messages of this type are queries or replies, which have an
/// identifier and a sequence number.
#[inline]
pub const fn is_query(kind: u8) -> bool {
    matches!(
        kind,
        ECHO_REPLY
            | ECHO
            | TIMESTAMP
            | TIMESTAMP_REPLY
            | INFO_REQUEST
            | INFO_REPLY
            | MASK_REQUEST
            | MASK_REPLY
    )
}

/// Whether messages of this type are replies to a query.
#[inline]
pub const fn is_reply(kind: u8) -> bool {
    matches!(kind, ECHO_REPLY | TIMESTAMP_REPLY | INFO_REPLY | MASK_REPLY)
}

/// Whether Click counts a sequence number in messages of this type: echo, timestamp and information
/// messages, but not address masks.
#[inline]
pub const fn has_sequence(kind: u8) -> bool {
    is_query(kind) && !matches!(kind, MASK_REQUEST | MASK_REPLY)
}

/// Length of the header of this type in bytes: with three times in timestamps, else [`Icmp::LEN`].
#[inline]
pub const fn header_len(kind: u8) -> usize {
    match kind {
        TIMESTAMP | TIMESTAMP_REPLY => Icmp::LEN + TIMESTAMPS,
        _ => Icmp::LEN,
    }
}

/// Length of the three times of a timestamp message, in bytes.
const TIMESTAMPS: usize = 12;

impl Icmp {
    /// Whether this is an error message, which quotes a packet.
    #[inline]
    pub fn is_error(&self) -> bool {
        is_error(self.kind())
    }

    /// Whether the message is a query or reply, which has `id` and `seq`.
    #[inline]
    pub fn is_query(&self) -> bool {
        is_query(self.kind())
    }

    /// Whether a payload of `payload` bytes is valid for the type: errors quote an
    /// IPv4 header, timestamps are three words, information messages have none.
    pub fn length_ok(&self, payload: usize) -> bool {
        match self.kind() {
            _ if self.is_error() => payload >= crate::Ipv4Header::LEN,
            TIMESTAMP | TIMESTAMP_REPLY => payload == TIMESTAMPS,
            INFO_REQUEST | INFO_REPLY => payload == 0,
            _ => true,
        }
    }

    /// Whether the checksum over header and `payload` is correct.
    #[inline]
    pub fn checksum_ok(&self, payload: &[u8]) -> bool {
        checksum::Sum::new().slice(&self.0).slice(payload).checksum() == 0
    }

    /// Computes the checksum over header and `payload` in full.
    #[inline]
    pub fn update_checksum(&mut self, payload: &[u8]) {
        self.set_checksum(0);
        let sum = checksum::Sum::new().slice(&self.0).slice(payload).checksum();
        self.set_checksum(sum);
    }

    /// Updates the checksum incrementally by `delta`.
    #[inline]
    pub fn adjust_checksum(&mut self, delta: Delta) {
        self.set_checksum(delta.apply(self.checksum()));
    }

    /// Normalises the checksum after incremental updates. `payload` is the rest of the message. If
    /// all other bytes are zero, the checksum becomes ffff instead of 0, which is the result of a
    /// full computation.
    #[inline]
    pub fn normalize_zero_checksum(&mut self, payload: &[u8]) {
        if self.checksum() == 0 && self.0.iter().chain(payload).all(|byte| *byte == 0) {
            self.set_checksum(0xffff);
        }
    }

    /// Sets the type and updates the checksum.
    #[inline]
    pub fn rewrite_kind(&mut self, kind: u8) {
        let code = self.code();
        let delta = Delta::new()
            .u16(u16::from_be_bytes([self.kind(), code]), u16::from_be_bytes([kind, code]));
        self.set_kind(kind);
        self.adjust_checksum(delta);
    }
}

rewrite! {
    Icmp {
        rewrite_id: u16 = id, set_id, u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_zeros_has_the_checksum_ffff() {
        let mut icmp = Icmp([ECHO, 0, 0, 0, 0, 0, 0, 0]);
        icmp.update_checksum(&[0; 5]);
        icmp.rewrite_kind(ECHO_REPLY);
        icmp.normalize_zero_checksum(&[0; 5]);
        assert_eq!((icmp.checksum(), icmp.checksum_ok(&[0; 5])), (0xffff, true));
        let mut fresh = icmp;
        fresh.update_checksum(&[0; 5]);
        assert_eq!(fresh.0, icmp.0);
        // The sum of other messages is never zero.
        let mut icmp = Icmp([ECHO_REPLY, 0, 0, 0, 0xff, 0xff, 0, 0]);
        icmp.update_checksum(&[]);
        icmp.normalize_zero_checksum(&[]);
        assert_eq!(icmp.checksum(), 0);
    }

    #[test]
    fn rewriting_keeps_the_checksum_correct() {
        let mut icmp = Icmp([ECHO, 0, 0, 0, 0x12, 0x34, 0, 7]);
        let payload = b"odd payload";
        icmp.update_checksum(payload);
        assert!(icmp.checksum_ok(payload));
        for id in 0..=u16::MAX {
            icmp.rewrite_id(id);
            let incremental = icmp.checksum();
            icmp.update_checksum(payload);
            assert_eq!(incremental, icmp.checksum(), "id {id}");
        }
        icmp.rewrite_kind(ECHO_REPLY);
        assert!(icmp.checksum_ok(payload));
        icmp.set_code(1);
        assert!(!icmp.checksum_ok(payload));
    }

    #[test]
    fn only_timestamps_have_a_longer_header() {
        let with =
            |has: fn(u8) -> bool| (0..=255).filter(move |kind| has(*kind)).collect::<Vec<u8>>();
        assert_eq!(with(|kind| header_len(kind) != 8), [TIMESTAMP, TIMESTAMP_REPLY]);
        assert_eq!(header_len(TIMESTAMP), 20);
        assert_eq!(with(has_sequence), [0, 8, 13, 14, 15, 16]);
    }

    #[test]
    fn matches_a_known_echo_request() {
        // By hand: 0800 + 0001 + 0001 + 6162 = 6964, whose complement is 969b.
        let icmp = Icmp([8, 0, 0x96, 0x9b, 0, 1, 0, 1]);
        assert!(icmp.checksum_ok(b"ab"));
        assert!(icmp.is_query() && !icmp.is_error());
        assert_eq!((icmp.id(), icmp.seq(), icmp.rest(), icmp.pointer()), (1, 1, 0x0001_0001, 0));
    }
}
