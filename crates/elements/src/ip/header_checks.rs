//! The IPv4 header check of `CheckIPHeader`, `CheckIPHeader2` and `IPInputCombo`.

use castanet_element::fate::{NOT_TAKEN, none_taken};
use castanet_element::packet::MAX_BURST;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;
use castanet_kit::ip_header::{Fault, HeaderCheck, PlainCheck};

/// Exits of the IPv4 header checks.
#[derive(Fate)]
pub enum CheckIPHeaderExit {
    /// Packets with a valid header.
    Good,
    /// Packets with an invalid header.
    #[optional]
    Bad,
    /// Packets shorter than an IPv4 header (20 bytes). Check that the header lies where the element
    /// expects it.
    #[drop]
    TinyPacket,
    /// Packets whose version is not 4. Sort them out with a Classifier before, or check that the
    /// header lies where the element expects it.
    #[drop]
    BadVersion,
    /// Packets whose header length is below 20 bytes.
    #[drop]
    BadHeaderLength,
    /// Packets whose total length exceeds the packet or is below the header length. Look for an
    /// element or a device before that cuts packets.
    #[drop]
    BadLength,
    /// Packets with a wrong header checksum. If all have one, look at the device or the element
    /// that wrote the header.
    #[drop]
    BadChecksum,
    /// Packets whose source address is a bad one. Check INTERFACES and BADSRC if they should pass.
    #[drop]
    BadSource,
}

/// Counters of one worker, and the faults of the current burst to report.
#[derive(Default, Local)]
#[local(methods)]
pub struct CheckIPHeaderState {
    /// Number of valid packets.
    #[read]
    #[portable]
    count: u64,
    /// Number of invalid packets.
    #[read]
    #[portable]
    drops: u64,
    #[portable]
    faults: [u64; Fault::ALL.len()],
    reports: Vec<Fault>,
}

#[handlers]
impl CheckIPHeaderState {
    /// Number of invalid packets for each fault.
    #[read]
    fn drop_details(&self) -> Value {
        let count = |fault: &Fault| (self.faults[*fault as usize], fault.text().into());
        Value::Counts(Fault::ALL.iter().map(count).collect())
    }

    /// Counts valid packets without descriptors.
    pub(crate) fn count_handled(&mut self, packets: usize) {
        self.count += packets as u64;
    }

    /// Reports the invalid packets of a burst.
    #[inline]
    pub(crate) fn report(&mut self, name: &str, cx: &mut Cx) {
        for fault in self.reports.drain(..) {
            cx.chatter(&format!("{name}: IP header check failed: {}", fault.text()));
        }
    }
}

/// The arguments that define bad sources and good destinations.
#[derive(Default)]
pub(crate) struct SourceFilter {
    pub(crate) interfaces: Vec<Net>,
    pub(crate) bad: Vec<Ipv4Addr>,
    pub(crate) good_destinations: Vec<Ipv4Addr>,
}

impl SourceFilter {
    /// Adds the bad sources of Click's older positional argument, which implies 0.0.0.0 and
    /// 255.255.255.255.
    pub(crate) fn add_legacy_list(&mut self, text: &str, names: &Names) -> Result<(), ArgError> {
        self.bad.extend(Vec::<Ipv4Addr>::from_arg(text, names)?);
        self.bad.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
        Ok(())
    }

    pub(crate) fn check(mut self, checksum: bool) -> HeaderCheck {
        if !self.interfaces.is_empty() {
            self.bad.extend(self.interfaces.iter().map(Net::broadcast));
            self.bad.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
            self.good_destinations.extend(self.interfaces.iter().map(|net| net.address));
        }
        HeaderCheck::new(checksum, &self.bad, &self.good_destinations)
    }
}

/// The header of a packet, if its length is valid and the packet contains all of it.
#[inline]
pub(crate) fn complete_header(ip: &Ipv4) -> Option<Ipv4Header> {
    let header = **ip;
    let length = header.header_len();
    (length >= Ipv4Header::LEN && ip.header().len() == length).then_some(header)
}

/// Packets of a burst that have not passed the fast check.
#[derive(Default)]
struct OddPackets {
    /// A bit for each.
    bits: [u64; MAX_BURST / u64::BITS as usize],
}

