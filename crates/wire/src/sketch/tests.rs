//! Tests of sketches: building, printing, and building printed sketches.

use super::*;
use crate::checksum;
use crate::{Icmp, Ipv4Header, Tcp, Udp};
use proptest::prelude::*;

/// Builds `text`, and checks that printing gives `canonical`, which builds the same packet.
fn prints(text: &str, canonical: &str) -> Vec<u8> {
    let sketch = build(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(print(&sketch.bytes, sketch.layer), canonical, "of {text}");
    assert_eq!(build(canonical).as_ref(), Ok(&sketch), "{canonical}");
    sketch.bytes
}

fn same(text: &str) -> Vec<u8> {
    prints(text, text)
}

#[test]
fn builds_a_datagram() {
    let bytes = same("10.0.0.1:53 > 10.0.0.2:99 udp ttl 64 len 32 \"abc\"");
    assert_eq!(
        bytes,
        [
            0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0x66, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 99,
            0, 12, 0x26, 0xd9, b'a', b'b', b'c', 0
        ]
    );
    assert_eq!(checksum::of(&bytes[..20]), 0);
    let (ip, _) = Ipv4Header::from_prefix(&bytes).expect("a header");
    let (udp, payload) = Udp::from_prefix(&bytes[20..]).expect("a header");
    assert!(udp.checksum_ok(ip.pseudo(12), payload));
}

#[test]
fn omitted_fields_have_defaults() {
    prints("1.0.0.1 > 2.0.0.2", "1.0.0.1 > 2.0.0.2 udp ttl 64 len 28");
    prints("1.0.0.1 > 2.0.0.2:80 tcp", "1.0.0.1 > 2.0.0.2:80 tcp ttl 64 len 40");
    prints("1.0.0.1 > 2.0.0.2 icmp", "1.0.0.1 > 2.0.0.2 icmp echo ttl 64 len 28");
    prints("1.0.0.1 > 2.0.0.2 proto 47", "1.0.0.1 > 2.0.0.2 proto 47 ttl 64 len 20");
    prints("::1 > ::2 icmp6", "::1 > ::2 icmp6 type 128 hop 64 len 48");
}

#[test]
fn network_words() {
    same("1.0.0.1 > 2.0.0.2 udp ttl 1 tos 184 id 7 rf df frag 1480+ len 60");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 id 7 frag 1480 len 25 \"tail\\n\"");
    same("1.0.0.1:5 > 2.0.0.2:6 udp ttl 64 frag 0+ len 1500 ulen 3000 check 0x1234");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 badsum");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 sum 0x0000");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 nocheck");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 badcheck");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 1500 short 1472");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 pad 18");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 ipopt rr{1.0.0.9}+2;eol len 44");
    same("1.0.0.1 > 2.0.0.2 udp ttl 64 ipopt 0x07ff0000 len 32");
    same("::1 > 2001:db8::2 proto 0 hop 9 class 3 flow 0xabcde len 44 data 3b0001");
    same("[::1]:5 > [::2]:6 udp hop 64 len 50 \"v6\"");
    same("::1 > ::2 udp hop 64 id 4294967295 frag 1480 len 60 \"tail\"");
    same("[::1]:5 > [::2]:6 udp hop 64 id 7 frag 0+ len 64 ulen 3000 check 0x1234");
    same("::1 > ::2 icmp6 type 3 hop 255 len 96 [::2 > ::3 udp hop 1 len 48]");
}

