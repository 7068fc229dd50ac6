//! The same rules in the language of each packet filter.
//!
//! Each but the last drops a source address and a port that no host here has; the last
//! accepts all traffic of the benchmark; a packet that no rule accepts is dropped.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// A packet filter that applies rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Backend {
    /// `castanet middlebox`.
    Castanet,
    /// nftables with all that is to be dropped in one set, in which it looks.
    NftSet,
    /// nftables with a rule each, which it asks one by one.
    Nft,
    /// iptables as a face of nftables, which is Debian's.
    IptablesNft,
    /// iptables with its own part of the kernel.
    IptablesLegacy,
    /// No packet filter: Linux forwards.
    Forwarding,
}

/// The senders that rules are about: of a network for benchmarks (RFC 2544).
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// The sender, the protocol and the port of a rule.
fn rule(n: usize) -> (Ipv4Addr, &'static str, u16) {
    let sender = Ipv4Addr::from_bits(FIRST.to_bits() + (n as u32 & 0x1_ffff));
    let protocol = if n.is_multiple_of(2) { "udp" } else { "tcp" };
    (sender, protocol, (n % 50_000) as u16 + 1)
}

impl Backend {
    pub(super) const ALL: [Backend; 6] = [
        Backend::Castanet,
        Backend::NftSet,
        Backend::Nft,
        Backend::IptablesNft,
        Backend::IptablesLegacy,
        Backend::Forwarding,
    ];

    pub(super) fn name(self) -> &'static str {
        super::PEERS[self as usize]
    }

    /// The program that loads its rules.
    pub(super) fn program(self) -> Option<&'static str> {
        match self {
            Backend::NftSet | Backend::Nft => Some("nft"),
            Backend::IptablesNft => Some("iptables-nft-restore"),
            Backend::IptablesLegacy => Some("iptables-legacy-restore"),
            Backend::Castanet | Backend::Forwarding => None,
        }
    }

    /// The words that load a file of rules.
    pub(super) fn loader(self, file: &Path) -> Option<Vec<PathBuf>> {
        let program = self.program()?;
        let nft = program == "nft";
        let words = [Some(program.into()), nft.then(|| "-f".into()), Some(file.to_owned())];
        Some(words.into_iter().flatten().collect())
    }

    /// The text of `count` rules.
    pub(super) fn text(self, count: usize) -> String {
        let drops = (0..count.saturating_sub(1)).map(rule);
        let mut text = String::new();
        match self {
            Backend::Castanet => {
                for (sender, protocol, port) in drops {
                    let _ = writeln!(text, "ip-saddr {sender} {protocol}-dport {port} drop");
                }
                text += "ip-saddr 10.0.0.0/8 accept\nall drop\n";
            }
            Backend::Nft => {
                text += CHAIN;
                for (sender, protocol, port) in drops {
                    let _ = writeln!(text, "ip saddr {sender} {protocol} dport {port} drop");
                }
                text += "ip saddr 10.0.0.0/8 accept\n}\n}\n";
            }
            Backend::NftSet => {
                text += "table ip bench {\nset bad {\ntypeof ip saddr . meta l4proto . th dport\n";
                let list =
                    drops.map(|(sender, protocol, port)| format!("{sender} . {protocol} . {port}"));
                let list: Vec<String> = list.collect();
                if !list.is_empty() {
                    let _ = writeln!(text, "elements = {{ {} }}", list.join(", "));
                }
                text += "}\n}\n";
                text += CHAIN;
                text += "ip saddr . meta l4proto . th dport @bad drop\n";
                text += "ip saddr 10.0.0.0/8 accept\n}\n}\n";
            }
            Backend::IptablesNft | Backend::IptablesLegacy => {
                text += "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n";
                for (sender, protocol, port) in drops {
                    let _ = writeln!(
                        text,
                        "-A FORWARD -s {sender}/32 -p {protocol} -m {protocol} --dport {port} -j DROP"
                    );
                }
                text += "-A FORWARD -s 10.0.0.0/8 -j ACCEPT\nCOMMIT\n";
            }
            Backend::Forwarding => {}
        }
        text
    }
}

const CHAIN: &str = "table ip bench {
chain forward {
type filter hook forward priority 0; policy drop;
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_has_as_many_rules() {
        let lines = |peer: Backend, word: &str| peer.text(1000).matches(word).count();
        assert_eq!(
            lines(Backend::Castanet, " drop\n") + lines(Backend::Castanet, " accept\n"),
            1001
        );
        assert_eq!(lines(Backend::Nft, " drop\n") + lines(Backend::Nft, " accept\n"), 1000);
        assert_eq!(lines(Backend::NftSet, "198.18."), 999);
        assert_eq!(lines(Backend::IptablesNft, "-A FORWARD"), 1000);
        assert_eq!(Backend::Forwarding.text(1000), "");
    }

    #[test]
    fn castanet_reads_its_rules_and_names_are_in_order() {
        assert!(castanet_middlebox::language::commands(&Backend::Castanet.text(100)).is_ok());
        let names = Backend::ALL.map(Backend::name);
        assert_eq!(names, super::super::PEERS);
        // All are different.
        let rules: std::collections::HashSet<_> = (0..100_000).map(rule).collect();
        assert_eq!(rules.len(), 100_000);
    }
}