impl OddPackets {
    /// Adds those of four packets, of which `number` is the first, that have bits in `mask`.
    #[cold]
    fn add(&mut self, number: usize, mask: i32) {
        let bits = u64::from(mask.cast_unsigned() & 0xf) << (number % u64::BITS as usize);
        if let Some(word) = self.bits.get_mut(number / u64::BITS as usize) {
            *word |= bits;
        }
    }

    fn contains(&self, number: usize) -> bool {
        let word = self.bits.get(number / u64::BITS as usize);
        word.is_some_and(|word| word >> (number % u64::BITS as usize) & 1 != 0)
    }

    fn are_none(&self) -> bool {
        self.bits == [0; MAX_BURST / u64::BITS as usize]
    }
}

/// Checks IPv4 headers and marks the valid ones.
pub(crate) struct HeaderChecker {
    pub(crate) check: HeaderCheck,
    pub(crate) offset: u16,
    pub(crate) two_outputs: bool,
    pub(crate) verbose: bool,
    pub(crate) name: String,
}

impl HeaderChecker {
    /// Checks and marks a packet. This is the fast path of valid headers without options.
    #[inline(always)]
    pub(crate) fn check_packet(
        &self,
        state: &mut CheckIPHeaderState,
        packet: &mut Packet,
    ) -> CheckIPHeaderExit {
        self.check_packet_at(state, packet, self.offset, self.check.plain())
    }

    /// The same for a header at `offset`, and with the fast check `plain`.
    #[inline(always)]
    pub(crate) fn check_packet_at(
        &self,
        state: &mut CheckIPHeaderState,
        packet: &mut Packet,
        offset: u16,
        plain: PlainCheck,
    ) -> CheckIPHeaderExit {
        let header = packet.bytes().get(usize::from(offset)..);
        let Some((total_len, dst)) = header.and_then(|header| plain.check(header)) else {
            return self.check_packet_slow(state, packet);
        };
        packet.mark_ipv4(offset, Ipv4Header::LEN as u16, total_len);
        packet.set_dst(dst);
        state.count += 1;
        CheckIPHeaderExit::Good
    }

    /// The number of bytes that [`check_bytes`](Self::check_bytes) needs.
    pub(crate) fn byte_length(&self) -> usize {
        usize::from(self.offset) + Ipv4Header::LEN
    }

    /// Checks packets without descriptors, and cuts off their padding; those with options are not taken.
    // Not part of its callers: what it calls is part of it then.
    #[inline(never)]
    pub(crate) fn check_bytes(&self, bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        let offset = usize::from(self.offset);
        let mut odd = OddPackets::default();
        let is_checked = bytes.cut(offset, |number, headers, lengths| {
            let (total_len, good) = self.check.check_four(headers, lengths);
            if !good.all() {
                odd.add(number, !good.move_mask());
                return lengths + (good & (total_len - lengths));
            }
            total_len
        });
        if !is_checked {
            return none_taken(fates);
        }
        bytes.mark_plain_ipv4(offset);
        if odd.are_none() { 0 } else { self.find_fates(bytes, fates, &odd) }
    }

    /// Finds the fates of packets that have not passed the fast check, by their numbers.
    #[cold]
    fn find_fates(&self, bytes: &mut BurstBytes, fates: &mut [u8], odd: &OddPackets) -> u8 {
        let mut bits = 0;
        for number in (0..fates.len()).filter(|&number| odd.contains(number)) {
            let offset = usize::from(self.offset);
            let header = bytes.packet(number).get(offset..).unwrap_or_default();
            let fate = match self.check.check(header) {
                Ok(good) if good.header_len == Ipv4Header::LEN => {
                    bytes.cut_packet(number, offset + good.total_len);
                    CheckIPHeaderExit::Good.index()
                }
                Ok(_) => NOT_TAKEN,
                Err(fault) => self.exit(fault).index(),
            };
            fates[number] = fate;
            bits |= fate;
        }
        bits
    }

    /// The Rust expression for [`check_packet`](Self::check_packet).
    pub(crate) fn native(&self) -> Option<String> {
        let PlainCheck { checksum, filter } = self.check.plain();
        Some(format!("element.check_at(local, packet, {}, {checksum}, {filter:#x})", self.offset))
    }

