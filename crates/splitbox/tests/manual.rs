//! Checks of every element: examples run, and survive hostile packets and refused configurations.

mod common;

use castanet_bench::example::{self, Numbers, without_waits};
use castanet_element::class::Library;
use castanet_splitbox::CLASSES;
use std::path::Path;

fn library() -> Library {
    common::enter("splitbox-manual");
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

#[test]
fn every_example_runs() {
    let library = library();
    let count = |class| example::run_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
    assert!(CLASSES.iter().map(count).sum::<usize>() > 0);
}

#[test]
fn a_refused_configuration_changes_nothing() {
    let library = library();
    for class in CLASSES {
        example::refuse_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        for text in example::blocks(class.spec.doc) {
            let swapped = example::with_swaps(&example::with_fragments(&text));
            example::survive(&swapped, &library, 4).unwrap_or_else(|error| panic!("{error}"));
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

#[test]
fn numbers_end_nothing() {
    let examples = |class| without_waits(class).map(move |text| (class, text));
    let numbers = Numbers {
        test: "numbers_end_nothing",
        under: &[],
        folder: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("splitbox-numbers"),
        library: &library(),
        examples: CLASSES.iter().flat_map(examples).collect(),
    };
    numbers.end_nothing().unwrap_or_else(|error| panic!("{error}"));
}
