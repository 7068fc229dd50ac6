//! Click's annotations: 48 bytes of metadata per packet, with Click's names and offsets.
//!
//! Six of these bytes are hot and live in the packet descriptor: bytes 0 to 3
//! (destination address), 16 (paint) and 19 (`FIX_IP_SRC`, which stores only
//! zero or one). The others live in the frame's header. Numbers are in host
//! order, addresses in network order, as in Click.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet::{COLD, FIX_IP_SRC_FLAG, Packet};

/// Number of annotation bytes per packet.
pub const SIZE: usize = 48;

/// A named annotation, for arguments such as `Paint(1, ANNO PAINT)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anno {
    /// Click's name.
    pub name: &'static str,
    /// Offset of the first byte.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
}

macro_rules! annotations {
    ($($(#[$doc:meta])* $name:ident $offset:literal $size:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $offset;)*

        /// All named annotations.
        pub const ALL: &[Anno] =
            &[$(Anno { name: stringify!($name), offset: $offset, size: $size }),*];
    };
}

annotations! {
    /// Next hop of an IPv4 packet: its destination, or a gateway.
    DST_IP 0 4;
    /// Next hop of an IPv6 packet.
    DST_IP6 0 16;
    /// Radio metadata of 802.11 packets.
    WIFI_EXTRA 16 24;
    /// Paint: a colour, as set by `Paint`.
    PAINT 16 1;
    /// Offset of the header byte that an ICMP parameter problem reports.
    ICMP_PARAMPROB 17 1;
    /// Whether `FixIPSrc` must replace the source address by the router's.
    FIX_IP_SRC 19 1;
    /// VLAN tag control information, in network order.
    VLAN_TCI 20 2;
    /// Number of the aggregate (flow, prefix) that the packet belongs to.
    AGGREGATE 20 4;
    /// Forward rate.
    FWD_RATE 20 4;
    /// Another IPv4 address.
    MISC_IP 20 4;
    /// Number of packets in the batch.
    BATCH_COUNT 24 2;
    /// Reverse rate.
    REV_RATE 24 4;
    /// Number of further packets that this one represents.
    EXTRA_PACKETS 26 2;
    /// A second paint, of two bytes.
    PAINT2 26 2;
    /// Error code of a failed send.
    SEND_ERR 26 1;
    /// Callback of grid routing.
    GRID_ROUTE_CB 27 1;
    /// Fragment state of `IPReassembler`.
    IPREASSEMBLER 28 4;
    /// Number of further bytes that this packet represents.
    EXTRA_LENGTH 28 4;
    /// Timestamp of the first packet of an aggregate.
    FIRST_TIMESTAMP 32 8;
    /// Packet number in a trace.
    PACKET_NUMBER 32 4;
    /// Flow number.
    FLOW_ID 32 4;
    /// Security parameter index.
    IPSEC_SPI 32 4;
    /// Sequence number.
    SEQUENCE_NUMBER 36 4;
    /// Security association data.
    IPSEC_SA_DATA_REFERENCE 40 8;
    /// Performance counter.
    PERFCTR 40 8;
}

/// Looks up the annotation called `name`.
pub fn by_name(name: &str) -> Option<Anno> {
    ALL.iter().copied().find(|anno| anno.name == name)
}

/// Whether byte `offset` of the annotations lives in the descriptor.
const fn is_hot(offset: usize) -> bool {
    matches!(offset, 0..=3 | PAINT | FIX_IP_SRC)
}

/// Number of the `size` bytes at `offset` that live in the descriptor.
#[inline]
const fn hot_bytes(offset: usize, size: usize) -> usize {
    let (mut i, mut hot) = (0, 0);
    while i < size {
        hot += is_hot(offset + i) as usize;
        i += 1;
    }
    hot
}

macro_rules! numbers {
    ($($get:ident $set:ident $type:ty;)*) => {$(
        #[doc = concat!("Returns the annotation at `offset` as `", stringify!($type), "`.")]
        ///
        /// # Panics
        /// If the annotation exceeds the 48 bytes.
        #[inline]
        pub fn $get(&self, offset: usize) -> $type {
            <$type>::from_ne_bytes(self.anno_bytes(offset))
        }

        #[doc = concat!("Sets the annotation at `offset` to a `", stringify!($type), "`.")]
        ///
        /// # Panics
        /// If the annotation exceeds the 48 bytes.
        #[inline]
        pub fn $set(&mut self, offset: usize, value: $type) {
            self.set_anno_bytes(offset, value.to_ne_bytes());
        }
    )*};
}

impl Packet {
    numbers! {
        anno_u8 set_anno_u8 u8;
        anno_u16 set_anno_u16 u16;
        anno_u32 set_anno_u32 u32;
        anno_u64 set_anno_u64 u64;
    }

    /// Returns the `N` annotation bytes at `offset`.
    ///
    /// # Panics
    /// If they exceed the 48 bytes.
    #[inline]
    pub fn anno_bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset <= SIZE && N <= SIZE - offset, "annotation out of range");
        let hot = hot_bytes(offset, N);
        let mut value = [0; N];
        if hot < N && self.has(COLD) {
            // SAFETY: the assertion keeps the range inside the array. A frame
            // header is only written by the frame's exclusive owner, and this
            // packet is an owner, so there is no concurrent write.
            value = unsafe { self.cold_annotations().add(offset).cast::<[u8; N]>().read() };
        }
        if hot > 0 {
            for (i, byte) in value.iter_mut().enumerate() {
                *byte = self.hot_anno(offset + i).unwrap_or(*byte);
            }
        }
        value
    }

    /// Sets the `N` annotation bytes at `offset`.
    ///
    /// # Panics
    /// If they exceed the 48 bytes.
    #[inline]
    pub fn set_anno_bytes<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        assert!(offset <= SIZE && N <= SIZE - offset, "annotation out of range");
        let hot = hot_bytes(offset, N);
        if hot > 0 {
            for (i, &byte) in value.iter().enumerate() {
                self.set_hot_anno(offset + i, byte);
            }
        }
        if hot < N {
            self.make_exclusive_cold();
            // SAFETY: the assertion keeps the range inside the array, and
            // `make_exclusive_cold` made this packet the frame's only owner.
            // Hot bytes are written too, but never read from there.
            unsafe { self.cold_annotations().add(offset).cast::<[u8; N]>().write(value) };
        }
    }

    /// Returns the destination annotation of an IPv6 packet: its next hop.
    #[inline]
    pub fn dst6(&self) -> Ipv6Addr {
        // In words, because the first is in the descriptor and the others are not.
        let high = u128::from(self.dst().to_bits()) << 96;
        let middle = u64::from_be_bytes(self.anno_bytes(DST_IP6 + 4));
        let low = u32::from_be_bytes(self.anno_bytes(DST_IP6 + 12));
        Ipv6Addr::from_bits(high | u128::from(middle) << 32 | u128::from(low))
    }

    /// Sets the destination annotation of an IPv6 packet.
    #[inline]
    pub fn set_dst6(&mut self, dst: Ipv6Addr) {
        self.set_anno_bytes(DST_IP6, dst.octets());
    }

    /// Returns all 48 annotation bytes.
    pub fn annotations(&self) -> [u8; SIZE] {
        self.anno_bytes(0)
    }

    /// Sets all 48 annotation bytes. Does not touch the frame's header if all
    /// cold bytes are zero there and in `value`.
    pub fn set_annotations(&mut self, value: [u8; SIZE]) {
        let cold_is_zero = value.iter().enumerate().all(|(i, &byte)| byte == 0 || is_hot(i));
        if cold_is_zero && !self.has(COLD) {
            for (i, &byte) in value.iter().enumerate() {
                self.set_hot_anno(i, byte);
            }
        } else {
            self.set_anno_bytes(0, value);
        }
    }

    /// Sets all 48 annotation bytes to zero. Does not touch the frame's header if its bytes are
    /// zero already.
    #[inline]
    pub fn clear_annotations(&mut self) {
        if self.has(COLD) {
            return self.set_anno_bytes(0, [0; SIZE]);
        }
        self.set_dst(Ipv4Addr::UNSPECIFIED);
        self.set_paint(0);
        self.set_fix_ip_src(false);
    }

    /// Returns byte `offset` of the annotations, if it lives in the descriptor.
    #[inline]
    fn hot_anno(&self, offset: usize) -> Option<u8> {
        match offset {
            0..=3 => Some(self.dst().octets()[offset]),
            PAINT => Some(self.paint()),
            FIX_IP_SRC => Some(u8::from(self.has(FIX_IP_SRC_FLAG))),
            _ => None,
        }
    }

    /// Sets byte `offset` of the annotations, if it lives in the descriptor.
    #[inline]
    fn set_hot_anno(&mut self, offset: usize, byte: u8) {
        match offset {
            0..=3 => {
                let mut octets = self.dst().octets();
                octets[offset] = byte;
                self.set_dst(Ipv4Addr::from(octets));
            }
            PAINT => self.set_paint(byte),
            FIX_IP_SRC => self.set_fix_ip_src(byte != 0),
            _ => {}
        }
    }
}
