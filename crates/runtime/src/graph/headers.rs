//! Step: the headers of the packets on each edge.
//!
//! Each class declares its effect on headers ([`HeaderEffect`]). Where elements of the same edge bring
//! different packets, or an element declares nothing, the headers are unknown from there on.

use super::dataflow::{PacketFact, PacketFacts, both};
use super::{Element, Graph};
use castanet_element::args::{ArgKind, FromArg, Names};
use castanet_element::class::ports::paired;
use castanet_element::headers::{FirstHeader, HeaderEffect, MarkedHeader, PacketHeaders};
use castanet_lang::args;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

impl PacketFact for PacketHeaders {
    fn or(self, other: PacketHeaders) -> PacketHeaders {
        PacketHeaders::or(self, other)
    }
}

/// The headers of the packets on each edge, as they are followed from their sources.
pub fn follow(graph: &Graph) -> PacketFacts<PacketHeaders> {
    PacketFacts::follow(graph, |node, port, inputs| leaves(&graph.elements[node], port, inputs))
}

/// The headers of the packets that leave an output of an element.
fn leaves(it: &Element, port: usize, inputs: &[Option<PacketHeaders>]) -> Option<PacketHeaders> {
    let all = match (inputs, paired(it.class)) {
        ([], _) => Some(PacketHeaders::UNKNOWN),
        (_, true) => inputs.get(port).copied().flatten(),
        (_, false) => inputs.iter().copied().fold(None, both),
    };
    let effect = it.class.spec.header_effect();
    if let (HeaderEffect::Encapsulate, 0) = (effect, port) {
        let marked = inputs.first().copied().flatten().map_or(MarkedHeader::None, |it| it.marked);
        return Some(PacketHeaders { first: FirstHeader::Ethernet, marked });
    }
    let came = all?;
    Some(match (effect, port) {
        (HeaderEffect::Unknown, _) => PacketHeaders::UNKNOWN,
        (HeaderEffect::Gives(first, marked), 0) => PacketHeaders { first, marked },
        (HeaderEffect::Receive, 0) => received(it),
        (HeaderEffect::Strip, _) => PacketHeaders { first: stripped(it, came.first), ..came },
        (HeaderEffect::Unstrip, _) => PacketHeaders { first: unstripped(it, came.first), ..came },
        (HeaderEffect::StripFrame, 0) => PacketHeaders {
            first: if came.first == FirstHeader::Ethernet {
                FirstHeader::Network
            } else {
                FirstHeader::Unknown
            },
            ..came
        },
        (HeaderEffect::Mark(marked), 0) => {
            PacketHeaders { first: checked(it, came.first, marked), marked }
        }
        (HeaderEffect::Mark(_), _) => PacketHeaders { marked: MarkedHeader::Unknown, ..came },
        (HeaderEffect::Pass, _) => PacketHeaders { marked: kept(it, port, came.marked), ..came },
        _ => came,
    })
}

/// The headers of frames of an interface.
fn received(it: &Element) -> PacketHeaders {
    let first = if is_ethernet(it) { FirstHeader::Ethernet } else { FirstHeader::Unknown };
    let marked = match argument(it, "FORCE_IP").map(|it| bool::from_arg(&it, &Names::default())) {
        None | Some(Ok(false)) => MarkedHeader::None,
        Some(_) => MarkedHeader::Unknown,
    };
    PacketHeaders { first, marked }
}

/// Whether the interface that an element names has Ethernet frames: all but those of which the system
/// says otherwise.
pub(super) fn is_ethernet(it: &Element) -> bool {
    /// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK` of Linux's `if_arp.h`.
    const ETHERNET_TYPES: [&str; 2] = ["1", "772"];
    let Some(name) = it.interface().filter(|name| !name.contains(['/', '.'])) else { return true };
    let kind = std::fs::read_to_string(format!("/sys/class/net/{name}/type"));
    kind.is_ok_and(|kind| ETHERNET_TYPES.contains(&kind.trim())) || !is_there(&name)
}

