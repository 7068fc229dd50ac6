//! Fuzzes arguments and handlers of elements. The input is a line with a class
//! and its numbers of connected inputs and outputs; then its arguments; after a
//! zero byte, lines with a handler and a value each. The element is built or
//! refused. If it does not use the outside world, it also gets packets, and its
//! handlers are called.
#![no_main]

use castanet_element::class::{Class, Library};
use castanet_element::class::ports::counts;
use castanet_runtime::router::Router;
use castanet_fuzz::{CLASSES, ELEMENTS, flat, options, run_example, text};
use std::fmt::Write;

/// Most inputs and outputs: more than any number of ports with a meaning of its own.
const MAX_PORTS: usize = 6;

/// Most handlers that are called, because an endless source runs after each.
const MAX_LINES: usize = 5;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (arguments, script) = rest.split_once('\0').unwrap_or((rest, ""));
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let Some(class) = CLASSES.with(|all| find_class(name, all)) else { return };
    let mut wanted = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0usize);
    let ports = counts(class);
    let fit = |n: usize, (least, most): (usize, usize)| n.min(MAX_PORTS).min(most).max(least);
    let (inputs, outputs) = (fit(wanted(), ports.inputs), fit(wanted(), ports.outputs));
    if outputs > MAX_PORTS {
        return;
    }
    let element = format!("e :: {}({arguments})\n", class.spec.class);
    CLASSES.with(|all| check_arguments(&element, inputs, outputs, all));
    if ELEMENTS.with(|all| all.get(class.spec.class).is_some()) {
        run_example(&example(element, inputs, outputs, script));
    }
});

/// Returns the class with a name, or, for an unknown name, a class by the name's hash.
fn find_class(name: &str, library: &Library) -> Option<&'static Class> {
    let hash = name.bytes().fold(0, |sum: usize, byte| sum * 31 % 9973 + usize::from(byte));
    library.get(name).or_else(|| library.classes().nth(hash % library.classes().count()))
}

/// Checks the arguments as `castanet check` does, which opens no device, and renders the errors.
fn check_arguments(element: &str, inputs: usize, outputs: usize, library: &Library) {
    let mut config = element.to_owned();
    (0..inputs).for_each(|n| _ = writeln!(config, "Idle -> [{n}] e"));
    (0..outputs).for_each(|n| _ = writeln!(config, "e [{n}] -> Idle"));
    let (flat, mut diagnostics, sources) = flat(&config, library);
    if !diagnostics.has_errors() {
        Router::check(&flat, library, &options(true), &mut diagnostics);
    }
    // A `Message` says what its argument says, which may be nothing.
    let has_own_words = flat.elements.iter().any(|it| it.class.starts_with("Message"));
    for error in diagnostics.iter() {
        assert!(has_own_words || !error.message.trim().is_empty(), "an error without a word");
    }
    diagnostics.render_click(&sources);
    diagnostics.render_rich(&sources, true);
}

/// Returns an example: packets to every input, then handlers, then packets again.
fn example(mut text: String, inputs: usize, outputs: usize, script: &str) -> String {
    const PACKETS: [&str; 5] = [
        "10.0.0.1:53 > 10.0.0.2:99 udp ttl 64 len 60",
        "eth 0:0:0:0:0:1 > 0:0:0:0:0:2 10.0.0.1:1 > 10.0.0.2:2 tcp",
        "1.0.0.1 > 2.0.0.2 icmp ; paint 3",
        "hex 60 00 00 00 00 00 3b 40",
        "hex 00",
    ];
    (0..inputs).for_each(|n| _ = writeln!(text, "in{n} -> [{n}] e"));
    (0..outputs).for_each(|n| _ = writeln!(text, "e [{n}] -> out{n}"));
    let feed = |text: &mut String| {
        for packet in PACKETS {
            (0..inputs).for_each(|n| _ = writeln!(text, "> in{n} {packet}"));
        }
        text.push_str("+ 100ms\n");
    };
    feed(&mut text);
    for line in script.lines().take(MAX_LINES) {
        // The handler is written, with or without a value, and read.
        _ = writeln!(text, "! e.{line}\n= e.{line}");
    }
    feed(&mut text);
    text
}
