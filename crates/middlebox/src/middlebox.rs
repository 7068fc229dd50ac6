//! `Middlebox`: matches, drops and rewrites packets by one-line rules.

use crate::active_rules::ActiveRules;
use crate::analysis::{RuleDiagnostic, warnings_of_all};
use crate::connections::Connections;
use crate::execute::{built_rules, check_rule_count};
use crate::export::ExportArgs;
use crate::file::FileContext;
use crate::interfaces::Interfaces;
use crate::language::{Command, TestPacket};
use crate::metrics::RULES;
use crate::middlebox_args::MiddleboxArgs;
use crate::packet_log::{LogFile, LogSettings};
use crate::placement::{Forwarding, placement_error};
use crate::rule::Rule;
use crate::rule_set::{NonIpPolicy, RuleSet, Timeouts};
use castanet_element::fragment::FragmentGate;
use castanet_element::prelude::*;

/// Matches, drops and rewrites IPv4 and IPv6 packets by one-line rules.
///
/// A rule has matches and targets: `tcp-dport 80 mod tcp-dport 443`. All rules that match a packet
/// apply, in order: the last to set a field wins, `accept` beats `drop`, and a dropped packet is
/// not rewritten. Matches test the packet as it came. A packet that no rule matches is forwarded
/// unchanged. `docs/middlebox.md` describes the language; `castanet middlebox` is a program of this
/// element.
///
/// Packets of input n leave by output n. If the network header is not marked, the element looks for
/// it behind the Ethernet header and VLAN tags. Checksums are updated incrementally: a wrong
/// checksum stays wrong. The next hop of `lb` becomes the destination annotation, or the
/// destination of the Ethernet header.
///
/// Rules change while packets flow, by commands of the language (`command`, whose
/// answer `said` reads) or by a handler of the command's name. A rule keeps its
/// identifier and counters as long as it is there.
///
/// ```click
/// in -> m :: Middlebox(tcp-dport 80 mod tcp-dport 443, proto udp drop) -> out
/// > in  1.0.0.1:99 > 2.0.0.2:80 tcp
/// > in  1.0.0.1:99 > 2.0.0.2:53 udp
/// > in  1.0.0.1 > 2.0.0.2 icmp
/// < out 1.0.0.1:99 > 2.0.0.2:443 tcp
/// < out 1.0.0.1 > 2.0.0.2 icmp
/// = m.drops.rule 1
/// = m.packets1 1
/// = m.rule_count 2
/// = m.rule_packets 1\tid1\n1\tid2
/// = m.rule_bytes 40\tid1\n28\tid2
/// ! m.command replace 1 tcp-opt-mss > 1400 mod tcp-opt-mss 1400
/// = m.said 1 id3 add tcp-opt-mss > 1400 mod tcp-opt-mss 1400
/// = m.packets1 0
/// > in  1.0.0.1:99 > 2.0.0.2:80 tcp syn tcpopt mss1460;sackok
/// < out 1.0.0.1:99 > 2.0.0.2:80 tcp syn tcpopt mss1400;sackok;eol
/// ! m.add all mod ip-ttl 9
/// ! m.delete 2
/// = m.rules add tcp-opt-mss > 1400 mod tcp-opt-mss 1400\nadd all mod ip-ttl 9
/// ! m.command test 1.0.0.1 > 2.0.0.2 udp len 60
/// = m.said in 0: 1.0.0.1 > 2.0.0.2 udp ttl 64 len 60\nrule 2 id4: add all mod ip-ttl 9\nout 0: 1.0.0.1 > 2.0.0.2 udp ttl 9 len 60
/// ```
///
/// Interfaces have names, for the fields `in` and `out` and for `enable` and
/// `disable`. With two, packets of one leave by the other.
///
/// ```click
/// a -> m :: Middlebox(in eth0 ip-ttl < 5 drop, out eth1 mod ip6-hop-limit 7, INTERFACES eth0 eth1)
/// m -> out;  b -> [1]m[1] -> back
/// > a    1::1 > 2::2 udp
/// > a    1.0.0.1 > 2.0.0.2 udp ttl 4
/// > b    1.0.0.1 > 2.0.0.2 udp ttl 4
/// < out  1::1 > 2::2 udp hop 7
/// < back 1.0.0.1 > 2.0.0.2 udp ttl 4
/// ! m.disable eth0
/// = m.interfaces eth0 disabled\neth1 enabled
/// ! m.enable eth0
/// ! m.move 2 1
/// = m.rules add out eth1 mod ip6-hop-limit 7\nadd in eth0 ip-ttl < 5 drop
/// ! m.disable eth0
/// > a    1.0.0.1 > 2.0.0.2 udp ttl 4
/// < out  1.0.0.1 > 2.0.0.2 udp ttl 4
/// = m.drops.rule 1
/// = m.bytes1 76
/// = m.unfit_options 0
/// = m.tables table of 2 rules, 3 keys, 3 masks, 0 probes, 132472 bytes
/// = m.tables_verbose table of 2 rules, 3 keys, 3 masks, 0 probes, 132472 bytes\nmask 0 0 0 0 0 0 0 0 keys 1\n  id2 out eth1 mod ip6-hop-limit 7\nmask 100 0 0 fc00000000000000 0 0 0 0 keys 1\n  id1 in eth0 ip-ttl < 5 drop\nmask 100 0 0 ff00000000000000 0 0 0 0 keys 1\n  id1 in eth0 ip-ttl < 5 drop
/// ! m.reset_counts
/// = m.bytes1 0
/// ! m.replace 1 all mod ip-ttl 3
/// ! m.flush
/// = m.rules
/// ```
///
/// A match may have a list of values and ranges, or a named set, which commands change. A rule with commas
/// stands in quotes.
///
/// ```click
/// in -> m :: Middlebox("tcp-dport 80,443,8000-8100 accept", ip-saddr @blocked drop,
///     set add blocked 10.0.0.0/8 192.0.2.1-192.0.2.9, timeout udp 30) -> out
/// > in  10.0.0.1:99 > 2.0.0.2:80 tcp
/// > in  10.0.0.1:99 > 2.0.0.2:8101 tcp
/// < out 10.0.0.1:99 > 2.0.0.2:80 tcp
/// = m.drops.rule 1
/// = m.sets blocked 2
/// ! m.set remove blocked 10.0.0.0/9
/// = m.sets_verbose blocked 2 10.128.0.0/9 192.0.2.1-192.0.2.9
/// > in  10.0.0.1:99 > 2.0.0.2:8101 tcp
/// < out 10.0.0.1:99 > 2.0.0.2:8101 tcp
/// = m.rule_packets 1\tid1\n2\tid2
/// = m.rules timeout udp 30\nset add blocked 10.128.0.0/9 192.0.2.1-192.0.2.9\nadd tcp-dport 80,443,8000-8100 accept\nadd ip-saddr @blocked drop
/// ```
///
/// The Ethernet header may have been stripped, if `FromDevice` or `MarkMACHeader` has marked it.
///
/// ```click
/// in -> MarkMACHeader -> Strip(14) -> CheckIPHeader -> m :: Middlebox(eth-saddr 02:00:00:00:00:01 drop) -> out
/// > in  eth 2:0:0:0:0:1 > 2:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in  eth 2:0:0:0:0:3 > 2:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = m.drops.rule 1
/// ```
///
/// `reject` drops a packet and answers it: the answer leaves by the interface that the packet came from, or,
/// if there is one interface and the packet begins with its IP header, by output 0, for a routing table.
/// Fragments, ICMP errors, resets and packets to groups get no answer, and a worker sends 1000 answers a
/// second at most.
///
/// ```click
/// a -> m :: Middlebox(tcp-dport 22 reject, udp-dport 53 reject admin, ip6-saddr ::/0 reject,
///     INTERFACES a b) -> out;  b -> [1]m[1] -> back
/// > a 1.0.0.1:5 > 2.0.0.2:22 tcp syn seq 7
/// > a 1.0.0.1:5 > 2.0.0.2:22 tcp seq 7 ack 9 "data"
/// > a 1.0.0.1:5 > 2.0.0.2:22 tcp rst seq 7
/// > a 1.0.0.1:5 > 2.0.0.2:53 udp "question"
/// > a 1.0.0.1:5 > 224.0.0.2:53 udp
/// > a [1::1]:5 > [2::2]:80 tcp syn
/// > b 2.0.0.2:80 > 1.0.0.1:5 tcp
/// < back 2.0.0.2:22 > 1.0.0.1:5 tcp rst ack 8 win 0
/// < back 2.0.0.2:22 > 1.0.0.1:5 tcp rst seq 9 win 0
/// < back 2.0.0.2 > 1.0.0.1 icmp type unreachable code 13 [1.0.0.1:5 > 2.0.0.2:53 udp "question"]
/// < back [2::2]:80 > [1::1]:5 tcp rst ack 1 win 0
/// < back 2.0.0.2:80 > 1.0.0.1:5 tcp
/// = m.rejected 4
/// = m.drops.rule 2
/// ! m.command test in a 1.0.0.1:5 > 2.0.0.2:22 tcp syn
/// = m.said in a: 1.0.0.1:5 > 2.0.0.2:22 tcp syn ttl 64 len 40\nrule 1 id1: add tcp-dport 22 reject\nrejected by rule 1 id1, with the answer:\ndestination annotation: 1.0.0.1\nout a: 2.0.0.2:22 > 1.0.0.1:5 tcp rst ack 1 win 0 ttl 64 len 40
/// ```
///
/// ICMP errors of a router are from its own address at the interface (RFC 1812, 4.3.2.4).
///
/// ```click
/// a -> m :: Middlebox(udp-dport 53 reject, INTERFACES a b, ADDRESSES a=1.0.0.254 b=2.0.0.254 a=1::fe) -> out
/// b -> [1]m[1] -> back
/// > a 1.0.0.1:5 > 2.0.0.2:53 udp "question"
/// > a [1::1]:5 > [2::2]:53 udp "question"
/// > b [2::2]:5 > [1::1]:53 udp "question"
/// < back 1.0.0.254 > 1.0.0.1 icmp type unreachable code 3 [1.0.0.1:5 > 2.0.0.2:53 udp "question"]
/// < back 1::fe > 1::1 icmp6 type 1 code 4 [[1::1]:5 > [2::2]:53 udp "question"]
/// < out 1::1 > 2::2 icmp6 type 1 code 4 [[2::2]:5 > [1::1]:53 udp "question"]
/// ```
///
/// A stateful rule applies to the connections whose first packet it matches: to all their packets
/// in both directions, to ICMP errors about them and to fragments. Its translation of addresses,
/// ports and sequence numbers is reversed for replies.
///
/// ```click
/// lan -> m :: Middlebox(add-stateful ip-saddr 10.0.0.0/8 ip-proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000,
///     add-stateful ip-proto udp in lan accept, all drop, ip-proto tcp accept, INTERFACES lan wan) -> out
/// wan -> [1]m[1] -> back
/// > lan  10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// > wan  2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1
/// < out  9.9.9.9:4000 > 2.0.0.2:80 tcp syn
/// < back 2.0.0.2:80 > 10.0.0.1:1000 tcp syn ack 1
/// = m.connections tcp 10.0.0.1:1000 > 2.0.0.2:80 id1
/// = m.connections_verbose tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 expires 120 s transient flags S SA as 9.9.9.9:4000 > 2.0.0.2:80
/// = m.connections_json [\n  {"expires":120,"flags":["S","SA"],"is_answered":true,"is_established":false,"original":{"destination":"2.0.0.2","destination_port":80,"source":"10.0.0.1","source_port":1000},"protocol":"tcp","rules":[1],"translated":{"destination":"2.0.0.2","destination_port":80,"source":"9.9.9.9","source_port":4000}}\n]
/// = m.packets1 2
/// > wan  2.0.0.2:53 > 10.0.0.1:9 udp
/// = m.drops.rule 1
/// > lan  10.0.0.1:9 > 2.0.0.2:53 udp
/// > wan  2.0.0.2:53 > 10.0.0.1:9 udp
/// < out  10.0.0.1:9 > 2.0.0.2:53 udp
/// < back 2.0.0.2:53 > 10.0.0.1:9 udp
/// = m.connection_count 2
/// + 130s
/// = m.connection_count 1
/// > lan  10.0.0.1:9 > 2.0.0.2:53 udp
/// < out  10.0.0.1:9 > 2.0.0.2:53 udp
/// = m.connection_events 2\tadded\n1\texpired\n0\tevicted\n0\trefused
/// ! m.timeout udp 30
/// = m.timeouts udp 30\ntcp-established 14400\ntcp-transient 120
/// ! m.timeouts udp 60
/// = m.timeouts udp 60\ntcp-established 14400\ntcp-transient 120
/// ```
///
/// With `ct-state`, all packets that go on begin connections or belong to them.
///
/// ```click
/// lan -> m :: Middlebox("ct-state established,related accept", ct-state invalid log drop, in lan accept,
///     all drop, INTERFACES lan wan) -> out;  wan -> [1]m[1] -> back
/// > lan 10.0.0.1:5 > 2.0.0.2:80 tcp syn
/// > wan 2.0.0.2:80 > 10.0.0.1:5 tcp syn ack 1
/// > wan 2.0.0.2:80 > 10.0.0.1:6 tcp syn ack 1
/// > wan 2.0.0.2:9 > 10.0.0.1:7 udp
/// > wan 9.9.9.9 > 10.0.0.1 icmp type unreachable code 1 [10.0.0.1:5 > 2.0.0.2:80 tcp syn len 40]
/// > wan 9.9.9.9 > 10.0.0.1 icmp type unreachable code 1 [10.0.0.1:8 > 2.0.0.2:80 tcp syn len 40]
/// < out 10.0.0.1:5 > 2.0.0.2:80 tcp syn
/// < back 2.0.0.2:80 > 10.0.0.1:5 tcp syn ack 1
/// < back 9.9.9.9 > 10.0.0.1 icmp type unreachable code 1 [10.0.0.1:5 > 2.0.0.2:80 tcp syn len 40]
/// = m.connections tcp 10.0.0.1:5 > 2.0.0.2:80
/// = m.rule_packets 2\tid1\n2\tid2\n1\tid3\n6\tid4
/// = m.logged 2
/// = m.drops.rule 3
/// > wan 2.0.0.2:80 > 10.0.0.1:5 tcp rst
/// > wan 2.0.0.2:80 > 10.0.0.1:5 tcp syn
/// < back 2.0.0.2:80 > 10.0.0.1:5 tcp rst
/// = m.drops.rule 4
/// = m.connection_count 0
/// ```
///
/// Limits match packets within a rate or beyond it, and connections up to a number. The rules of a chain are
/// about the packets that a rule with `jump` matches.
///
/// ```click
/// in -> m :: Middlebox(proto icmp rate-saddr > 2/s:2 drop, tcp-syn jump web,
///     add-stateful chain web tcp-dport 80 ct-count-saddr <= 1 accept, chain web drop) -> out
/// > in 1.0.0.1 > 2.0.0.2 icmp type echo
/// > in 1.0.0.1 > 2.0.0.2 icmp type echo
/// > in 1.0.0.1 > 2.0.0.2 icmp type echo ttl 9
/// > in 1.0.0.9 > 2.0.0.2 icmp type echo
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo
/// < out 1.0.0.9 > 2.0.0.2 icmp type echo
/// + 500ms
/// > in 1.0.0.1 > 2.0.0.2 icmp type echo ttl 8
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// > in 1.0.0.1:6 > 2.0.0.2:80 tcp syn
/// > in 1.0.0.1:5 > 2.0.0.2:22 tcp syn
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ttl 8
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = m.drops.rule 3
/// ! m.command delete connection tcp 1.0.0.1:5 > 2.0.0.2:80
/// > in 1.0.0.1:6 > 2.0.0.2:80 tcp syn
/// < out 1.0.0.1:6 > 2.0.0.2:80 tcp syn
/// ```
///
/// `test` shows which rules and connection would apply to a packet, and where it would leave. It
/// changes nothing.
///
/// ```click
/// lan -> m :: Middlebox(add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000,
///     in wan drop, proto tcp accept, INTERFACES lan wan) -> out;  wan -> [1]m[1] -> back
/// ! m.command test in wan 2.0.0.2:80 > 9.9.9.9:4000 udp
/// = m.said in wan: 2.0.0.2:80 > 9.9.9.9:4000 udp ttl 64 len 28\nrule 2 id2: add in wan drop\ndropped by rule 2 id2
/// ! m.command test in lan 10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// = m.said in lan: 10.0.0.1:1000 > 2.0.0.2:80 tcp syn ttl 64 len 40\nrule 3 id3: add proto tcp accept\nrule 1 id1: add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000\nbegins connection tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 as 9.9.9.9:4000 > 2.0.0.2:80\nout wan: 9.9.9.9:4000 > 2.0.0.2:80 tcp syn ttl 64 len 40
/// = m.connection_count 0
/// > lan 10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// > wan 2.0.0.2:80 > 9.9.9.9:4000 udp
/// < out 9.9.9.9:4000 > 2.0.0.2:80 tcp syn
/// ! m.command test in wan 2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1
/// = m.said in wan: 2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1 ttl 64 len 40\nrule 2 id2: add in wan drop\nrule 3 id3: add proto tcp accept\nof connection tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 as 9.9.9.9:4000 > 2.0.0.2:80, with its rules:\nrule 1 id1: add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000\naccepted by rule 3 id3, whatever drops it\nout lan: 2.0.0.2:80 > 10.0.0.1:1000 tcp syn ack 1 ttl 64 len 40
/// = m.packets2 1
/// = m.connections_verbose tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 expires 120 s transient flags S . as 9.9.9.9:4000 > 2.0.0.2:80
/// ```
///
/// New connections are refused if the table is full of answered connections, or if no port is free.
///
/// ```click
/// a -> m :: Middlebox(add-stateful ip-proto udp accept,
///     add-stateful ip-proto 99 map ip-saddr 9.9.9.9, CONNECTIONS 2) -> b
/// > a 1.0.0.1:5 > 2.0.0.2:6 udp
/// > a 2.0.0.2:6 > 1.0.0.1:5 udp
/// > a 1.0.0.1 > 2.0.0.2 proto 99
/// > a 1.0.0.3 > 2.0.0.2 proto 99
/// < b 1.0.0.1:5 > 2.0.0.2:6 udp
/// < b 2.0.0.2:6 > 1.0.0.1:5 udp
/// < b 9.9.9.9 > 2.0.0.2 proto 99
/// = m.drops.no_port 1
/// > a 2.0.0.2 > 9.9.9.9 proto 99
/// < b 2.0.0.2 > 1.0.0.1 proto 99
/// > a 1.0.0.1:7 > 2.0.0.2:6 udp
/// = m.drops.full 1
/// ! m.command delete connection udp 1.0.0.1:5 > 2.0.0.2:6
/// = m.said deleted the connection
/// > a 1.0.0.1:7 > 2.0.0.2:6 udp
/// < b 1.0.0.1:7 > 2.0.0.2:6 udp
/// ```
///
/// If a rule tests fields behind the IP header or is stateful, fragments are matched by their own
/// IP header and the other headers of the first fragment, and leave where that leaves. They wait up
/// to two seconds for it. First fragments without all headers and overlapping fragments are
/// dropped, with all others of their packet.
///
/// ```click
/// in -> m :: Middlebox(tcp-dport 5000 drop) -> out
/// > in  1.0.0.1 > 2.0.0.2 tcp id 1 frag 24 "late"
/// = m.waiting_fragments 1
/// > in  1.0.0.1:9 > 2.0.0.2:5000 tcp syn id 1 frag 0+ "data"
/// = m.waiting_fragments 0
/// = m.drops.rule 2
/// > in  1.0.0.1 > 2.0.0.2 tcp id 2 frag 24 "late"
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 2 frag 0+ "data"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 2 frag 0+ "data"
/// < out 1.0.0.1 > 2.0.0.2 tcp id 2 frag 24 "late"
/// > in  hex 4500002400032000400600000100000102000002 00091388000000000000000050020000
/// > in  1.0.0.1 > 2.0.0.2 tcp id 3 frag 16 "rest"
/// = m.drops.tiny_fragment 2
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 4 frag 0+ "data"
/// > in  1.0.0.1 > 2.0.0.2 tcp id 4 frag 16+ "overlaps"
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 5 frag 0+ "longer data."
/// > in  1.0.0.1 > 2.0.0.2 tcp id 5 frag 24 "overlaps"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 4 frag 0+ "data"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 5 frag 0+ "longer data."
/// = m.drops.overlapping_fragment 1
/// > in  1.0.0.1 > 2.0.0.2 tcp id 6 frag 24 "lone"
/// + 5s
/// = m.drops.lone_fragment 1
/// = m.drops.excess_fragment 0
/// ```
/// ```click
/// in -> m :: Middlebox(add-stateful ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 map udp-sport 4000) -> out
/// > in  10.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// > in  10.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 0+ "a packet"
/// < out 9.9.9.9:4000 > 2.0.0.2:6 udp id 7 frag 0+ "a packet"
/// < out 9.9.9.9 > 2.0.0.2 udp id 7 frag 16 "late"
/// ```
///
/// Packets that should have an IP header and have none are dropped if there are rules. Packets that
/// are neither IPv4 nor IPv6 match no rule; they are forwarded unless `other` says otherwise.
///
/// ```click
/// in -> m :: Middlebox(ip-proto udp drop, other arp) -> out
/// > in  eth hex 060000000002060000000001 0800 44000014000000000000000001000001 02000002
/// > in  eth hex 060000000002060000000001 8864 1100000100020021
/// > in  eth hex 060000000002060000000001 0806 0001
/// < out eth hex 060000000002060000000001 0806 0001
/// = m.drops.malformed 1
/// = m.drops.other 1
/// = m.other arp
/// = m.rules other arp\nadd ip-proto udp drop
/// ! m.other accept
/// > in  eth hex 060000000002060000000001 8864 1100000100020021
/// < out eth hex 060000000002060000000001 8864 1100000100020021
/// ```
#[derive(Clone, Element)]
#[element(args = MiddleboxArgs, methods, ports = "1-/=", processing = "h/h", flow = "#/#")]
pub struct Middlebox {
    pub(crate) active_rules: ActiveRules,
    pub(crate) interfaces: Interfaces,
    pub(crate) forwarding: Option<Forwarding>,
    pub(crate) mtu: usize,
    pub(crate) answer: String,
    /// Maximum number of connections.
    pub(crate) limit: usize,
    pub(crate) connections: RwShared<Connections>,
    pub(crate) fragments: FragmentGate,
    /// The log of packets.
    pub(crate) log: LogSettings,
    /// The export of connections, if there is one.
    pub(crate) export: Option<ExportArgs>,
}

