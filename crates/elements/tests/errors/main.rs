//! Error messages for wrong arguments, in Castanet's wording and in Click's.

mod rewriters;

use castanet_elements::library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{ErrorStyle, Options, Router};
use std::sync::Arc;

/// The diagnostics of a configuration in this wording.
fn error_text(config: &str, wording: ErrorStyle) -> String {
    let library = library();
    let (flat, mut diagnostics, sources) = library.flatten("config", config);
    let options = Options { error_style: wording, ..Options::new(Arc::new(SilentConsole)) };
    let router = Router::build(&flat, &library, &options, &mut diagnostics);
    assert!(router.is_none(), "{config} is refused");
    match wording {
        ErrorStyle::Castanet => diagnostics.render_rich(&sources, false),
        ErrorStyle::Click => diagnostics.render_click(&sources),
    }
}

/// Asserts parts of Castanet's message (separated by ` | `), and the beginning of Click's detail
/// line.
fn golden(config: &str, castanet: &str, click: &str) {
    let rich = error_text(config, ErrorStyle::Castanet);
    for line in castanet.split(" | ") {
        assert!(rich.contains(line), "{config}\n  lacks: {line}\n  in: {rich}");
    }
    let plain = error_text(config, ErrorStyle::Click);
    let expected = format!("\n  {click}");
    assert!(plain.contains(&expected), "{config}\n  lacks: {click}\n  in: {plain}");
}

#[test]
fn switches() {
    golden(
        "Idle -> Switch(2) -> Discard",
        "OUTPUT: there is no output 2 | OUTPUT is less than 1, or -1 to drop",
        "output must be < 1",
    );
    golden(
        "Idle -> IPFragmenter(7) -> Discard",
        "MTU: MTU must be at least 8",
        "MTU must be at least 8",
    );
    golden(
        "Idle -> StaticSwitch -> Discard",
        "OUTPUT: is missing",
        "OUTPUT: required argument missing",
    );
    golden(
        "Idle -> HashSwitch(0, 0) -> Discard",
        "LENGTH: no bytes to choose by | LENGTH is at least 1",
        "length must be > 0",
    );
    golden(
        "Idle -> RoundRobinSwitch(MAX 3) -> Discard",
        "MAX: 3 of 1 outputs | MAX is from 1 to 1",
        "MAX: 3 of 1 outputs",
    );
    golden(
        "Idle -> Tee(3) -> Discard",
        "N does not agree with 1 connected outputs",
        "1 outputs implies 1 arms",
    );
}

#[test]
fn headers_and_addresses() {
    for (arguments, castanet, click) in [
        ("nothing", "TYPE `nothing` is no ICMP type | such as echo", "TYPE: type mismatch"),
        ("256", "TYPE `256` is no ICMP type", "invalid TYPE"),
        ("unreachable, transit", "CODE `transit` is no code of ICMP type 3", "invalid CODE"),
        ("echo, 256", "CODE `256` is no code of ICMP type 8", "invalid CODE"),
    ] {
        let text = format!("Idle -> ICMPIPEncap(1.0.0.1, 2.0.0.2, {arguments}) -> Discard");
        golden(&text, castanet, click);
    }
    for arguments in ["0:0:0:0:0:1, src, ANNO 0", "OFFSET src"] {
        let text = format!("Idle -> StoreEtherAddress({arguments}) -> Discard");
        let error = "must specify exactly one of ADDR/ANNO";
        golden(&text, error, error);
    }
    golden(
        "Idle -> StoreEtherAddress(0:0:0:0:0:1, middle) -> Discard",
        "OFFSET: `middle` is not an offset in bytes, src or dst",
        "type mismatch: bad OFFSET",
    );
    for arguments in ["", "5, TAIL true", "-1"] {
        let text = format!("Idle -> StoreTimestamp({arguments}) -> Discard");
        let error = "supply exactly one of 'OFFSET' and 'TAIL'";
        golden(&text, error, error);
    }
    let long = format!("Idle -> TCPReflector(DATA \"{}\") -> Discard", "x".repeat(65_416));
    golden(&long, "DATA: at most 65415 bytes", "DATA: at most 65415 bytes");
    let error = "cannot locate spinlock two";
    golden("SpinlockInfo(one); Idle -> PathSpinlock(two) -> Discard", error, error);
    golden("SpinlockInfo(one two)", "`one two` is no name of a lock | one word", "bad NAME");
    golden("Idle -> CoDel -> Discard", "there is no queue to watch", "no nearby Queues");
}