#[test]
fn tcp_words() {
    let bytes = prints(
        "1.0.0.1:9 > 2.0.0.2:80 tcp syn ack 5 seq 4 win 100 tcpopt mss1460;sackok",
        "1.0.0.1:9 > 2.0.0.2:80 tcp syn seq 4 ack 5 win 100 tcpopt mss1460;sackok;eol ttl 64 len 48",
    );
    let (tcp, rest) = Tcp::from_prefix(&bytes[20..]).expect("a header");
    assert_eq!((tcp.flags(), tcp.header_len()), (0x12, 28));
    let (ip, _) = Ipv4Header::from_prefix(&bytes).expect("a header");
    assert!(tcp.checksum_ok(ip.pseudo(28), rest));
    prints(
        "1.0.0.1 > 2.0.0.2 tcp flags FPAC len 44",
        "1.0.0.1 > 2.0.0.2 tcp fin psh cwr ack 0 ttl 64 len 44",
    );
    prints("1.0.0.1 > 2.0.0.2 tcp ack psh", "1.0.0.1 > 2.0.0.2 tcp psh ack 0 ttl 64 len 40");
    same("1.0.0.1 > 2.0.0.2 tcp urg acknum 7 urp 3 reserved 9 ttl 64 len 40 badcheck");
    same("1.0.0.1 > 2.0.0.2 tcp off 4 ttl 64 len 40");
    same("1.0.0.1 > 2.0.0.2 tcp tcpopt nop;nop;ts1:2 ttl 64 len 57 \"x=\\\"1\\\"\"");
}

#[test]
fn icmp_words() {
    let bytes = same("1.0.0.1 > 2.0.0.2 icmp echo-reply ident 3 seq 4 ttl 64 len 31 \"abc\"");
    let (icmp, rest) = Icmp::from_prefix(&bytes[20..]).expect("a header");
    assert!(icmp.checksum_ok(rest));
    assert_eq!((icmp.kind(), icmp.id(), icmp.seq()), (0, 3, 4));
    same("1.0.0.1 > 2.0.0.2 icmp type 99 code 5 rest 0x7 ttl 64 len 28");
    prints(
        "1.0.0.1 > 2.0.0.2 icmp type 3 code 4 rest 576",
        "1.0.0.1 > 2.0.0.2 icmp unreachable code needfrag rest 0x240 ttl 64 len 28",
    );
    same(
        "9.0.0.9 > 1.0.0.1 icmp timeexceeded code transit ttl 255 len 56 \
         [1.0.0.1:7 > 2.0.0.2:8 udp ttl 1 len 60 short 32 check 0xfff0]",
    );
}

#[test]
fn arp_and_ethernet() {
    let bytes = same("arp who-has 1.0.0.2 tell 1.0.0.1 00:00:00:00:00:01");
    assert_eq!(bytes[..8], [0, 1, 8, 0, 6, 4, 0, 1]);
    same("arp who-has 1.0.0.2 tell 1.0.0.1 00:00:00:00:00:01 target 00:00:00:00:00:02");
    same("arp reply 1.0.0.2 is-at 00:00:00:00:00:02 to 1.0.0.1 0a:00:00:00:00:01 pad 18");
    same("arp op 9 sender 1.0.0.2 00:00:00:00:00:02 target 1.0.0.1 00:00:00:00:00:01");
    const ETH: &str = "eth 00:00:00:00:00:01 > 00:00:00:00:00:02";
    let bytes = same(&format!("{ETH} 1.0.0.1 > 2.0.0.2 udp ttl 64 len 28 pad 18"));
    assert_eq!(bytes[..14], [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 8, 0]);
    assert_eq!(bytes.len(), 60);
    same(&format!("{ETH} arp who-has 1.0.0.2 tell 1.0.0.1 00:00:00:00:00:01 pad 18"));
    let bytes = same(&format!("{ETH} vlan 5 prio 3 dei ::1 > ::2 udp hop 64 len 48"));
    assert_eq!(bytes[12..18], [0x81, 0, 0x70, 5, 0x86, 0xdd]);
    same(&format!("{ETH} qinq 9 vlan 5 type 0x88cc hex 01 02"));
    same(&format!("{ETH} type 0x0800 hex 45 00"));
    same("eth hex 01 02 03");
    prints("hex 0102 03", "hex 01 02 03");
    assert_eq!(build("hex"), Ok(Sketch { bytes: vec![], layer: Layer::Network }));
}

