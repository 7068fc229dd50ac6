//! Elements that stand for a TCP host, a bridge or a clock, in configurations that talk to themselves in simulated
//! time.

use crate::program::{RunResult, click};

/// Standard output of a simulated run, with what is to be found on standard error.
fn simulated(config: &str, said: &[&str]) -> String {
    let RunResult { status, out, err } = click(&["--simtime", "-e", config], b"");
    assert_eq!(status, Some(0), "{config}\n{out}{err}");
    for text in said {
        assert!(err.contains(text), "{config}\nlacks {text}: {err}");
    }
    out
}

#[test]
fn clocks_show_the_engine_s_time() {
    let config = "t :: TSCClock(VERBOSE 3, NOWAIT true); j :: JiffieClock(true, 5);
                  Script(wait 1500ms, print $(t.phase) $(t.cycles_hz) $(j.status),
                         print $(idiv $(t.now_steady) 1000000) $(idiv $(t.cycles) 1000000),
                         print $(eq $(idiv $(t.now) 1000000) 1000000001500), print $(j.jiffies), stop)";
    assert_eq!(simulated(config, &[]), "2 1000000000 true\n1500 1500\ntrue\n3567588828\n");
}

/// A TCP host as in the configuration that comes with these elements in Click, and a server that
/// answers.
const HOST: &str = "RandomSeed(5)
    ack :: TCPAck; con :: TCPConn; dmx :: TCPDemux; rob :: TCPBuffer; b2p :: BufferConverter(1400);
    fid :: CopyFlowID; seq :: CopyTCPSeq;
    out :: SetTCPChecksum -> SetIPChecksum -> sent :: Counter
        -> TCPReflector(DATA \"200 OK\", RAND_SEQ false) -> CheckIPHeader -> CheckTCPHeader -> dmx;
    dmx -> [0] ack [0] -> [0] con [0] -> rob -> [0] b2p; Idle -> [1] b2p;
    b2p -> Queue -> [1] con [1] -> Unqueue -> [1] ack [1] -> [0] fid [0] -> [0] seq [0] -> out;
    con [2] -> [0] fid; ack [2] -> acks :: Counter -> [1] fid [1] -> [1] seq [1] -> out;\n";

#[test]
fn a_host_of_elements_asks_a_server() {
    let config = format!(
        "{HOST} Script(print $(con.state), write con.ctrl connect 1.0.0.1 5 2.0.0.2 80, print $(con.state),
            write b2p.data ping, wait 5ms, print $(b2p.length), print $(b2p.data), print \"<$(b2p.data)>\",
            wait 30ms, print $(sent.count) $(acks.count), write con.reset, print $(con.state), stop)"
    );
    // A SYN, the question, and an acknowledgment of the answer that is no question: it has FIN, so it is
    // not acknowledged.
    assert_eq!(simulated(&config, &[]), "closed\nestablished\n1\n200 OK\n<>\n2 0\nclosed\n");
}

#[test]
fn wrong_words_to_a_connection_are_errors() {
    for (words, error) in [
        ("open 1.0.0.1 5", "action must be connect or listen"),
        ("connect 1.0.0.1 5", "DST: required argument missing"),
        ("listen 1.0.0.1", "SPORT: required argument missing"),
        ("listen 1.0.0.1 5 6", "too many arguments"),
        ("listen nowhere 5", "SRC: "),
    ] {
        simulated(&format!("{HOST} Script(write con.ctrl {words}, stop)"), &[error]);
    }
    let config = format!(
        "{HOST} Script(write con.ctrl listen 2.0.0.2 80, write con.ctrl listen 2.0.0.2 81, stop)"
    );
    simulated(&config, &["TCPConn already active"]);
    // Two connections of one demultiplexer that are the same.
    let config = "in :: Idle -> TCPDemux -> t :: Tee -> [0] a :: TCPConn -> Discard; t [1] -> [0] b :: TCPConn -> Discard;
        Idle -> Queue -> [1] a [1] -> Unqueue -> Discard; Idle -> Queue -> [1] b [1] -> Unqueue -> Discard;
        a [2] -> Discard; b [2] -> Discard;
        Script(write a.ctrl listen 2.0.0.2 80, write b.ctrl listen 2.0.0.2 80, print $(b.state),
               write a.reset, write b.ctrl listen 2.0.0.2 80, print $(b.state), stop)";
    assert_eq!(simulated(config, &["cannot listen"]), "closed\nlisten\n");
}

