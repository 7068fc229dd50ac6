//! What becomes of a packet, by all rules that are about it.

use crate::connections::{Ends, Mapped};
use crate::headers::Headers;
use crate::rewrite::{Plan, Rewriting};
use crate::rule::Hop;
use castanet_kit::flow::Seed;
use castanet_packet::Packet;
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header};
use std::net::IpAddr;

/// Whether the packet goes: some rule drops it and none accepts it. Asks for random
/// bits only where a rule leaves it to chance.
#[inline]
pub(crate) fn is_dropped<'r>(
    plans: impl Iterator<Item = &'r Plan> + Clone,
    mut random: impl FnMut() -> u64,
) -> bool {
    let mut drops = false;
    for plan in plans {
        if plan.accept {
            return false;
        }
        drops = drops || plan.drop.is_some_and(|chance| chance.comes(random()));
    }
    drops
}

/// Does what the rules say, in their order; how many options found no room. Hops are chosen by
/// `ends`, or those of the packet as it comes.
pub(crate) fn rewrite<'r>(
    packet: &mut Packet,
    headers: Headers,
    plans: impl Iterator<Item = &'r Plan> + Clone,
    mapped: Option<&Mapped>,
    ends: Option<Ends>,
    mtu: usize,
) -> usize {
    let before = destination(packet, &headers);
    let chooses = plans.clone().any(|plan| !plan.hops.is_empty());
    let ends = ends.or_else(|| chooses.then(|| Ends::of_any(packet.bytes(), &headers))?);
    let mut changing = Rewriting::new(packet, headers, mtu);
    let (mut unfit, mut hop) = (0, None);
    for plan in plans.filter(|plan| !plan.is_verdict()) {
        unfit += changing.follow(plan);
        hop = ends.and_then(|ends| choice(&ends, &plan.hops)).or(hop);
    }
    if let Some(mapped) = mapped {
        mapped.apply(&mut changing);
    }
    changing.finish();
    annotate(packet, &headers, before);
    if let Some(hop) = hop {
        send_to(packet, hop);
    }
    unfit
}

/// The destination of a packet, as its header has it.
fn destination(packet: &Packet, headers: &Headers) -> Option<IpAddr> {
    let header = packet.bytes().get(headers.network..)?;
    match headers.is_ip6 {
        false => Ipv4Header::from_prefix(header).map(|(ip, _)| ip.dst().into()),
        true => Ipv6Header::from_prefix(header).map(|(ip, _)| ip.dst().into()),
    }
}

/// Lets the destination annotation follow the destination, where it was that.
fn annotate(packet: &mut Packet, headers: &Headers, before: Option<IpAddr>) {
    let after = destination(packet, headers);
    if before == after {
        return;
    }
    match (before, after) {
        (Some(IpAddr::V4(old)), Some(IpAddr::V4(new))) if packet.dst() == old => {
            packet.set_dst(new)
        }
        (Some(IpAddr::V6(old)), Some(IpAddr::V6(new))) if packet.dst6() == old => {
            packet.set_dst6(new);
        }
        _ => {}
    }
}

/// The hop of a connection: of all hops that it can go to the one whose hash with it is
/// the highest, so that when one goes only its connections move. Both directions have the same.
fn choice(ends: &Ends, hops: &[Hop]) -> Option<Hop> {
    if hops.is_empty() {
        return None;
    }
    let seed = Seed::fixed();
    let flow = flow_hash(ends, &seed);
    let score = |hop: &&Hop| {
        let (high, low) = match hop {
            Hop::Address(IpAddr::V4(address)) => (4, u64::from(address.to_bits())),
            Hop::Address(IpAddr::V6(address)) => {
                ((address.to_bits() >> u64::BITS) as u64, address.to_bits() as u64)
            }
            Hop::Station(station) => (0, station.0.iter().fold(0, |n, &b| n << 8 | u64::from(b))),
        };
        seed.mix(flow, seed.mix(high, low))
    };
    let fits = |hop: &&Hop| match hop {
        Hop::Address(address) => address.is_ipv6() == ends.is_ip6,
        Hop::Station(_) => true,
    };
    hops.iter().filter(fits).max_by_key(score).copied()
}

/// A hash of what all packets of a connection have in common.
fn flow_hash(ends: &Ends, seed: &Seed) -> u64 {
    let [src, dst] = [ends.src, ends.dst].map(|(address, port)| {
        let address = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                seed.mix((bits >> u64::BITS) as u64, bits as u64)
            }
        };
        seed.mix(address, port.into())
    });
    seed.mix(src.min(dst), src.max(dst))
}

/// Sends a packet to a hop.
fn send_to(packet: &mut Packet, hop: Hop) {
    match hop {
        Hop::Address(IpAddr::V4(address)) => packet.set_dst(address),
        Hop::Address(IpAddr::V6(address)) => packet.set_dst6(address),
        Hop::Station(station) => {
            if packet.mac_offset().or(packet.network_offset()).is_none_or(|at| at == 0)
                && let Some((ether, _)) = Ethernet::from_prefix_mut(packet.bytes_mut())
            {
                ether.set_dst(station);
            }
        }
    }
}
