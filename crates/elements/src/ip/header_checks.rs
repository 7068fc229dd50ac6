//! What `CheckIPHeader`, `CheckIPHeader2` and `IPInputCombo` share.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;
use castanet_kit::ip_header::{Fault, HeaderCheck};

/// Where checked packets go.
#[derive(Fate)]
pub enum Verdict {
    /// Packets whose header is good.
    Good,
    /// All other packets.
    #[optional]
    Bad,
    /// Packets shorter than a header.
    #[drop]
    TinyPacket,
    /// Packets of another version than 4.
    #[drop]
    BadVersion,
    /// Headers shorter than 20 bytes.
    #[drop]
    BadHeaderLength,
    /// Lengths that do not fit the packet or the header.
    #[drop]
    BadLength,
    /// Headers whose checksum is wrong.
    #[drop]
    BadChecksum,
    /// Sources that are nobody's address.
    #[drop]
    BadSource,
}

/// What one worker has checked.
#[derive(Default, Local)]
#[local(methods)]
pub struct Tally {
    /// Good packets.
    #[read]
    count: u64,
    /// Bad packets.
    #[read]
    drops: u64,
    faults: [u64; Fault::ALL.len()],
    reports: Vec<Fault>,
}

#[handlers]
impl Tally {
    /// Bad packets by fault.
    #[read]
    fn drop_details(&self) -> Value {
        Value::Counts(Fault::ALL.iter().map(|f| (self.faults[*f as usize], f.text())).collect())
    }

    /// Reports the bad packets of a burst.
    #[inline]
    pub(crate) fn report(&mut self, name: &str, cx: &mut Cx) {
        for fault in self.reports.drain(..) {
            cx.chatter(&format!("{name}: IP header check failed: {}", fault.text()));
        }
    }
}

/// The arguments that say which sources are bad.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) interfaces: Vec<Net>,
    pub(crate) bad: Vec<Ipv4Addr>,
    pub(crate) good_destinations: Vec<Ipv4Addr>,
}

impl Sources {
    /// Takes Click's older list, which stands for the limited broadcast addresses too.
    pub(crate) fn older_list(&mut self, text: &str, names: &Names) -> Result<(), ArgError> {
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

/// The header of a packet that has all of it.
#[inline]
pub(crate) fn whole_header(ip: &Ipv4) -> Option<Ipv4Header> {
    let header = **ip;
    let length = header.header_len();
    (length >= Ipv4Header::LEN && ip.header().len() == length).then_some(header)
}

/// A check that marks what it finds good.
pub(crate) struct Checker {
    pub(crate) check: HeaderCheck,
    pub(crate) offset: u16,
    pub(crate) two_outputs: bool,
    pub(crate) verbose: bool,
    pub(crate) name: String,
}

impl Checker {
    #[inline(always)]
    pub(crate) fn judge(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        let header = packet.bytes().get(usize::from(self.offset)..);
        let Some((total_len, dst)) = header.and_then(|header| self.check.check_plain(header))
        else {
            return self.judge_again(tally, packet);
        };
        packet.mark_ipv4(self.offset, Ipv4Header::LEN as u16, total_len);
        packet.set_dst(dst);
        tally.count += 1;
        Verdict::Good
    }

    /// Judges packets with options and bad ones.
    #[cold]
    #[inline(never)]
    fn judge_again(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        let header = packet.bytes().get(usize::from(self.offset)..).unwrap_or_default();
        match self.check.check(header) {
            Ok(good) => {
                packet.mark_ipv4(self.offset, good.header_len as u16, good.total_len as u16);
                packet.set_dst(good.dst);
                tally.count += 1;
                Verdict::Good
            }
            Err(fault) => self.refuse(tally, fault),
        }
    }

    fn refuse(&self, tally: &mut Tally, fault: Fault) -> Verdict {
        if self.verbose || tally.drops == 0 {
            tally.reports.push(fault);
        }
        tally.drops += 1;
        tally.faults[fault as usize] += 1;
        match fault {
            _ if self.two_outputs => Verdict::Bad,
            Fault::Tiny => Verdict::TinyPacket,
            Fault::Version => Verdict::BadVersion,
            Fault::HeaderLength => Verdict::BadHeaderLength,
            Fault::Length => Verdict::BadLength,
            Fault::Checksum => Verdict::BadChecksum,
            Fault::Source => Verdict::BadSource,
        }
    }
}

/// The arguments of `CheckIPHeader`.
#[derive(Args)]
pub struct Checks {
    /// This router's addresses: their networks' broadcast addresses, 0.0.0.0 and 255.255.255.255 are bad sources, they themselves good destinations.
    #[arg(keyword, default = Vec::new())]
    interfaces: Vec<Net>,
    /// Addresses that no packet may come from.
    #[arg(keyword, default = Vec::new())]
    badsrc: Vec<Ipv4Addr>,
    /// Addresses to which packets may come from anywhere.
    #[arg(keyword, default = Vec::new())]
    gooddst: Vec<Ipv4Addr>,
    /// Where the header begins, in bytes.
    #[arg(keyword, default = 0)]
    offset: u16,
    /// Whether to check the checksum; all but CheckIPHeader2 do by default.
    #[arg(keyword)]
    checksum: Option<bool>,
    /// Whether to report every bad packet.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether to count by fault; this is always done.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    details: bool,
    /// The offset, or the older list of bad sources and then the offset.
    #[arg(rest)]
    places: Vec<String>,
}

impl Checks {
    pub(crate) fn checker(self, checksum: bool, setup: &Setup) -> Result<Checker, ArgError> {
        let (bad, good_destinations) = (self.badsrc, self.gooddst);
        let mut sources = Sources { interfaces: self.interfaces, bad, good_destinations };
        let (list, offset) = match self.places.as_slice() {
            [] => (None, None),
            [one] if u16::from_arg(one, setup.names).is_ok() => (None, Some(one)),
            [list] => (Some(list), None),
            [list, offset] => (Some(list), Some(offset)),
            _ => return Err(ArgError::new("too many arguments")),
        };
        if let Some(list) = list {
            sources.older_list(list, setup.names).map_err(|e| e.at("BADSRC"))?;
        }
        let placed = offset.map(|text| u16::from_arg(text, setup.names)).transpose();
        Ok(Checker {
            check: sources.check(self.checksum.unwrap_or(checksum)),
            offset: placed.map_err(|e| e.at("OFFSET"))?.unwrap_or(self.offset),
            two_outputs: setup.outputs > 1,
            verbose: self.verbose,
            name: setup.name.to_owned(),
        })
    }
}