#[test]
fn many_clients_ask_a_server() {
    let config = "w :: WebGen(1.0.0.0/8, 2.0.0.2, 100, LIMIT 20, ACTIVE true)
        -> CheckIPHeader -> CheckTCPHeader -> r :: TCPReflector(DATA page) -> w;
        Script(wait 300ms, print w.counts, write w.active true, wait 100ms, print w.active, stop)";
    let said = ["init: 20  comp:    20  tmo:     0  rst:     0"];
    assert_eq!(simulated(config, &said), "initiated 20\ncompleted 20\ntimeout 0\nreset 0\nfalse\n");
    // As many at a time as PARALLEL says, as fast as they end.
    let config = "w :: WebGen(1.0.0.0/8, 2.0.0.2, 0, 3, LIMIT 50)
        -> TCPReflector(DATA page) -> CheckIPHeader -> CheckTCPHeader -> w;
        Script(print w.active, write w.active true, wait 1s, print w.counts, stop)";
    let counts = "initiated 50\ncompleted 50\ntimeout 0\nreset 0\n";
    assert_eq!(simulated(config, &[]), format!("false\n{counts}"));
    // Nobody answers: the SYN is sent seven times, and then given up.
    let config = "w :: WebGen(1.0.0.0/8, 2.0.0.2, 10, LIMIT 2, ACTIVE true) -> c :: Counter -> Discard; Idle -> w;
        Script(wait 6500ms, print $(c.count), wait 3s, print w.counts, print $(c.count), stop)";
    let said = ["init: 2  comp:     0  tmo:     0  rst:     0"];
    let counts = "initiated 2\ncompleted 0\ntimeout 2\nreset 0\n";
    assert_eq!(simulated(config, &said), format!("14\n{counts}14\n"));
    let error = click(&["-e", "Idle -> WebGen(1.0.0.0/8, 2.0.0.2) -> Discard"], b"").err;
    assert!(error.contains("RATE: required argument missing"), "{error}");
}

#[test]
fn a_toy_opens_its_connection_anew_after_a_reset() {
    let config = "t :: ToyTCP(80) -> IPEncap(tcp, 1.0.0.1, 2.0.0.2) -> SetTCPChecksum
        -> c :: IPClassifier(syn, -) -> a :: Counter -> Discard; c [1] -> Discard; Idle -> t;
        Script(wait 3500ms, print $(a.count), stop)";
    let said = ["ToyTCP: 0 good in, 0 bad in, 3 out"];
    assert_eq!(simulated(config, &said), "3\n");
    let error = click(&["-e", "Idle -> ToyTCP(no-such-port) -> Discard"], b"").err;
    assert!(error.contains("DPORT: "), "{error}");
}

/// Three bridges in a ring, with a host at each; links are two milliseconds long, and that between the first two
/// can be cut.
fn ring(script: &str) -> String {
    let port = |n: usize| {
        format!(
            "input [{n}] -> c{n} :: Classifier(14/4242, -);
             c{n} [0] -> [{n}] stp [{n}] -> [{n}] output;
             c{n} [1] -> [{n}] before [{n}] -> [{n}] sw [{n}] -> [{n}] behind [{n}] -> [{n}] output;\n"
        )
    };
    let bridge: String = (0..3).map(port).collect();
    let mut text = format!(
        "elementclass Bridge {{ $addr |
            stp :: EtherSpanTree($addr, before, behind, sw);
            before, behind :: Suppressor; sw :: EtherSwitch(TIMEOUT 60);\n{bridge} }}
         elementclass Link {{ input -> cut :: Switch -> Queue -> DelayUnqueue(1ms) -> output; cut [1] -> Discard; }}
         a :: Bridge(0:0:0:0:0:1); b :: Bridge(0:0:0:0:0:2); c :: Bridge(0:0:0:0:0:3);
         a [1] -> ab :: Link -> [0] b; b [0] -> ba :: Link -> [1] a;
         b [1] -> Link -> [0] c; c [0] -> Link -> [1] b;
         c [1] -> Link -> [0] a; a [0] -> Link -> [1] c;\n"
    );
    for host in ["a", "b", "c"] {
        let address = format!("\\<ffffffffffff 0000000000{:02x} 0806 00>", host.as_bytes()[0]);
        text += &format!(
            "h{host} :: InfiniteSource(DATA {address}, LIMIT 5, ACTIVE false, STOP false) -> [2] {host};
             {host} [2] -> f{host} :: Classifier(14/4242, -); f{host} [0] -> Discard;
             f{host} [1] -> at{host} :: Counter -> Discard;\n"
        );
    }
    text + &format!("Script({script}, stop)")
}

