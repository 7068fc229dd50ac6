//! Reads summary dumps: packet lines, records, and directives.

use super::binary::{BINARY, record_line};
use super::build::PacketBuilder;
use super::quote::{unquote, words};
use super::{Field, Meta, VERSION};
use crate::options::c_number;
use crate::{ip_proto, names};
use std::net::Ipv4Addr;

/// Default addresses and ports of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl Default for Flow {
    fn default() -> Self {
        let none = Ipv4Addr::UNSPECIFIED;
        Flow { src: none, dst: none, sport: 0, dport: 0 }
    }
}

/// Default values of packets, for fields that their lines do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The IP protocol.
    pub protocol: u8,
    /// Addresses and ports.
    pub flow: Option<Flow>,
    /// The aggregate.
    pub aggregate: Option<u32>,
    /// Whether to set checksums; packets are then extended to their IP length.
    pub checksum: bool,
    /// The minor version of the lines' format.
    pub minor: u16,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults {
            protocol: ip_proto::TCP,
            flow: None,
            aggregate: None,
            checksum: false,
            minor: VERSION.1,
        }
    }
}

/// A packet parsed from a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPacket {
    /// The bytes; with an Ethernet header if the line has a field of one.
    pub bytes: Vec<u8>,
    /// Offset of the IP header, if there is one.
    pub network: Option<usize>,
    /// Metadata from the line.
    pub meta: Meta,
}

/// Parses the line of a packet.
///
/// Ignores words that are not values of their field, as Click does; an error only
/// if no field gets a value.
pub fn parse_line(
    fields: &[Field],
    line: &str,
    defaults: &Defaults,
) -> Result<ParsedPacket, String> {
    if fields.is_empty() {
        return Err("no '!data' provided".into());
    }
    let mut values: Vec<(u16, Field, &str)> = fields
        .iter()
        .zip(words(line))
        .filter(|(_, word)| *word != "-")
        .filter_map(|(&field, word)| Some((field.parse_order()?, field, word)))
        .collect();
    values.sort_by_key(|value| value.0);
    let mut builder = PacketBuilder::new(defaults);
    let mut valid = 0;
    for (_, field, word) in values {
        valid += usize::from(builder.field(field, word).is_some() && field != Field::None);
    }
    if valid == 0 {
        return Err("packet parse error".into());
    }
    Ok(builder.finish())
}

/// A reader of a dump, line by line.
///
/// ```
/// use castanet_wire::summary::DumpReader;
///
/// let mut dump = DumpReader::default();
/// assert_eq!(dump.line("!data ip_src ip_dst ip_len"), Ok(None));
/// let packet = dump.line("1.0.0.1 2.0.0.2 60")?.expect("a packet");
/// assert_eq!((packet.bytes.len(), packet.meta.extra_length), (40, 20));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DumpReader {
    /// The fields of a line.
    pub fields: Vec<Field>,
    /// Default values of packets.
    pub defaults: Defaults,
    /// Whether records follow, instead of lines.
    pub binary: bool,
}

impl DumpReader {
    /// Parses a line; `None` if it has no packet. The error is a message for the
    /// user: the caller can continue with the next line.
    pub fn line(&mut self, line: &str) -> Result<Option<ParsedPacket>, String> {
        let line = line.trim_end_matches(['\r', '\n']);
        if line.starts_with('!') {
            return self.directive(line).map(|()| None);
        }
        if line.starts_with('#') || line.trim().is_empty() {
            return Ok(None);
        }
        parse_line(&self.fields, line, &self.defaults).map(Some)
    }

    /// Parses the record of a packet, without its first word.
    pub fn record(&self, record: &[u8]) -> Result<ParsedPacket, String> {
        let line = record_line(&self.fields, self.defaults.minor, record);
        parse_line(&self.fields, &line.ok_or("packet parse error")?, &self.defaults)
    }

