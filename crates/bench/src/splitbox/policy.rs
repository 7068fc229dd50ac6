//! Firewalls of the benchmark: packets try all rules, and the last one lets them pass.

use castanet_splitbox::digest::HashKind;
use castanet_splitbox::party_file::{self, Unlock};
use castanet_splitbox::policy::{Format, compile};
use castanet_splitbox::setup::{BlindUse, Setup, SetupOptions};
use castanet_wire::sketch;
use std::path::{Path, PathBuf};

/// The number of projections of rules; a policy with fewer rules has as many as rules.
pub(super) const PROJECTIONS: usize = 4;

/// The packet, with a length in bytes of its IP packet.
pub(super) fn packet(len: usize) -> Result<Vec<u8>, String> {
    let text = format!("10.0.0.1:1000 > 10.0.0.2:2000 udp len {len}");
    sketch::build(&text).map(|it| it.bytes).map_err(|error| error.to_string())
}

/// Rules of an `IPFilter`, of four kinds in turn. The packet meets the last one only.
pub(super) fn filter_rules(count: usize) -> Vec<String> {
    let rule = |number: usize| {
        // From 1, so that no address is that of the packet.
        let kind = number % PROJECTIONS;
        let number = number / PROJECTIONS + 1;
        let host = format!("172.16.{}.{}", number / 256, number % 256);
        match kind {
            0 => format!("deny src host {host} and udp dst port 2000"),
            1 => format!("deny dst host {host} and udp src port 1000"),
            2 => format!("deny src host {host} and dst host 10.0.0.2 and udp"),
            _ => format!(
                "deny src net 172.{}.{}.0/24 and dst host 10.0.0.2 and udp",
                17 + number / 256,
                number % 256
            ),
        }
    };
    let last = match (count - 1) % PROJECTIONS {
        0 => "allow src host 10.0.0.1 and udp dst port 2000",
        1 => "allow dst host 10.0.0.2 and udp src port 1000",
        2 => "allow src host 10.0.0.1 and dst host 10.0.0.2 and udp",
        _ => "allow src net 10.0.0.0/24 and dst host 10.0.0.2 and udp",
    };
    (0..count - 1).map(rule).chain([last.to_owned()]).collect()
}

/// The same as rules of a `Middlebox`.
pub(super) fn middlebox_rules(count: usize) -> Vec<String> {
    let translated = |rule: &String| {
        let words: Vec<&str> = rule.split(' ').collect();
        let mut matches = String::new();
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let next = |n: usize| words.get(at + n).copied().unwrap_or_default();
            let (text, used) = match (*word, next(1)) {
                ("src", "host" | "net") => (format!("ip-saddr {}", next(2)), 3),
                ("dst", "host" | "net") => (format!("ip-daddr {}", next(2)), 3),
                ("udp", "dst") => (format!("udp-dport {}", next(3)), 4),
                ("udp", "src") => (format!("udp-sport {}", next(3)), 4),
                ("udp", _) => ("ip-proto udp".to_owned(), 1),
                _ => (String::new(), 1),
            };
            matches += &text;
            matches += " ";
            at += used;
        }
        let verdict = if rule.starts_with("deny") { "drop" } else { "accept" };
        format!("{matches}{verdict}").replace("  ", " ")
    };
    filter_rules(count).iter().map(translated).collect()
}

/// The files of all parties in a directory that goes with this value.
pub(super) struct PartyFolder(PathBuf);

impl PartyFolder {
    /// Makes the files of a setup with two processors.
    ///
    /// # Errors
    /// The policy cannot be compiled, or the files cannot be written.
    pub(super) fn new(
        rules: usize,
        hash: HashKind,
        blinds: u64,
        lanes: usize,
    ) -> Result<PartyFolder, String> {
        let name = format!("castanet-bench-splitbox-{}", std::process::id());
        let folder = PartyFolder(std::env::temp_dir().join(name));
        _ = std::fs::remove_dir_all(&folder.0);
        std::fs::create_dir_all(&folder.0).map_err(|e| e.to_string())?;
        let text = filter_rules(rules).join("\n");
        let policy = compile(Format::IpFilter, &text);
        let policy =
            policy.map_err(|errors| errors.first().map_or(String::new(), |it| it.to_string()))?;
        let options = SetupOptions {
            processors: 2,
            hash,
            header_bits: policy.header_bits,
            blinds,
            blind_use: BlindUse::Again,
            lanes,
            has_constant_work: false,
        };
        let setup = Setup::new(&policy.function, options).map_err(|e| e.to_string())?;
        party_file::make_key_file(&folder.path("key")).map_err(|e| e.to_string())?;
        let key = Unlock::KeyFile(folder.path("key"));
        party_file::save(&setup, &folder.0, &key, false).map_err(|e| e.to_string())?;
        Ok(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The arguments of an element that name a party's file.
    pub(super) fn arguments(&self, party: &str) -> String {
        let quoted = |path: &Path| castanet_lang::args::quote(&path.display().to_string());
        let file = self.path(&format!("{party}.splitbox"));
        format!("{}, KEY_FILE {}", quoted(&file), quoted(&self.path("key")))
    }
}

impl Drop for PartyFolder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_kit::classify::{Program, Rule};

    #[test]
    fn the_packet_meets_the_last_rule_alone() {
        let bytes = packet(1000).expect("is a packet");
        for count in [1, 2, 3, 4, 60, 1000] {
            let rules = filter_rules(count);
            assert_eq!(rules.len(), count);
            let parsed: Vec<Rule> =
                rules.iter().map(|it| Rule::filter(it, 1).expect("is a rule")).collect();
            let passes = |rules: &[Rule]| Program::compile(rules).run_ip(&bytes) == Some(0);
            assert!(passes(&parsed));
            assert!(count == 1 || !passes(&parsed[..count - 1]));
            assert_eq!(middlebox_rules(count).len(), count);
        }
    }
}
