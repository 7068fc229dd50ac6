//! One line of text for a packet, for documentation, tests and traces.
//!
//! `10.0.0.1:53 > 10.0.0.2:99 udp ttl 64 len 60` builds a packet and prints
//! it. What a sketch does not mention gets a default; what is printed is what
//! building needs, so that building a printed sketch gives the same bytes.
//!
//! ```text
//! PACKET   = [eth MAC > MAC [vlan N | qinq N [prio N] [dei]]… [type N]] BODY
//! BODY     = IP | ARP | hex 01 02 …
//! IP       = ADDR[:PORT] > ADDR[:PORT] [udp | tcp | icmp | icmp6 | proto N] WORD…
//! ARP      = arp who-has IP tell IP MAC [target MAC] | arp reply IP is-at MAC to IP MAC
//!          | arp op N sender IP MAC target IP MAC         , each with [pad N]
//! ```
//!
//! | words | say |
//! |---|---|
//! | `ttl N` `tos N` `id N` `len N` | fields of IPv4; `len` is the whole packet, filled up with zeros |
//! | `df` `rf` `frag 1480+` | flags and offset in bytes; `+` if more follow |
//! | `ipopt TEXT`, `ipopt 0xHEX` | options, as in IP summary dumps: `rr{1.0.0.1}+2` |
//! | `hop N` `class N` `flow N` | fields of IPv6; `frag 1480+` and `id N` give it a fragment header |
//! | `seq N` `ack N` `win N` `urp N` | fields of TCP; `ack` sets the flag too |
//! | `fin` `syn` `rst` `psh` `urg` `ece` `cwr`, `flags SA` | flags of TCP, the latter as in IP summary dumps |
//! | `tcpopt TEXT`, `tcpopt 0xHEX` | options: `mss1460;sackok` |
//! | `type N` `code N` `ident N` `seq N` `rest N` | fields of ICMP; types by Click's names or number |
//! | `"text"`, `data 0a0b`, `[PACKET]` | payload |
//! | `badsum` `sum N` `iplen N` `hl N` | a wrong IP header |
//! | `badcheck` `check N` `nocheck` `ulen N` `off N` `acknum N` `reserved N` | an odd transport header |
//! | `pad N` `short N` | zeros after the packet, bytes missing at its end |

mod build;
mod ip;
mod print;
#[cfg(test)]
mod tests;
mod words;

pub use build::build;
pub use print::print;

/// With which header a packet's bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// A network header, or nothing known.
    Network,
}

/// A packet built from a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// The packet.
    pub bytes: Vec<u8>,
    /// With which header it begins.
    pub layer: Layer,
}

/// How deep packets may lie within packets.
const DEPTH: usize = 4;

/// The checksum that a `badsum` gets: never equal to `right`, nor to it in
/// ones' complement, nor zero, which UDP takes for none.
fn wrong(right: u16) -> u16 {
    match right.wrapping_add(1) {
        0 => 1,
        wrong => wrong,
    }
}