#[test]
fn errors_describe_the_cause() {
    for (text, error) in [
        ("", "a packet is missing"),
        ("1.0.0.1", "expected `>` at the end"),
        ("1.0.0.1 < 2.0.0.2", "expected `>`, not `<`"),
        (
            "1.0.0 > 2.0.0.2",
            "`1.0.0` is no IP address; a packet begins with one, or with eth, arp or hex",
        ),
        ("1.0.0.1:x > 2.0.0.2", "bad port in `1.0.0.1:x`"),
        ("1.0.0.1:65536 > 2.0.0.2", "bad port in `1.0.0.1:65536`"),
        ("1.0.0.1:5 > 2.0.0.2 icmp", "only udp and tcp have ports"),
        ("1.0.0.1 > ::2 udp", "source and destination are of different IP versions"),
        ("1.0.0.1 > 2.0.0.2 udp ttl", "`ttl` wants a number"),
        ("1.0.0.1 > 2.0.0.2 udp ttl 256", "`ttl` wants a number up to 255, not `256`"),
        ("1.0.0.1 > 2.0.0.2 udp ttl +5", "`ttl` wants a number up to 255, not `+5`"),
        ("1.0.0.1 > 2.0.0.2 udp len 27", "`len 27` is less than the 28 bytes there are"),
        ("1.0.0.1 > 2.0.0.2 udp len 65536", "a packet of 65536 bytes is too long"),
        ("1.0.0.1 > 2.0.0.2 udp short 29", "`short 29` is more than the packet"),
        ("1.0.0.1 > 2.0.0.2 tcp flags SX", "TCP has no flag `X`"),
        ("1.0.0.1 > 2.0.0.2 udp data 012", "`012` is not pairs of hexadecimal digits"),
        ("1.0.0.1 > 2.0.0.2 udp \"abc", "`\"` is not closed"),
        ("1.0.0.1 > 2.0.0.2 icmp [1.0.0.1", "`[` is not closed"),
        ("1.0.0.1 > 2.0.0.2 udp ipopt foo", "`ipopt` does not understand `foo`"),
        ("::1 > ::2 udp df", "IPv6 has no `df`"),
        ("arp who", "`arp` wants `who-has`, `reply` or `op`"),
        ("eth 1:2:3:4:5:6 > 1:2:3:4:5:6 hex 00", "`hex` after `eth` wants `type N` before it"),
        ("eth 1:2 > 3:4", "`eth` wants an Ethernet address, not `1:2`"),
    ] {
        assert_eq!(build(text), Err(error.to_string()), "{text}");
    }
}

#[test]
fn errors_of_unknown_words_list_the_known_ones() {
    let error = |text: &str| build(text).expect_err("has an unknown word");
    let udp = error("1.0.0.1 > 2.0.0.2 udp tll 5");
    assert_eq!(
        udp,
        "unknown word `tll`; protocols: udp, tcp, icmp, icmp6, proto N; words of IP: ttl N, tos N, \
         id N, len N, df, rf, frag N[+], ipopt TEXT, iplen N, hl N, badsum, sum N, pad N, short N; \
         words of UDP: ulen N, badcheck, check N, nocheck; payload: \"text\", data 0a0b, [PACKET]"
    );
    let lists = [
        ("1.0.0.1 > 2.0.0.2 udp", [super::build::IPV4, super::build::UDP]),
        ("1.0.0.1 > 2.0.0.2 tcp", [super::build::CHECKS, super::build::TCP]),
        ("1.0.0.1 > 2.0.0.2 icmp", [super::build::ICMP, super::build::PROTOCOLS]),
        ("::1 > ::2 tcp", [super::build::IPV6, super::build::TCP]),
    ];
    for (start, words) in lists {
        let message = error(&format!("{start} nonsense"));
        for word in words.iter().flat_map(|list| list.split(", ")).filter(|word| !word.is_empty()) {
            assert!(message.contains(word), "{word}: {message}");
            // A known word may lack its value, but is not an unknown word.
            let word = word.split(' ').next().unwrap_or_default();
            let message = build(&format!("{start} {word}")).err().unwrap_or_default();
            assert!(!message.contains("unknown word"), "{start} {word}: {message}");
        }
    }
}

