//! Tests of summary dumps: lines and records in Click's format, written and parsed.

use super::*;
use crate::{MacAddr, sketch};
use proptest::prelude::*;

fn write(list: &str, text: &str) -> String {
    with_meta(list, text, &Meta::default())
}

fn with_meta(list: &str, text: &str, meta: &Meta) -> String {
    let packet = sketch::build(text).expect("is a sketch");
    let network = if packet.layer == sketch::Layer::Ethernet { 14 } else { 0 };
    let mut line = String::new();
    let writer = Writer::new(fields(list).expect("are fields"));
    let packet = Packet { data: &packet.bytes, link: None, network: Some(network) };
    writer.line(&packet, meta, &mut line, None);
    line
}

fn bad(list: &str, data: &[u8]) -> String {
    let (mut line, mut bad) = (String::new(), String::new());
    let writer = Writer::new(fields(list).expect("are fields"));
    writer.line(&Packet::from_network(data), &Meta::default(), &mut line, Some(&mut bad));
    bad
}

fn read(list: &str, line: &str) -> ParsedPacket {
    parse_line(&fields(list).expect("are fields"), line, &Defaults::default())
        .unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The sketch of the packet of a line.
fn sketch_of(list: &str, line: &str) -> String {
    let parsed = read(list, line);
    sketch::print(&parsed.bytes, sketch::Layer::Network)
}

#[test]
fn names() {
    for &field in Field::ALL {
        assert_eq!(field.name().parse(), Ok(field));
        assert_eq!(field.name().replace('_', " ").parse(), Ok(field));
    }
    for (name, field) in [
        ("ts", Field::Timestamp),
        ("utimestamp", Field::Timestamp),
        ("first_ts", Field::FirstTimestamp),
        ("src", Field::IpSrc),
        ("proto", Field::IpProto),
        ("p", Field::IpProto),
        ("len", Field::IpLen),
        ("length", Field::IpLen),
        ("fragoff", Field::IpFragoff),
        ("tcp win", Field::TcpWindow),
        ("tcp_seqno", Field::TcpSeq),
        ("payload length", Field::PayloadLen),
        ("agg", Field::Aggregate),
        ("ether_type", Field::EthType),
    ] {
        assert_eq!(name.parse(), Ok(field), "{name}");
    }
    assert_eq!("ip_foo".parse::<Field>(), Err(UnknownField("ip_foo".into())));
    assert_eq!(
        fields("ts \"ip src\" foo").map_err(|e| e.to_string()),
        Err("unknown content type 'foo'".into())
    );
    assert_eq!(fields("ts \"ip src\""), Ok(vec![Field::Timestamp, Field::IpSrc]));
}

#[test]
fn header_lines() {
    let list = fields("ntimestamp src sport").expect("are fields");
    assert_eq!(header(&list, None, false), "!IPSummaryDump 1.3\n!data timestamp ip_src sport\n");
    assert_eq!(
        header(&list, Some("a \"b\""), false),
        "!IPSummaryDump 1.3\n!creator \"a \\\"b\\\"\"\n!data timestamp ip_src sport\n"
    );
}

#[test]
fn network_fields() {
    const ALL: &str = "src dst len proto ttl tos dscp ecn id frag fragoff hl opt ip_capture_len";
    for (text, line) in [
        (
            "1.0.0.1 > 2.0.0.2 udp ttl 7 tos 0xbb id 9 len 60 ",
            "1.0.0.1 2.0.0.2 60 U 7 187 46 ce 9 . 0 20 . 60",
        ),
        (
            "1.0.0.1 > 2.0.0.2 tcp df len 60 short 10 ipopt rr{1.0.0.9}+1",
            "1.0.0.1 2.0.0.2 60 T 64 0 0 no 0 ! 0! 32 rr{1.0.0.9}+1 50",
        ),
        (
            "1.0.0.1 > 2.0.0.2 icmp frag 0+ tos 1 ipopt nop;nop;nop;eol pad 9",
            "1.0.0.1 2.0.0.2 32 I 64 1 0 ect1 0 F 0+ 24 . 32",
        ),
        (
            "1.0.0.1 > 2.0.0.2 proto 99 rf df frag 1480 tos 2",
            "1.0.0.1 2.0.0.2 20 99 64 2 0 ect2 0 f 1480! 20 . 20",
        ),
    ] {
        assert_eq!(write(ALL, text), line, "{text}");
    }
    assert_eq!(write("ip_sum", "1.0.0.1 > 2.0.0.2 udp sum 0x1234"), "4660");
}

#[test]
fn transport_fields() {
    const TCP: &str =
        "sport dport seq ack tcp_off tcp_flags win tcp_urp tcp_opt tcp_ntopt tcp_sack";
    let tcp = TCP.replace("seq", "tcp_seq").replace(" ack", " tcp_ack").replace("win", "tcp_win");
    for (text, line) in [
        ("1.0.0.1:5 > 2.0.0.2:6 tcp syn seq 7 win 8", "5 6 7 0 20 S 8 0 . . ."),
        (
            "1.0.0.1:5 > 2.0.0.2:6 tcp psh ack 9 tcpopt nop;nop;ts1:2 urp 3",
            "5 6 0 9 32 PA 65535 3 ts1:2 . .",
        ),
        (
            "1.0.0.1:5 > 2.0.0.2:6 tcp fin urg ece cwr reserved 1 tcpopt mss1460;sackok;ts1:2",
            "5 6 0 0 36 FUECN 65535 0 mss1460;sackok;ts1:2 mss1460;sackok sackok",
        ),
        ("1.0.0.1:5 > 2.0.0.2:6 tcp len 48 short 12", "5 6 0 0 20 . 65535 - . . ."),
        ("1.0.0.1:5 > 2.0.0.2:6 udp", "5 6 - - - - - - - - -"),
        ("1.0.0.1 > 2.0.0.2 icmp", "- - - - - - - - - - -"),
        ("1.0.0.1 > 2.0.0.2 tcp frag 8 len 60", "- - - - - - - - - - -"),
        ("1.0.0.1 > 2.0.0.2 tcp tcpopt 0x02090000", "0 0 0 0 24 . 65535 0 ? ? ?"),
    ] {
        assert_eq!(write(&tcp, text), line, "{text}");
    }
    assert_eq!(write("udp_len", "1.0.0.1 > 2.0.0.2 udp len 60"), "40");
    const ICMP: &str =
        "icmp_type icmp_code icmp_type_name icmp_code_name icmp_flowid icmp_seq icmp_nextmtu";
    for (text, line) in [
        ("icmp echo ident 3 seq 4", "8 0 echo 0 3 4 -"),
        ("icmp unreachable code needfrag rest 576", "3 4 unreachable needfrag - - 576"),
        ("icmp type 99 code 7", "99 7 99 7 - - -"),
        ("icmp echo len 28 short 4", "8 0 echo 0 - - -"),
        ("udp", "- - - - - - -"),
    ] {
        assert_eq!(write(ICMP, &format!("1.0.0.1 > 2.0.0.2 {text}")), line, "{text}");
    }
}

#[test]
fn payloads() {
    const ALL: &str = "payload_len payload payload_md5_hex payload_md5";
    assert_eq!(
        write(ALL, "1.0.0.1 > 2.0.0.2 udp \"abc\" pad 5"),
        "3 \"abc\" 900150983cd24fb0d6963f7d28e17f72 qafuipO0pGlxZ98s4R1Z_b".replace(
            "qafuipO0pGlxZ98s4R1Z_b",
            &letters([
                0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0, 0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1,
                0x7f, 0x72
            ])
        )
    );
    assert_eq!(
        write(
            "payload_len payload",
            "1.0.0.1 > 2.0.0.2 tcp tcpopt nop;nop;nop;nop data 24005c0a7f"
        ),
        "5 \"\\$\\000\\\\\\n\\177\""
    );
    assert_eq!(write("payload_len payload", "1.0.0.1 > 2.0.0.2 proto 9"), "0 \"\"");
    assert_eq!(write("payload_len payload", "1.0.0.1 > 2.0.0.2 udp len 60 short 32"), "32 -");
    assert_eq!(
        write("payload_len payload", "1.0.0.1 > 2.0.0.2 udp \"abcdef\" short 3"),
        "6 \"abc\""
    );
    assert_eq!(write("payload", "1.0.0.1 > 2.0.0.2 udp frag 8 \"x\""), "\"x\"");
}

/// A digest in letters, bit by bit.
fn letters(digest: [u8; 16]) -> String {
    let alphabet: Vec<char> =
        ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("_@".chars()).collect();
    let bit = |i: usize| digest.get(i / 8).map_or(0, |byte| usize::from(byte >> (i % 8) & 1));
    (0..22).map(|i| alphabet[(0..6).map(|j| bit(i * 6 + j) << j).sum::<usize>()]).collect()
}

#[test]
fn link_and_meta_fields() {
    const ETH: &str = "eth 00:00:00:00:00:01 > ff:ff:ff:ff:ff:ff";
    assert_eq!(
        write(
            "eth_src eth_dst eth_type wire_len ip_len",
            &format!("{ETH} 1.0.0.1 > 2.0.0.2 udp pad 4")
        ),
        "00-00-00-00-00-01 FF-FF-FF-FF-FF-FF 0800 46 28"
    );
    assert_eq!(write("eth_src eth_type", "1.0.0.1 > 2.0.0.2 udp"), "- -");
    let meta = Meta {
        timestamp: Timestamp::new(1_000_000_000, 5_000_000),
        first_timestamp: Timestamp::new(7, 1),
        extra_packets: 4,
        extra_length: 100,
        paint: 1,
        aggregate: 77,
        thread: 3,
    };
    assert_eq!(
        with_meta(
            "ts ntimestamp sec usec usec1 first_ts count link paint direction agg wire_len none",
            "1.0.0.1 > 2.0.0.2 udp",
            &meta
        ),
        "1000000000.005000 1000000000.005000 1000000000 5000 1000000000005000 7.000000001 5 1 1 < 77 28 -"
    );
    assert_eq!(with_meta("direction", "hex", &Meta { paint: 9, ..meta }), "9");
    assert_eq!(with_meta("thread ip_src", "hex", &meta), "3 -");
    // The extra length counts only beyond the length in the IP header.
    assert_eq!(with_meta("len payload_len", "1.0.0.1 > 2.0.0.2 udp", &meta), "28 0");
    assert_eq!(with_meta("len payload_len", "hex 00 01", &meta), "102 102");
    let huge = "1.0.0.1 > 2.0.0.2 udp len 65535 short 65507";
    let meta = Meta { extra_length: 70_000, ..meta };
    assert_eq!(with_meta("len payload_len", huge, &meta), "70028 70000");
}

#[test]
fn bad_packets_are_reported() {
    let build = |text: &str| sketch::build(text).expect("is a sketch").bytes;
    let udp = build("1.0.0.1 > 2.0.0.2 udp len 60");
    for (list, data, expected) in [
        ("src", udp.clone(), ""),
        ("src", vec![0x45], "!bad truncated IP header"),
        ("src", build("::1 > ::2 udp"), "!bad IP version 6"),
        ("src", build("1.0.0.1 > 2.0.0.2 udp hl 16"), "!bad IP header length 4"),
        ("src", build("1.0.0.1 > 2.0.0.2 udp iplen 19"), "!bad IP length 19"),
        ("src", udp[..50].to_vec(), "!bad truncated IP missing 10"),
        ("tcp_seq", build("1.0.0.1 > 2.0.0.2 tcp off 16"), "!bad TCP header length 4"),
        ("tcp_seq", udp.clone(), ""),
        ("sport", build("1.0.0.1 > 2.0.0.2 icmp"), ""),
        ("sport", build("1.0.0.1 > 2.0.0.2 udp frag 8 len 60"), "!bad fragmented TCP/UDP header"),
        ("udp_len", build("1.0.0.1 > 2.0.0.2 udp frag 8 len 60"), "!bad fragmented UDP header"),
        ("icmp_type", build("1.0.0.1 > 2.0.0.2 proto 1 frag 8"), "!bad fragmented ICMP header"),
        ("udp_len", build("1.0.0.1 > 2.0.0.2 udp iplen 24"), "!bad truncated UDP header"),
        ("eth_src", udp.clone(), "!bad Ethernet header"),
        ("ts", vec![], ""),
    ] {
        assert_eq!(bad(list, &data), expected, "{list} of {data:?}");
    }
    let mut line = String::new();
    let mut said = String::new();
    let writer = Writer::new(fields("src dst").expect("are fields"));
    let nothing = Packet { data: &udp, link: None, network: None };
    writer.line(&nothing, &Meta::default(), &mut line, Some(&mut said));
    assert_eq!((line.as_str(), said.as_str()), ("- -", "!bad no IP header"));
}

#[test]
fn lines_are_parsed_into_packets() {
    for (list, line, expected) in [
        ("src dst", "1.0.0.1 2.0.0.2", "1.0.0.1 > 2.0.0.2 tcp win 0 ttl 100 len 40 nocheck"),
        (
            "src sport dst dport proto ttl len",
            "1.0.0.1 5 2.0.0.2 6 U 3 40",
            "1.0.0.1:5 > 2.0.0.2:6 udp ttl 3 len 40 short 12 nocheck",
        ),
        (
            "src dst proto icmp_type icmp_code icmp_flowid icmp_seq",
            "1.0.0.1 2.0.0.2 I echo 0 7 8",
            "1.0.0.1 > 2.0.0.2 icmp echo ident 7 seq 8 ttl 100 len 28 nocheck",
        ),
        (
            "src dst proto icmp_type_name icmp_code_name icmp_nextmtu",
            "1.0.0.1 2.0.0.2 I unreachable needfrag 576",
            "1.0.0.1 > 2.0.0.2 icmp unreachable code needfrag rest 0x240 ttl 100 len 28 nocheck",
        ),
        (
            "src dst tcp_flags tcp_seq tcp_ack tcp_win tcp_urp tcp_opt",
            "1.0.0.1 2.0.0.2 SAU 7 8 9 10 mss1460;sackok",
            "1.0.0.1 > 2.0.0.2 tcp syn urg seq 7 ack 8 win 9 urp 10 tcpopt mss1460;sackok;eol \
             ttl 100 len 48 nocheck",
        ),
        (
            "payload src dst proto",
            "\"a \\\"b\\\"\\000c\" 1.0.0.1 2.0.0.2 U",
            "1.0.0.1 > 2.0.0.2 udp ttl 100 len 35 nocheck data 6120226222",
        ),
        (
            "src dst proto frag id tos",
            "1.0.0.1 2.0.0.2 U f 3 0x10",
            "1.0.0.1 > 2.0.0.2 udp ttl 100 tos 16 id 3 frag 800 len 20",
        ),
        (
            "src dst proto fragoff",
            "1.0.0.1 2.0.0.2 U 1480+!",
            "1.0.0.1 > 2.0.0.2 udp ttl 100 df frag 1480+ len 20",
        ),
        (
            "src dst proto opt ip_hl sport",
            "1.0.0.1 2.0.0.2 U rr{1.0.0.9} 32 5",
            "1.0.0.1:5 > 2.0.0.2 udp ttl 100 ipopt 0x070708010000090000000000 len 40 nocheck",
        ),
        (
            "src dst dscp ecn proto",
            "1.0.0.1 2.0.0.2 46 ce 99",
            "1.0.0.1 > 2.0.0.2 proto 99 ttl 100 tos 187 len 20",
        ),
        ("src", "1.0.0.1", "1.0.0.1 > 0.0.0.0 tcp win 0 ttl 100 len 40 nocheck"),
    ] {
        let got = sketch_of(list, line);
        // Checksums of IP headers are zero by default.
        let got = got.replace(" sum 0x0000", "");
        if list.starts_with("payload") {
            assert!(got.starts_with(expected), "{list}: {got}");
        } else {
            assert_eq!(got, expected, "{list}");
        }
    }
}

#[test]
fn lines_have_metadata() {
    let parsed =
        read("ts first_ts count direction agg src len", "1000000000.000005 7.5 5 < 77 1.0.0.1 60");
    assert_eq!(
        parsed.meta,
        Meta {
            timestamp: Timestamp::new(1_000_000_000, 5000),
            first_timestamp: Timestamp::new(7, 500_000_000),
            extra_packets: 4,
            extra_length: 20,
            paint: 1,
            aggregate: 77,
            thread: 0,
        }
    );
    assert_eq!((parsed.network, parsed.bytes.len()), (Some(0), 40));
    let parsed = read("usec sec", "500000 7");
    assert_eq!(parsed.meta.timestamp, Timestamp::new(7, 500_000_000));
    assert_eq!((parsed.network, parsed.bytes), (None, vec![]));
    assert_eq!(read("usec1", "7500000").meta.timestamp, Timestamp::new(7, 500_000_000));
    let parsed = read("src eth_src eth_dst wire_len", "1.0.0.1 0:0:0:0:0:1 0-0-0-0-0-2 60");
    assert_eq!((parsed.network, parsed.bytes.len(), parsed.meta.extra_length), (Some(14), 54, 6));
    let (ether, _) = crate::Ethernet::from_prefix(&parsed.bytes).expect("a header");
    assert_eq!((ether.src(), ether.ether_type()), (MacAddr([0, 0, 0, 0, 0, 1]), 0x800));
    let parsed = read("src eth_type payload", "1.0.0.1 88CC \"abc\"");
    assert_eq!((parsed.network, &parsed.bytes[12..]), (None, &b"\x88\xccabc"[..]));
}

#[test]
fn excess_length_becomes_options() {
    let parsed = read("src proto len payload", "1.0.0.1 T 52 \"abcd\"");
    assert_eq!(parsed.bytes.len(), 52);
    assert_eq!((parsed.bytes[0], parsed.bytes[32] >> 4), (0x45, 7));
    let parsed = read("src proto len payload_len", "1.0.0.1 U 36 4");
    assert_eq!((parsed.bytes[0], parsed.bytes.len(), parsed.meta.extra_length), (0x46, 32, 4));
    let parsed = read("src proto len tcp_opt payload", "1.0.0.1 T 52 . \"abcd\"");
    assert_eq!((parsed.bytes[0], parsed.bytes[40] >> 4), (0x47, 5));
}

#[test]
fn checksums_on_request() {
    let defaults = Defaults { checksum: true, ..Defaults::default() };
    let list = fields("src dst sport proto payload").expect("are fields");
    for proto in ["T", "U", "I", "99"] {
        let line = format!("1.0.0.1 2.0.0.2 5 {proto} \"abcdefghijk\"");
        let parsed = parse_line(&list, &line, &defaults).expect("is a packet");
        let text = sketch::print(&parsed.bytes, sketch::Layer::Network);
        let odd = ["sum", "check", "short", "hex"].iter().any(|word| text.contains(word));
        assert!(!odd && parsed.meta.extra_length == 0, "{text}");
    }
}

#[test]
fn dumps_with_directives() {
    let mut dump = DumpReader::default();
    assert_eq!(dump.line("1.0.0.1"), Err("no '!data' provided".into()));
    for line in [
        "!IPSummaryDump 1.3",
        "!creator \"x\"",
        "!data src dport",
        "!proto U",
        "!flowid 9.0.0.9 5 8.0.0.8 6",
        "!aggregate 4",
        "!bad truncated",
        "# comment",
        "",
        "  ",
    ] {
        assert_eq!(dump.line(line), Ok(None), "{line}");
    }
    let packet = dump.line("1.0.0.1 7\r\n").expect("is fine").expect("is a packet");
    assert_eq!(packet.meta.aggregate, 4);
    let text = sketch::print(&packet.bytes, sketch::Layer::Network);
    assert_eq!(text, "1.0.0.1:5 > 8.0.0.8:7 udp ttl 100 len 28 sum 0x0000 nocheck");
    assert_eq!(dump.line("foo bar"), Err("packet parse error".into()));
    assert_eq!(dump.line("!flowid - - - - T"), Ok(None));
    assert_eq!((dump.defaults.flow, dump.defaults.protocol), (Some(Flow::default()), 6));
    for (line, error) in [
        ("!proto foo", "bad protocol in !proto"),
        ("!proto", "bad !proto"),
        ("!flowid 1.0.0.1", "bad !flowid specification"),
        ("!flowid 1.0.0.1 1 2.0.0.2 65536", "bad !flowid specification"),
        ("!aggregate x", "bad !aggregate specification"),
        ("!IPSummaryDump 2.0", "unexpected IPSummaryDump version 2.0"),
        ("!data", "no contents specified"),
        (
            "!data src foo payload_md5",
            "unknown content type 'foo'; content type 'payload_md5' ignored on input",
        ),
    ] {
        assert_eq!(dump.line(line), Err(error.into()), "{line}");
    }
    let packet = dump.line("1.0.0.1 x y").expect("is fine").expect("is a packet");
    assert_eq!(packet.bytes.len(), 40);
    assert!(DumpReader::is_first_line("!data ts") && !DumpReader::is_first_line("GET /"));
}

#[test]
fn old_versions() {
    let mut dump = DumpReader::default();
    assert_eq!(dump.line("!IPSummaryDump 1.0"), Ok(None));
    assert_eq!(dump.line("!data src fragoff tcp_flags"), Ok(None));
    let packet = dump.line("1.0.0.1 185+ W").expect("is fine").expect("is a packet");
    assert_eq!(packet.bytes[6..8], [0x20, 185]);
}

const EVERYTHING: &str = "ts count paint agg src dst tos ttl id fragoff proto sum opt len sport \
    dport tcp_seq tcp_ack tcp_off tcp_flags tcp_window tcp_urp tcp_opt udp_len icmp_type icmp_code \
    icmp_flowid icmp_seq icmp_nextmtu payload";

proptest! {
    #[test]
    fn written_lines_are_parsed_back(
        src: u32, dst: u32, ports: (u16, u16), numbers: (u32, u32, u16), kind in 0usize..4,
        ttl: u8, id: u16, time in 0i64..1 << 60, payload in "[ -~]{0,20}",
    ) {
        let (a, b) = (std::net::Ipv4Addr::from(src), std::net::Ipv4Addr::from(dst));
        let transport = [
            format!("udp ulen {}", payload.len() + 8),
            format!("tcp seq {} ack {} win {} psh tcpopt nop;nop;ts{}:{}", numbers.0, numbers.1, numbers.2, numbers.1, numbers.0),
            format!("icmp echo ident {} seq {}", ports.0, ports.1),
            "proto 99".into(),
        ];
        let (a, b) = if kind < 2 {
            (format!("{a}:{}", ports.0), format!("{b}:{}", ports.1))
        } else {
            (a.to_string(), b.to_string())
        };
        let payload = payload.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("{a} > {b} {} ttl {ttl} id {id} \"{payload}\" nocheck", transport[kind]);
        let bytes = sketch::build(&text).expect("is a sketch").bytes;
        let meta = Meta { timestamp: Timestamp(time), extra_packets: 3, paint: 7, aggregate: 9, ..Meta::default() };
        let list = fields(EVERYTHING).expect("are fields");
        let mut line = String::new();
        Writer::new(list.clone()).line(&Packet::from_network(&bytes), &meta, &mut line, None);
        let parsed = parse_line(&list, &line, &Defaults::default()).expect("is a packet");
        let text = |bytes: &[u8]| sketch::print(bytes, sketch::Layer::Network);
        // The payload field of an ICMP message includes the ICMP header.
        prop_assert_eq!(text(&parsed.bytes), text(&bytes), "{}", line);
        prop_assert_eq!(parsed.meta, meta);
    }

    #[test]
    fn no_packet_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..90), proto in 0usize..4, ip: bool) {
        if let (true, Some([first, .., protocol])) = (ip, bytes.first_chunk_mut::<10>()) {
            *first = 0x45 + (*first & 3);
            *protocol = [1, 6, 17, 99][proto];
        }
        let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
        bad(&names.join(" "), &bytes);
        let mut line = String::new();
        let packet = Packet { data: &bytes, link: bytes.get(3..), network: Some(70) };
        Writer::new(Field::ALL.to_vec()).line(&packet, &Meta::default(), &mut line, Some(&mut String::new()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_line_panics(words in proptest::collection::vec("([0-9]{1,10}|0x[0-9a-f]{1,8}|[TUI.!Ff<>-]|[0-9.]{7}|1.0.0.1|\\PC{0,4}|mss[0-9]|rr[{]}|\"[a-z]{0,9}\"|echo|88CC)", 59), checksum: bool) {
        let defaults = Defaults { checksum, flow: Some(Flow::default()), ..Defaults::default() };
        let list: Vec<Field> = Field::ALL.iter().copied().filter(|f| f.parse_order().is_some()).collect();
        let _ = parse_line(&list, &words.join(" "), &defaults);
        for pair in list.windows(3) {
            let _ = parse_line(pair, &words.join(" "), &defaults);
        }
    }
}

/// Writes a packet as a record, parses it, and writes its fields as a line.
fn by_record(list: &str, text: &str, meta: &Meta) -> (String, ParsedPacket) {
    let packet = sketch::build(text).expect("is a sketch");
    let writer = Writer::new(fields(list).expect("are fields"));
    let packet = Packet { data: &packet.bytes, link: None, network: Some(14) };
    let (mut record, mut word) = (Vec::new(), String::new());
    writer.record(&packet, meta, &mut word, &mut record, None);
    let head = record[..RECORD_HEAD].try_into().expect("four bytes");
    assert_eq!(record_head(head), Some((false, record.len() - RECORD_HEAD)));
    let mut dump = DumpReader::default();
    for line in header(writer.fields(), None, true).lines() {
        let _ = dump.line(line); // digests are ignored
    }
    assert!(dump.binary);
    let parsed = dump.record(&record[RECORD_HEAD..]).expect("is a packet");
    let mut line = String::new();
    let network = parsed.network;
    let packet = Packet { data: &parsed.bytes, link: None, network };
    writer.line(&packet, &parsed.meta, &mut line, None);
    (line, parsed)
}

#[test]
fn records_are_equivalent_to_lines() {
    let meta = Meta {
        timestamp: Timestamp::new(1_000_000_000, 123_456_000),
        first_timestamp: Timestamp::new(999_999_999, 5000),
        paint: 1,
        aggregate: 7,
        thread: 2,
        ..Meta::default()
    };
    for (list, text) in [
        ("eth_src eth_dst eth_type ip_src ip_dst ip_proto", ""),
        ("timestamp first_timestamp ts_sec ts_usec ts_usec1 direction paint agg thread ip_len", ""),
        ("eth_type ip_hl ip_tos ip_dscp ip_ecn ip_ttl ip_id ip_proto ip_len ip_frag", ""),
        ("eth_type ip_proto sport dport tcp_seq tcp_ack tcp_flags tcp_window tcp_urp tcp_off", ""),
        ("eth_type ip_proto sport dport none payload_len", "udp"),
        ("eth_type ip_proto sport dport udp_len payload_md5 payload_len", "udp"),
        ("eth_type ip_proto icmp_type icmp_code icmp_flowid icmp_seq", "icmp"),
        ("eth_type ip_proto icmp_type_name icmp_code_name", "icmp"),
    ] {
        let text = match text {
            "" => "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:5 > 2.0.0.2:6 tcp ack",
            "udp" => "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:5 > 2.0.0.2:6 udp",
            _ => "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 icmp type 8 ident 5 seq 6",
        };
        let sketch = sketch::build(text).expect("is a sketch");
        let writer = Writer::new(fields(list).expect("are fields"));
        let packet = Packet { data: &sketch.bytes, link: None, network: Some(14) };
        let mut line = String::new();
        writer.line(&packet, &meta, &mut line, None);
        // The payload cannot be restored from its digest.
        let digest = |line: &str| {
            let words = line.split(' ').zip(list.split(' '));
            words.filter(|it| it.1 != "payload_md5").map(|it| it.0.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(digest(&by_record(list, text, &meta).0), digest(&line), "{list}");
    }
}

#[test]
fn records_are_bounded() {
    assert_eq!(record_head([0, 0, 0, 3]), None);
    assert_eq!(record_head([0x80, 0, 0, 4]), Some((true, 0)));
    let mut text = Vec::new();
    text_record("!bad\n", &mut text);
    assert_eq!(text, b"\x80\0\0\x09!bad\n");
    let all = Field::ALL.iter().filter(|field| field.is_binary()).copied().collect::<Vec<_>>();
    assert_eq!(all.len(), Field::ALL.len() - 1, "all but the payload");
    let dump = DumpReader { fields: all, binary: true, ..DumpReader::default() };
    for len in 0..64 {
        assert!(dump.record(&vec![0xff; len]).is_err(), "{len}");
    }
}
