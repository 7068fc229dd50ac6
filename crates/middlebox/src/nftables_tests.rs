//! The rules of nftables that `docs/firewalls.md` translates: what they do with packets.

use crate::active_rules::ActiveRules;
use crate::burst::HookContext;
use crate::file::{FileContext, parse_rules};
use crate::interfaces::Interfaces;
use crate::named_sets::NamedSets;
use crate::packet_log::LogSettings;
use crate::packet_test::PacketTest;
use crate::rule_set::RuleSet;
use castanet_element::fragment::FragmentGate;
use castanet_element::prelude::*;
use castanet_wire::sketch;

const PAGE: &str = include_str!("../../../docs/firewalls.md");

/// A translation: the rule of nftables, those of Castanet, packets from `lan` that they drop, and others with
/// what they are afterwards.
type Translation =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const SYN: &str = "10.0.0.1:5 > 2.0.0.2:22 tcp syn ttl 64 len 40";
const PING: &str = "10.0.0.1 > 2.0.0.2 icmp type echo ident 1 ttl 64 len 28";
const DNS: &str = "10.0.0.1:5 > 2.0.0.2:53 udp ttl 64 len 28";

const TRANSLATIONS: &[Translation] = &[
    ("tcp dport 22 drop", "tcp-dport 22 drop", &[SYN], &[(DNS, DNS)]),
    (
        "tcp dport { 22, 80, 8000-8100 } drop",
        "tcp-dport 22,80,8000-8100 drop",
        &[SYN, "10.0.0.1:5 > 2.0.0.2:8050 tcp"],
        &[(DNS, DNS)],
    ),
    ("ip saddr 10.0.0.0/8 drop", "ip-saddr 10.0.0.0/8 drop", &[SYN, PING], &[]),
    (
        "ip saddr != 192.168.1.0/24 tcp dport 22 drop",
        "ip-saddr != 192.168.1.0/24 tcp-dport 22 drop",
        &[SYN],
        &[("192.168.1.7:5 > 2.0.0.2:22 tcp", "192.168.1.7:5 > 2.0.0.2:22 tcp ttl 64 len 40")],
    ),
    (
        "ip saddr @blocked drop",
        "set add blocked 10.0.0.0/30 10.9.9.9\nip-saddr @blocked drop",
        &[SYN],
        &[("10.0.0.4 > 2.0.0.2 udp", "10.0.0.4 > 2.0.0.2 udp ttl 64 len 28")],
    ),
    ("udp dport 53 reject", "udp-dport 53 reject", &[], &[(SYN, SYN)]),
    (
        "tcp dport 22 reject with tcp reset",
        "tcp-dport 22 reject",
        &[],
        &[(SYN, "2.0.0.2:22 > 10.0.0.1:5 tcp rst ack 1 win 0 ttl 64 len 40"), (DNS, DNS)],
    ),
    ("reject with icmpx type admin-prohibited", "all reject admin", &[], &[]),
    ("icmp type echo-request drop", "icmp-type 8 drop", &[PING], &[(SYN, SYN)]),
    (
        "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } drop",
        "icmp6-type 135,136 drop",
        &["1::1 > 2::2 icmp6 type 136"],
        &[(PING, PING)],
    ),
    (
        "ip6 saddr 2001:db8::/32 drop",
        "ip6-saddr 2001:db8::/32 drop",
        &["2001:db8::1 > 2::2 udp"],
        &[],
    ),
    (
        "tcp flags & (syn | ack) == syn drop",
        "tcp-syn ! tcp-ack drop",
        &[SYN],
        &[(
            "10.0.0.1:5 > 2.0.0.2:22 tcp syn ack 1",
            "10.0.0.1:5 > 2.0.0.2:22 tcp syn ack 1 ttl 64 len 40",
        )],
    ),
    ("ip ttl < 5 drop", "ip-ttl < 5 drop", &["1.0.0.1 > 2.0.0.2 udp ttl 4"], &[(DNS, DNS)]),
    (
        "ip protocol != { tcp, udp } drop",
        "ip-proto != tcp,udp drop",
        &[PING],
        &[(SYN, SYN), (DNS, DNS)],
    ),
    ("meta nfproto ipv6 drop", "net-proto ip6 drop", &["1::1 > 2::2 udp"], &[(DNS, DNS)]),
    (
        "udp length > 512 drop",
        "udp-len > 512 drop",
        &["1.0.0.1 > 2.0.0.2 udp len 533"],
        &[(DNS, DNS)],
    ),
    (
        "ether saddr 02:00:00:00:00:01 drop",
        "eth-saddr 02:00:00:00:00:01 drop",
        &["eth 2:0:0:0:0:1 > 2:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp"],
        &[(DNS, DNS)],
    ),
    (
        "vlan id 100-200 drop",
        "vlan-id 100-200 drop",
        &["eth 2:0:0:0:0:1 > 2:0:0:0:0:2 vlan 150 1.0.0.1 > 2.0.0.2 udp"],
        &[(DNS, DNS)],
    ),
    ("iifname \"lan\" tcp dport 22 drop", "in lan tcp-dport 22 drop", &[SYN], &[(DNS, DNS)]),
    (
        "tcp flags syn tcp option maxseg size set 1400",
        "tcp-syn tcp-opt-mss > 1400 mod tcp-opt-mss 1400",
        &[],
        &[(
            "10.0.0.1:5 > 2.0.0.2:22 tcp syn tcpopt mss1460",
            "10.0.0.1:5 > 2.0.0.2:22 tcp syn tcpopt mss1400 ttl 64 len 44",
        )],
    ),
    (
        "ip dscp set cs1",
        "all mod ip-dscp 8",
        &[],
        &[(DNS, "10.0.0.1:5 > 2.0.0.2:53 udp tos 32 ttl 64 len 28")],
    ),
    (
        "oifname \"wan\" ip protocol udp snat to 198.51.100.1",
        "add-stateful out wan ip-proto udp map ip-saddr 198.51.100.1",
        &[],
        &[(DNS, "198.51.100.1:5 > 2.0.0.2:53 udp ttl 64 len 28")],
    ),
    (
        "tcp dport 22 dnat to 10.0.0.5:2222",
        "add-stateful ct-state new ip-proto tcp tcp-dport 22 map ip-daddr 10.0.0.5 map tcp-dport 2222",
        &[],
        &[(SYN, "10.0.0.1:5 > 10.0.0.5:2222 tcp syn ttl 64 len 40")],
    ),
    (
        "ct state established,related accept; iifname \"lan\" accept; drop",
        "add-stateful in lan accept\nall drop",
        &[],
        &[(SYN, SYN)],
    ),
    (
        "ct state invalid drop",
        "ct-state invalid drop",
        &["10.0.0.1:5 > 2.0.0.2:80 tcp syn ack 1"],
        &[(SYN, SYN), (DNS, DNS)],
    ),
    (
        "ct state established,related accept; iifname \"lan\" ct state new accept; drop",
        "ct-state established,related accept\nin lan ct-state new accept\nall drop",
        &["10.0.0.1:5 > 2.0.0.2:80 tcp rst"],
        &[(SYN, SYN)],
    ),
    (
        "tcp dport 22 limit rate over 10/minute burst 5 packets drop",
        "tcp-dport 22 rate > 10/m:5 drop",
        &[],
        &[(SYN, SYN)],
    ),
    (
        "limit rate 2 mbytes/second accept; drop",
        "rate <= 2MB/s accept\nall drop",
        &[],
        &[(SYN, SYN)],
    ),
    (
        "update @sources { ip saddr limit rate over 5/second } drop",
        "rate-saddr > 5/s drop",
        &[],
        &[(SYN, SYN)],
    ),
    (
        "tcp dport 22 ct count over 3 reject with tcp reset",
        "add-stateful ct-state new tcp-dport 22 ct-count <= 3 accept\nct-state new tcp-dport 22 reject",
        &[],
        &[(SYN, SYN)],
    ),
    ("tcp dport 22 log prefix \"ssh\" drop", "tcp-dport 22 log ssh drop", &[SYN], &[(DNS, DNS)]),
    (
        "iifname \"lan\" jump web; chain web { tcp dport 22 drop; }",
        "in lan jump web\nchain web tcp-dport 22 drop",
        &[SYN],
        &[(DNS, DNS)],
    ),
];

