//! Checks of every element: examples run, show every exit, and survive hostile packets.

use castanet_bench::example::{self, Numbers, without_waits};
use castanet_element::class::{Library, Role};
use castanet_element::fate::FateKind;
use castanet_tenants::CLASSES;
use std::path::Path;

fn library() -> Library {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

#[test]
fn every_example_runs_and_every_element_has_one() {
    let library = library();
    // A program without ports has nothing to show in an example: it starts a process.
    for class in CLASSES.iter().filter(|class| class.role != Role::Control) {
        let ran = example::run_all(class, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(ran > 0, "{} has no example", class.spec.class);
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

#[test]
fn numbers_end_nothing() {
    let examples = |class| without_waits(class).map(move |text| (class, text));
    let numbers = Numbers {
        test: "numbers_end_nothing",
        under: &[],
        folder: &Path::new(env!("CARGO_TARGET_TMPDIR")).join("tenants-numbers"),
        library: &library(),
        examples: CLASSES.iter().flat_map(examples).collect(),
    };
    numbers.end_nothing().unwrap_or_else(|error| panic!("{error}"));
}
