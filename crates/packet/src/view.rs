//! Views: a packet seen through one of its headers.
//!
//! A view borrows the packet and dereferences to the header as `wire` knows
//! it. Reading through a view never copies; the first write to a packet that
//! is shared copies it, and the view goes on in the copy. A view looks its
//! header up anew at each use, so that even
//! [`packet_mut`](Ether::packet_mut) cannot lead it astray: should the header
//! be gone afterwards, using it panics. [`Ipv4`], which most elements see
//! packets through, has no such method and nothing to look up: its header was
//! there when the view was made, and nothing that it lets be done takes it away.
//! After [`Ipv4Kept`] that holds for the next view, too.

use std::ops::{Deref, DerefMut};

use castanet_wire::extension::{self, Upper};
use castanet_wire::{Arp, Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, ether_type, ip_proto};

use crate::frame::HEADER;
use crate::packet::{IPV4, IPV4_LEN, Packet};

/// A view's header was there when the view was made, and no longer is.
#[cold]
fn gone(name: &str) -> ! {
    panic!("the {name} header was removed from under its view")
}

/// A view and what all of them have.
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

            /// The bytes after the header and its options, as far as the
            /// lengths in the headers say; padding of the link is left out.
            #[inline]
            pub fn payload(&self) -> &[u8] {
                let (start, end) = self.payload_range();
                self.packet.range(start, end)
            }

            /// The payload, to change; copies first if the packet is shared.
            #[inline]
            pub fn payload_mut(&mut self) -> &mut [u8] {
                let (start, end) = self.payload_range();
                self.packet.range_mut(start, end)
            }
        }
    };
}

/// A view that the packet can be had back from, to do anything with.
macro_rules! returns {
    ($view:ident) => {
        impl<'p> $view<'p> {
            /// The whole packet, in place of the view.
            #[inline]
            pub fn into_packet(self) -> &'p mut Packet {
                self.packet
            }
        }
    };
}

/// A view of a header that is looked for at each use.
macro_rules! header {
    ($(#[$doc:meta])* $view:ident, $header:ty, $offset:expr) => {
        view! { $(#[$doc])* $view }
        returns!($view);

        impl $view<'_> {
            /// The whole packet, to change. If the header is no longer there
            /// afterwards, the view panics when it is used.
            #[inline]
            pub fn packet_mut(&mut self) -> &mut Packet {
                self.packet
            }

            /// Where the header starts, counted from the frame; panics if the packet has none
            /// any more, for bytes counted from 0 would be those of the frame's own header.
            #[inline]
            fn offset(&self) -> usize {
                match self.offset_or_0() {
                    0 => gone(stringify!($view)),
                    offset => offset,
                }
            }

            /// The same, 0 if the packet has none any more: no bytes lie there.
            #[inline]
            fn offset_or_0(&self) -> usize {
                let offset: fn(&Packet) -> u16 = $offset;
                offset(self.packet).into()
            }
        }

        impl Deref for $view<'_> {
            type Target = $header;
            #[inline]
            fn deref(&self) -> &$header {
                let bytes = self.packet.range(self.offset_or_0(), self.packet.end());
                match <$header>::from_prefix(bytes) {
                    Some((header, _)) => header,
                    None => gone(stringify!($view)),
                }
            }
        }

        impl DerefMut for $view<'_> {
            #[inline]
            fn deref_mut(&mut self) -> &mut $header {
                let (offset, end) = (self.offset_or_0(), self.packet.end());
                match <$header>::from_prefix_mut(self.packet.range_mut(offset, end)) {
                    Some((header, _)) => header,
                    None => gone(stringify!($view)),
                }
            }
        }
    };
}

/// A view whose header has options.
macro_rules! options {
    ($view:ident) => {
        impl $view<'_> {
            /// The header's options; empty if there are none.
            #[inline]
            pub fn options(&self) -> &[u8] {
                let (start, end) = self.options_range();
                self.packet.range(start, end)
            }

            /// The header's options, to change; copies first if the packet is
            /// shared.
            #[inline]
            pub fn options_mut(&mut self) -> &mut [u8] {
                let (start, end) = self.options_range();
                self.packet.range_mut(start, end)
            }
        }
    };
}

header! {
    /// A packet that starts with an Ethernet header.
    Ether, Ethernet, |packet| packet.data
}
header! {
    /// A packet with an ARP header.
    ArpPacket, Arp, arp_offset
}
header! {
    /// A packet whose network header is IPv6.
    Ipv6, Ipv6Header, |packet| packet.network
}
header! {
    /// A packet with a UDP header behind its IP header.
    UdpPacket, Udp, |packet| packet.transport
}
header! {
    /// A packet with a TCP header behind its IP header.
    TcpPacket, Tcp, |packet| packet.transport
}
header! {
    /// A packet with an ICMP header behind its IP header.
    IcmpPacket, Icmp, |packet| packet.transport
}

