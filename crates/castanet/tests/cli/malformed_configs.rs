//! Five hundred malformed configurations: no panic, no hang,
//! and an error that points to the fault.

use crate::program::castanet;
use std::fmt::Write;

/// Random numbers, equal in every run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Configurations written for their particular fault, with a word that the
/// error must contain.
fn written() -> Vec<(String, &'static str)> {
    let repeat = |what: &str, n: usize| what.repeat(n);
    let mut all: Vec<(String, &'static str)> = [
        ("Idle -> Counter -> Discrad;", "Discard"),
        ("Idle -> Counter( -> Discard;", "1:"),
        ("Idle -> Counter) -> Discard;", "1:"),
        ("Idle -> { input -> Null -> output", "1:"),
        ("elementclass A { input -> A -> output }; Idle -> A -> Discard;", "A"),
        (
            "elementclass A { input -> B -> output }; elementclass B { input -> A -> output };
             Idle -> A -> Discard;",
            "A",
        ),
        ("a :: Counter; a -> Discard;", "unused"),
        ("Idle -> a :: Counter;", "unused"),
        ("Idle -> [1] Counter -> Discard;", "input"),
        ("Idle -> c :: Counter; c[3] -> Discard; c -> Discard;", "output"),
        ("c :: Counter; c :: Counter; Idle -> c -> Discard;", "redeclaration"),
        ("Idle -> Queue(lots) -> Discard;", "lots"),
        ("Idle -> Queue(-5) -> Discard;", "-5"),
        ("Idle -> Queue(99999999999999999999999) -> Discard;", "Queue"),
        ("Idle -> Strip() -> Discard;", "missing"),
        ("Idle -> Strip(14, 15, 16) -> Discard;", "too many"),
        ("Idle -> Strip(fourteen) -> Discard;", "fourteen"),
        ("Idle -> Counter(NO_SUCH_WORD 5) -> Discard;", "NO_SUCH_WORD"),
        ("Idle -> Paint(256) -> Discard;", "256"),
        ("Idle -> Classifier(12/08zz) -> Discard;", "Classifier"),
        ("Idle -> Classifier(12/0800, -) -> Discard;", "output"),
        ("Idle -> CheckIPHeader(1.2.3) -> Discard;", "1.2.3"),
        ("Idle -> EtherEncap(0x0800, 1:2:3, 4:5:6) -> Discard;", "1:2:3"),
        ("Idle -> StaticIPLookup(1.2.3.4/99 0) -> Discard;", "1.2.3.4/99"),
        ("Idle -> StaticIPLookup(0.0.0.0/0 7) -> Discard;", "7"),
        ("i :: InfiniteSource -> Discard; i -> Discard;", "reuse"),
        ("Idle -> Queue -> q :: Queue -> Discard;", "pull"),
        ("TimedSource -> Unqueue -> Discard;", "push"),
        ("-> -> ->", "1:"),
        (";;;;:::;;", "1:"),
        ("a b c d e", "1:"),
        ("$x -> $y", "1:"),
        ("define($x", "1:"),
        ("require(package no_such_package_at_all)", "no_such_package_at_all"),
        ("require(library /no/such/file)", "/no/such/file"),
        ("elementclass X { $a, $b | input -> Null -> output } Idle -> X(1) -> Discard;", "X"),
        ("elementclass X { input[5] -> output } Idle -> X -> Discard;", "X"),
        ("Idle -> \"unclosed", "1:"),
        ("Idle -> /* unclosed", "1:"),
        ("Idle -> Counter(\\<zz>) -> Discard;", "Counter"),
        ("Idle -> [99999999] Counter -> Discard;", "1:"),
        ("Idle[-1] -> Discard;", "1:"),
        ("StaticThreadSched(nobody 0); Idle -> Discard;", "nobody"),
        ("AddressInfo(x 1.2.3.4.5); Idle -> Discard;", "1.2.3.4.5"),
        ("FromDump(/no/such/file.pcap) -> Discard;", "/no/such/file.pcap"),
        ("FromDevice(no-such-dev0) -> Discard;", "no-such-dev0"),
    ]
    .map(|(text, word)| (text.to_owned(), word))
    .to_vec();
    all.push((format!("Idle -> Counter({} -> Discard;", repeat("(", 10_000)), "1:"));
    all.push((format!("{} Idle -> Discard {}", repeat("{ ", 10_000), repeat("} ", 10_000)), ":"));
    all.push((repeat("elementclass A { ", 10_000), ":"));
    all.push((format!("Idle {} Discard", repeat("-> ", 10_000)), "1:"));
    let mut doubling = String::from("elementclass A0 { input -> Null -> output }\n");
    for n in 0..40 {
        let next = n + 1;
        _ = writeln!(doubling, "elementclass A{next} {{ input -> A{n} -> A{n} -> output }}");
    }
    all.push((doubling + "Idle -> A40 -> Discard;", "the limit is 1000000"));
    all
}

