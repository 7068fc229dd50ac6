//! Views: a packet seen through one of its headers.
//!
//! A view borrows the packet and dereferences to the header type of `wire`.
//! Reading through a view never copies. The first write to a shared packet
//! copies it, and the view continues in the copy. A view locates its header at
//! each use, so that it stays sound after [`packet_mut`](Ether::packet_mut): if
//! the header has been removed meanwhile, the use panics. [`Ipv4`], the view
//! that most elements use, has no such method and locates nothing: its
//! header was checked when the view was made, and none of its methods removes
//! it. After a [`PinnedIpv4`] this holds for the next view, too.

use std::ops::{Deref, DerefMut};

use castanet_wire::extension::{self, UpperLayer};
use castanet_wire::{Arp, Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, ether_type, ip_proto};

use crate::packet::{IPV4, IPV4_LEN, Packet};

/// Panics because a view's header has been removed since the view was made.
#[cold]
fn header_removed(name: &str) -> ! {
    panic!("the {name} header was removed from under its view")
}

/// Defines a view with the methods that all views have.
macro_rules! view {
    ($(#[$doc:meta])* $view:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $view<'p> {
            packet: &'p mut Packet,
        }

        impl $view<'_> {
            /// The whole packet.
            #[inline]
            pub fn packet(&self) -> &Packet {
                self.packet
            }

            /// The bytes behind the header and its options, up to the end that the
            /// header's length field gives: without link-layer padding.
            #[inline]
            pub fn payload(&self) -> &[u8] {
                let (start, end) = self.payload_range();
                self.packet.range(start, end)
            }

            /// The payload, mutably; copies first if the packet is shared.
            #[inline]
            pub fn payload_mut(&mut self) -> &mut [u8] {
                let (start, end) = self.payload_range();
                self.packet.range_mut(start, end)
            }
        }
    };
}

/// Defines the conversion of a view back into its packet, without restrictions.
macro_rules! into_packet {
    ($view:ident) => {
        impl<'p> $view<'p> {
            /// Converts the view back into the whole packet.
            #[inline]
            pub fn into_packet(self) -> &'p mut Packet {
                self.packet
            }
        }
    };
}

/// Defines a view that locates its header at each use.
macro_rules! header_view {
    ($(#[$doc:meta])* $view:ident, $header:ty, $offset:expr) => {
        view! { $(#[$doc])* $view }
        into_packet!($view);

        impl $view<'_> {
            /// The whole packet, mutably. If the caller removes the header, the next
            /// use of the view panics.
            #[inline]
            pub fn packet_mut(&mut self) -> &mut Packet {
                self.packet
            }

            /// Offset of the header in the frame. Panics if it has been removed: offset 0 would
            /// give access to the frame's own header.
            #[inline]
            fn offset(&self) -> usize {
                match self.offset_or_0() {
                    0 => header_removed(stringify!($view)),
                    offset => offset.into(),
                }
            }

            /// Offset of the header in the frame; 0 if it has been removed.
            #[inline]
            fn offset_or_0(&self) -> u16 {
                let offset: fn(&Packet) -> u16 = $offset;
                offset(self.packet)
            }

            /// The header in a frame of its own, after a copy if there are other owners.
            #[cold]
            #[inline(never)]
            fn exclusive_header(&mut self) -> &mut $header {
                self.packet.make_exclusive();
                let offset = self.offset_or_0();
                match <$header>::from_prefix_mut(self.packet.bytes_from_mut(offset)) {
                    Some((header, _)) => header,
                    None => header_removed(stringify!($view)),
                }
            }
        }

        impl Deref for $view<'_> {
            type Target = $header;
            #[inline]
            fn deref(&self) -> &$header {
                // The comparisons are those with which the view was made: the compiler leaves them out.
                match <$header>::from_prefix(self.packet.bytes_from(self.offset_or_0())) {
                    Some((header, _)) => header,
                    None => header_removed(stringify!($view)),
                }
            }
        }

        impl DerefMut for $view<'_> {
            #[inline]
            fn deref_mut(&mut self) -> &mut $header {
                if self.packet.is_shared() {
                    return self.exclusive_header();
                }
                let offset = self.offset_or_0();
                match <$header>::from_prefix_mut(self.packet.bytes_from_mut(offset)) {
                    Some((header, _)) => header,
                    None => header_removed(stringify!($view)),
                }
            }
        }
    };
}

