//! View of a packet for the writer: locates its headers and checks them.

use super::{Meta, Packet};
use crate::{Ipv4Header, Tcp, ip_proto};
use std::fmt::Write;

/// The header that a field needs and the packet does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingHeader {
    Ethernet,
    Ip,
    /// TCP or UDP: a header with ports.
    Ports,
    /// The header of this IP protocol.
    Protocol(u8),
}

/// A packet, with the lengths of its IP header.
pub(super) struct PacketView<'a> {
    pub(super) packet: Packet<'a>,
    /// The packet without the bytes behind the IP packet.
    pub(super) data: &'a [u8],
    /// The IP packet, possibly truncated, if it has a valid header.
    pub(super) ip: Option<&'a [u8]>,
    pub(super) header_len: usize,
    pub(super) total_len: usize,
    /// Whether the TCP header has an invalid length.
    bad_tcp: bool,
    pub(super) extra_length: u32,
}

/// The `!bad` line of a packet; keeps the first report.
pub(super) struct BadReport<'b>(pub(super) Option<&'b mut String>);

impl BadReport<'_> {
    fn report(&mut self, text: std::fmt::Arguments<'_>) {
        if let Some(out) = self.0.as_deref_mut().filter(|out| out.is_empty()) {
            let _ = write!(out, "!bad {text}");
        }
    }
}

impl<'a> PacketView<'a> {
    /// A view that does not locate the headers.
    pub(super) fn without_headers(packet: Packet<'a>, meta: &Meta) -> Self {
        PacketView {
            packet,
            data: packet.data,
            ip: None,
            header_len: 0,
            total_len: 0,
            bad_tcp: false,
            extra_length: meta.extra_length,
        }
    }

    /// A view that locates the headers. `careful` reports a truncated IP packet as bad.
    pub(super) fn new(
        packet: Packet<'a>,
        meta: &Meta,
        careful: bool,
        bad: &mut BadReport<'_>,
    ) -> Self {
        let mut view = PacketView::without_headers(packet, meta);
        let Some(mut ip) = packet.network.and_then(|at| packet.data.get(at..)) else {
            return view;
        };
        let [first, _, len_hi, len_lo, ..] = *ip else {
            bad.report(format_args!("truncated IP header"));
            return view;
        };
        let (version, hl) = (first >> 4, usize::from(first & 0xf) * 4);
        let total_len = usize::from(u16::from_be_bytes([len_hi, len_lo]));
        if version != 4 {
            bad.report(format_args!("IP version {version}"));
            return view;
        } else if hl < Ipv4Header::LEN {
            bad.report(format_args!("IP header length {}", hl / 4));
            return view;
        } else if total_len < hl {
            bad.report(format_args!("IP length {total_len}"));
            return view;
        }
        let extra = view.extra_length as usize;
        let full = ip.len() + extra;
        if ip.len() > total_len {
            view.data = &packet.data[..packet.data.len() - (ip.len() - total_len)];
            ip = &ip[..total_len];
        } else if careful && full < total_len {
            bad.report(format_args!("truncated IP missing {}", total_len - full));
        }
        // Bytes that the IP header's length includes are not extra.
        let full = full.max(total_len);
        let beyond = full.saturating_sub(usize::from(u16::MAX));
        view.extra_length = if total_len == usize::from(u16::MAX) { beyond as u32 } else { 0 };
        (view.ip, view.header_len, view.total_len) = (Some(ip), hl, total_len);
        view.check_tcp(bad);
        view
    }

    /// Reports a TCP header with an invalid length.
    fn check_tcp(&mut self, bad: &mut BadReport<'_>) {
        /// Number of bytes up to the data offset.
        const TO_OFFSET: usize = Tcp::OFFSET_BYTE + 1;
        let Some(transport) = self.transport(ip_proto::TCP).filter(|t| t.len() >= TO_OFFSET) else {
            return;
        };
        let words = transport[Tcp::OFFSET_BYTE] >> 4;
        if usize::from(words) * 4 < Tcp::LEN {
            bad.report(format_args!("TCP header length {words}"));
            self.bad_tcp = true;
        }
    }

    /// The first `len` bytes of the IP header, if they are present.
    pub(super) fn header(&self, len: usize) -> Option<&'a [u8]> {
        self.ip.and_then(|ip| ip.get(..len))
    }

    pub(super) fn protocol(&self) -> Option<u8> {
        self.header(Ipv4Header::PROTOCOL + 1).map(|ip| ip[Ipv4Header::PROTOCOL])
    }

    fn fragment_word(&self) -> Option<u16> {
        let at = Ipv4Header::FRAGMENT_WORD;
        self.header(at + 2).map(|ip| u16::from_be_bytes([ip[at], ip[at + 1]]))
    }

    pub(super) fn is_first_fragment(&self) -> bool {
        self.fragment_word().is_some_and(|word| word & Ipv4Header::OFFSET_MASK == 0)
    }

    /// The bytes behind the IP header, of any protocol and any fragment.
    pub(super) fn after_ip(&self) -> &'a [u8] {
        self.ip.and_then(|ip| ip.get(self.header_len..)).unwrap_or_default()
    }

    /// The bytes from the transport header of `protocol` on; not empty.
    pub(super) fn transport(&self, protocol: u8) -> Option<&'a [u8]> {
        let bad = protocol == ip_proto::TCP && self.bad_tcp;
        let matches = self.protocol() == Some(protocol) && self.is_first_fragment() && !bad;
        Some(self.after_ip()).filter(|bytes| matches && !bytes.is_empty())
    }

    /// The bytes from the ports on.
    pub(super) fn ports(&self) -> Option<&'a [u8]> {
        let with_ports = matches!(
            self.protocol()?,
            ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP | ip_proto::UDP_LITE
        );
        Some(self.after_ip()).filter(|_| with_ports && self.is_first_fragment())
    }

    /// The Ethernet header, if it ends at the network header.
    pub(super) fn ethernet(&self) -> Option<&'a crate::Ethernet> {
        let Packet { data, link, network } = self.packet;
        let header = link.or_else(|| data.get(..network.unwrap_or(data.len())))?;
        crate::Ethernet::from_prefix(header).filter(|(_, rest)| rest.is_empty()).map(|(h, _)| h)
    }

    /// Reports why a field is missing, unless the packet is of another protocol.
    pub(super) fn report_missing(&self, what: MissingHeader, len: usize, bad: &mut BadReport<'_>) {
        let name = match what {
            MissingHeader::Ethernet => return bad.report(format_args!("Ethernet header")),
            _ if self.ip.is_none() => return bad.report(format_args!("no IP header")),
            MissingHeader::Ip => return bad.report(format_args!("truncated IP header capture")),
            MissingHeader::Ports => "TCP/UDP",
            MissingHeader::Protocol(ip_proto::TCP) => "TCP",
            MissingHeader::Protocol(ip_proto::UDP) => "UDP",
            MissingHeader::Protocol(_) => "ICMP",
        };
        let other = self.protocol().is_some_and(|protocol| match what {
            MissingHeader::Protocol(wanted) => protocol != wanted,
            _ => !matches!(protocol, ip_proto::TCP | ip_proto::UDP),
        });
        if other {
            // Not bad: another protocol.
        } else if !self.is_first_fragment() {
            bad.report(format_args!("fragmented {name} header"));
        } else if self.after_ip().len() + self.packet_extra() >= len {
            bad.report(format_args!("truncated {name} header capture"));
        } else {
            bad.report(format_args!("truncated {name} header"));
        }
    }

    fn packet_extra(&self) -> usize {
        self.extra_length as usize
    }
}