#[test]
fn ipv6() {
    golden(
        "Idle -> LookupIP6Route(1::/16) -> Discard",
        "`1::/16` is not ADDR/LENGTH [GATEWAY] OUTPUT",
        "ROUTES 1: argument should be DADDR/MASK [GW] OUTPUT",
    );
    golden(
        "Idle -> LookupIP6Route(1::/16 1) -> Discard",
        "argument 1: bad OUTPUT",
        "argument 1 bad OUTPUT",
    );
    golden(
        "Idle -> ICMP6Error(::, 3, 0) -> Discard",
        "SRC: is nobody's address",
        "SRC: not configured -a",
    );
    golden(
        "Idle -> ICMP6Error(1::1, 128, 0) -> Discard",
        "ICMP6 type 128 is not an error or redirect type",
        "ICMP6 type 128 is not an error or redirect type",
    );
    golden("Idle -> IP6NDAdvertiser(1::1) -> Discard", "missing ETH", "ENTRIES 1: missing ETH");
    golden(
        "Idle -> IP6NDAdvertiser(0:0:0:0:0:1) -> Discard",
        "missing IP6/MASK",
        "ENTRIES 1: argument had no IP6 address and masks",
    );
    golden(
        "Idle -> IP6NDAdvertiser(1::1 0:0:0:0:0:1 0:0:0:0:0:2) -> Discard",
        "more than one ETH",
        "ENTRIES 1: argument has more than one Ethernet address",
    );
    golden(
        "Idle -> IP6NDAdvertiser(1::1 x 0:0:0:0:0:2) -> Discard",
        "`x` is neither a prefix nor a station",
        "ENTRIES 1: argument should be `IP6/MASK ETHADDR'",
    );
    for (arguments, error) in [
        ("x", "argument 0 should be : integer"),
        ("1", "argument 1 should be : bool"),
        ("1, true, 1::1 2::2", "argument 2 should be : INNER PORT OUTER PORT"),
        ("1, false, 1::1, false", "argument 2 should be : INNER OUTER"),
        (
            "0, 1, 1, 0, 1::1 9",
            "argument 4 should be : <IP6Address> <unsigned char> <unsigned char>",
        ),
        ("0, 1, 0, 0, 1::1, x", "argument 5 should be : <IP6Address>"),
        ("0, 0, 1", "too many arguments"),
    ] {
        golden(&format!("Idle -> AddressTranslator({arguments}) -> Discard"), error, error);
    }
}

#[test]
fn patterns() {
    golden(
        "Idle -> Classifier(12/0800, -) -> Discard",
        "patterns: 2, outputs: 1 | each output has one pattern",
        "need 1 arguments, one per output port",
    );
    golden(
        "Idle -> Classifier(12:0800) -> Discard",
        "pattern 0: expected '/' | a clause is OFFSET/VALUE, such as 12/0800",
        "pattern 0: expected '/'",
    );
}