/// The last line of the report about a packet from the first interface.
fn fate(rules: &ActiveRules, interfaces: &Interfaces, packet: &str) -> String {
    let (connections, fragments) = (RwShared::default(), FragmentGate::default());
    let log = LogSettings::default();
    let hook = HookContext {
        rules: rules.rules(),
        interfaces,
        connections: &connections,
        fragments: &fragments,
        mtu: 1500,
        port: 0,
        now: 0,
        is_counted: false,
        log: &log,
    };
    let test = PacketTest { hook, active_rules: rules, is_enabled: true };
    let report = test.run(packet).unwrap_or_else(|error| panic!("{packet}: {error}"));
    report.lines().next_back().unwrap_or_default().to_owned()
}

#[test]
fn translated_rules_do_what_those_of_nftables_do() {
    let names = || Some(vec!["lan".to_owned(), "wan".to_owned()]);
    let interfaces = Interfaces::new(names(), None, 2).unwrap();
    let none = |path: &str| Err(ArgError::new("there is no such file").at(path));
    let context = FileContext { placement_error: &|_| None, read: &none };
    for (nft, text, drops, passes) in TRANSLATIONS {
        let row = format!(
            "| `{nft}` | {} |",
            text.split('\n').map(|it| format!("`{it}`")).collect::<Vec<_>>().join("<br>")
        );
        assert!(PAGE.contains(&row), "the page has no row\n{row}");
        let loaded = parse_rules(text, NamedSets::default(), &context).expect(text);
        let mut rules = RuleSet::default();
        loaded.apply_to(&mut rules);
        let rules = ActiveRules::new(rules);
        for packet in *drops {
            let fate = fate(&rules, &interfaces, packet);
            assert!(fate.starts_with("dropped by rule"), "{text}: {packet}: {fate}");
        }
        for (packet, wanted) in *passes {
            let fate = fate(&rules, &interfaces, packet);
            let (_, after) =
                fate.strip_prefix("out ").and_then(|it| it.split_once(": ")).expect(&fate);
            let wanted = sketch::build(wanted).expect(wanted);
            assert_eq!(after, sketch::print(&wanted.bytes, wanted.layer), "{text}: {packet}");
        }
    }
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), TRANSLATIONS.len(), "rows that no test has");
}
