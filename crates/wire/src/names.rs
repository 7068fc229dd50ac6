//! Click's names of ICMP types, ICMP codes and IP protocols.

use crate::{icmp, ip_proto};

const PROTOCOLS: [(&str, u8); 8] = [
    ("dccp", ip_proto::DCCP),
    ("gre", ip_proto::GRE),
    ("icmp", ip_proto::ICMP),
    ("igmp", ip_proto::IGMP),
    ("ipip", ip_proto::IPIP),
    ("sctp", ip_proto::SCTP),
    ("tcp", ip_proto::TCP),
    ("udp", ip_proto::UDP),
];

const ICMP_TYPES: [(&str, u8); 15] = [
    ("echo", icmp::ECHO),
    ("echo-reply", icmp::ECHO_REPLY),
    ("inforeq", icmp::INFO_REQUEST),
    ("inforeq-reply", icmp::INFO_REPLY),
    ("maskreq", icmp::MASK_REQUEST),
    ("maskreq-reply", icmp::MASK_REPLY),
    ("parameterproblem", icmp::PARAMETER_PROBLEM),
    ("redirect", icmp::REDIRECT),
    ("routeradvert", icmp::ROUTER_ADVERTISEMENT),
    ("routersolicit", icmp::ROUTER_SOLICITATION),
    ("sourcequench", icmp::SOURCE_QUENCH),
    ("timeexceeded", icmp::TIME_EXCEEDED),
    ("timestamp", icmp::TIMESTAMP),
    ("timestamp-reply", icmp::TIMESTAMP_REPLY),
    ("unreachable", icmp::UNREACHABLE),
];

/// RFC 792 and RFC 1812, 5.2.7.1.
const UNREACHABLE_CODES: [(&str, u8); 16] = [
    ("filterprohibited", 13),
    ("host", 1),
    ("hostprecedence", 14),
    ("hostprohibited", 10),
    ("hostunknown", 7),
    ("isolated", 8),
    ("needfrag", 4),
    ("net", 0),
    ("netprohibited", 9),
    ("netunknown", 6),
    ("port", 3),
    ("precedencecutoff", 15),
    ("protocol", 2),
    ("srcroutefail", 5),
    ("toshost", 12),
    ("tosnet", 11),
];

const REDIRECT_CODES: [(&str, u8); 4] = [("host", 1), ("net", 0), ("toshost", 3), ("tosnet", 2)];
const TIME_EXCEEDED_CODES: [(&str, u8); 2] = [("reassembly", 1), ("transit", 0)];
const PARAMETER_PROBLEM_CODES: [(&str, u8); 3] =
    [("erroratptr", 0), ("length", 2), ("missingopt", 1)];

type Table = [(&'static str, u8)];

fn codes(kind: u8) -> &'static Table {
    match kind {
        icmp::UNREACHABLE => &UNREACHABLE_CODES,
        icmp::REDIRECT => &REDIRECT_CODES,
        icmp::TIME_EXCEEDED => &TIME_EXCEEDED_CODES,
        icmp::PARAMETER_PROBLEM => &PARAMETER_PROBLEM_CODES,
        _ => &[],
    }
}

fn name(table: &'static Table, number: u8) -> Option<&'static str> {
    table.iter().find(|entry| entry.1 == number).map(|entry| entry.0)
}

/// The number with the name `text`, or written in `text` (decimal, or hexadecimal after `0x`).
fn number(table: &'static Table, text: &str) -> Option<u8> {
    let named = table.iter().find(|entry| entry.0 == text).map(|entry| entry.1);
    named.or_else(|| match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    })
}

/// Name of an IP protocol.
pub fn protocol_name(protocol: u8) -> Option<&'static str> {
    name(&PROTOCOLS, protocol)
}

/// IP protocol with this name or number.
pub fn protocol_number(text: &str) -> Option<u8> {
    number(&PROTOCOLS, text)
}

/// Name of an ICMP type.
pub fn icmp_type_name(kind: u8) -> Option<&'static str> {
    name(&ICMP_TYPES, kind)
}

/// ICMP type with this name or number.
pub fn icmp_type_number(text: &str) -> Option<u8> {
    number(&ICMP_TYPES, text)
}

/// Name of a code of the ICMP type `kind`.
pub fn icmp_code_name(kind: u8, code: u8) -> Option<&'static str> {
    name(codes(kind), code)
}

/// Code of the ICMP type `kind` with this name or number.
pub fn icmp_code_number(kind: u8, text: &str) -> Option<u8> {
    number(codes(kind), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_convert_both_ways() {
        for n in 0..=255 {
            for (name, number) in [
                (protocol_name(n), protocol_number as fn(&str) -> Option<u8>),
                (icmp_type_name(n), icmp_type_number),
                (icmp_code_name(3, n), |t| icmp_code_number(3, t)),
                (icmp_code_name(5, n), |t| icmp_code_number(5, t)),
                (icmp_code_name(11, n), |t| icmp_code_number(11, t)),
                (icmp_code_name(12, n), |t| icmp_code_number(12, t)),
            ] {
                assert_eq!(number(&n.to_string()), Some(n));
                assert_eq!(number(&format!("{n:#x}")), Some(n));
                assert!(name.is_none_or(|name| number(name) == Some(n)));
            }
        }
        assert_eq!(icmp_code_name(3, 3), Some("port"));
        assert_eq!(icmp_code_name(0, 0), None);
        assert_eq!(protocol_number("256"), None);
    }
}
