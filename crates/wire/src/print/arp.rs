//! Output line of `ARPPrint`.

use crate::timestamp::Timestamp;
use crate::{Arp, Ethernet, arp, ether_type};
use std::fmt::Write;

/// Trailer encapsulation of IP (RFC 893).
const TRAILER: u16 = 0x1000;
/// Inverse ARP request (RFC 2390).
const INVERSE_REQUEST: u16 = 8;
/// Inverse ARP reply.
const INVERSE_REPLY: u16 = 9;

/// The fields of `ARPPrint`'s line beside the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArpPrint<'a> {
    /// Printed first, if not empty.
    pub label: &'a str,
    /// Time of the packet.
    pub timestamp: Option<Timestamp>,
    /// The Ethernet header before the message.
    pub ether: Option<&'a Ethernet>,
}

impl ArpPrint<'_> {
    /// Appends the line for the message `bytes`, which start at the network
    /// header.
    pub fn line(&self, bytes: &[u8], out: &mut String) {
        if !self.label.is_empty() {
            let _ = write!(out, "{}: ", self.label);
        }
        if let Some(time) = self.timestamp {
            let _ = write!(out, "{time}: ");
        }
        if let Some(ether) = self.ether {
            let _ = write!(out, "{} > {}: ", ether.src(), ether.dst());
        }
        match Arp::from_prefix(bytes) {
            Some((message, _)) => print_message(message, out),
            None => {
                let _ = write!(out, "truncated-arp ({})", bytes.len());
            }
        }
    }
}

fn print_message(message: &Arp, out: &mut String) {
    let (hardware, protocol) = (message.hardware_type(), message.protocol_type());
    let (hlen, plen) = (message.hardware_len(), message.protocol_len());
    let operation = message.operation();
    if !matches!(protocol, ether_type::IPV4 | TRAILER) || plen != 4 || hlen == 0 {
        let _ = write!(
            out,
            "arp-#{operation} for proto #{protocol} ({plen}) hardware #{hardware} ({hlen})"
        );
        return;
    }
    if protocol == TRAILER {
        out.push_str("trailer-");
    }
    let (sha, spa) = (message.sender_mac(), message.sender_ip());
    let (tha, tpa) = (message.target_mac(), message.target_ip());
    let _ = match operation {
        arp::REQUEST if tha.is_zero() => write!(out, "arp who-has {tpa} tell {spa}"),
        arp::REQUEST => write!(out, "arp who-has {tpa} ({tha}) tell {spa}"),
        arp::REPLY => write!(out, "arp reply {spa} is-at {sha}"),
        arp::REVERSE_REQUEST => write!(out, "rarp who-is {tha} tell {sha}"),
        arp::REVERSE_REPLY => write!(out, "rarp reply {tha} at {tpa}"),
        INVERSE_REQUEST => write!(out, "invarp who-is {tha} tell {sha}"),
        INVERSE_REPLY => write!(out, "invarp reply {tha} at {tpa}"),
        operation => write!(out, "arp-#{operation}"),
    };
    if hardware != arp::HARDWARE_ETHERNET {
        let _ = write!(out, "hardware #{hardware}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MacAddr, sketch};

    fn line(print: ArpPrint<'_>, text: &str) -> String {
        let mut out = String::new();
        print.line(&sketch::build(text).expect("is a sketch").bytes, &mut out);
        out
    }

    #[test]
    fn matches_click() {
        for (text, expected) in [
            ("arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1", "arp who-has 1.0.0.2 tell 1.0.0.1"),
            (
                "arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1 target 0:0:0:0:0:2",
                "arp who-has 1.0.0.2 (00-00-00-00-00-02) tell 1.0.0.1",
            ),
            (
                "arp reply 1.0.0.2 is-at 0:0:0:0:0:a to 1.0.0.1 0:0:0:0:0:1",
                "arp reply 1.0.0.2 is-at 00-00-00-00-00-0A",
            ),
            (
                "arp op 3 sender 1.0.0.2 0:0:0:0:0:2 target 1.0.0.1 0:0:0:0:0:1",
                "rarp who-is 00-00-00-00-00-01 tell 00-00-00-00-00-02",
            ),
            (
                "arp op 4 sender 1.0.0.2 0:0:0:0:0:2 target 1.0.0.1 0:0:0:0:0:1",
                "rarp reply 00-00-00-00-00-01 at 1.0.0.1",
            ),
            (
                "arp op 8 sender 1.0.0.2 0:0:0:0:0:2 target 1.0.0.1 0:0:0:0:0:1",
                "invarp who-is 00-00-00-00-00-01 tell 00-00-00-00-00-02",
            ),
            (
                "arp op 9 sender 1.0.0.2 0:0:0:0:0:2 target 1.0.0.1 0:0:0:0:0:1",
                "invarp reply 00-00-00-00-00-01 at 1.0.0.1",
            ),
            ("arp op 5 sender 1.0.0.2 0:0:0:0:0:2 target 1.0.0.1 0:0:0:0:0:1", "arp-#5"),
            ("hex 0001 0800", "truncated-arp (4)"),
        ] {
            assert_eq!(line(ArpPrint::default(), text), expected, "{text}");
        }
    }

    #[test]
    fn other_hardware_and_protocols() {
        let mut message = Arp::request((MacAddr::ZERO, [1, 0, 0, 1].into()), [1, 0, 0, 2].into());
        message.set_hardware_type(6);
        let mut out = String::new();
        ArpPrint::default().line(&message.0, &mut out);
        assert_eq!(out, "arp who-has 1.0.0.2 tell 1.0.0.1hardware #6");
        message.set_protocol_type(0x86dd);
        out.clear();
        ArpPrint::default().line(&message.0, &mut out);
        assert_eq!(out, "arp-#1 for proto #34525 (4) hardware #6 (6)");
    }

    #[test]
    fn prefix_fields() {
        let ether = Ethernet::new(MacAddr::BROADCAST, MacAddr([0, 0, 0, 0, 0, 1]), 0x806);
        let print =
            ArpPrint { label: "q", timestamp: Some(Timestamp::new(5, 0)), ether: Some(&ether) };
        assert_eq!(
            line(print, "arp who-has 1.0.0.2 tell 1.0.0.1 0:0:0:0:0:1"),
            "q: 5.000000: 00-00-00-00-00-01 > FF-FF-FF-FF-FF-FF: arp who-has 1.0.0.2 tell 1.0.0.1"
        );
    }
}