#[test]
fn annotations_and_bytes() {
    golden(
        "Idle -> Paint(256) -> Discard",
        "COLOR: 256 is out of range",
        "COLOR: out of range, bound 255",
    );
    golden(
        "Idle -> Paint(1, PAIN) -> Discard",
        "`PAIN` is not an annotation | did you mean PAINT?",
        "ANNO: syntax error",
    );
    golden(
        "Idle -> CheckPaint(1, DST_IP) -> Discard",
        "ANNO: DST_IP has 4 bytes, not 1 | PAINT",
        "ANNO: annotation has wrong size",
    );
    golden("Idle -> Paint(1, 48) -> Discard", "`48` is not", "ANNO: annotation out of range");
    golden(
        "Idle -> Align(3, 0) -> Discard",
        "MODULUS: 3 is not 2, 4 or 8",
        "align modulus must be 2, 4, or 8",
    );
    golden(
        "Idle -> Align(4, 4) -> Discard",
        "OFFSET: 4 is no remainder of 4",
        "align offset must be smaller than modulus",
    );
    golden(
        "Idle -> Print(CONTENTS octal) -> Discard",
        "CONTENTS: `octal` is not NONE, HEX or ASCII",
        "CONTENTS: bad contents value 'octal'; should be 'NONE', 'HEX', or 'ASCII'",
    );
    golden(
        "Idle -> SetTimestamp(soon) -> Discard",
        "TIMESTAMP: `soon` is not a time in seconds",
        "TIMESTAMP: invalid timestamp",
    );
    golden(
        "Idle -> Counter(COUNT_CALL many stop) -> Discard",
        "COUNT_CALL: `many` is not a number",
        "COUNT_CALL: type mismatch",
    );
}

#[test]
fn numbers_within_limits() {
    golden(
        "Idle -> SetIPDSCP(64) -> Discard",
        "DSCP: 64 is out of range; it wants a number from 0 to 63",
        "DSCP: out of range, bound 63",
    );
    golden(
        "Idle -> SetIPDSCP(EF) -> Discard",
        "DSCP: `EF` is not a number from 0 to 63",
        "DSCP: invalid number",
    );
    golden(
        "Idle -> SetIPDSCP -> Discard",
        "DSCP: is missing; it wants a number from 0 to 63",
        "DSCP: required argument missing",
    );
}

#[test]
fn declarations() {
    golden(
        "AddressInfo(host 1.0.0.1 here)",
        "`here` is not an address | 1.0.0.1, 1.0.0.0/8, 00:01:02:03:04:05 and 2001:db8::1 are addresses",
        "'here' is not a recognizable address",
    );
    golden("AddressInfo(host)", "`host` has no address", "expected 'NAME [ADDRS]'");
    golden(
        "StaticThreadSched(counter 0); Idle -> cuonter :: Counter -> Discard",
        "no element named 'counter' | did you mean 'cuonter'?",
        "'counter' does not name an element",
    );
    golden(
        "StaticThreadSched(c); Idle -> c :: Counter -> Discard",
        "`c` has no worker",
        "THREAD: required argument missing",
    );
}

#[test]
fn scripts() {
    golden(
        "Script(wiat 1s)",
        "instruction 1: there is no instruction 'wiat' | did you mean 'wait'?",
        "syntax error at 'wiat'",
    );
    golden(
        "DriverManager(label loops, goto loop1)",
        "instruction 2: no such label 'loop1' | did you mean 'loops'?",
        "no such label 'loop1'",
    );
    golden("Script(TYPE LAZY)", "TYPE: `LAZY` is not ACTIVE", "TYPE: bad TYPE");
}

#[test]
fn the_pull_side() {
    golden(
        "Idle -> IPPrint(PAYLOAD HEX, CONTENTS ASCII) -> Discard",
        "specify at most one of PAYLOAD and CONTENTS",
        "specify at most one of PAYLOAD and CONTENTS",
    );
    golden(
        "Idle -> RED(50, 5, 0.1) -> Queue -> Discard",
        "MIN_THRESH greater than MAX_THRESH",
        "MIN_THRESH must be <= MAX_THRESH",
    );
    golden("Idle -> RED(5, 50, 0.1) -> Discard", "there is no queue to watch", "no nearby Queues");
    golden(
        "Idle -> RED(5, 50, 0.1, QUEUES d) -> Queue -> d :: Discard",
        "QUEUES: 'd' keeps no packets for others",
        "QUEUES: 'd' is not a Storage element",
    );
    golden(
        "Idle -> StrideSched(1, 2) -> Discard",
        "need 1 arguments, one per input port",
        "need 1 arguments, one per input port",
    );
    golden(
        "Idle -> StrideSwitch(-1) -> Discard",
        "argument 0 (number of tickets) must be >= 0",
        "argument 0 (number of tickets) must be >= 0",
    );
    golden("Idle -> InputSwitch(1) -> Discard", "input must be < 1", "input must be < 1");
    golden("Idle -> Burster(0) -> Discard", "INTERVAL: it wants a time", "INTERVAL: bad interval");
}

