//! Properties of all elements.

use castanet_bench::example;
use castanet_element::class::Class;
use castanet_element::fate::FateKind;
use castanet_elements::{ROOMS, library};

fn classes() -> impl Iterator<Item = &'static Class> {
    ROOMS.iter().flat_map(|(_, classes)| classes.iter())
}

#[test]
fn every_example_runs_and_every_element_has_one() {
    let library = library();
    let mut failures = Vec::new();
    for class in classes() {
        match example::run_all(class, &library) {
            Ok(0) => failures.push(format!(
                "{} has no example: add a block fenced as ```click to its doc comment",
                class.spec.file
            )),
            Ok(_) => {}
            Err(e) => failures.push(e),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The initialization of a configuration that is rejected changes nothing in the running one.
#[test]
fn a_rejected_configuration_changes_nothing() {
    let library = library();
    let mut failures = Vec::new();
    for class in classes() {
        match example::refuse_all(class, &library) {
            Ok(0) => failures.push(format!("{}: no example came so far", class.spec.file)),
            Ok(_) => {}
            Err(e) => failures.push(e),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Packets balance when an example is replaced by other configurations, rejected ones too, and when
/// it gets fragments.
#[test]
fn examples_survive_other_configurations() {
    let library = library();
    for class in classes() {
        for text in example::blocks(class.spec.doc) {
            for text in
                [example::with_swaps(&text), example::with_swaps(&example::with_fragments(&text))]
            {
                example::survive(&text, &library, 4)
                    .unwrap_or_else(|e| panic!("{}: {e}\n{text}", class.spec.file));
            }
        }
    }
}

#[test]
fn every_exit_occurs_in_an_example() {
    let mut missing = Vec::new();
    for class in classes() {
        let examples: String = example::blocks(class.spec.doc).collect();
        for (n, fate) in class.fates.iter().enumerate() {
            let (exit, file) = (fate.name, class.spec.file);
            let (word, remedy) = match fate.kind {
                FateKind::Drop => {
                    (format!("drops.{exit} "), format!("add a line `= NAME.drops.{exit} 1`"))
                }
                FateKind::Optional => {
                    (format!("[{n}]"), format!("connect it: `NAME[{n}] -> {exit}`"))
                }
                FateKind::Output => continue,
            };
            if !examples.contains(&word) {
                missing.push(format!("{file}: no example shows the exit `{exit}`: {remedy}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_doc_is_a_sentence() {
    for class in classes() {
        let name = class.spec.class;
        let docs = class.args.iter().map(|a| a.doc).chain(class.fates.iter().map(|f| f.doc));
        let handlers = (class.reads)().into_iter().chain((class.writes)()).map(|h| h.doc);
        for doc in docs.chain(handlers) {
            assert!(doc.ends_with('.'), "{name}: `{doc}` has no full stop");
        }
        let first = class.spec.doc.lines().next().unwrap_or_default();
        let is_valid = first.ends_with('.') && first.len() <= 100;
        assert!(
            is_valid,
            "{name}: the first line is one sentence of at most 100 letters, not `{first}`"
        );
    }
}

#[test]
fn every_file_is_named_after_its_class() {
    for class in classes() {
        let (file, name) = (class.spec.file, class.spec.class);
        let stem = file.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
        let stem = stem.replace('_', "");
        assert!(stem == name.to_lowercase(), "{file}: name the file after its class, {name}");
    }
}

#[test]
fn names_are_unique_and_handlers_too() {
    let mut names_so_far = std::collections::BTreeSet::new();
    for class in classes() {
        for name in [class.spec.class].iter().chain(class.spec.aliases) {
            assert!(names_so_far.insert(*name), "{name} twice");
        }
        for handlers in [(class.reads)(), (class.writes)()] {
            let mut names = std::collections::BTreeSet::new();
            for handler in handlers {
                assert!(names.insert(handler.name), "{}.{} twice", class.spec.class, handler.name);
            }
        }
    }
}

#[test]
fn hostile_packets_cause_no_panic_and_are_all_accounted_for() {
    let library = library();
    let mut failures = Vec::new();
    for class in classes() {
        for (n, text) in example::blocks(class.spec.doc).enumerate() {
            if let Err(e) = example::storm(&text, &library, 0x5eed + n as u64, 40) {
                let (file, n) = (class.spec.file, n + 1);
                failures.push(format!("{file}, example {n} with hostile packets, {e}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
