//! Checks of the element: its examples run, show every exit, and survive hostile packets.
#![cfg(feature = "engine")]

use castanet_bench::example;
use castanet_element::class::Library;
use castanet_element::fate::FateKind;
use castanet_wasm::CLASSES;
use std::path::Path;

/// The classes; examples name modules in the folder of compiled ones.
fn library() -> Library {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wasm/modules");
    std::env::set_current_dir(modules).expect("is there");
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

#[test]
fn every_example_runs_and_every_element_has_one() {
    let library = library();
    for class in CLASSES {
        let ran = example::run_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(ran > 0, "{} has no example", class.spec.class);
    }
}

#[test]
fn a_refused_configuration_changes_nothing() {
    let library = library();
    for class in CLASSES {
        let refused =
            example::refuse_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(refused > 0, "{}: no example came so far", class.spec.class);
        for text in example::blocks(class.spec.doc) {
            let swapped = example::with_swaps(&example::with_fragments(&text));
            example::survive(&swapped, &library, 4).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn every_exit_is_shown_in_an_example() {
    for class in CLASSES {
        let shown: String = example::blocks(class.spec.doc).collect();
        for fate in class.fates.iter().filter(|fate| fate.kind == FateKind::Drop) {
            let word = format!("drops.{} ", fate.name);
            assert!(shown.contains(&word), "{}: no {word}", class.spec.class);
        }
    }
}

#[test]
fn hostile_packets_make_no_element_panic_and_none_is_lost_unseen() {
    let library = library();
    for class in CLASSES {
        for (n, text) in example::blocks(class.spec.doc).enumerate() {
            if let Err(error) = example::storm(&text, &library, 0x5eed + n as u64, 200) {
                panic!("{}, example {}: {error}", class.spec.class, n + 1);
            }
        }
    }
}