/// A view of an IPv4 header that was there when the view was made.
macro_rules! ipv4 {
    ($(#[$doc:meta])* $view:ident) => {
        view! { $(#[$doc])* $view }
        options!($view);

        impl $view<'_> {
            /// The same packet, for somebody who leaves it what it is.
            #[inline]
            pub fn lend(&mut self) -> Ipv4Kept<'_> {
                Ipv4Kept { packet: self.packet }
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

            /// The header with its options, as far as the packet goes.
            #[inline]
            pub fn header(&self) -> &[u8] {
                let (_, end) = self.options_range();
                self.packet.range(self.packet.network.into(), end)
            }

            /// The header with its options, to change; copies first if the packet is
            /// shared.
            #[inline]
            pub fn header_mut(&mut self) -> &mut [u8] {
                let (_, end) = self.options_range();
                self.packet.range_mut(self.packet.network.into(), end)
            }

            /// Bytes from the header to the end of the packet, at least 20.
            #[inline]
            #[allow(clippy::len_without_is_empty)] // it never is
            pub fn len(&self) -> usize {
                self.packet.end() - usize::from(self.packet.network)
            }

            /// The header with its options and payload, without padding of the link.
            #[inline]
            pub fn datagram(&self) -> &[u8] {
                let start = usize::from(self.packet.network);
                self.packet.range(start, ipv4_end(self.packet, self))
            }

            /// The same, to change; copies first if the packet is shared.
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
                // SAFETY: invariant 4, as the flag was set when the view was made and
                // the view lets nobody clear it: 20 bytes from `network` on lie in the
                // packet; the header is an array of bytes.
                unsafe { &*self.packet.at(self.packet.network.into()).cast() }
            }
        }

        impl DerefMut for $view<'_> {
            #[inline]
            fn deref_mut(&mut self) -> &mut Ipv4Header {
                self.packet.own();
                // SAFETY: as in `deref`, as copying keeps the flag, and the frame is ours alone.
                unsafe { &mut *self.packet.at(self.packet.network.into()).cast() }
            }
        }
    };
}

ipv4! {
    /// A packet whose network header is IPv4.
    Ipv4
}
returns!(Ipv4);
ipv4! {
    /// A packet whose network header is IPv4 and stays so: what [`Ipv4`] can do, but the
    /// packet cannot be had back, and so not be made something else.
    Ipv4Kept
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
    /// What the packet carries behind its extension headers, and where; offsets
    /// are those of the [`payload`](Ipv6::payload).
    #[inline]
    pub fn upper(&self) -> Upper {
        extension::upper(self.next_header(), self.payload())
    }

    /// The header and its payload, without padding of the link.
    #[inline]
    pub fn datagram(&self) -> &[u8] {
        self.packet.range(self.offset(), ipv6_end(self.packet, self))
    }

    /// The header and its payload, to change; copies first if the packet is
    /// shared. If it is not IPv6 any more afterwards, the view panics.
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
    /// Sets right the checksum that incremental changes leave of a message of zeros; see
    /// [`Icmp::mend_zero_checksum`].
    #[inline]
    pub fn mend_zero_checksum(&mut self) {
        if self.checksum() == 0 {
            let mut header: Icmp = **self;
            header.mend_zero_checksum(self.payload());
            **self = header;
        }
    }

    fn payload_range(&self) -> (usize, usize) {
        (self.offset() + Icmp::LEN, datagram_end(self.packet))
    }
}

/// Where the ARP header starts: at the network header if that is known, else
/// behind the Ethernet header.
fn arp_offset(packet: &Packet) -> u16 {
    match packet.network {
        0 => packet.data.saturating_add(Ethernet::LEN as u16),
        network => network,
    }
}

/// Where an IPv4 packet ends according to its header: not beyond the packet's
/// end, and there if the header's length makes no sense (0 means that the
/// device is to segment it).
#[inline]
fn ipv4_end(packet: &Packet, header: &Ipv4Header) -> usize {
    let len = usize::from(header.total_len());
    if len < IPV4_LEN {
        return packet.end();
    }
    packet.end().min(usize::from(packet.network) + len)
}

/// As [`ipv4_end`], for IPv6; a length of 0 is that of a jumbogram.
fn ipv6_end(packet: &Packet, header: &Ipv6Header) -> usize {
    match usize::from(header.payload_len()) {
        0 => packet.end(),
        len => packet.end().min(usize::from(packet.network) + Ipv6Header::LEN + len),
    }
}

