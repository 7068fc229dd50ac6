//! Error messages for examples that are wrong, or that fail.

use castanet_bench::example;
use castanet_element::class::{Class, per_batch, per_packet};
use castanet_element::prelude::*;
use castanet_elements::library;

/// The error message of the example on one worker in bursts of 1.
fn failure(text: &str) -> String {
    example::run(text, &library(), 1, 1).expect_err("fails")
}

#[test]
fn an_unequal_packet_is_shown_below_the_expected_one() {
    let text = "in -> Paint(2) -> DecIPTTL -> out
> in  1.0.0.1 > 2.0.0.2 udp ttl 9
< out 1.0.0.1 > 2.0.0.2 udp ttl 9 ; paint 3";
    assert_eq!(
        failure(text),
        "line 3: < out 1.0.0.1 > 2.0.0.2 udp ttl 9 ; paint 3
  expected 1.0.0.1 > 2.0.0.2 udp ttl 9 len 28 ; paint 3
  got      1.0.0.1 > 2.0.0.2 udp ttl 8 len 28 ; paint 2
                                     ^                ^"
    );
}

#[test]
fn a_missing_packet_is_searched_at_other_outputs() {
    let text = "in -> ttl :: DecIPTTL -> out; ttl[1] -> expired
> in  1.0.0.1 > 2.0.0.2 udp ttl 1
> in  hex 00
< out 1.0.0.1 > 2.0.0.2 udp ttl 1";
    let failure = failure(text);
    let expected =
        "\n  got      nothing\n  but at expired 1.0.0.1 > 2.0.0.2 udp ttl 1 len 28 ; paint 0";
    assert!(failure.contains(expected), "{failure}");
    assert!(failure.contains("\n  dropped: ttl not_ip 1"), "{failure}");
}

#[test]
fn a_packet_at_an_unconnected_exit_is_reported_as_dropped() {
    let text = "in -> ttl :: DecIPTTL -> out
> in  1.0.0.1 > 2.0.0.2 udp ttl 1
< out 1.0.0.1 > 2.0.0.2 udp ttl 1";
    let end = "\n  got      nothing\n  dropped: ttl expired 1";
    assert!(failure(text).ends_with(end), "{}", failure(text));
}

#[test]
fn an_unexpected_packet_is_reported_with_its_port() {
    let text = "in -> Null -> out\n> in 1.0.0.1 > 2.0.0.2 udp";
    let start = "after the last line\n  unexpected at out: 1.0.0.1 > 2.0.0.2 udp ttl 64 len 28";
    assert!(failure(text).starts_with(start), "{}", failure(text));
}

#[test]
fn unequal_values_and_lines_are_shown_below_the_expected_ones() {
    let text = "in -> c :: Counter -> Print(x, 2) -> Discard\n> in 1.0.0.1 > 2.0.0.2 udp";
    let count = format!("{text}\n= c.count 2");
    assert_eq!(failure(&count), "line 3: = c.count 2\n  expected 2\n  got      1\n           ^");
    let line = format!("{text}\n~ x:   28 | 4600");
    assert_eq!(
        failure(&line),
        "line 3: ~ x:   28 | 4600
  expected x:   28 | 4600
  got      x:   28 | 4500
                     ^^^^"
    );
    let handler = format!("{text}\n= c.cuont 1");
    assert_eq!(
        failure(&handler),
        "line 3: = c.cuont 1\n  'c :: Counter' has no read handler 'cuont'; did you mean 'count'?"
    );
}

#[test]
fn errors_in_sketches_list_the_valid_words() {
    let failure_of = |line: &str| failure(&format!("in -> Null -> out\n{line}\n> in hex 00"));
    let packet = failure_of("> in 1.0.0.1 > 2.0.0.2 udp tll 5");
    for part in [
        "line 2: > in 1.0.0.1 > 2.0.0.2 udp tll 5\n  unknown word `tll`; protocols: udp, tcp,",
        "words of IP: ttl N, tos N,",
        "\n  (`castanet_wire::sketch` has the grammar of packets)",
    ] {
        assert!(packet.contains(part), "{packet}");
    }
    for (line, message) in [
        (
            "> in 1.0.0.1 > 2.0.0.2 udp ; pain 3",
            "no annotation is called `pain`, only paint, dst, dst6, type, mac, network, fixipsrc, time, \
             length; did you mean `paint`?",
        ),
        (
            "> in 1.0.0.1 > 2.0.0.2 udp ; paint",
            "after ` ; ` stand names and values; `paint` has no value",
        ),
        ("> in 1.0.0.1 > 2.0.0.2 udp ; paint red", "`red` is no value for paint"),
        ("> in 1.0.0.1 > 2.0.0.2 udp ; length 60", "`length` is expected of packets, not set"),
        ("> inn 1.0.0.1 > 2.0.0.2 udp", "the configuration has no open end `inn ->`"),
        ("< ouy 1.0.0.1 > 2.0.0.2 udp", "no output is called `ouy`, only out; did you mean `out`?"),
    ] {
        assert_eq!(failure_of(line), format!("line 2: {line}\n  {message}"));
    }
}

#[test]
fn errors_of_configurations_point_to_a_line_of_the_example() {
    let text = "> in 1.0.0.1 > 2.0.0.2 udp\nin -> Cuonter -> out";
    let failure = failure(text);
    for part in ["unknown element class 'Cuonter'", "example:2:7", "did you mean 'Counter'?"] {
        assert!(failure.contains(part), "{failure}");
    }
}

/// Examples found by fuzzers that once hung, panicked or lost packets.
#[test]
fn findings_of_fuzzers_are_survived() {
    for text in [
        // A router that has stopped while its program could continue.
        "e :: DriverManager()\n! e.step 1\n+ 100ms",
        "e :: Script(stop)\n! e.goto 1\n! e.run 1\n+ 100ms",
    ] {
        example::survive(text, &library(), 1).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}

/// Sets the transport header one byte behind the contents of short packets.
#[derive(Element)]
struct MarkWrongHeader;

impl PerPacket for MarkWrongHeader {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        if packet.len() < 60 {
            packet.set_transport_header(packet.len() as isize + 1);
        }
    }
}

/// Drops the last packet of each burst without a count.
#[derive(Element)]
struct LosePacket;

impl PerBatch for LosePacket {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, (): &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        batch.truncate(batch.len() - 1);
        cx.emit_batch((), batch);
    }
}

/// Keeps frames, and says that it has consumed the packets.
#[derive(Element)]
struct LeakFrame;

impl PerBatch for LeakFrame {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.count_consumed(batch.len());
        batch.into_iter().for_each(|packet| _ = packet.into_frame());
    }
}

#[test]
fn hostile_runs_find_wrong_headers_and_lost_packets() {
    static CLASSES: [Class; 3] =
        [per_packet::<MarkWrongHeader>(), per_batch::<LosePacket>(), per_batch::<LeakFrame>()];
    let mut library = library();
    CLASSES.iter().for_each(|class| library.add(class));
    for (element, error) in [
        ("MarkWrongHeader", "burst 0: out of bounds at out: the transport header is at "),
        ("LosePacket", "burst 0: packets of e do not balance: 32 in, 31 out"),
        ("LeakFrame", " frames did not come back to the pool"),
    ] {
        let text = format!("in -> e :: {element} -> out\n> in 1.0.0.1 > 2.0.0.2 udp len 60");
        let failure = example::storm(&text, &library, 1, 1).expect_err(element);
        assert!(failure.contains(error), "{failure}");
    }
}
