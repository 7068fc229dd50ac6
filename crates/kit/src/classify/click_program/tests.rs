//! Tests of Click's programs: examples, and the programs' outputs for packets.

use super::instruction::Jump;
use super::{Budget, ClickProgram};
use crate::classify::tests::{ip, linear_search};
use crate::classify::{Pattern, Rule};

fn ip_rules(patterns: &[&str]) -> Vec<Rule> {
    patterns.iter().enumerate().map(|(n, text)| Rule::new(ip(text), Some(n as u8))).collect()
}

/// The lines of tests of a program of `IPClassifier`.
fn listing(patterns: &[&str]) -> Vec<String> {
    let text = ClickProgram::of_ip_rules(&ip_rules(patterns)).to_string();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn show() {
    for patterns in [
        &["rst and not fin"][..],
        &["port < 512"],
        &["tcp port >= 2048"],
        &["src 1.1.1.1 and (dst 2.2.2.2 or dst 2.2.2.3)"],
        &["tcp", "udp", "-"],
        &["tcp dst port 80 or 443", "icmp type echo"],
        &["true"], &["false"],
        &["dst port 1 or 2 or 3 or 4 or 5 or 6 or 7 or 8 or 9"],
    ] {
        eprintln!("{patterns:?}\n{}", listing(patterns).join("\n"));
    }
    let _ = (Budget(0), Jump::Drop, linear_search as fn(&[Rule], [&[u8]; 4]) -> Option<u8>, Pattern::all());
}