#[test]
fn a_ring_of_bridges_forwards_each_broadcast_once() {
    let config = ring(
        "write ha.active true, wait 1s, print $(ata.count) $(atb.count) $(atc.count),
         wait 35s, print $(a/stp.states), print $(b/stp.states), print $(c/stp.states),
         print $(a/sw.timeout), write ha.reset, write ha.active true, wait 1s,
         print $(ata.count) $(atb.count) $(atc.count), wait 60s, print $(a/sw.timeout),
         write ab/cut.switch 1, write ba/cut.switch 1, wait 80s, print $(c/stp.states),
         write hb.active true, wait 1s, print $(ata.count) $(atb.count) $(atc.count)",
    );
    assert_eq!(
        simulated(&config, &[]),
        "0 0 0\n\
         0 forward\n1 forward\n2 forward\n0 forward\n1 forward\n2 forward\n0 block\n1 forward\n2 forward\n\
         15\n0 5 5\n60\n\
         0 forward\n1 forward\n2 forward\n5 5 10\n"
    );
}

#[test]
fn a_spanning_tree_names_its_switch_and_suppressors() {
    let rest = "s :: EtherSwitch; i, o :: Suppressor; Idle -> i -> s -> o -> Discard; Idle -> t -> Discard;
                two :: Suppressor; Idle -> two -> Discard; Idle -> [1] two [1] -> Discard";
    for (arguments, error) in [
        ("0:0:0:0:0:1, i, o", "SWITCH: required argument missing"),
        ("0:0:0:0:0:1, i, o, nothing", "SWITCH: 'nothing' does not name an element"),
        ("0:0:0:0:0:1, s, o, s", "INPUT_SUPPRESSOR: element is not a Suppressor"),
        ("0:0:0:0:0:1, i, o, o", "SWITCH: element is not a EtherSwitch"),
        ("0:0:0:0:0:1, i, two, s", "OUTPUT_SUPPRESSOR: 'two' has 2 inputs and 2 outputs, not 1"),
    ] {
        let config = format!("t :: EtherSpanTree({arguments}); {rest}");
        let RunResult { status, err, .. } = click(&["-e", &config], b"");
        assert_eq!(status, Some(1), "{arguments}");
        assert!(err.contains(error), "{arguments}: {err}");
    }
}

#[test]
fn partners_are_found_and_clocks_follow_nothing() {
    for (config, error) in [
        (
            "Idle -> [0] a :: TCPAck -> Discard; Idle -> [1] a [1] -> Discard; a [2] -> Discard",
            "need at least 1 downstream TCPBuffer",
        ),
        (
            "Idle -> [0] c :: TCPConn -> Discard; Idle -> Queue -> [1] c [1] -> Unqueue -> Discard; c [2] -> Discard",
            "need at least 1 upstream TCPDemux",
        ),
        (
            "TSCClock(NOWAIT true, INSTALL false)",
            "You want to install without waiting but do not want to install?!",
        ),
        ("TSCClock(BASE x)", "BASE: no element named 'x'"),
        ("x :: Message(hello); TSCClock(BASE x)", "BASE: x :: Message is not a UserClock"),
    ] {
        let RunResult { status, err, .. } = click(&["-e", config], b"");
        assert_eq!(status, Some(1), "{config}");
        assert!(err.contains(error), "{config}: {err}");
    }
}