impl Build for Middlebox {
    type Args = MiddleboxArgs;

    fn build(args: MiddleboxArgs, setup: &Setup) -> Result<Self, ArgError> {
        let words = |words: Option<Words>| words.map(|words| words.words);
        let interfaces = Interfaces::new(words(args.interfaces), words(args.out), setup.inputs)?;
        let interfaces = interfaces.with_addresses(&words(args.addresses).unwrap_or_default())?;
        let placement_error = |rule: &Rule| placement_error(rule, &interfaces, args.forwarding);
        let context =
            FileContext { placement_error: &placement_error, read: &crate::file::read_text };
        let rules = built_rules(args.rules, args.file.as_deref(), &context, setup)?;
        Ok(Middlebox {
            active_rules: ActiveRules::new(rules),
            interfaces,
            forwarding: args.forwarding,
            mtu: args.mtu,
            answer: String::new(),
            limit: args.connections,
            connections: RwShared::default(),
            fragments: FragmentGate::default(),
            log: LogSettings {
                rate: args.log_rate,
                file: args.log_file.as_deref().map(LogFile::new),
            },
            export: args.collector.map(|collector| ExportArgs {
                collector,
                domain: args.domain,
                active_timeout: args.active_timeout,
            }),
        })
    }
}

#[handlers]
impl Middlebox {
    /// The commands that make the rules, one a line.
    #[read]
    fn rules(&self) -> String {
        self.active_rules.rules().text()
    }
    /// Puts rules in place of all, or does nothing: the commands that make them, one a line.
    #[write(rules)]
    fn set_rules(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let mut rules = RuleSet::clone(self.active_rules.rules());
        (rules.other, rules.timeouts) = (NonIpPolicy::default(), Timeouts::default());
        self.parse_rules(text, names)?.apply_to(&mut rules);
        let active_rules = self.active_rules.with(check_rule_count(rules)?);
        Ok(Middlebox { active_rules, ..self.clone() })
    }
    /// Number of rules.
    #[read]
    #[metric(RULES)]
    fn rule_count(&self) -> usize {
        self.active_rules.rules().len()
    }
    /// Answer of the last command.
    #[read]
    fn said(&self) -> String {
        self.answer.clone()
    }
    /// Warnings about the rules, a line each, with the number of the rule.
    #[read]
    fn warnings(&self) -> String {
        let entries = self.active_rules.rules().entries();
        let warnings = warnings_of_all(entries.map(|entry| &entry.rule), usize::MAX);
        let line = |(at, remark): &(usize, RuleDiagnostic)| {
            let rule = self.active_rules.rules().at(*at).map(|entry| remark.line(&entry.rule));
            format!("rule {}: {}\n", at + 1, rule.unwrap_or_default())
        };
        warnings.iter().map(line).collect()
    }
    /// The input interfaces, and whether rules are attached to them.
    #[read]
    fn interfaces(&self) -> String {
        self.interfaces.to_string()
    }
    /// Attaches the rules to interfaces, or detaches them: `NAME enabled` or `NAME disabled`, one a line.
    #[write(interfaces)]
    fn set_interfaces(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        let interfaces = self.interfaces.with_states(text).map_err(ArgError::new)?;
        Ok(Middlebox { interfaces, ..self.clone() })
    }
    /// Shows where the packet given as parameter, `[in IF] [out IF] PACKET`, would leave, and why.
    #[read]
    fn test(&self, ask: &ReadRequest) -> String {
        let Some(test) = TestPacket::parse(ask.param) else { return "a packet is missing".into() };
        self.test_packet(&test, ask.now.0.unsigned_abs()).unwrap_or_else(|error| error)
    }
    /// Executes a command of the language.
    #[write]
    fn command(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.execute_line(text, names)
    }
    /// Adds a rule behind the others.
    #[write]
    fn add(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("add", text, names)
    }
    /// Puts a rule in another's place: `N MATCH… TARGET…`.
    #[write]
    fn replace(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("replace", text, names)
    }
    /// Removes a rule, by its position or its identifier.
    #[write]
    fn delete(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("delete", text, names)
    }
    /// Moves a rule: `N M`.
    #[write(r#move)]
    fn move_rule(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("move", text, names)
    }
    /// Removes all rules and all connections.
    #[write]
    fn flush(&self, _: &str, names: &Names) -> Result<Self, ArgError> {
        self.execute(&Command::Flush, names)
    }
    /// Attaches the rules to interfaces.
    #[write]
    fn enable(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("enable", text, names)
    }
    /// Detaches the rules from interfaces.
    #[write]
    fn disable(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("disable", text, names)
    }
    /// Writes the rules to a file.
    #[write]
    fn save(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("save", text, names)
    }
    /// Puts the rules of a file in place of all, or does nothing.
    #[write]
    fn load(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("load", text, names)
    }
    /// Timeouts of idle connections, in seconds.
    #[read]
    fn timeouts(&self) -> String {
        let timeouts = self.active_rules.rules().timeouts.named();
        timeouts.iter().map(|(name, seconds)| format!("{name} {seconds}\n")).collect()
    }
    /// Sets timeouts, one a line.
    #[write(timeouts)]
    fn set_timeouts(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        text.lines().try_fold(self.clone(), |new, line| new.timeout(line, names))
    }
    /// Sets the timeout of idle connections: `udp 600`.
    #[write]
    fn timeout(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("timeout", text, names)
    }
    /// The named sets, a line each: name, and number of values and ranges.
    #[read]
    fn sets(&self) -> String {
        self.active_rules.rules().sets().list(false)
    }
    /// The named sets with their values, a line each.
    #[read]
    fn sets_verbose(&self) -> String {
        self.active_rules.rules().sets().list(true)
    }
    /// Changes a named set: `add NAME VALUE…`, `remove`, `replace`, `load NAME FILE`, `delete NAME`.
    #[write]
    fn set(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("set", text, names)
    }
    /// The verdict on packets that are neither IPv4 nor IPv6.
    #[read]
    fn other(&self) -> String {
        self.active_rules.rules().other.word().into()
    }
    /// Sets the policy for packets that are neither IPv4 nor IPv6: `accept`, `arp` or `drop`.
    #[write(other)]
    fn set_other(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.run_command("other", text, names)
    }
    /// Resets the counters.
    #[write]
    fn reset_counts(&self, _: &str, names: &Names) -> Result<Self, ArgError> {
        self.execute(&Command::ResetCounters, names)
    }
}