/// Defines the methods of a view whose header has options.
macro_rules! options {
    ($view:ident) => {
        impl $view<'_> {
            /// The header's options; empty if there are none.
            #[inline]
            pub fn options(&self) -> &[u8] {
                let (start, end) = self.options_range();
                self.packet.range(start, end)
            }

            /// The header's options, mutably; copies first if the packet is shared.
            #[inline]
            pub fn options_mut(&mut self) -> &mut [u8] {
                let (start, end) = self.options_range();
                self.packet.range_mut(start, end)
            }
        }
    };
}

header_view! {
    /// A packet that starts with an Ethernet header.
    Ether, Ethernet, |packet| packet.data
}
header_view! {
    /// A packet with an ARP header.
    ArpPacket, Arp, arp_offset
}
header_view! {
    /// A packet whose network header is IPv6.
    Ipv6, Ipv6Header, |packet| packet.network
}
header_view! {
    /// A packet with a UDP header behind its IP header.
    UdpPacket, Udp, |packet| packet.transport
}
header_view! {
    /// A packet with a TCP header behind its IP header.
    TcpPacket, Tcp, |packet| packet.transport
}
header_view! {
    /// A packet with an ICMP header behind its IP header.
    IcmpPacket, Icmp, |packet| packet.transport
}

/// Defines a view of an IPv4 header that is checked only when the view is made.
macro_rules! ipv4_view {
    ($(#[$doc:meta])* $view:ident) => {
        view! { $(#[$doc])* $view }
        options!($view);

        impl $view<'_> {
            /// A shorter borrow of the same packet, as a view that cannot be converted back.
            #[inline]
            pub fn reborrow(&mut self) -> PinnedIpv4<'_> {
                PinnedIpv4 { packet: self.packet }
            }

            /// Sets the `FIX_IP_SRC` annotation.
            #[inline]
            pub fn set_fix_ip_src(&mut self, fix: bool) {
                self.packet.set_fix_ip_src(fix);
            }

            /// Sets an annotation byte; see [`Packet::set_anno_u8`].
            #[inline]
            pub fn set_anno_u8(&mut self, offset: usize, value: u8) {
                self.packet.set_anno_u8(offset, value);
            }

            /// The header with its options, cut off at the packet's end.
            #[inline]
            pub fn header(&self) -> &[u8] {
                let (_, end) = self.options_range();
                self.packet.range(self.packet.network.into(), end)
            }

            /// The header with its options, mutably; copies first if the packet is
            /// shared.
            #[inline]
            pub fn header_mut(&mut self) -> &mut [u8] {
                let (_, end) = self.options_range();
                self.packet.range_mut(self.packet.network.into(), end)
            }

            /// Number of bytes from the header to the end of the packet, at least 20.
            #[inline]
            #[allow(clippy::len_without_is_empty)] // never empty
            pub fn len(&self) -> usize {
                self.packet.end() - usize::from(self.packet.network)
            }

            /// The header with its options and payload, without link-layer padding.
            #[inline]
            pub fn datagram(&self) -> &[u8] {
                let start = usize::from(self.packet.network);
                self.packet.range(start, ipv4_end(self.packet, self))
            }

            /// The same bytes, mutably; copies first if the packet is shared.
            #[inline]
            pub fn datagram_mut(&mut self) -> &mut [u8] {
                let (start, end) = (self.packet.network.into(), ipv4_end(self.packet, self));
                self.packet.range_mut(start, end)
            }

            fn options_range(&self) -> (usize, usize) {
                let start = usize::from(self.packet.network);
                (start + IPV4_LEN, (start + self.header_len()).min(self.packet.end()))
            }

            #[inline]
            fn payload_range(&self) -> (usize, usize) {
                let start = usize::from(self.packet.network) + self.header_len().max(IPV4_LEN);
                (start, ipv4_end(self.packet, self))
            }
        }

        impl Deref for $view<'_> {
            type Target = Ipv4Header;
            #[inline]
            fn deref(&self) -> &Ipv4Header {
                // SAFETY: the flag `IPV4` was set when the view was made, and no method of
                // the view clears it. By invariant 4, 20 bytes from `network` on lie in the
                // packet. `Ipv4Header` is an array of bytes, so any address is aligned.
                unsafe { &*self.packet.at(self.packet.network.into()).cast() }
            }
        }

        impl DerefMut for $view<'_> {
            #[inline]
            fn deref_mut(&mut self) -> &mut Ipv4Header {
                self.packet.make_exclusive();
                // SAFETY: as in `deref`, since copying keeps the flag; and the packet is the
                // frame's only owner.
                unsafe { &mut *self.packet.at(self.packet.network.into()).cast() }
            }
        }
    };
}

