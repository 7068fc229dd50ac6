//! Click's annotations: 48 bytes that travel with a packet, and their names.
//!
//! Offsets and names are Click's. Four of them are hot and live in the packet
//! descriptor: bytes 0 to 3 (destination address), 16 (paint) and 19
//! (`FIX_IP_SRC`, which keeps no more than zero or one). The others live in
//! the frame's header. Numbers are in host order, addresses in network order,
//! as in Click.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet::{COLD, FIX_IP_SRC_FLAG, Packet};

/// How many bytes of annotations a packet has.
pub const SIZE: usize = 48;

/// An annotation by name, for arguments such as `Paint(1, ANNO PAINT)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anno {
    /// Click's name.
    pub name: &'static str,
    /// First byte.
    pub offset: usize,
    /// How many bytes.
    pub size: usize,
}

macro_rules! annotations {
    ($($(#[$doc:meta])* $name:ident $offset:literal $size:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $offset;)*

        /// All annotations that have a name.
        pub const ALL: &[Anno] =
            &[$(Anno { name: stringify!($name), offset: $offset, size: $size }),*];
    };
}

annotations! {
    /// Where an IPv4 packet goes next: its destination, or a gateway.
    DST_IP 0 4;
    /// Where an IPv6 packet goes next.
    DST_IP6 0 16;
    /// Radio details of 802.11 packets.
    WIFI_EXTRA 16 24;
    /// A packet's colour.
    PAINT 16 1;
    /// Which byte of the header an ICMP parameter problem is about.
    ICMP_PARAMPROB 17 1;
    /// Whether `FixIPSrc` is to put this router's address in.
    FIX_IP_SRC 19 1;
    /// VLAN tag control information, network order.
    VLAN_TCI 20 2;
    /// Which aggregate (flow, prefix) a packet belongs to.
    AGGREGATE 20 4;
    /// Forward rate.
    FWD_RATE 20 4;
    /// Some other IPv4 address.
    MISC_IP 20 4;
    /// How many packets the batch had.
    BATCH_COUNT 24 2;
    /// Reverse rate.
    REV_RATE 24 4;
    /// How many more packets this one stands for.
    EXTRA_PACKETS 26 2;
    /// A second colour, of two bytes.
    PAINT2 26 2;
    /// Why sending failed.
    SEND_ERR 26 1;
    /// What grid routing is to do.
    GRID_ROUTE_CB 27 1;
    /// Fragment bookkeeping of `IPReassembler`.
    IPREASSEMBLER 28 4;
    /// How many more bytes this packet stands for.
    EXTRA_LENGTH 28 4;
    /// When the first packet of several was seen.
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

/// The annotation called `name`.
pub fn by_name(name: &str) -> Option<Anno> {
    ALL.iter().copied().find(|anno| anno.name == name)
}

/// Whether byte `offset` of the annotations lives in the descriptor.
const fn is_hot(offset: usize) -> bool {
    matches!(offset, 0..=3 | PAINT | FIX_IP_SRC)
}

/// How many of the `size` bytes at `offset` live in the descriptor.
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
        #[doc = concat!("The annotation at `offset`, as `", stringify!($type), "`.")]
        ///
        /// # Panics
        /// If it does not lie within the 48 bytes.
        #[inline]
        pub fn $get(&self, offset: usize) -> $type {
            <$type>::from_ne_bytes(self.anno_bytes(offset))
        }

        #[doc = concat!("Sets the annotation at `offset`, a `", stringify!($type), "`.")]
        ///
        /// # Panics
        /// If it does not lie within the 48 bytes.
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

    /// The `N` bytes of annotation at `offset`.
    ///
    /// # Panics
    /// If they do not lie within the 48 bytes.
    #[inline]
    pub fn anno_bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset <= SIZE && N <= SIZE - offset, "annotation out of range");
        let hot = hot_bytes(offset, N);
        let mut value = [0; N];
        if hot < N && self.has(COLD) {
            // SAFETY: the range lies in the array; valid frame headers are
            // only written by an owner that is alone.
            value = unsafe { self.cold_annotations().add(offset).cast::<[u8; N]>().read() };
        }
        if hot > 0 {
            for (i, byte) in value.iter_mut().enumerate() {
                *byte = self.hot_anno(offset + i).unwrap_or(*byte);
            }
        }
        value
    }

    /// Sets the `N` bytes of annotation at `offset`.
    ///
    /// # Panics
    /// If they do not lie within the 48 bytes.
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
            self.own_cold();
            // SAFETY: the range lies in the array, and the frame is ours
            // alone. What is hot there is never read back.
            unsafe { self.cold_annotations().add(offset).cast::<[u8; N]>().write(value) };
        }
    }

    /// The destination annotation of an IPv6 packet: where it goes next.
    #[inline]
    pub fn dst6(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.anno_bytes::<16>(DST_IP6))
    }

    /// Sets the destination annotation of an IPv6 packet.
    #[inline]
    pub fn set_dst6(&mut self, dst: Ipv6Addr) {
        self.set_anno_bytes(DST_IP6, dst.octets());
    }

    /// All 48 bytes of annotation.
    pub fn annotations(&self) -> [u8; SIZE] {
        self.anno_bytes(0)
    }

    /// Sets all 48 bytes of annotation; leaves the frame's header alone if
    /// it has nothing to say.
    pub fn set_annotations(&mut self, value: [u8; SIZE]) {
        let quiet = value.iter().enumerate().all(|(i, &byte)| byte == 0 || is_hot(i));
        if quiet && !self.has(COLD) {
            for (i, &byte) in value.iter().enumerate() {
                self.set_hot_anno(i, byte);
            }
        } else {
            self.set_anno_bytes(0, value);
        }
    }

    /// Byte `offset` of the annotations, if it lives in the descriptor.
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
