//! Sketches: packets as one line of text, for documentation, tests and traces.
//!
//! A packet can be built from `10.0.0.1:53 > 10.0.0.2:99 udp ttl 64 len 60`, and
//! printed in this form. Fields that a sketch does not mention get a default.
//! Building a printed sketch gives the same bytes.
//!
//! ```text
//! PACKET   = [eth MAC > MAC [vlan N | qinq N [prio N] [dei]]… [type N]] BODY
//! BODY     = IP | ARP | hex 01 02 …
//! IP       = ADDR[:PORT] > ADDR[:PORT] [udp | tcp | icmp | icmp6 | proto N] WORD…
//! ARP      = arp who-has IP tell IP MAC [target MAC] | arp reply IP is-at MAC to IP MAC
//!          | arp op N sender IP MAC target IP MAC         , each with [pad N]
//! ```
//!
//! | words | meaning |
//! |---|---|
//! | `ttl N` `tos N` `id N` `len N` | fields of IPv4; `len` is the length of the whole packet, padded with zeros |
//! | `df` `rf` `frag 1480+` | flags and offset in bytes; `+` if more follow |
//! | `ipopt TEXT`, `ipopt 0xHEX` | options, as in IP summary dumps: `rr{1.0.0.1}+2` |
//! | `hop N` `class N` `flow N` | fields of IPv6; `frag 1480+` and `id N` give it a fragment header |
//! | `seq N` `ack N` `win N` `urp N` | fields of TCP; `ack` sets the flag too |
//! | `fin` `syn` `rst` `psh` `urg` `ece` `cwr`, `flags SA` | flags of TCP, the latter as in IP summary dumps |
//! | `tcpopt TEXT`, `tcpopt 0xHEX` | options: `mss1460;sackok` |
//! | `type N` `code N` `ident N` `seq N` `rest N` | fields of ICMP; types by Click's names or number |
//! | `"text"`, `data 0a0b`, `[PACKET]` | payload |
//! | `badsum` `sum N` `iplen N` `hl N` | invalid fields of the IP header |
//! | `badcheck` `check N` `nocheck` `ulen N` `off N` `acknum N` `reserved N` | unusual fields of the transport header |
//! | `pad N` `short N` | zeros behind the packet, bytes missing at its end |

mod build;
mod ip;
mod print;
mod start;
#[cfg(test)]
mod tests;
mod words;

pub use build::build;
pub use print::print;
pub use start::print_start;

/// The layer of a packet's first header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Ethernet.
    Ethernet,
    /// The network layer, or unknown.
    Network,
}

/// A packet built from a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// The packet.
    pub bytes: Vec<u8>,
    /// The layer of its first header.
    pub layer: Layer,
}

/// Maximum nesting depth of packets within packets.
const MAX_DEPTH: usize = 4;

/// The incorrect checksum of `badsum` and `badcheck`. It differs from `correct`, also in ones'
/// complement, and is not zero, which means no checksum in UDP.
fn incorrect_checksum(correct: u16) -> u16 {
    match correct.wrapping_add(1) {
        0 => 1,
        incorrect => incorrect,
    }
}