    /// Checks packets with options and invalid packets.
    #[cold]
    #[inline(never)]
    fn check_packet_slow(
        &self,
        state: &mut CheckIPHeaderState,
        packet: &mut Packet,
    ) -> CheckIPHeaderExit {
        let header = packet.bytes().get(usize::from(self.offset)..).unwrap_or_default();
        match self.check.check(header) {
            Ok(good) => {
                packet.mark_ipv4(self.offset, good.header_len as u16, good.total_len as u16);
                packet.set_dst(good.dst);
                state.count += 1;
                CheckIPHeaderExit::Good
            }
            Err(fault) => self.reject(state, fault),
        }
    }

    fn reject(&self, state: &mut CheckIPHeaderState, fault: Fault) -> CheckIPHeaderExit {
        if self.verbose || state.drops == 0 {
            state.reports.push(fault);
        }
        state.drops += 1;
        state.faults[fault as usize] += 1;
        self.exit(fault)
    }

    /// Where packets with a fault go.
    fn exit(&self, fault: Fault) -> CheckIPHeaderExit {
        match fault {
            _ if self.two_outputs => CheckIPHeaderExit::Bad,
            Fault::Tiny => CheckIPHeaderExit::TinyPacket,
            Fault::Version => CheckIPHeaderExit::BadVersion,
            Fault::HeaderLength => CheckIPHeaderExit::BadHeaderLength,
            Fault::Length => CheckIPHeaderExit::BadLength,
            Fault::Checksum => CheckIPHeaderExit::BadChecksum,
            Fault::Source => CheckIPHeaderExit::BadSource,
        }
    }
}

/// The arguments of `CheckIPHeader` and `CheckIPHeader2`.
#[derive(Args)]
pub struct CheckIPHeaderArgs {
    /// Addresses of this router, with their prefixes. Their broadcast addresses, 0.0.0.0 and
    /// 255.255.255.255 are bad sources; the addresses themselves are good destinations.
    #[arg(keyword, default = Vec::new())]
    interfaces: Vec<Net>,
    /// Bad source addresses.
    #[arg(keyword, default = Vec::new())]
    badsrc: Vec<Ipv4Addr>,
    /// Good destinations: packets to them may have any source address.
    #[arg(keyword, default = Vec::new())]
    gooddst: Vec<Ipv4Addr>,
    /// Offset of the IPv4 header, in bytes.
    #[arg(keyword, default = 0)]
    offset: u16,
    /// Whether to check the header checksum; true by default, false in `CheckIPHeader2`.
    #[arg(keyword)]
    checksum: Option<bool>,
    /// Whether to report every invalid packet, not only the first.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether to count by fault; ignored, because the element always does.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    details: bool,
    /// OFFSET, or the list of bad sources, optionally followed by OFFSET.
    #[arg(rest)]
    places: Vec<String>,
}

impl CheckIPHeaderArgs {
    pub(crate) fn checker(self, checksum: bool, setup: &Setup) -> Result<HeaderChecker, ArgError> {
        let (bad, good_destinations) = (self.badsrc, self.gooddst);
        let mut filter = SourceFilter { interfaces: self.interfaces, bad, good_destinations };
        let (list, offset) = match self.places.as_slice() {
            [] => (None, None),
            [one] if u16::from_arg(one, setup.names).is_ok() => (None, Some(one)),
            [list] => (Some(list), None),
            [list, offset] => (Some(list), Some(offset)),
            _ => return Err(ArgError::new("too many arguments")),
        };
        if let Some(list) = list {
            filter.add_legacy_list(list, setup.names).map_err(|e| e.at("BADSRC"))?;
        }
        let positional_offset = offset.map(|text| u16::from_arg(text, setup.names)).transpose();
        Ok(HeaderChecker {
            check: filter.check(self.checksum.unwrap_or(checksum)),
            offset: positional_offset.map_err(|e| e.at("OFFSET"))?.unwrap_or(self.offset),
            two_outputs: setup.outputs > 1,
            verbose: self.verbose,
            name: setup.name.to_owned(),
        })
    }
}
