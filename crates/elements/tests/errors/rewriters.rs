//! Errors in arguments of rewriters, their patterns and mappers.

use crate::golden;

#[test]
fn rewriters() {
    let rewriter = |arguments: &str| format!("Idle -> rw :: IPRewriter({arguments}) -> Discard");
    for (arguments, castanet, click) in [
        ("", "need 1 arguments, one per input port", "need 1 arguments, one per input port"),
        ("drop, drop", "need 1 arguments", "need 1 arguments, one per input port"),
        (
            "pattern 1.0.0.1 70000 - - 0 0",
            "input spec 0: bad source port",
            "input spec 0: bad source port",
        ),
        (
            "keep 0 1",
            "input spec 0: output port out of range",
            "input spec 0: output port out of range",
        ),
        ("nobody", "input spec 0: unknown specification", "input spec 0: unknown specification"),
        (
            "rw",
            "input spec 0: element is not an IPMapper",
            "input spec 0: element is not an IPMapper",
        ),
        ("pattern x 0 0", "input spec 0: no such pattern 'x'", "input spec 0: no such pattern 'x'"),
        (
            "drop, CAPACITY x",
            "MAPPING_CAPACITY is neither a number nor a rewriter",
            "bad MAPPING_CAPACITY",
        ),
        ("drop, CAPACITY rw", "MAPPING_CAPACITY is neither", "bad MAPPING_CAPACITY"),
        (
            "drop, UDP_TIMEOUT soon",
            "UDP_TIMEOUT: `soon` is not a time",
            "UDP_TIMEOUT: invalid timestamp",
        ),
    ] {
        golden(&rewriter(arguments), castanet, click);
    }
    let addresses = "Idle -> IPAddrRewriter(pattern 1.0.0.1 5 - - 0 0) -> Discard";
    let error = "input spec 0: IPAddrRewriter cannot accept IPRewriter patterns";
    golden(addresses, error, error);
    let mapper =
        "m :: RoundRobinIPMapper(- - - - 0 0, - - - - 0 1); Idle -> IPRewriter(m) -> Discard";
    let error = "input spec 0: output port out of range in m :: RoundRobinIPMapper pattern 1";
    golden(mapper, error, error);
}

#[test]
fn patterns_and_mappers() {
    golden(
        "IPRewriterPatterns(a - -, a - -)",
        "pattern 'a' already defined",
        "pattern 'a' already defined",
    );
    golden(
        "IPRewriterPatterns(a - 0 - -)",
        "pattern 'a': bad source port | SADDR SPORT",
        "bad source port",
    );
    golden("RoundRobinIPMapper()", "no patterns given", "no patterns given");
    golden("RoundRobinIPMapper(- - 0 x)", "bad reply port", "bad reply port");
    golden("ThreadIPMapper()", "no patterns given", "no patterns given");
    golden("ThreadIPMapper(- - 0 x)", "bad reply port", "bad reply port");
    golden("SourceIPHashMapper()", "no hash seed given", "no hash seed given");
    golden("SourceIPHashMapper(5 7)", "no patterns given", "no patterns given");
    golden(
        "SourceIPHashMapper(5, - - 0 0 1)",
        "requires 2 config params: numnodes seed",
        "requires 2 config params: numnodes seed",
    );
    golden(
        "SourceIPHashMapper(0 1, - - 0 0 1)",
        "number of nodes must be an integer from 1 to 65536",
        "number of nodes must be an integer",
    );
    golden(
        "SourceIPHashMapper(5 x, - - 0 0 1)",
        "hash seed must be an integer",
        "hash seed must be an integer",
    );
    golden(
        "SourceIPHashMapper(5 1, - - 0 0 x)",
        "bad server ID in pattern spec | a number from 0 to 65535",
        "bad server ID in pattern spec",
    );
    let icmp = |maps: &str| {
        format!(
            "Idle -> rw :: IPRewriter(drop) -> Discard; Idle -> ICMPRewriter({maps}) -> Discard"
        )
    };
    golden(&icmp("Idle@1"), "Idle@1 not an IP rewriter", "Idle@1 not an IP rewriter");
    golden(&icmp("rw:x"), "rw:x not an IP rewriter", "rw:x not an IP rewriter");
    golden(
        &icmp("rw:1"),
        "rw:1 port offset requires more than 1 output",
        "rw:1 port offset requires more than 1 output",
    );
    golden(&icmp("\"\""), "no IP rewriters supplied", "no IP rewriters supplied");
    let ftp = |arguments: &str| {
        format!(
            "Idle -> rw :: UDPRewriter(drop) -> d :: Discard; Idle -> t :: TCPRewriter(drop) -> d;
             Idle -> FTPPortMapper({arguments}) -> d"
        )
    };
    golden(
        &ftp("x, t, 0"),
        "CONTROL_REWRITER: `x` is no TCPRewriter",
        "CONTROL_REWRITER: does not name an element",
    );
    golden(
        &ftp("rw, t, 0"),
        "CONTROL_REWRITER: `rw` is no TCPRewriter",
        "CONTROL_REWRITER: element type mismatch, expected TCPRewriter",
    );
    golden(
        &ftp("t, d, 0"),
        "DATA_REWRITER: `d` is no IPRewriterBase",
        "DATA_REWRITER: element type mismatch, expected IPRewriterBase",
    );
    golden(
        &ftp("t, rw, 1"),
        "DATA_REWRITER_INPUT out of range",
        "DATA_REWRITER_INPUT out of range",
    );
}
