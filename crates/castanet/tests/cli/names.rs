//! Names of addresses and ports by the name `click`.

use crate::program::{RunResult, click};

/// The text that a configuration prints, without errors.
fn printed(config: &str) -> String {
    let RunResult { status, out, err } = click(&["--simtime", "-e", config], b"");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{config}");
    out
}

/// The errors of a wrong configuration.
fn complaint(config: &str) -> String {
    let RunResult { status, err, .. } = click(&["--simtime", "-e", config], b"");
    assert_eq!(status, Some(1), "{config}");
    err
}

#[test]
fn an_address_with_host_bits_is_a_host_and_has_a_prefix() {
    let declared = "AddressInfo(n 10.1.2.3/16, m 10.0.0.0/8);";
    for class in ["RadixIPLookup", "LinearIPLookup", "DirectIPLookup", "StaticIPLookup"] {
        let config = format!(
            "{declared} Idle -> r :: {class}(n 0, n:ipnet 1, m 2) -> Discard; r[1] -> Discard; r[2] -> Discard;
             Script(print r.table, stop)"
        );
        let table = "10.1.2.3/32\t\t-\t\t0\n10.1.0.0/16\t\t-\t\t1\n10.0.0.0/8\t\t-\t\t2\n";
        assert_eq!(printed(&config), table, "{class}");
    }
    let config = format!(
        "{declared} Idle -> a :: SetIPAddress(n) -> b :: SetIPAddress(n:bcast) -> c :: SetIPAddress(n:gw) -> Discard;
         Script(print a.addr, print b.addr, print c.addr, stop)"
    );
    assert_eq!(printed(&config), "10.1.2.3\n10.1.255.255\n10.1.0.1\n");
    let config = format!(
        "{declared} Idle -> a :: ARPResponder(m 1:1:1:1:1:1, n 2:2:2:2:2:2, n:net 3:3:3:3:3:3, n:ip4net 3:3:3:3:3:3)
         -> Discard; Script(print a.table, stop)"
    );
    let RunResult { out, .. } = click(&["--simtime", "-e", &config], b"");
    assert!(out.starts_with("10.1.2.3/32 02-02-02-02-02-02\n10.1.0.0/16 03-"), "{out}");
    let config = format!(
        "{declared} Idle -> f :: IPFilter(allow src n, allow src net m, deny all) -> Discard; Script(print f.program, stop)"
    );
    let program = printed(&config);
    assert!(program.contains("268/0a010203%ffffffff"), "{program}");
    assert!(program.contains("268/0a000000%ff000000"), "{program}");
    // Without host bits a name is no address.
    assert!(
        complaint(&format!("{declared} Idle -> SetIPAddress(m) -> Discard")).contains("IPADDR")
    );
}

#[test]
fn ports_read_like_the_lines_of_services() {
    let encap = |declared: &str, ports: (&str, &str)| {
        format!(
            "PortInfo({declared}); Idle -> u :: UDPIPEncap(1.1.1.1, {}, 2.2.2.2, {}) -> Discard;
             Script(print u.sport, print u.dport, stop)",
            ports.0, ports.1
        )
    };
    let declared = "alpha 4000/udp al2 al3 # words, , # nothing, both 7, t 9/tcp";
    assert_eq!(printed(&encap(declared, ("alpha", "al3"))), "4000\n4000\n");
    assert_eq!(printed(&encap(declared, ("al2", "domain"))), "4000\n53\n");
    assert_eq!(printed(&encap(declared, ("both", "submission"))).lines().next(), Some("7"));
    for unknown in ["t", "words", "nothing"] {
        let err = complaint(&encap(declared, (unknown, "1")));
        assert!(err.contains("\n  SPORT: parse error\n"), "{err}");
    }
    assert!(complaint(&encap("x", ("1", "1"))).contains("\n  expected 'NAME PORT/PROTO'\n"));
    // Patterns ask for ports of their protocol.
    let filter = |pattern: &str| {
        format!(
            "PortInfo({declared}); Idle -> f :: IPFilter(allow {pattern}) -> Discard; Script(print f.program, stop)"
        )
    };
    assert!(printed(&filter("udp port al2")).contains("/00000fa0%0000ffff"));
    assert!(printed(&filter("dst port t")).contains("512/00000009%0000ffff"));
    assert!(complaint(&filter("tcp port al2")).contains("pattern 0: "));
    let rewriter = "PortInfo(game 5000); Idle -> r :: IPRewriter(pattern 1.0.0.1 game - domain 0 0) -> Discard; Script(print r.patterns, stop)";
    assert_eq!(printed(rewriter), "1.0.0.1 5000 - 53\n");
}

#[test]
fn names_hold_in_their_compound_and_inside() {
    let config = "PortInfo(p 1, q 2); AddressInfo(a 1.0.0.1, b 1.0.0.2);
        elementclass In { PortInfo(q 4); AddressInfo(b 4.0.0.4); input -> u :: UDPIPEncap(a, p, b, q) -> output }
        elementclass Out { PortInfo(p 3, r 5); AddressInfo(a 3.0.0.3); input -> i :: In -> u :: UDPIPEncap(a, p, b, q) -> output }
        Idle -> o :: Out -> u :: UDPIPEncap(a, p, b, q) -> Discard;
        Script(print $(o/i/u.src) $(o/i/u.sport) $(o/i/u.dst) $(o/i/u.dport),
               print $(o/u.src) $(o/u.sport) $(o/u.dst) $(o/u.dport),
               print $(u.src) $(u.sport) $(u.dst) $(u.dport), stop)";
    assert_eq!(printed(config), "3.0.0.3 3 4.0.0.4 4\n3.0.0.3 3 1.0.0.2 2\n1.0.0.1 1 1.0.0.2 2\n");
    let outside = "elementclass C { PortInfo(p 1); input -> output } Idle -> C -> UDPIPEncap(1.0.0.1, p, 2.0.0.2, 5) -> Discard";
    assert!(complaint(outside).contains("SPORT: parse error"));
}
