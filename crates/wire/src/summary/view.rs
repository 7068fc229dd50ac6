//! A packet with its headers found and checked, as far as a dump trusts them.

use super::{Meta, Packet};
use crate::{Ipv4Header, Tcp, ip_proto};
use std::fmt::Write;

/// What a field wants and does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Ethernet,
    Ip,
    /// TCP or UDP, for their ports.
    Ports,
    Protocol(u8),
}

/// A packet, with lengths as its IP header has them.
pub(super) struct View<'a> {
    pub(super) packet: Packet<'a>,
    /// The bytes without what follows the IP packet.
    pub(super) data: &'a [u8],
    /// From the IP header on, if there is a sensible one; perhaps cut off.
    pub(super) ip: Option<&'a [u8]>,
    pub(super) header_len: usize,
    pub(super) total_len: usize,
    /// The TCP header makes no sense.
    bad_tcp: bool,
    pub(super) extra_length: u32,
}

/// Says once what is bad about a packet.
pub(super) struct Bad<'b>(pub(super) Option<&'b mut String>);

impl Bad<'_> {
    fn say(&mut self, text: std::fmt::Arguments<'_>) {
        if let Some(out) = self.0.as_deref_mut().filter(|out| out.is_empty()) {
            let _ = write!(out, "!bad {text}");
        }
    }
}

impl<'a> View<'a> {
    pub(super) fn plain(packet: Packet<'a>, meta: &Meta) -> Self {
        View {
            packet,
            data: packet.data,
            ip: None,
            header_len: 0,
            total_len: 0,
            bad_tcp: false,
            extra_length: meta.extra_length,
        }
    }

    /// Finds the headers. `careful` takes an IP packet that is cut off for bad.
    pub(super) fn new(packet: Packet<'a>, meta: &Meta, careful: bool, bad: &mut Bad<'_>) -> Self {
        let mut view = View::plain(packet, meta);
        let Some(mut ip) = packet.network.and_then(|at| packet.data.get(at..)) else {
            return view;
        };
        let [first, _, len_hi, len_lo, ..] = *ip else {
            bad.say(format_args!("truncated IP header"));
            return view;
        };
        let (version, hl) = (first >> 4, usize::from(first & 0xf) * 4);
        let total_len = usize::from(u16::from_be_bytes([len_hi, len_lo]));
        if version != 4 {
            bad.say(format_args!("IP version {version}"));
            return view;
        } else if hl < Ipv4Header::LEN {
            bad.say(format_args!("IP header length {}", hl / 4));
            return view;
        } else if total_len < hl {
            bad.say(format_args!("IP length {total_len}"));
            return view;
        }
        let extra = view.extra_length as usize;
        let full = ip.len() + extra;
        if ip.len() > total_len {
            view.data = &packet.data[..packet.data.len() - (ip.len() - total_len)];
            ip = &ip[..total_len];
        } else if careful && full < total_len {
            bad.say(format_args!("truncated IP missing {}", total_len - full));
        }
        // What the IP header counts is not extra.
        let full = full.max(total_len);
        let beyond = full.saturating_sub(usize::from(u16::MAX));
        view.extra_length = if total_len == usize::from(u16::MAX) { beyond as u32 } else { 0 };
        (view.ip, view.header_len, view.total_len) = (Some(ip), hl, total_len);
        view.check_tcp(bad);
        view
    }

    fn check_tcp(&mut self, bad: &mut Bad<'_>) {
        /// Bytes up to the data offset.
        const TO_OFFSET: usize = Tcp::OFFSET_BYTE + 1;
        let Some(transport) = self.transport(ip_proto::TCP).filter(|t| t.len() >= TO_OFFSET) else {
            return;
        };
        let words = transport[Tcp::OFFSET_BYTE] >> 4;
        if usize::from(words) * 4 < Tcp::LEN {
            bad.say(format_args!("TCP header length {words}"));
            self.bad_tcp = true;
        }
    }

    /// The IP header's first `len` bytes are there.
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

    /// All from the transport header on, of any protocol and any fragment.
    pub(super) fn after_ip(&self) -> &'a [u8] {
        self.ip.and_then(|ip| ip.get(self.header_len..)).unwrap_or_default()
    }

    /// All from the transport header of `protocol` on; not empty.
    pub(super) fn transport(&self, protocol: u8) -> Option<&'a [u8]> {
        let bad = protocol == ip_proto::TCP && self.bad_tcp;
        let here = self.protocol() == Some(protocol) && self.is_first_fragment() && !bad;
        Some(self.after_ip()).filter(|bytes| here && !bytes.is_empty())
    }

    /// All from the ports on.
    pub(super) fn ports(&self) -> Option<&'a [u8]> {
        let with_ports = matches!(
            self.protocol()?,
            ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP | ip_proto::UDP_LITE
        );
        Some(self.after_ip()).filter(|_| with_ports && self.is_first_fragment())
    }

    /// The Ethernet header, if just one lies before the network header.
    pub(super) fn ethernet(&self) -> Option<&'a crate::Ethernet> {
        let Packet { data, link, network } = self.packet;
        let link = link.unwrap_or(0);
        let header = data.get(link..network.unwrap_or(data.len()))?;
        crate::Ethernet::from_prefix(header).filter(|(_, rest)| rest.is_empty()).map(|(h, _)| h)
    }

    /// Says why a field is not there, unless that is as it should be.
    pub(super) fn missing(&self, what: Missing, len: usize, bad: &mut Bad<'_>) {
        let name = match what {
            Missing::Ethernet => return bad.say(format_args!("Ethernet header")),
            _ if self.ip.is_none() => return bad.say(format_args!("no IP header")),
            Missing::Ip => return bad.say(format_args!("truncated IP header capture")),
            Missing::Ports => "TCP/UDP",
            Missing::Protocol(ip_proto::TCP) => "TCP",
            Missing::Protocol(ip_proto::UDP) => "UDP",
            Missing::Protocol(_) => "ICMP",
        };
        let other = self.protocol().is_some_and(|protocol| match what {
            Missing::Protocol(wanted) => protocol != wanted,
            _ => !matches!(protocol, ip_proto::TCP | ip_proto::UDP),
        });
        if other {
            // Not bad: just another protocol.
        } else if !self.is_first_fragment() {
            bad.say(format_args!("fragmented {name} header"));
        } else if self.after_ip().len() + self.packet_extra() >= len {
            bad.say(format_args!("truncated {name} header capture"));
        } else {
            bad.say(format_args!("truncated {name} header"));
        }
    }

    fn packet_extra(&self) -> usize {
        self.extra_length as usize
    }
}