    /// Whether a file with this first line is probably a dump.
    pub fn is_first_line(line: &str) -> bool {
        ["!IPSummaryDump", "!creator", "!data", "!contents", "!proto", "!flowid"]
            .iter()
            .any(|word| line.starts_with(word))
    }

    /// Executes a line that begins with `!`.
    fn directive(&mut self, line: &str) -> Result<(), String> {
        let list: Vec<&str> = words(line).collect();
        match list.as_slice() {
            ["!IPSummaryDump", version, ..] => self.version(version),
            ["!data" | "!contents", names @ ..] => self.data(names),
            ["!proto", protocol] => self.protocol(protocol, "!proto"),
            ["!proto", ..] => Err("bad !proto".into()),
            ["!flowid", rest @ ..] => self.flow(rest),
            ["!aggregate", number] => {
                self.defaults.aggregate = c_number(number, u32::MAX);
                self.defaults.aggregate.map(|_| ()).ok_or("bad !aggregate specification".into())
            }
            ["!aggregate", ..] => Err("bad !aggregate specification".into()),
            [BINARY, ..] => self.start_records(),
            // `!creator`, `!host`, `!bad` and unknown directives.
            _ => Ok(()),
        }
    }

    /// Switches to records.
    fn start_records(&mut self) -> Result<(), String> {
        self.binary = true;
        match self.fields.iter().find(|field| !field.is_binary()) {
            Some(field) => Err(format!("'{field}' in a binary summary dump")),
            None => Ok(()),
        }
    }

    fn version(&mut self, version: &str) -> Result<(), String> {
        let parts = version.split_once('.').and_then(|(major, minor)| {
            Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?))
        });
        let Some((major, minor)) = parts else { return Ok(()) };
        if major != VERSION.0 || minor > VERSION.1 {
            self.defaults.minor = VERSION.1;
            return Err(format!("unexpected IPSummaryDump version {major}.{minor}"));
        }
        self.defaults.minor = minor;
        Ok(())
    }

    /// Sets the fields; `Field::None` replaces an unknown one.
    fn data(&mut self, names: &[&str]) -> Result<(), String> {
        let mut errors = Vec::new();
        self.fields.clear();
        for name in names {
            let name = String::from_utf8_lossy(&unquote(name)).into_owned();
            let field = match name.parse::<Field>() {
                Ok(field) => {
                    if field.parse_order().is_none() {
                        errors.push(format!("content type '{name}' ignored on input"));
                    }
                    field
                }
                Err(unknown) => {
                    errors.push(unknown.to_string());
                    Field::None
                }
            };
            self.fields.push(field);
        }
        if names.is_empty() {
            errors.push("no contents specified".into());
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    fn protocol(&mut self, word: &str, directive: &str) -> Result<(), String> {
        self.defaults.protocol = match word {
            "T" => ip_proto::TCP,
            "U" => ip_proto::UDP,
            "I" => ip_proto::ICMP,
            word => names::protocol_number(word)
                .ok_or_else(|| format!("bad protocol in {directive}"))?,
        };
        Ok(())
    }

    /// Sets the default flow: `SRC SPORT DST DPORT [PROTO]`, each possibly `-`.
    fn flow(&mut self, list: &[&str]) -> Result<(), String> {
        let addr = |word: &str| {
            if word == "-" { Some(Ipv4Addr::UNSPECIFIED) } else { word.parse().ok() }
        };
        let port = |word: &str| {
            if word == "-" { Some(0) } else { c_number(word, 0xffff).map(|n| n as u16) }
        };
        let flow = match list {
            [src, sport, dst, dport, ..] => (|| {
                let (src, dst) = (addr(src)?, addr(dst)?);
                Some(Flow { src, dst, sport: port(sport)?, dport: port(dport)? })
            })(),
            _ => None,
        };
        self.defaults.flow = flow;
        flow.ok_or("bad !flowid specification")?;
        match list.get(4) {
            Some(protocol) => self.protocol(protocol, "!flowid"),
            None => Ok(()),
        }
    }
}