ipv4_view! {
    /// A packet whose network header is IPv4.
    Ipv4
}
into_packet!(Ipv4);

impl<'p> Ipv4<'p> {
    /// The bytes from the header on to the end of the packet, at least 20.
    #[inline(always)]
    pub fn into_bytes(self) -> &'p [u8] {
        let start = self.packet.network.into();
        // SAFETY: the flag `IPV4` was set when the view was made, and no method of the view clears it. By invariant 4,
        // the header lies in the packet, whose bytes are initialised and have no other owner that writes.
        unsafe { std::slice::from_raw_parts(self.packet.at(start), self.packet.end() - start) }
    }
}

ipv4_view! {
    /// A packet whose network header is IPv4 and stays so: an [`Ipv4`] view that cannot be
    /// converted back into its packet, so that its user cannot remove the header.
    PinnedIpv4
}
options!(TcpPacket);

impl Ether<'_> {
    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + Ethernet::LEN, self.packet.end())
    }
}

impl ArpPacket<'_> {
    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + Arp::LEN, self.packet.end())
    }
}

impl Ipv6<'_> {
    /// Protocol and offset of the upper-layer header behind the extension headers.
    /// The offset counts from the start of the [`payload`](Ipv6::payload).
    #[inline]
    pub fn upper_layer(&self) -> UpperLayer {
        extension::upper_layer(self.next_header(), self.payload())
    }

    /// The header and its payload, without link-layer padding.
    #[inline]
    pub fn datagram(&self) -> &[u8] {
        self.packet.range(self.offset(), ipv6_end(self.packet, self))
    }

    /// The header and its payload, mutably; copies first if the packet is
    /// shared. If the caller changes the version, the next use of the view panics.
    #[inline]
    pub fn datagram_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.offset(), ipv6_end(self.packet, self));
        self.packet.range_mut(start, end)
    }

    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + Ipv6Header::LEN, ipv6_end(self.packet, self))
    }
}

impl UdpPacket<'_> {
    fn payload_range(&self) -> (usize, usize) {
        let end = datagram_end(self.packet);
        let len = usize::from(self.length());
        let end = if len < Udp::LEN { end } else { end.min(self.offset() + len) };
        (self.offset() + Udp::LEN, end)
    }
}

impl TcpPacket<'_> {
    fn options_range(&self) -> (usize, usize) {
        let start = self.offset();
        (start + Tcp::LEN, (start + self.header_len()).min(datagram_end(self.packet)))
    }

    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + self.header_len().max(Tcp::LEN), datagram_end(self.packet))
    }
}

impl IcmpPacket<'_> {
    /// Corrects the checksum that incremental updates leave in a message of zeros; see
    /// [`Icmp::normalize_zero_checksum`].
    #[inline]
    pub fn normalize_zero_checksum(&mut self) {
        if self.checksum() == 0 {
            let mut header: Icmp = **self;
            header.normalize_zero_checksum(self.payload());
            **self = header;
        }
    }

    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + Icmp::LEN, datagram_end(self.packet))
    }
}

