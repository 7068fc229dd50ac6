//! Step: parts of a configuration that are allowed, and rarely meant.

use super::dataflow::PacketFacts;
use super::headers::{self, ETHERNET};
use super::{Edge, Element, Graph};
use castanet_element::headers::{FirstHeader, HeaderEffect, MarkedHeader, PacketHeaders};
use castanet_lang::Diagnostic;
use std::collections::HashSet;

/// A check for something that is allowed, and rarely meant.
pub struct Lint {
    /// Its name, by which it is silenced.
    pub name: &'static str,
    /// The finding in a line.
    pub summary: &'static str,
    /// Why that is rarely meant, and what would be right.
    pub explanation: &'static str,
    /// Whether an element drops all packets, or lets all pass without effect, where it finds
    /// something, so that `castanet run` warns, too.
    pub is_urgent: bool,
}

/// Every lint.
pub const LINTS: &[Lint] =
    &[NOT_STRIPPED, NOT_MARKED, ETHERNET_MISSING, STRIPPED_TWICE, ENCAPSULATED_TWICE];

const NOT_STRIPPED: Lint = Lint {
    name: "ethernet-not-stripped",
    summary: "An element looks for an IP header where packets have their Ethernet header.",
    explanation: "\
CheckIPHeader, MarkIPHeader and their like look for a header at the beginning of the packet's data,
or OFFSET bytes into it. Frames of a device begin with an Ethernet header of 14 bytes, so that the
element reads the hardware address as an IP header: CheckIPHeader then drops every packet, and
MarkIPHeader marks the wrong bytes.

    FromDevice(eth0) -> CheckIPHeader -> ...                 wrong
    FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> ...    right
    FromDevice(eth0) -> CheckIPHeader(OFFSET 14) -> ...      right, the Ethernet header stays",
    is_urgent: false,
};

const NOT_MARKED: Lint = Lint {
    name: "header-not-marked",
    summary: "An element acts on IP packets, and no element before it has marked their IP header.",
    explanation: "\
Elements such as DecIPTTL, IPClassifier and IPPrint do not search for the IP header: an annotation
of the packet marks it. CheckIPHeader and MarkIPHeader (CheckIP6Header and MarkIP6Header for IPv6)
set the annotation, and so do devices with FORCE_IP true and elements that make IP packets. Packets
without it are dropped, and counted under the reason `not_ip` or the like; IPPrint and IP6Print pass
them on, and print nothing.

    FromDevice(eth0) -> Strip(14) -> IPClassifier(tcp, -) ...                     wrong
    FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp, -) ...    right",
    is_urgent: true,
};

const ETHERNET_MISSING: Lint = Lint {
    name: "ethernet-missing",
    summary: "An element takes Ethernet frames, and IP packets without an Ethernet header come.",
    explanation: "\
A device with Ethernet sends the bytes of a packet as they are: the first 14 bytes are taken for the
Ethernet header, whatever they are. ARPQuerier (IP6NDSolicitor for IPv6) puts one before IP packets
and finds the hardware address of the next hop; EtherEncap puts one with fixed addresses.

    ... -> DecIPTTL -> Queue -> ToDevice(eth1)                           wrong
    ... -> DecIPTTL -> arp :: ARPQuerier(eth1) -> Queue -> ToDevice(eth1)    right

Interfaces without Ethernet, such as those of tunnels, take IP packets; where one is there, and the
system says that it has no Ethernet, nothing is reported.",
    is_urgent: false,
};

const STRIPPED_TWICE: Lint = Lint {
    name: "stripped-twice",
    summary: "The Ethernet header is stripped, or skipped, although it has been stripped before.",
    explanation: "\
Strip(14) removes the first 14 bytes, whatever they are. Where an element before it has stripped the
Ethernet header already, it removes the greater part of the IP header. The same holds for OFFSET 14
of CheckIPHeader and MarkIPHeader: behind Strip(14) the IP header is at offset 0.",
    is_urgent: false,
};

const ENCAPSULATED_TWICE: Lint = Lint {
    name: "encapsulated-twice",
    summary: "An Ethernet header is put before packets that begin with one.",
    explanation: "\
EtherEncap and ARPQuerier put an Ethernet header before an IP packet. Before a frame that has one
already, the receiver sees the old header where it expects the IP header. Strip the old header first
(Strip(14)), change it in place (EtherRewrite), or leave the second encapsulation out.",
    is_urgent: false,
};