#[test]
fn counters_by_aggregate_and_number() {
    golden(
        "Idle -> AggregateCounter(AGGREGATE_STOP 1, AGGREGATE_FREEZE 2) -> Discard",
        "'AGGREGATE_FREEZE', 'AGGREGATE_STOP', and 'AGGREGATE_CALL' are mutually exclusive",
        "'AGGREGATE_FREEZE', 'AGGREGATE_STOP', and 'AGGREGATE_CALL' are mutually exclusive",
    );
    golden(
        "Idle -> TimestampDiff(c) -> Discard; Idle -> c :: Counter -> Discard",
        "`c` is no RecordTimestamp of this configuration",
        "RECORDER must be a valid RecordTimestamp element",
    );
    golden(
        "Idle -> RandomBitErrors(0.5, swap) -> Discard",
        "KIND: `swap` is not flip, set or clear",
        "KIND: bad action `KIND'; expected `set', `clear', or `flip'",
    );
}

#[test]
fn messages_of_configurations() {
    golden("Message(\"use another\", ERROR)", "use another", "use another");
    golden("Message(hello, LOUD)", "TYPE: `LOUD` is not MESSAGE", "TYPE: unrecognized TYPE");
    golden("Error(x)", "this element stands for one that there is not", "this element stands for");
    let castanet = error_text(
        "Message(\"mind the gap\", WARNING); Message(hello); Nonsense",
        ErrorStyle::Castanet,
    );
    assert!(
        castanet.contains("warning: mind the gap") && castanet.contains("note: hello"),
        "{castanet}"
    );
    let click = error_text(
        "Message(\"mind the gap\", WARNING); Message(hello); Idle -> Paint",
        ErrorStyle::Click,
    );
    for line in ["While configuring 'Message@1 :: Message':\n  warning: mind the gap", "  hello"] {
        assert!(click.contains(line), "{click}");
    }
}

#[test]
fn measurements() {
    golden(
        "Idle -> AggregateIP(ip nose) -> Discard",
        "FIELD: unknown field 'ip nose'",
        "expected 'HEADER [NAME] [{OFFSET:LENGTH}] [/PREFIX] [& MASK]'",
    );
    golden(
        "Idle -> AggregateIP(ip src[3:2]) -> Discard",
        "FIELD: reaches beyond the field",
        "bad offset or length in TCP/IP field",
    );
    golden(
        "Idle -> AggregateIP(ip src/33) -> Discard",
        "FIELD: /33 is longer than the field",
        "bad prefix or mask in TCP/IP field",
    );
    golden(
        "Idle -> AggregateIP(ip{28:8}) -> Discard",
        "FIELD: field crosses a boundary of 32 bits",
        "field specification does not fit within a single word",
    );
    golden(
        "Idle -> AggregateIP(ip src, INCREMENTAL true) -> Discard",
        "no bit of the annotation is left for INCREMENTAL | a mask such as /16",
        "'INCREMENTAL' is incompatible with field length 32",
    );
    golden(
        "Idle -> AggregateFilter(0) -> Discard",
        "pattern 0 has no aggregates | `all` stands for every aggregate",
        "pattern 0 has no aggregates",
    );
    golden(
        "Idle -> StoreData(0, a, bcd) -> Discard",
        "MASK must be no longer than DATA | MASK has 3 bytes, DATA 1",
        "MASK must be no longer than DATA",
    );
    golden(
        "Idle -> AggregateIP(ip src/8, INCREMENTAL true, UNSHIFT_IP_ADDR true) -> Discard",
        "INCREMENTAL and UNSHIFT_IP_ADDR are incompatible",
        "INCREMENTAL and UNSHIFT_IP_ADDR are incompatible",
    );
    golden(
        "Idle -> AggregateFilter(1 5) -> Discard",
        "pattern 0: slot '1' out of range",
        "pattern 0: slot '1' out of range",
    );
    golden(
        "Idle -> AggregateFilter(0 9-5) -> Discard",
        "pattern 0: bad aggregate number '9-5'",
        "pattern 0: bad aggregate number '9-5'",
    );
    golden(
        "Idle -> AggregateFirst(NOTIFIER c) -> c :: Counter -> Discard",
        "NOTIFIER: `c` is no AggregateIPFlows of this configuration",
        "NOTIFIER: c is not an AggregateNotifier",
    );
    golden(
        "Idle -> TimeFilter(START 1, START_AFTER 2) -> Discard",
        "conflicting START arguments | one of START, START_AFTER and START_DELAY",
        "conflicting START arguments",
    );
    golden(
        "Idle -> SetTimestampDelta(TYPE LAST) -> Discard",
        "TYPE: `LAST` is not RANGE, NOW or FIRST",
        "TYPE: bad TYPE, expected RANGE, NOW, or FIRST",
    );
    golden(
        "Idle -> [0] c :: Clipboard(7) -> Discard; Idle -> [1] c [1] -> Discard",
        "RANGES 1: `7` is not an offset and a length, such as 12/4",
        "RANGES 1: syntax error",
    );
}

