//! What must hold for every element, so that no element has to say it.

use castanet_elements::{ROOMS, library};
use castanet_engine::class::{Class, Role};
use castanet_engine::element::FateKind;
use castanet_engine::example;

fn classes() -> impl Iterator<Item = (&'static str, &'static Class)> {
    ROOMS.iter().flat_map(|(room, classes)| classes.iter().map(move |class| (*room, class)))
}

#[test]
fn every_example_runs_and_every_element_has_one() {
    let library = library();
    let mut failures = Vec::new();
    for (_, class) in classes() {
        match example::run_all(class, &library) {
            Ok(0) => failures.push(format!("{} has no example", class.spec.class)),
            Ok(_) => {}
            Err(e) => failures.push(e),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_exit_is_shown_in_an_example() {
    for (_, class) in classes() {
        let shown: String = example::blocks(class.spec.doc).collect();
        let mut wanted: Vec<String> = Vec::new();
        let drops = class.fates.iter().filter(|f| f.kind == FateKind::Drop);
        wanted.extend(drops.map(|f| format!("drops.{} ", f.name)));
        let optional = class.fates.iter().enumerate().filter(|(_, f)| f.kind == FateKind::Optional);
        wanted.extend(optional.map(|(n, _)| format!("[{n}]")));
        for word in wanted {
            assert!(shown.contains(&word), "{}: `{word}` is never shown", class.spec.class);
        }
    }
}

#[test]
fn every_doc_is_a_sentence() {
    for (_, class) in classes() {
        let name = class.spec.class;
        let docs = class.args.iter().map(|a| a.doc).chain(class.fates.iter().map(|f| f.doc));
        let handlers = (class.reads)().into_iter().chain((class.writes)()).map(|h| h.doc);
        for doc in docs.chain(handlers) {
            assert!(doc.ends_with('.'), "{name}: `{doc}` has no full stop");
        }
        let first = class.spec.doc.lines().next().unwrap_or_default();
        assert!(first.ends_with('.') && first.len() <= 100, "{name}: first line `{first}`");
    }
}

#[test]
fn every_file_is_named_after_its_class() {
    for (room, class) in classes() {
        let mut path = class.spec.file.trim_end_matches(".rs").rsplit('/');
        let stem = path.next().unwrap_or_default().replace('_', "");
        assert_eq!(stem, class.spec.class.to_lowercase(), "{}", class.spec.file);
        assert_eq!(path.next(), Some(room), "{}", class.spec.file);
    }
}

#[test]
fn names_are_unique_and_handlers_too() {
    let mut seen = std::collections::BTreeSet::new();
    for (_, class) in classes() {
        for name in [class.spec.class].iter().chain(class.spec.aliases) {
            assert!(seen.insert(*name), "{name} twice");
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
fn every_element_stands_in_the_room_of_what_it_takes() {
    for (room, class) in classes() {
        let inputs = castanet_engine::graph::ports::counts(class).inputs.1;
        let want = match (class.role, class.on) {
            (Role::Source, _) if inputs == 0 => "source",
            (Role::Source | Role::Store, _) => "queue",
            (_, "any") => "basic",
            (_, on) => on,
        };
        assert_eq!(room, want, "{}", class.spec.file);
    }
}

#[test]
fn hostile_packets_make_no_element_panic_and_none_is_lost_unseen() {
    let library = library();
    let mut failures = Vec::new();
    for (_, class) in classes() {
        for (n, text) in example::blocks(class.spec.doc).enumerate() {
            if let Err(e) = example::storm(&text, &library, 0x5eed + n as u64, 40) {
                failures.push(format!("{}, example {}: {e}", class.spec.class, n + 1));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
