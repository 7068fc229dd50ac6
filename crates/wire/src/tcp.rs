//! TCP segments (RFC 9293) and their options (RFC 7323, RFC 2018).

use crate::checksum::{Delta, Sum};
use crate::options::{RawOption, RawOptions};

/// The bits of [`Tcp::flags`].
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronises sequence numbers: opens the connection.
    pub const SYN: u8 = 0x02;
    /// The connection is reset.
    pub const RST: u8 = 0x04;
    /// Asks the receiver to deliver the data at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// Echo of congestion experienced (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

header! {
    /// The fixed part of a TCP header.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |          Source Port          |       Destination Port        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                        Sequence Number                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                    Acknowledgment Number                      |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |  Data |       |C|E|U|A|P|R|S|F|                               |
    /// | Offset| Rsrvd |W|C|R|C|S|S|Y|I|            Window             |
    /// |       |       |R|E|G|K|H|T|N|N|                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |           Checksum            |         Urgent Pointer        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    Tcp [20] {
        /// Source port.
        src_port, set_src_port: u16 = SRC_PORT @ 0;
        /// Destination port.
        dst_port, set_dst_port: u16 = DST_PORT @ 2;
        /// Sequence number of the first byte of data, or of the SYN.
        seq, set_seq: u32 = SEQ @ 4;
        /// Sequence number of the next byte expected, if ACK is set.
        ack, set_ack: u32 = ACK @ 8;
        /// Data offset and reserved bits, as one byte.
        offset_byte, set_offset_byte: u8 = OFFSET_BYTE @ 12;
        /// The eight [`flag`] bits.
        flags, set_flags: u8 = FLAGS @ 13;
        /// Number of bytes (before scaling) that the sender of this segment can receive.
        window, set_window: u16 = WINDOW @ 14;
        /// Checksum over pseudo header, header, options and data.
        checksum, set_checksum: u16 = CHECKSUM @ 16;
        /// Offset of the end of urgent data, if URG is set.
        urgent, set_urgent: u16 = URGENT @ 18;
    }
}

impl Tcp {
    /// Length of the header with options in bytes, 0 to 60; less than 20 is
    /// invalid.
    #[inline(always)]
    pub fn header_len(&self) -> usize {
        usize::from(self.offset_byte() >> 4) * 4
    }

    /// Sets the header length, in bytes, a multiple of 4 of at most 60.
    #[inline]
    pub fn set_header_len(&mut self, len: usize) {
        self.set_offset_byte(((len / 4) as u8) << 4 | self.offset_byte() & 0xf);
    }

    /// The four bits between data offset and flags.
    #[inline]
    pub fn reserved(&self) -> u8 {
        self.offset_byte() & 0xf
    }

    /// Sets the four bits between data offset and flags.
    #[inline]
    pub fn set_reserved(&mut self, bits: u8) {
        self.set_offset_byte(self.offset_byte() & 0xf0 | bits & 0xf);
    }

    /// Whether all of these flags are set.
    #[inline(always)]
    pub fn has(&self, flags: u8) -> bool {
        self.flags() & flags == flags
    }

    /// Whether FIN is set.
    #[inline]
    pub fn is_fin(&self) -> bool {
        self.has(flag::FIN)
    }

    /// Whether SYN is set.
    #[inline]
    pub fn is_syn(&self) -> bool {
        self.has(flag::SYN)
    }

    /// Whether RST is set.
    #[inline]
    pub fn is_rst(&self) -> bool {
        self.has(flag::RST)
    }

