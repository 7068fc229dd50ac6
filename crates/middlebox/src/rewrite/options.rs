//! Edits the list of TCP options and writes it into the packet, whose payload moves.

use super::fields::{adjust_upper_checksum, shift};
use super::plan::OptionEdit;
use crate::field::Layer;
use crate::headers::Headers;
use castanet_packet::Packet;
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::options::{END, NOP, RawOption, RawOptions};
use castanet_wire::tcp::OPTION_SACK;
use castanet_wire::{Ipv4Header, Ipv6Header, Tcp};

/// The most bytes of options that a TCP header has room for.
const MAX_LEN: usize = 40;
/// Bytes of an option before its value: kind and length.
const HEAD: usize = 2;
/// The unit of a TCP header's length.
const WORD: usize = 4;

/// The TCP options of a packet while they are edited, without padding.
#[derive(Clone, Copy, Debug)]
pub struct OptionList {
    bytes: [u8; MAX_LEN],
    len: usize,
    /// The most bytes that they may become.
    most: usize,
    changed: bool,
}

impl OptionList {
    /// The options of a packet, whose length may grow up to `mtu`; nothing if it
    /// has no whole TCP header, or is a fragment.
    pub fn read(bytes: &[u8], headers: &Headers, mtu: usize) -> Option<OptionList> {
        // The other fragments of the packet fix the length of this one.
        if headers.upper != Layer::Tcp || headers.is_fragment {
            return None;
        }
        let (tcp, _) = Tcp::from_prefix(bytes.get(headers.transport..)?)?;
        let is_whole = tcp.header_len() == headers.payload - headers.transport;
        let old = bytes.get(headers.options_range()).filter(|_| is_whole)?;
        let growth = mtu.saturating_sub(headers.ip_len()) / WORD * WORD;
        let most = (old.len() + growth).min(MAX_LEN);
        let mut list = OptionList { bytes: [0; MAX_LEN], len: 0, most, changed: false };
        for option in unpadded(old) {
            list.append(option.kind, option.data);
        }
        Some(list)
    }

    /// Edits it; whether there was room.
    pub fn edit(&mut self, edit: &OptionEdit) -> bool {
        match edit {
            OptionEdit::Strip(kind) => self.retain(|it| it != *kind),
            OptionEdit::StripAll => self.retain(|_| false),
            OptionEdit::Keep(kinds) => self.retain(|it| kinds.contains(&it)),
            OptionEdit::Set(kind, value) => return self.set(*kind, value),
            OptionEdit::Add(kind, value) if !self.has(*kind) => {
                let fits = (self.len + HEAD + value.len()).next_multiple_of(WORD) <= self.most;
                if fits {
                    self.append(*kind, value);
                    self.changed = true;
                }
                return fits;
            }
            OptionEdit::Add(..) => {}
        }
        true
    }

    fn has(&self, kind: u8) -> bool {
        RawOptions::new(&self.bytes[..self.len]).any(|option| option.kind == kind)
    }

    /// Appends an option that fits.
    fn append(&mut self, kind: u8, value: &[u8]) {
        let end = self.len + HEAD + value.len();
        let Some(place) = self.bytes.get_mut(self.len..end) else { return };
        place[0] = kind;
        place[1] = (HEAD + value.len()) as u8;
        place[HEAD..].copy_from_slice(value);
        self.len = end;
    }

    /// Keeps the options of these kinds.
    fn retain(&mut self, keep: impl Fn(u8) -> bool) {
        let old = *self;
        self.len = 0;
        for option in RawOptions::new(&old.bytes[..old.len]) {
            if keep(option.kind) {
                self.append(option.kind, option.data);
            }
        }
        self.changed |= self.len != old.len;
    }

    /// Shifts the sequence numbers of selective acknowledgments.
    pub(super) fn shift_sack(&mut self, by: u32) {
        let old = *self;
        let sack = RawOptions::new(&old.bytes[..old.len]).find(|it| it.kind == OPTION_SACK);
        if let Some(sack) = sack {
            let start = sack.data_offset();
            shift(&mut self.bytes[start..start + sack.data.len()], by);
            self.changed = true;
        }
    }

