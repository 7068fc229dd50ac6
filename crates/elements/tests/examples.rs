//! What is said about examples that are wrong, or find an element so.

use castanet_elements::library;
use castanet_engine::example;

/// What the first failing way of running an example says.
fn said(text: &str) -> String {
    example::run(text, &library(), 1, 1).expect_err("fails")
}

#[test]
fn the_wrong_packet_stands_under_the_right_one() {
    let text = "in -> Paint(2) -> DecIPTTL -> out
> in  1.0.0.1 > 2.0.0.2 udp ttl 9
< out 1.0.0.1 > 2.0.0.2 udp ttl 9 ; paint 3";
    assert_eq!(
        said(text),
        "line 3: < out 1.0.0.1 > 2.0.0.2 udp ttl 9 ; paint 3
  expected 1.0.0.1 > 2.0.0.2 udp ttl 9 len 28 ; paint 3
  got      1.0.0.1 > 2.0.0.2 udp ttl 8 len 28 ; paint 2
                                     ^                ^"
    );
}

#[test]
fn a_missing_packet_is_looked_for_elsewhere() {
    let text = "in -> ttl :: DecIPTTL -> out; ttl[1] -> expired
> in  1.0.0.1 > 2.0.0.2 udp ttl 1
> in  hex 00
< out 1.0.0.1 > 2.0.0.2 udp ttl 1";
    let said = said(text);
    let shown =
        "\n  got      nothing\n  but at expired 1.0.0.1 > 2.0.0.2 udp ttl 1 len 28 ; paint 0";
    assert!(said.contains(shown), "{said}");
    assert!(said.contains("\n  dropped: ttl not_ip 1"), "{said}");
}

#[test]
fn a_packet_at_an_open_exit_is_said_to_be_dropped() {
    let text = "in -> ttl :: DecIPTTL -> out
> in  1.0.0.1 > 2.0.0.2 udp ttl 1
< out 1.0.0.1 > 2.0.0.2 udp ttl 1";
    let end = "\n  got      nothing\n  dropped: ttl expired 1";
    assert!(said(text).ends_with(end), "{}", said(text));
}

#[test]
fn a_packet_too_many_is_named_with_its_port() {
    let text = "in -> Null -> out\n> in 1.0.0.1 > 2.0.0.2 udp";
    let start = "after the last line\n  unexpected at out: 1.0.0.1 > 2.0.0.2 udp ttl 64 len 28";
    assert!(said(text).starts_with(start), "{}", said(text));
}

#[test]
fn answers_and_lines_stand_under_the_right_ones() {
    let text = "in -> c :: Counter -> Print(x, 2) -> Discard\n> in 1.0.0.1 > 2.0.0.2 udp";
    let count = format!("{text}\n= c.count 2");
    assert_eq!(said(&count), "line 3: = c.count 2\n  expected 2\n  got      1\n           ^");
    let line = format!("{text}\n~ x:   28 | 4600");
    assert_eq!(
        said(&line),
        "line 3: ~ x:   28 | 4600
  expected x:   28 | 4600
  got      x:   28 | 4500
                     ^^^^"
    );
    let handler = format!("{text}\n= c.cuont 1");
    assert_eq!(
        said(&handler),
        "line 3: = c.cuont 1\n  'c :: Counter' has no read handler 'cuont'; did you mean 'count'?"
    );
}

#[test]
fn sketches_say_what_they_could_have_said() {
    let said_of = |line: &str| said(&format!("in -> Null -> out\n{line}\n> in hex 00"));
    let packet = said_of("> in 1.0.0.1 > 2.0.0.2 udp tll 5");
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
        assert_eq!(said_of(line), format!("line 2: {line}\n  {message}"));
    }
}

#[test]
fn configurations_are_wrong_at_a_line_of_the_example() {
    let text = "> in 1.0.0.1 > 2.0.0.2 udp\nin -> Cuonter -> out";
    let said = said(text);
    for part in ["unknown element class 'Cuonter'", "example:2:7", "did you mean 'Counter'?"] {
        assert!(said.contains(part), "{said}");
    }
}

/// Examples that fuzzers have made, and that hung, panicked or lost packets.
#[test]
fn what_fuzzers_found_is_survived() {
    for text in [
        // A router that has ended and whose program would still go on.
        "e :: DriverManager()\n! e.step 1\n+ 100ms",
        "e :: Script(stop)\n! e.goto 1\n! e.run 1\n+ 100ms",
    ] {
        example::survive(text, &library(), 1).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}
