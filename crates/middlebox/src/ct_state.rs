//! The state of a packet's connection, as `ct-state` matches it.

use crate::connections::{has_own_tuple, quotes};
use crate::field::Layer;
use crate::headers::Headers;
use castanet_wire::tcp::flag;
use castanet_wire::{Icmp, icmp, icmp6};

/// The state of a packet's connection, under the names of netfilter's connection tracking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CtState {
    /// The packet begins a connection, or belongs to one that no packet has answered.
    #[default]
    New = 0,
    /// The packet belongs to no connection, and cannot begin one.
    Invalid = 1,
    /// The packet belongs to a connection with packets of both directions, itself included.
    Established = 2,
    /// The packet is an ICMP error about a packet of a connection.
    Related = 3,
    /// The packet is of a kind that has no connections: ICMP messages but queries and errors.
    Untracked = 4,
}

impl CtState {
    /// Number of bits of the number of a state.
    pub(crate) const BITS: u16 = 3;

    /// The greatest number of a state.
    pub(crate) const MOST: u128 = CtState::Untracked as u128;

    /// All states by name.
    pub(crate) const NAMED: [(&str, CtState); 5] = [
        ("new", CtState::New),
        ("established", CtState::Established),
        ("related", CtState::Related),
        ("invalid", CtState::Invalid),
        ("untracked", CtState::Untracked),
    ];

    /// The number of the state of that name.
    pub(crate) fn number_of(name: &str) -> Option<u64> {
        CtState::NAMED.iter().find(|(named, _)| *named == name).map(|(_, state)| *state as u64)
    }

    /// The name of the state with that number.
    pub(crate) fn name_of(number: u128) -> Option<&'static str> {
        let named = CtState::NAMED.iter().find(|(_, state)| *state as u128 == number);
        named.map(|(name, _)| *name)
    }

    /// The state of a packet that belongs to no connection. TCP begins one with a SYN, or, as in
    /// netfilter, with an ACK: of a connection that is older than this table. ICMP begins one with a query.
    pub(crate) fn of_no_connection(bytes: &[u8], headers: &Headers) -> CtState {
        match headers.upper {
            Layer::Tcp => of_flags(headers.tcp_flags(bytes)),
            Layer::Icmp | Layer::Icmp6 if quotes(bytes, headers) => CtState::Invalid,
            Layer::Icmp | Layer::Icmp6 if !has_own_tuple(bytes, headers) => CtState::Untracked,
            Layer::Icmp | Layer::Icmp6 if is_reply(bytes, headers) => CtState::Invalid,
            _ => CtState::New,
        }
    }
}

/// The state of a TCP packet with these flags that belongs to no connection.
fn of_flags(flags: u8) -> CtState {
    let ends = flags & (flag::FIN | flag::RST) != 0;
    match (flags & flag::SYN != 0, flags & flag::ACK != 0) {
        (true, false) | (false, true) if !ends => CtState::New,
        _ => CtState::Invalid,
    }
}

/// Whether an ICMP query message is the reply to a request.
fn is_reply(bytes: &[u8], headers: &Headers) -> bool {
    let message = bytes.get(headers.transport..).and_then(Icmp::from_prefix);
    message.is_some_and(|(message, _)| match headers.is_ip6 {
        false => icmp::is_reply(message.kind()),
        true => icmp6::is_reply(message.kind()),
    })
}

/// The state of a packet when rules are matched, and whether it belongs to a connection (netfilter's ctinfo).
#[derive(Clone, Copy, Debug, Default)]
pub struct CtInfo {
    /// The state of its connection.
    pub state: CtState,
    /// Whether it belongs to a connection.
    pub is_of_connection: bool,
}

impl CtInfo {
    /// The state of a packet that belongs to no connection.
    pub(crate) fn of_no_connection(bytes: &[u8], headers: &Headers) -> CtInfo {
        let state = CtState::of_no_connection(bytes, headers);
        CtInfo { state, is_of_connection: false }
    }
}