/// Where the IP packet ends according to its header.
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
    /// The packet as one that starts with an Ethernet header, if it is long enough.
    #[inline]
    pub fn ether(&mut self) -> Option<Ether<'_>> {
        self.ether_header()?;
        Some(Ether { packet: self })
    }

    /// The packet as IPv4, if its network header is that: marked as network
    /// header, of version 4, and not cut short. Other fields are not checked.
    /// What was once seen to be IPv4 is not looked at again.
    #[inline]
    pub fn ipv4(&mut self) -> Option<Ipv4<'_>> {
        (self.has(IPV4) || self.look_for_ipv4()).then_some(Ipv4 { packet: self })
    }

    /// The same as what stays IPv4.
    #[inline]
    pub fn ipv4_kept(&mut self) -> Option<Ipv4Kept<'_>> {
        (self.has(IPV4) || self.look_for_ipv4()).then_some(Ipv4Kept { packet: self })
    }

    /// The packet as what stays IPv4, if it was seen to be that: nobody looks anew.
    #[inline]
    pub fn seen_ipv4(&mut self) -> Option<Ipv4Kept<'_>> {
        self.has(IPV4).then_some(Ipv4Kept { packet: self })
    }

    /// Marks the packet as IPv4 if it is; whether it is.
    #[cold]
    fn look_for_ipv4(&mut self) -> bool {
        let found = self.ipv4_header().is_some();
        if found {
            self.flags |= IPV4;
        }
        found
    }

    /// The packet as IPv6, if its network header is that.
    #[inline]
    pub fn ipv6(&mut self) -> Option<Ipv6<'_>> {
        self.ipv6_header()?;
        Some(Ipv6 { packet: self })
    }

    /// The packet as ARP: at its network header, or behind an Ethernet header
    /// that says so if no network header is known.
    #[inline]
    pub fn arp(&mut self) -> Option<ArpPacket<'_>> {
        self.arp_header()?;
        Some(ArpPacket { packet: self })
    }

    /// The packet as UDP, if its IP header says so, it is not a later
    /// fragment, and the transport header is known and not cut short.
    #[inline]
    pub fn udp(&mut self) -> Option<UdpPacket<'_>> {
        self.udp_header()?;
        Some(UdpPacket { packet: self })
    }

    /// The packet as TCP, under the same conditions.
    #[inline]
    pub fn tcp(&mut self) -> Option<TcpPacket<'_>> {
        self.tcp_header()?;
        Some(TcpPacket { packet: self })
    }

    /// The packet as ICMP over IPv4, under the same conditions.
    #[inline]
    pub fn icmp(&mut self) -> Option<IcmpPacket<'_>> {
        self.icmp_header()?;
        Some(IcmpPacket { packet: self })
    }

    /// The packet as ICMPv6, under the same conditions.
    #[inline]
    pub fn icmp6(&mut self) -> Option<IcmpPacket<'_>> {
        self.icmp6_header()?;
        Some(IcmpPacket { packet: self })
    }

    /// The Ethernet header that the packet starts with, if it is long enough.
    #[inline]
    pub fn ether_header(&self) -> Option<&Ethernet> {
        Some(Ethernet::from_prefix(self.bytes())?.0)
    }

    /// The IPv4 header; see [`Packet::ipv4`].
    #[inline]
    pub fn ipv4_header(&self) -> Option<&Ipv4Header> {
        let (header, _) = Ipv4Header::from_prefix(self.network_bytes())?;
        (self.has(IPV4) || header.version() == 4).then_some(header)
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

    /// The bytes from the transport header on, if the IP header says that
    /// they are `protocol`.
    #[inline]
    fn transport_of(&self, protocol: u8) -> Option<&[u8]> {
        let is_it = match self.ipv4_header() {
            Some(ip) => ip.protocol() == protocol && ip.is_first_fragment(),
            None => {
                let next = self.ipv6_header()?.next_header();
                next == protocol || extension::is_extension(next) && self.carries(protocol)
            }
        };
        is_it.then(|| self.transport_bytes())
    }

    /// Whether `protocol` is what lies behind IPv6 extension headers, and that
    /// is where the transport header is said to be.
    fn carries(&self, protocol: u8) -> bool {
        let Some((ip, rest)) = Ipv6Header::from_prefix(self.network_bytes()) else { return false };
        let upper = extension::upper(ip.next_header(), rest);
        upper.protocol == protocol
            && !upper.elsewhere()
            && self.network_header_len() == Ipv6Header::LEN + upper.offset
    }

    /// The bytes between two offsets, as far as they lie before the packet's
    /// end; empty if there are none, or `start` lies in the frame's own header.
    #[inline]
    fn range(&self, start: usize, end: usize) -> &[u8] {
        let end = end.min(self.end());
        if start < HEADER || start > end {
            return &[];
        }
        // SAFETY: `start` lies behind the frame's own header, as was just seen, and
        // `end` is not beyond the contents.
        unsafe { std::slice::from_raw_parts(self.at(start), end - start) }
    }

    /// As [`Packet::range`], to change; copies first if the packet is shared.
    #[inline]
    fn range_mut(&mut self, start: usize, end: usize) -> &mut [u8] {
        self.own();
        let end = end.min(self.end());
        if start < HEADER || start > end {
            return &mut [];
        }
        // SAFETY: as in `range`, and the frame is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at(start), end - start) }
    }
}