    /// Whether ACK is set.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.has(flag::ACK)
    }

    /// Splits the bytes behind the fixed header into options and data; `None` if
    /// the header length is invalid or the options are truncated.
    #[inline]
    pub fn split_options<'a>(&self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        rest.split_at_checked(self.header_len().checked_sub(Self::LEN)?)
    }

    /// Whether the checksum is correct. `pseudo` is the sum of the pseudo header,
    /// `rest` the bytes behind the fixed header: options and data.
    #[inline]
    pub fn checksum_ok(&self, pseudo: Sum, rest: &[u8]) -> bool {
        pseudo.header(&self.0).slice(rest).checksum() == 0
    }

    /// Computes the checksum in full.
    #[inline]
    pub fn update_checksum(&mut self, pseudo: Sum, rest: &[u8]) {
        self.set_checksum(0);
        let sum = pseudo.header(&self.0).slice(rest).checksum();
        self.set_checksum(sum);
    }

    /// The checksum of `segment`, which begins with this header, whatever the checksum in it.
    #[inline]
    pub fn checksum_of(&self, pseudo: Sum, segment: &[u8]) -> u16 {
        pseudo.slice(segment).without(self.checksum()).checksum()
    }

    /// Updates the checksum incrementally by `delta`.
    #[inline]
    pub fn adjust_checksum(&mut self, delta: Delta) {
        self.set_checksum(delta.apply(self.checksum()));
    }

    /// Exchanges the ports, and sequence and acknowledgment number; the checksum stays correct.
    #[inline]
    pub fn mirror(&mut self) {
        let (src, dst) = (self.src_port(), self.dst_port());
        self.set_src_port(dst);
        self.set_dst_port(src);
        let (seq, ack) = (self.seq(), self.ack());
        self.set_seq(ack);
        self.set_ack(seq);
    }
}

/// Whether sequence number `a` precedes `b` (RFC 9293, 3.4).
#[inline(always)]
pub fn precedes(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Default for Tcp {
    /// A header without options whose other fields are zero.
    fn default() -> Self {
        let mut header = Tcp([0; Tcp::LEN]);
        header.set_header_len(Tcp::LEN);
        header
    }
}

rewrite! {
    Tcp {
        rewrite_src_port: u16 = src_port, set_src_port, u16;
        rewrite_dst_port: u16 = dst_port, set_dst_port, u16;
        rewrite_seq: u32 = seq, set_seq, u32;
        rewrite_ack: u32 = ack, set_ack, u32;
        rewrite_window: u16 = window, set_window, u16;
    }
}

/// Option: maximum segment size.
pub const OPTION_MSS: u8 = 2;
/// Option: window scale.
pub const OPTION_WINDOW_SCALE: u8 = 3;
/// Option: SACK permitted.
pub const OPTION_SACK_PERMITTED: u8 = 4;
/// Option: selective acknowledgment (SACK).
pub const OPTION_SACK: u8 = 5;
/// Option: timestamps.
pub const OPTION_TIMESTAMPS: u8 = 8;
/// Option: multipath TCP (RFC 8684).
pub const OPTION_MULTIPATH: u8 = 30;
/// Option: fast open (RFC 7413).
pub const OPTION_FAST_OPEN: u8 = 34;

/// A parsed TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// No operation: padding.
    Nop,
    /// Largest segment that the sender accepts.
    MaxSegmentSize(u16),
    /// Number of bits by which windows are shifted.
    WindowScale(u8),
    /// The sender accepts selective acknowledgments.
    SackPermitted,
    /// Blocks of 8 bytes, each two sequence numbers (see [`sack_blocks`]).
    Sack(&'a [u8]),
    /// The sender's clock, and the receiver's clock that it echoes.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The receiver's clock, echoed.
        echo: u32,
    },
    /// Any other option, or one of the above with an invalid length.
    Other {
        /// The type.
        kind: u8,
        /// The value.
        data: &'a [u8],
    },
}

/// Iterates over the options of a TCP header; stops at a malformed option.
#[inline]
pub fn options(list: &[u8]) -> impl Iterator<Item = TcpOption<'_>> {
    RawOptions::new(list).map(|option| match (option.kind, option.data) {
        (crate::options::NOP, _) => TcpOption::Nop,
        (OPTION_MSS, &[a, b]) => TcpOption::MaxSegmentSize(u16::from_be_bytes([a, b])),
        (OPTION_WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
        (OPTION_SACK_PERMITTED, []) => TcpOption::SackPermitted,
        (OPTION_SACK, data) if data.len() % 8 == 0 => TcpOption::Sack(data),
        (OPTION_TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
            value: u32::from_be_bytes([a, b, c, d]),
            echo: u32::from_be_bytes([e, f, g, h]),
        },
        (kind, data) => TcpOption::Other { kind, data },
    })
}