/// A right configuration, to be damaged.
const RIGHT: &str = "
    elementclass Twice { $n | input -> Paint($n) -> Counter -> output }
    src :: InfiniteSource(LIMIT 3, STOP true) -> c :: Classifier(12/0800, 12/0806 20/0001, -);
    c[0] -> Strip(14) -> CheckIPHeader -> t :: Twice(3) -> q :: Queue(64) -> Unqueue -> Discard;
    c[1], c[2] => Discard, Null -> Discard;
    Script(wait 1ms, stop);
";

fn damaged(numbers: &mut Rng) -> Vec<u8> {
    let mut text = RIGHT.as_bytes().to_vec();
    const PIECES: &[&str] = &[
        "->",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "::",
        ",",
        ";",
        "\"",
        "'",
        "\\<",
        "$",
        "${",
        "/*",
        "//",
        "=>",
        "|",
        "||",
        "...",
        "elementclass",
        "input",
        "output",
        "\0",
        "\u{fffd}",
        "\n# 7 \"x\"\n",
        "99999999999999999999",
        "-1",
        "define(",
        "require(",
        "__REST__",
    ];
    for _ in 0..1 + numbers.below(4) {
        let at = numbers.below(text.len());
        match numbers.below(4) {
            0 => {
                let end = (at + 1 + numbers.below(20)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let piece = PIECES[numbers.below(PIECES.len())].bytes();
                text.splice(at..at, piece).for_each(drop);
            }
            2 => text[at] = numbers.next() as u8,
            _ => text.truncate(at.max(1)),
        }
    }
    text
}

#[test]
fn written_faults_are_pointed_at() {
    let mut faults = String::new();
    for (text, word) in written() {
        let result = castanet(&["run", "-"], text.as_bytes());
        let start: String = text.chars().take(80).collect();
        let output: String = result.err.chars().take(2000).collect();
        if result.status != Some(1) {
            _ = writeln!(faults, "{start}\n  ended with {:?}\n{output}", result.status);
        }
        if !result.err.contains(word) {
            _ = writeln!(faults, "{start}\n  wants `{word}` in\n{output}");
        }
        if result.err.len() >= 200_000 {
            _ = writeln!(faults, "{start}\n  {} bytes of errors", result.err.len());
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn damaged_configurations_never_panic_or_hang() {
    let mut numbers = Rng(0x1bad_b002_dead_beef);
    let mut refused = 0;
    for _ in 0..450 {
        let text = damaged(&mut numbers);
        let result = castanet(&["check", "-"], &text);
        let shown = String::from_utf8_lossy(&text);
        match result.status {
            Some(0) => {}
            Some(1) => {
                refused += 1;
                assert!(
                    result.out.is_empty(),
                    "what is wrong goes to standard error: {}",
                    result.out
                );
                assert!(
                    result.err.contains("error"),
                    "no error is named for\n{shown}\n{}",
                    result.err
                );
            }
            other => panic!("status {other:?} for\n{shown}\n{}", result.err),
        }
    }
    assert!(refused > 200, "only {refused} of 450 were refused");
}

#[test]
fn garbage_by_the_megabyte_is_refused_in_few_words() {
    let mut numbers = Rng(77);
    let garbage: Vec<u8> = (0..1 << 20).map(|_| numbers.next() as u8).collect();
    let printable: Vec<u8> = garbage.iter().map(|b| b' ' + b % 95).collect();
    for text in [garbage, printable] {
        let result = castanet(&["check", "-"], &text);
        assert_eq!(result.status, Some(1));
        assert!(result.err.len() < 200_000, "{} bytes of errors", result.err.len());
    }
}

#[test]
fn directories_and_missing_files_are_refused() {
    for (path, word) in [("/", "directory"), ("/no/such/file", "/no/such/file"), ("", "")] {
        let result = castanet(&["check", path], b"");
        assert_eq!(result.status, Some(1), "{path}: {}", result.err);
        assert!(result.err.contains(word), "{path}: {}", result.err);
    }
}
