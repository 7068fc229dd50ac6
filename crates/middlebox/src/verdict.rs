//! Verdict and rewrite of a packet, by all matching rules.

use crate::connections::{Mapping, read_any_tuple};
use crate::headers::Headers;
use crate::rewrite::{PacketRewriter, RulePlan};
use crate::rule::Hop;
use castanet_kit::conntrack::Tuple;
use castanet_kit::seed::Seed;
use castanet_packet::Packet;
use castanet_wire::{Ethernet, Ipv4Header, Ipv6Header};
use std::net::IpAddr;

/// The position of the first rule that drops the packet; `None` if none does, or if one accepts it.
/// `random` is called only for rules that drop with a probability.
#[inline]
pub(crate) fn dropping_rule<'r>(
    plans: impl Iterator<Item = &'r RulePlan> + Clone,
    mut random: impl FnMut() -> u64,
) -> Option<usize> {
    let mut found = None;
    for (at, plan) in plans.enumerate() {
        if plan.accept {
            return None;
        }
        let drops = found.is_none() && plan.drop.is_some_and(|chance| chance.is_drawn(random()));
        found = if drops { Some(at) } else { found };
    }
    found
}

/// Applies the plans in rule order, then the mapping. Returns the number of TCP options for which
/// there was no room. Next hops are chosen by `tuple`, or else by the tuple of the unchanged
/// packet.
pub(crate) fn rewrite<'r>(
    packet: &mut Packet,
    headers: Headers,
    plans: impl Iterator<Item = &'r RulePlan> + Clone,
    mapping: Option<&Mapping>,
    tuple: Option<Tuple>,
    mtu: usize,
) -> usize {
    let before = destination(packet, &headers);
    let chooses = plans.clone().any(|plan| !plan.hops.is_empty());
    let tuple = tuple.or_else(|| chooses.then(|| read_any_tuple(packet.bytes(), &headers))?);
    let mut rewriter = PacketRewriter::new(packet, headers, mtu);
    let (mut unfit_options, mut hop) = (0, None);
    for plan in plans.filter(|plan| !plan.is_verdict_only()) {
        unfit_options += rewriter.apply(plan);
        hop = tuple.and_then(|tuple| choose_hop(&tuple, &plan.hops)).or(hop);
    }
    if let Some(mapping) = mapping {
        mapping.apply(&mut rewriter);
    }
    rewriter.finish();
    annotate(packet, &headers, before);
    if let Some(hop) = hop {
        send_to(packet, hop);
    }
    unfit_options
}

/// Returns the destination address in the IP header.
fn destination(packet: &Packet, headers: &Headers) -> Option<IpAddr> {
    let header = packet.bytes().get(headers.network..)?;
    match headers.is_ip6 {
        false => Ipv4Header::from_prefix(header).map(|(ip, _)| ip.dst().into()),
        true => Ipv6Header::from_prefix(header).map(|(ip, _)| ip.dst().into()),
    }
}

/// Updates the destination annotation if it was equal to the old destination.
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

/// Chooses the next hop of a connection by rendezvous hashing, so that only the connections of a
/// removed hop move. Both directions have the same hop.
fn choose_hop(tuple: &Tuple, hops: &[Hop]) -> Option<Hop> {
    if hops.is_empty() {
        return None;
    }
    let seed = Seed::fixed();
    let flow = flow_hash(tuple, &seed);
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
        Hop::Address(address) => address.is_ipv6() == tuple.is_ip6(),
        Hop::Station(_) => true,
    };
    hops.iter().filter(fits).max_by_key(score).copied()
}

/// Hash of a tuple, equal for both directions.
fn flow_hash(tuple: &Tuple, seed: &Seed) -> u64 {
    let [src, dst] = [tuple.src, tuple.dst].map(|(address, port)| {
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

/// Directs a packet to a next hop: sets the destination annotation or the Ethernet destination.
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