#[test]
fn names_and_shares() {
    golden(
        "ScheduleInfo(d often); Idle -> d :: Discard",
        "`d often` has no number from 0 on",
        "expected 'ELEMENTNAME PARAM' (bad scheduling parameter)",
    );
    let nobody = "ScheduleInfo(nobody 2); Idle -> Discard";
    let text = error_text(nobody, ErrorStyle::Castanet);
    assert!(text.contains("no element named 'nobody'"), "{text}");
    golden("PortInfo(http x)", "`x` is no port of TCP or UDP", "expected 'NAME PORT/PROTO'");
    golden(
        "AnnotationInfo(PAINT 3)",
        "`PAINT` is an annotation already",
        "annotation name 'PAINT' already defined",
    );
    golden(
        "AnnotationInfo(A 20 4, B 22, CHECK_OVERLAP A B)",
        "annotations A and B overlap",
        "annotations A and B overlap",
    );
    golden("AnnotationInfo(A 47 2)", "`A 47 2` is no annotation", "expected 'NAME OFFSET [SIZE]'");
    golden(
        "AnnotationInfo(A 20 4); Idle -> Paint(1, A) -> Discard",
        "ANNO: A has 4 bytes, not 1",
        "ANNO: annotation has wrong size",
    );
    golden(
        "AlignmentInfo(c 4)",
        "`c 4` is no name with pairs of numbers",
        "expected 'ELEMENTNAME [MODULUS OFFSET ...]'",
    );
}

#[test]
fn elements_that_name_others() {
    golden(
        "Idle -> q :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, TABLE t) -> Discard; Idle -> [1] q; t :: ClickyInfo",
        "TABLE: `t` is no ARPTable of this configuration",
        "TABLE: element is not a ARPTable",
    );
    golden(
        "ARPTable(CAPACITY_SLIM_FACTOR 0)",
        "CAPACITY_SLIM_FACTOR cannot be zero",
        "CAPACITY_SLIM_FACTOR cannot be zero",
    );
    golden(
        "Idle -> GTPLookup(t) -> Discard; t :: ClickyInfo",
        "`t` is no GTPTable of this configuration",
        "Unknown GTPTable",
    );
    golden(
        "Idle -> AggregateIPFlows(SOURCE x) -> Discard",
        "SOURCE: there is no element `x`",
        "SOURCE: no element named 'x'",
    );
    golden(
        "Idle -> RouterLink(a b, c) -> Discard",
        "wants `ROUTER ELEMENT CLASS` and a configuration in turn",
        "wants `ROUTER ELEMENT CLASS` and a configuration in turn",
    );
    golden(
        "Idle -> RouterLink(a b ToDevice, eth0) -> Discard",
        "names 1 ends, but has 2 ports",
        "names 1 ends, but has 2 ports",
    );
    golden(
        "Idle -> CheckAlign(3, 1) -> Discard",
        "MODULUS: 3 is not 2, 4 or 8",
        "align modulus must be 2, 4, or 8",
    );
}