/// The blocks of a [`TcpOption::Sack`]: first sequence number, and the one after the last.
#[inline]
pub fn sack_blocks(data: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    data.as_chunks::<8>().0.iter().map(|&[a, b, c, d, e, f, g, h]| {
        (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
    })
}

/// Maximum length of an option list in bytes.
const MAX_OPTIONS_LEN: usize = 40;

/// Applies `change` to all sequence numbers of SACK blocks in an option list, and returns the
/// change of the checksum.
pub fn map_sacks(list: &mut [u8], change: impl Fn(u32) -> u32) -> Delta {
    let old = Sum::new().slice(list);
    let mut before = [0; MAX_OPTIONS_LEN];
    let length = list.len().min(before.len());
    before[..length].copy_from_slice(&list[..length]);
    let blocks =
        |option: &RawOption| option.kind == OPTION_SACK && option.data.len().is_multiple_of(8);
    for option in RawOptions::new(&before[..length]).filter(blocks) {
        let (numbers, _) = list[option.data_offset()..].as_chunks_mut::<4>();
        for number in &mut numbers[..option.data.len() / 4] {
            *number = change(u32::from_be_bytes(*number)).to_be_bytes();
        }
    }
    Delta::new().sum(old, Sum::new().slice(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_v4;
    use proptest::prelude::*;

    #[test]
    fn fields_have_the_offsets_of_the_diagram() {
        let bytes =
            [0, 80, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0x61, 0x12, 9, 10, 11, 12, 13, 14, 2, 4, 5, 0xb4];
        let (tcp, rest) = Tcp::from_prefix(&bytes).expect("long enough");
        assert_eq!((tcp.src_port(), tcp.dst_port()), (80, 0x102));
        assert_eq!((tcp.seq(), tcp.ack()), (0x0102_0304, 0x0506_0708));
        assert_eq!((tcp.header_len(), tcp.reserved()), (24, 1));
        assert!(tcp.has(flag::SYN | flag::ACK) && !tcp.is_fin() && !tcp.is_rst());
        assert!(tcp.is_syn() && tcp.is_ack());
        assert_eq!((tcp.window(), tcp.checksum(), tcp.urgent()), (0x90a, 0xb0c, 0xd0e));
        let (list, data) = tcp.split_options(rest).expect("options are whole");
        assert_eq!(options(list).collect::<Vec<_>>(), [TcpOption::MaxSegmentSize(1460)]);
        assert!(data.is_empty());
        let mut tcp = *tcp;
        tcp.set_header_len(60);
        tcp.set_reserved(0xe);
        assert_eq!((tcp.offset_byte(), tcp.header_len()), (0xfe, 60));
        assert_eq!(tcp.split_options(rest), None);
    }

    #[test]
    fn options_are_parsed() {
        let list = [
            1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4, 2, 3,
            9, 5, 3, 1, 0,
        ];
        let sack = &list[18..26];
        assert_eq!(
            options(&list).collect::<Vec<_>>(),
            [
                TcpOption::Nop,
                TcpOption::WindowScale(7),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 1, echo: 2 },
                TcpOption::Sack(sack),
                TcpOption::Other { kind: 2, data: &[9] },
                TcpOption::Other { kind: 5, data: &[1] },
            ]
        );
        assert_eq!(sack_blocks(sack).collect::<Vec<_>>(), [(3, 4)]);
    }

    #[test]
    fn map_sacks_changes_only_sack_blocks() {
        let mut list = [1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 9, 2, 4, 0, 0, 0, 5, 3, 1, 0];
        let before = Sum::new().slice(&list).checksum();
        let delta = map_sacks(&mut list, |n| n + 1000);
        assert_eq!(list, [1, 5, 10, 0, 0, 3, 235, 0, 0, 3, 241, 2, 4, 0, 0, 0, 5, 3, 1, 0]);
        assert_eq!(delta.apply(before), Sum::new().slice(&list).checksum());
    }

    proptest! {
        #[test]
        fn rewriting_equals_a_full_checksum(bytes: [u8; 20], to: [u32; 2], ports: [u16; 3], src: u32) {
            let pseudo = pseudo_v4(src.into(), [10, 0, 0, 2].into(), 6, 23);
            let mut tcp = Tcp(bytes);
            tcp.update_checksum(pseudo, b"abc");
            tcp.rewrite_src_port(ports[0]);
            tcp.rewrite_dst_port(ports[1]);
            tcp.rewrite_window(ports[2]);
            tcp.rewrite_seq(to[0]);
            tcp.rewrite_ack(to[1]);
            prop_assert!(tcp.checksum_ok(pseudo, b"abc"));
            let mut fresh = tcp;
            fresh.update_checksum(pseudo, b"abc");
            prop_assert_eq!(tcp, fresh);
        }
    }
}
