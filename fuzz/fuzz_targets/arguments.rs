//! A line with a class, and how many inputs and outputs of it are connected;
//! then its arguments; behind a zero byte lines with a handler and a value
//! each. The element is built, or refused; if it has nothing to do with the
//! outside world, it also gets packets, and its handlers are called.
#![no_main]

use castanet_engine::class::{Class, Library};
use castanet_engine::graph::ports::counts;
use castanet_engine::router::Router;
use castanet_fuzz::{CLASSES, ELEMENTS, flat, live_through, options, text};
use std::fmt::Write;

/// More ports than any number that a class treats in its own way.
const MOST_PORTS: usize = 6;

/// The most handlers that are called: an endless source is let run after each.
const MOST_LINES: usize = 5;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (arguments, script) = rest.split_once('\0').unwrap_or((rest, ""));
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let Some(class) = CLASSES.with(|all| meant(name, all)) else { return };
    let mut wanted = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0usize);
    let ports = counts(class);
    let fit = |n: usize, (least, most): (usize, usize)| n.min(MOST_PORTS).min(most).max(least);
    let (inputs, outputs) = (fit(wanted(), ports.inputs), fit(wanted(), ports.outputs));
    if outputs > MOST_PORTS {
        return;
    }
    let element = format!("e :: {}({arguments})\n", class.spec.class);
    CLASSES.with(|all| refused_or_made(&element, inputs, outputs, all));
    if ELEMENTS.with(|ours| ours.get(class.spec.class).is_some()) {
        live_through(&example(element, inputs, outputs, script));
    }
});

/// The class of that name, or else some class.
fn meant(name: &str, library: &Library) -> Option<&'static Class> {
    let some = name.bytes().fold(0, |sum: usize, byte| sum * 31 % 9973 + usize::from(byte));
    library.get(name).or_else(|| library.classes().nth(some % library.classes().count()))
}

/// Looks at the arguments as `castanet check` does, which opens nothing; what is wrong can be shown.
fn refused_or_made(element: &str, inputs: usize, outputs: usize, library: &Library) {
    let mut config = element.to_owned();
    (0..inputs).for_each(|n| _ = writeln!(config, "Idle -> [{n}] e"));
    (0..outputs).for_each(|n| _ = writeln!(config, "e [{n}] -> Idle"));
    let (flat, mut found, sources) = flat(&config, library);
    if !found.has_errors() {
        Router::check(&flat, library, &options(true), &mut found);
    }
    for error in found.iter() {
        assert!(!error.message.trim().is_empty(), "an error without a word");
    }
    found.render_click(&sources);
    found.render_rich(&sources, true);
}

/// An example: packets to every input, then handlers, then packets again.
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
    for line in script.lines().take(MOST_LINES) {
        // With or without a value, the handler of that name is also read.
        _ = writeln!(text, "! e.{line}\n= e.{line}");
    }
    feed(&mut text);
    text
}