/// A warning, and the lint that has it.
pub struct LintRemark {
    /// The lint.
    pub lint: &'static Lint,
    /// The warning.
    pub warning: Diagnostic,
}

/// Everything that the lints find, each lint once for each element.
pub fn find(graph: &Graph, facts: &PacketFacts<PacketHeaders>) -> Vec<LintRemark> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (edge, came) in graph.edges.iter().zip(&facts.edges) {
        let (it, from) = (&graph.elements[edge.to.node], graph.label(edge.from.node));
        let Some(came) = came else { continue };
        let Some((lint, message, help)) = check(it, edge, *came) else { continue };
        if seen.insert((lint.name, edge.to.node)) {
            let text = format!("'{}' {message}", graph.label(edge.to.node));
            let text = text.replace("{from}", &format!("'{from}'"));
            let warning = Diagnostic::warning(it.span, text).with_lint(lint.name).with_help(help);
            all.push(LintRemark { lint, warning });
        }
    }
    all
}

/// A lint, its message about the element, where `{from}` stands for the element before, and help.
type RemarkParts = (&'static Lint, String, String);

/// The remark about packets with these headers that come to an element.
fn check(it: &Element, edge: &Edge, came: PacketHeaders) -> Option<RemarkParts> {
    let is_ethernet = came.first == FirstHeader::Ethernet;
    let effect = it.class.spec.header_effect();
    match effect {
        HeaderEffect::Mark(marked) if is_ethernet && headers::offset(it) == Some(0) => {
            let header = name(marked);
            let message = format!(
                "looks for an {header} header at the beginning of packets, but those from {{from}} \
                 begin with an Ethernet header"
            );
            return Some((&NOT_STRIPPED, message, "put Strip(14) before it".to_owned()));
        }
        HeaderEffect::Mark(_)
            if came.first.is_network() && headers::offset(it) == Some(ETHERNET) =>
        {
            let message = "looks behind an Ethernet header, but that of packets from {from} is \
                           stripped already";
            return Some((&STRIPPED_TWICE, message.to_owned(), "leave out the offset".to_owned()));
        }
        HeaderEffect::Strip if came.first.is_network() && headers::bytes(it) == Some(ETHERNET) => {
            return Some(stripped_twice());
        }
        HeaderEffect::StripFrame if came.first.is_network() => return Some(stripped_twice()),
        HeaderEffect::Encapsulate if is_ethernet && edge.to.port == 0 => {
            let message = "puts an Ethernet header before packets, but those from {from} begin \
                           with one";
            return Some((
                &ENCAPSULATED_TWICE,
                message.to_owned(),
                "put Strip(14) before it, or leave it out".to_owned(),
            ));
        }
        _ => {}
    }
    let is_sent = effect == HeaderEffect::Send && headers::is_ethernet(it);
    if came.first.is_network() && (is_sent || matches!(it.class.on, "ether" | "arp")) {
        return Some(ethernet_missing(came.first));
    }
    not_marked(it, came)
}

fn stripped_twice() -> RemarkParts {
    let message = "strips an Ethernet header, but that of packets from {from} is stripped already";
    (&STRIPPED_TWICE, message.to_owned(), "leave it out".to_owned())
}

fn ethernet_missing(first: FirstHeader) -> RemarkParts {
    let header = first.name().unwrap_or_default();
    let message = format!("takes Ethernet frames, but packets from {{from}} begin with {header}");
    (&ETHERNET_MISSING, message, "put an ARPQuerier or an EtherEncap before it".to_owned())
}

fn not_marked(it: &Element, came: PacketHeaders) -> Option<RemarkParts> {
    let header = headers::needed(it).filter(|_| came.marked == MarkedHeader::None)?;
    let (header_name, lack) = (name(header), "no element has marked one in those from {from}");
    let message = match headers::drops_others(it) {
        true => format!("takes packets with a marked {header_name} header, but {lack}"),
        false => format!(
            "acts on packets with a marked {header_name} header and passes others on, and {lack}"
        ),
    };
    let checks = match header {
        MarkedHeader::Ip6 => "CheckIP6Header (or MarkIP6Header)",
        _ => "CheckIPHeader (or MarkIPHeader)",
    };
    let help = match came.first {
        FirstHeader::Ethernet => format!("put Strip(14) and {checks} before it"),
        _ => format!("put {checks} before it"),
    };
    Some((&NOT_MARKED, message, help))
}

fn name(header: MarkedHeader) -> &'static str {
    match header {
        MarkedHeader::Ip6 => "IPv6",
        _ => "IP",
    }
}
