//! `castanet middlebox` and fragments: what Linux behind it answers, as scapy sees it.

use crate::middlebox_network::MiddleboxNetwork;

#[test]
fn fragments_pass_rules_as_their_packets_do() {
    MiddleboxNetwork::new("frags").check("fragments.py", "checks are right");
}
