//! The meaning of a word of the IP languages in its context.

use super::names::{ANY_TRANSPORT, FLAGS, ICMP_TYPES, Names, PORTS, PROTOCOLS, TCP_OR_UDP, find};
use super::primitive::*;

const TYPES: &[(&str, Kind)] = &[
    ("ce", Kind::Ce),
    ("dscp", Kind::Field(DSCP)),
    ("ect", Kind::Ect),
    ("frag", Kind::Frag),
    ("hl", Kind::Field(HL)),
    ("host", Kind::Host),
    ("id", Kind::Field(ID)),
    ("len", Kind::Field(LEN)),
    ("net", Kind::Net),
    ("opt", Kind::TcpOpt),
    ("port", Kind::Port),
    ("proto", Kind::Proto),
    ("tos", Kind::Field(TOS)),
    ("ttl", Kind::Field(TTL)),
    ("type", Kind::Field(ICMP_TYPE)),
    ("unfrag", Kind::Unfrag),
    ("vers", Kind::Field(VERS)),
    ("win", Kind::Field(TCP_WIN)),
];

/// Words of the syntax.
const SYNTAX: &[&str] =
    &["and", "dest", "dst", "ether", "false", "ip", "mask", "not", "or", "src", "true"];

/// All built-in words, for suggestions.
pub(crate) fn known_words() -> impl Iterator<Item = &'static str> {
    let tables = [PROTOCOLS, PORTS, FLAGS, ICMP_TYPES].into_iter().flatten().map(|e| e.0);
    TYPES.iter().map(|t| t.0).chain(SYNTAX.iter().copied()).chain(tables)
}

/// The meaning of a word.
pub(crate) enum WordRole {
    Type(Kind),
    Data(Data),
    /// A word with a meaning that does not fit the context, or with several that do.
    Misplaced(String),
    Unknown,
}

/// The meaning of `word` where a `kind` of `protocol` is expected.
pub(crate) fn lookup_word(
    word: &str,
    kind: Option<Kind>,
    protocol: Option<u32>,
    names: &dyn Names,
) -> WordRole {
    if kind.is_none() {
        if let Some(&(_, kind)) = TYPES.iter().find(|t| t.0 == word) {
            return WordRole::Type(kind);
        }
        if SYNTAX.contains(&word) {
            return WordRole::Unknown;
        }
    }
    let carried = |numbers: &[u32]| protocol.is_none_or(|p| numbers.contains(&p));
    let found = [
        (names.protocol(word).map(u32::from).or_else(|| find(PROTOCOLS, word)))
            .map(|n| (Data::Proto(n), kind == Some(Kind::Proto), true)),
        port(word, kind, protocol, names)
            .map(|n| (Data::Port(n), kind == Some(Kind::Port), carried(&[6, 17, TCP_OR_UDP]))),
        find(FLAGS, word)
            .map(|n| (Data::Flags(n), kind == Some(Kind::TcpOpt), carried(&[6, TCP_OR_UDP]))),
        (names.icmp_type(word).map(u32::from).or_else(|| find(ICMP_TYPES, word)))
            .map(|n| (Data::IcmpType(n), kind == Some(Kind::Field(ICMP_TYPE)), carried(&[1]))),
    ];
    let mut fitting = found.iter().flatten().filter(|f| (kind.is_none() || f.1) && f.2);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => WordRole::Data(only.0),
        (None, None) if found.iter().all(Option::is_none) => WordRole::Unknown,
        (first, _) => {
            let what = if first.is_some() { "ambiguous" } else { "meaningless" };
            let request = spell(kind.map_or("", Kind::name), protocol, word);
            let options: Vec<String> = found
                .iter()
                .flatten()
                .map(|f| format!("'{}'", spell(data_name(f.0), None, word)))
                .collect();
            WordRole::Misplaced(format!("'{request}' is {what}; try {}", options.join(", ")))
        }
    }
}

/// The port that a word names; services of the machine only where a port is expected.
fn port(word: &str, kind: Option<Kind>, protocol: Option<u32>, names: &dyn Names) -> Option<u32> {
    let protocol = protocol.and_then(|it| u8::try_from(it).ok());
    let service = || names.service(word, protocol).filter(|_| kind == Some(Kind::Port));
    let declared = names.port(word, protocol).map(u32::from);
    declared.or_else(|| find(PORTS, word)).or_else(|| service().map(u32::from))
}

/// The port of a well-known service.
pub fn known_port(name: &str) -> Option<u16> {
    find(PORTS, name).and_then(|port| u16::try_from(port).ok())
}

fn data_name(data: Data) -> &'static str {
    match data {
        Data::Proto(_) => "proto",
        Data::Port(_) => "port",
        Data::Flags(_) => "tcp opt",
        _ => "icmp type",
    }
}

fn spell(kind: &str, protocol: Option<u32>, word: &str) -> String {
    let protocol = protocol.filter(|&p| p != ANY_TRANSPORT).map(protocol_text);
    let parts = [Some(kind.into()), protocol, Some(word.into())];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|p| !p.is_empty()).collect();
    parts.join(" ")
}