    /// Gives the options of a kind another value; whether there was room.
    fn set(&mut self, kind: u8, value: &[u8]) -> bool {
        let old = *self;
        self.len = 0;
        for option in RawOptions::new(&old.bytes[..old.len]) {
            let data = if option.kind == kind { value } else { option.data };
            if (self.len + HEAD + data.len()).next_multiple_of(WORD) > self.most.max(old.len) {
                *self = old;
                return false;
            }
            self.append(option.kind, data);
        }
        self.changed |= self.bytes[..self.len] != old.bytes[..old.len];
        true
    }

    /// The options with padding as in `old`, those of the packet, if only values have changed.
    fn padded_as(&self, old: &[u8]) -> Option<[u8; MAX_LEN]> {
        let mut bytes = [0; MAX_LEN];
        bytes.get_mut(..old.len())?.copy_from_slice(old);
        let mut own = RawOptions::new(&self.bytes[..self.len]);
        for option in unpadded(old) {
            let new = own.next().filter(|new| new.kind == option.kind)?;
            let place = bytes.get_mut(option.data_offset()..)?.get_mut(..option.data.len())?;
            place.copy_from_slice(Some(new.data).filter(|data| data.len() == place.len())?);
        }
        own.next().is_none().then_some(bytes)
    }

    /// Puts it into the packet that it is of, if it has changed. Where options come, go or get another length,
    /// the payload moves; lengths and checksums follow.
    pub fn write(mut self, packet: &mut Packet, headers: &mut Headers) {
        if !self.changed {
            return;
        }
        let before = packet.bytes().get(headers.options_range()).unwrap_or_default();
        if let Some(bytes) = self.padded_as(before) {
            (self.bytes, self.len) = (bytes, before.len());
        }
        let len = self.len.next_multiple_of(WORD);
        self.bytes[self.len..len].fill(END);
        let (old, new) = (headers.options_range(), headers.options_range().start + len);
        let before = Sum::new().slice(&packet.bytes()[old.clone()]);
        let after = Sum::new().slice(&self.bytes[..len]);
        move_tail(packet, old.end, new);
        let bytes = packet.bytes_mut();
        bytes[old.start..new].copy_from_slice(&self.bytes[..len]);
        let lengths =
            (headers.end - headers.transport, headers.end - old.end + new - headers.transport);
        let delta = Delta::new()
            .sum(before, after)
            .u16(lengths.0 as u16, lengths.1 as u16)
            .and(set_header_len(&mut bytes[headers.transport..], new - headers.transport));
        headers.end = headers.end - old.end + new;
        headers.payload = new;
        adjust_upper_checksum(bytes, headers, false, delta);
        set_ip_len(&mut bytes[headers.network..], headers);
    }
}

/// The options but for padding.
fn unpadded(bytes: &[u8]) -> impl Iterator<Item = RawOption<'_>> {
    RawOptions::new(bytes).filter(|option| !matches!(option.kind, END | NOP))
}

/// Moves what begins at `from` to `to`; the packet gets longer or shorter.
fn move_tail(packet: &mut Packet, from: usize, to: usize) {
    let len = packet.len();
    if to > from {
        packet.put_back(to - from);
    }
    packet.bytes_mut().copy_within(from..len, to);
    packet.truncate(len + to - from);
}

/// Sets the length of a TCP header; what that does to its checksum.
fn set_header_len(header: &mut [u8], len: usize) -> Delta {
    let Some((tcp, _)) = Tcp::from_prefix_mut(header) else { return Delta::new() };
    let word = |tcp: &Tcp| u16::from_be_bytes([tcp.offset_byte(), tcp.flags()]);
    let before = word(tcp);
    tcp.set_header_len(len);
    Delta::new().u16(before, word(tcp))
}

/// Sets the length in the IP header to what it is; 0 stays, by which a device
/// knows that it is to segment the packet.
fn set_ip_len(header: &mut [u8], headers: &Headers) {
    let len = headers.ip_len();
    if headers.is_ip6 {
        match Ipv6Header::from_prefix_mut(header) {
            Some((ip, _)) if ip.payload_len() != 0 => {
                ip.set_payload_len((len - Ipv6Header::LEN) as u16);
            }
            _ => {}
        }
    } else if let Some((ip, _)) = Ipv4Header::from_prefix_mut(header)
        && ip.total_len() != 0
    {
        ip.rewrite_total_len(len as u16);
    }
}
