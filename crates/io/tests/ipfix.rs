//! Tests of the export of flows, in simulated time and in memory.
#![allow(clippy::unwrap_used)] // a test

use castanet_bench::example;
use castanet_element::class::{Class, Library};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use std::sync::Arc;

fn library() -> Library {
    let mut library = castanet_elements::library();
    castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
    library
}

fn class(library: &Library) -> &'static Class {
    library.get("IPFIXExporter").unwrap()
}

#[test]
fn the_examples_run() {
    let library = library();
    let class = class(&library);
    let count = example::run_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(count, 1);
    let refused = example::refuse_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
    assert!(refused > 0, "no example came so far");
}

/// Packets balance under hostile packets, and when configurations replace each other.
#[test]
fn the_examples_survive_hostile_packets_and_hot_swaps() {
    let library = library();
    for (n, text) in example::blocks(class(&library).spec.doc).enumerate() {
        let swapped = example::with_swaps(&example::with_fragments(&text));
        example::survive(&swapped, &library, 4).unwrap_or_else(|error| panic!("{error}"));
        example::storm(&text, &library, 0x5eed + n as u64, 40)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let mut options = Options::new(Arc::new(SilentConsole));
    options.simulated = true;
    for (arguments, expected) in [
        ("", "nobody takes the messages"),
        ("COLLECTOR 192.0.2.1:0", "`192.0.2.1:0` is not an address with a port"),
        ("COLLECTOR 192.0.2.1, MTU 100", "MTU"),
        ("COLLECTOR 192.0.2.1, CAPACITY 0", "CAPACITY"),
    ] {
        let text = format!("Idle -> IPFIXExporter({arguments}) -> Discard;");
        let error = Router::from_text(&text, &library(), &options).err().unwrap();
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}