/// Offset of the ARP header in the frame: the network header if that is set, else
/// behind the Ethernet header.
fn arp_offset(packet: &Packet) -> u16 {
    match packet.network {
        0 => packet.data.saturating_add(Ethernet::LEN as u16),
        network => network,
    }
}

/// Offset in the frame of an IPv4 datagram's end by its total length, limited to
/// the packet's end. The packet's end if the total length is shorter than a
/// header (0 means that the device segments the packet).
#[inline]
fn ipv4_end(packet: &Packet, header: &Ipv4Header) -> usize {
    let len = usize::from(header.total_len());
    if len < IPV4_LEN {
        return packet.end();
    }
    packet.end().min(usize::from(packet.network) + len)
}

/// As [`ipv4_end`], for IPv6; a payload length of 0 is that of a jumbogram (RFC 2675).
fn ipv6_end(packet: &Packet, header: &Ipv6Header) -> usize {
    let start = usize::from(packet.network) + Ipv6Header::LEN;
    start + header.payload_len_in(packet.end().saturating_sub(start))
}

/// Offset in the frame of the IP packet's end by the length in its header.
fn datagram_end(packet: &Packet) -> usize {
    if let Some(header) = packet.ipv4_header() {
        ipv4_end(packet, header)
    } else if let Some(header) = packet.ipv6_header() {
        ipv6_end(packet, header)
    } else {
        packet.end()
    }
}