fn is_there(interface: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(interface).exists()
}

fn stripped(it: &Element, first: FirstHeader) -> FirstHeader {
    match (bytes(it), first) {
        (Some(0), first) => first,
        (Some(ETHERNET), FirstHeader::Ethernet) => FirstHeader::Network,
        _ => FirstHeader::Unknown,
    }
}

fn unstripped(it: &Element, first: FirstHeader) -> FirstHeader {
    match (bytes(it), first) {
        (Some(0), first) => first,
        (Some(ETHERNET), first) if first.is_network() => FirstHeader::Ethernet,
        _ => FirstHeader::Unknown,
    }
}

/// The first header of packets in which an element has marked a network header.
fn checked(it: &Element, first: FirstHeader, marked: MarkedHeader) -> FirstHeader {
    match (offset(it), first, marked) {
        (Some(0), FirstHeader::Ethernet, _) => FirstHeader::Unknown,
        (Some(0), _, MarkedHeader::Ip) => FirstHeader::Ip,
        (Some(0), _, MarkedHeader::Ip6) => FirstHeader::Ip6,
        _ => first,
    }
}

/// The marked header of packets that an element has passed to an output.
fn kept(it: &Element, port: usize, marked: MarkedHeader) -> MarkedHeader {
    let given = it.class.spec.gives.filter(|_| port == 0);
    header_of_view(given.unwrap_or(it.class.on)).unwrap_or(marked)
}

/// The network header that must be marked in packets that an element acts on.
pub(super) fn needed(it: &Element) -> Option<MarkedHeader> {
    header_of_view(it.class.acts_on)
}

/// Whether an element drops the packets that it does not act on, or has an output for them.
pub(super) fn drops_others(it: &Element) -> bool {
    let acts_on = it.class.acts_on;
    it.class.on == acts_on || it.class.spec.gives == Some(acts_on)
}

/// The network header that must be marked in packets of a view.
fn header_of_view(view: &str) -> Option<MarkedHeader> {
    match view {
        "ip" | "udp" | "tcp" | "icmp" => Some(MarkedHeader::Ip),
        "ip6" => Some(MarkedHeader::Ip6),
        _ => None,
    }
}

/// The number of bytes that an element strips.
pub(super) fn bytes(it: &Element) -> Option<usize> {
    argument(it, "LENGTH")?.parse().ok()
}

/// The offset at which an element looks for a network header. Where it is the last of other
/// arguments, those are addresses.
pub(super) fn offset(it: &Element) -> Option<usize> {
    if let Some(offset) = keyword(it, "OFFSET") {
        return offset.parse().ok();
    }
    let last = places(it).pop();
    Some(last.and_then(|last| last.parse().ok()).unwrap_or(0))
}

/// The value of an argument, given by keyword or by its place.
fn argument(it: &Element, name: &str) -> Option<String> {
    let by_place = it.class.args.iter().filter(|arg| arg.kind == ArgKind::Place);
    let place = by_place.into_iter().position(|arg| arg.name == name);
    keyword(it, name).or_else(|| places(it).into_iter().nth(place?))
}

/// The value of an argument that is given by keyword.
fn keyword(it: &Element, name: &str) -> Option<String> {
    let all = args::split(&it.config).into_iter().map(|arg| arg.text);
    let value = |text: String| Some(text.strip_prefix(name)?.strip_prefix(' ')?.trim().to_owned());
    all.filter_map(value).next()
}

/// The arguments that are given by their places.
fn places(it: &Element) -> Vec<String> {
    let is_keyword = |text: &str| {
        let word = text.split_whitespace().next().unwrap_or_default();
        it.class.args.iter().any(|arg| arg.name == word)
    };
    let all = args::split(&it.config).into_iter().map(|arg| arg.text);
    all.filter(|text| !is_keyword(text)).collect()
}