#[test]
fn nesting_has_a_maximum_depth() {
    let mut text = String::from("1.0.0.1 > 2.0.0.2 udp");
    for _ in 0..MAX_DEPTH {
        text = format!("1.0.0.1 > 2.0.0.2 proto 4 [{text}]");
        assert!(build(&text).is_ok());
    }
    let deep = format!("1.0.0.1 > 2.0.0.2 proto 4 [{text}]");
    assert_eq!(build(&deep), Err("too many packets within packets".into()));
    // A far deeper packet is printed, in short time.
    let mut bytes = build(&text).expect("is a sketch").bytes;
    while bytes.len() < 60_000 {
        let len = bytes.len() + 20;
        let header = Ipv4Header::new(4, [1, 0, 0, 1].into(), [2, 0, 0, 2].into(), len as u16);
        bytes = [&header.0[..], &bytes].concat();
    }
    assert_eq!(build(&print(&bytes, Layer::Network)).map(|s| s.bytes), Ok(bytes));
}

/// A well-formed IPv4 packet.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[ -~]{0,30}".prop_map(String::into_bytes),
    ];
    let fields = any::<(u32, u32, u8, u8, u16, bool)>();
    let transport = any::<([u8; 20], bool)>();
    (fields, 0..4usize, transport, payload).prop_map(|(f, kind, (mut head, ok), payload)| {
        let (protocol, len) = [(17, 8), (6, 20), (1, 8), (99, 0)][kind];
        head[12] = 0x50 | head[12] & 0xf;
        let mut body = [&head[..len], &payload].concat();
        let total = 20 + body.len();
        let mut ip = Ipv4Header::new(protocol, f.0.into(), f.1.into(), total as u16);
        ip.set_ttl(f.2);
        ip.set_tos(f.3);
        ip.set_id(f.4);
        ip.set_dont_fragment(f.5);
        ip.update_checksum(&[]);
        let pseudo = ip.pseudo(body.len());
        let total = body.len() as u16;
        if let (17, true, Some((udp, rest))) = (protocol, ok, Udp::from_prefix_mut(&mut body)) {
            udp.set_length(total);
            udp.update_checksum(pseudo, rest);
        }
        if let (6, true, Some((tcp, rest))) = (protocol, ok, Tcp::from_prefix_mut(&mut body)) {
            tcp.update_checksum(pseudo, rest);
        }
        [&ip.0[..], &body].concat()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_rebuilt(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        for layer in [Layer::Ethernet, Layer::Network] {
            let text = print(&bytes, layer);
            prop_assert_eq!(build(&text), Ok(Sketch { bytes: bytes.clone(), layer }), "{}", text);
        }
    }

    #[test]
    fn well_formed_packets_are_rebuilt_and_not_hex(bytes in packet(), cut in 0usize..60, pad in 0usize..20) {
        let text = print(&bytes, Layer::Network);
        prop_assert!(!text.starts_with("hex"), "{}", text);
        prop_assert_eq!(build(&text).map(|s| s.bytes), Ok(bytes.clone()), "{}", text);
        let frame = [&[2; 12][..], &[8, 0], &bytes, &vec![0; pad]].concat();
        let text = print(&frame, Layer::Ethernet);
        prop_assert!(!text.contains(" hex"), "{}", text);
        prop_assert_eq!(build(&text).map(|s| s.bytes), Ok(frame), "{}", text);
        let short = &bytes[..bytes.len() - cut.min(bytes.len())];
        let text = print(short, Layer::Network);
        prop_assert_eq!(build(&text).map(|s| s.bytes), Ok(short.to_vec()), "{}", text);
    }

    #[test]
    fn packets_with_flipped_bits_are_rebuilt(mut bytes in packet(), at: usize, bit in 0u8..8) {
        let at = at % bytes.len();
        bytes[at] ^= 1u8 << bit;
        let text = print(&bytes, Layer::Network);
        prop_assert_eq!(build(&text).map(|s| s.bytes), Ok(bytes), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "(eth|arp|hex|1.0.0.1 > 2.0.0.2)( (udp|tcp|icmp|len|ttl|seq|ack|tcpopt|ipopt|frag|data|\\[|\\]|\"|[0-9]{1,6}|0x[0-9a-f]{1,9}|\\PC{1,3})){0,9}") {
        let _ = build(&text);
    }
}