impl Packet {
    /// A view of the Ethernet header at the start of the packet, if the packet is long enough.
    #[inline]
    pub fn ether(&mut self) -> Option<Ether<'_>> {
        self.ether_header()?;
        Some(Ether { packet: self })
    }

    /// A view of the packet as IPv4, if the network header is set, has version 4,
    /// and 20 bytes of it lie in the packet. Other fields are not checked. A
    /// packet that has passed this check is marked, and not checked again.
    #[inline]
    pub fn ipv4(&mut self) -> Option<Ipv4<'_>> {
        (self.has(IPV4) || self.check_ipv4()).then_some(Ipv4 { packet: self })
    }

    /// As [`Packet::ipv4`], for a view that cannot be converted back.
    #[inline]
    pub fn pinned_ipv4(&mut self) -> Option<PinnedIpv4<'_>> {
        (self.has(IPV4) || self.check_ipv4()).then_some(PinnedIpv4 { packet: self })
    }

    /// Checks whether the packet is IPv4, and marks it if so.
    #[cold]
    fn check_ipv4(&mut self) -> bool {
        let is_ipv4 = self.ipv4_header().is_some();
        if is_ipv4 {
            self.flags |= IPV4;
        }
        is_ipv4
    }

    /// A view of the packet as IPv6, if the network header is set, has version 6, and 40 bytes
    /// of it lie in the packet.
    #[inline]
    pub fn ipv6(&mut self) -> Option<Ipv6<'_>> {
        self.ipv6_header()?;
        Some(Ipv6 { packet: self })
    }

    /// A view of the packet as ARP: at the network header, or, if that is not set,
    /// behind an Ethernet header whose EtherType is ARP.
    #[inline]
    pub fn arp(&mut self) -> Option<ArpPacket<'_>> {
        self.arp_header()?;
        Some(ArpPacket { packet: self })
    }

    /// A view of the packet as UDP, if the protocol in its IP header is UDP, it is
    /// not a fragment other than the first, and the transport header is set and
    /// not truncated.
    #[inline]
    pub fn udp(&mut self) -> Option<UdpPacket<'_>> {
        self.udp_header()?;
        Some(UdpPacket { packet: self })
    }

    /// A view of the packet as TCP, under the conditions of [`Packet::udp`].
    #[inline]
    pub fn tcp(&mut self) -> Option<TcpPacket<'_>> {
        self.tcp_header()?;
        Some(TcpPacket { packet: self })
    }

    /// A view of the packet as ICMP (over IPv4), under the conditions of [`Packet::udp`].
    #[inline]
    pub fn icmp(&mut self) -> Option<IcmpPacket<'_>> {
        self.icmp_header()?;
        Some(IcmpPacket { packet: self })
    }

    /// A view of the packet as ICMPv6, under the conditions of [`Packet::udp`].
    #[inline]
    pub fn icmp6(&mut self) -> Option<IcmpPacket<'_>> {
        self.icmp6_header()?;
        Some(IcmpPacket { packet: self })
    }

    /// The Ethernet header at the start of the packet, if the packet is long enough.
    #[inline]
    pub fn ether_header(&self) -> Option<&Ethernet> {
        Some(Ethernet::from_prefix(self.bytes())?.0)
    }

    /// The IPv4 header; see [`Packet::ipv4`].
    #[inline]
    pub fn ipv4_header(&self) -> Option<&Ipv4Header> {
        if self.has(IPV4) {
            // SAFETY: by invariant 4, 20 bytes from `network` on lie in the packet, whose frame is
            // live and initialised (invariants 1 and 2). `Ipv4Header` is an array of bytes, so any
            // address is aligned.
            return Some(unsafe { &*self.at(self.network.into()).cast() });
        }
        let (header, _) = Ipv4Header::from_prefix(self.network_bytes())?;
        (header.version() == 4).then_some(header)
    }

    /// The IPv6 header; see [`Packet::ipv6`].
    #[inline]
    pub fn ipv6_header(&self) -> Option<&Ipv6Header> {
        let (header, _) = Ipv6Header::from_prefix(self.network_bytes())?;
        (header.version() == 6).then_some(header)
    }

    /// The ARP header; see [`Packet::arp`].
    #[inline]
    pub fn arp_header(&self) -> Option<&Arp> {
        if self.network == 0 && self.ether_header()?.ether_type() != ether_type::ARP {
            return None;
        }
        Some(Arp::from_prefix(self.bytes_from(arp_offset(self)))?.0)
    }

    /// The UDP header; see [`Packet::udp`].
    #[inline]
    pub fn udp_header(&self) -> Option<&Udp> {
        Some(Udp::from_prefix(self.transport_of(ip_proto::UDP)?)?.0)
    }

    /// The TCP header; see [`Packet::tcp`].
    #[inline]
    pub fn tcp_header(&self) -> Option<&Tcp> {
        Some(Tcp::from_prefix(self.transport_of(ip_proto::TCP)?)?.0)
    }

    /// The ICMP header; see [`Packet::icmp`].
    #[inline]
    pub fn icmp_header(&self) -> Option<&Icmp> {
        Some(Icmp::from_prefix(self.transport_of(ip_proto::ICMP)?)?.0)
    }

    /// The ICMPv6 header; see [`Packet::icmp6`].
    #[inline]
    pub fn icmp6_header(&self) -> Option<&Icmp> {
        Some(Icmp::from_prefix(self.transport_of(ip_proto::ICMPV6)?)?.0)
    }

    /// The bytes from the transport header on, if that is the header of `protocol`
    /// by the IP header, and the packet is not a fragment other than the first.
    // Elements ask for one protocol after the other: in line the compiler looks at the IP header once.
    #[inline(always)]
    fn transport_of(&self, protocol: u8) -> Option<&[u8]> {
        let matches = match self.ipv4_header() {
            Some(ip) => ip.protocol() == protocol && ip.is_first_fragment(),
            None => {
                let next = self.ipv6_header()?.next_header();
                next == protocol || extension::is_extension(next) && self.has_upper(protocol)
            }
        };
        matches.then(|| self.transport_bytes())
    }

    /// Whether the IPv6 extension headers lead to a header of `protocol`, and the
    /// transport header is set to its offset.
    #[inline(never)]
    fn has_upper(&self, protocol: u8) -> bool {
        let Some((ip, rest)) = Ipv6Header::from_prefix(self.network_bytes()) else { return false };
        let upper = extension::upper_layer(ip.next_header(), rest);
        upper.protocol == protocol
            && !upper.is_later_fragment()
            && self.network_header_len() == Ipv6Header::LEN + upper.offset
    }
}
