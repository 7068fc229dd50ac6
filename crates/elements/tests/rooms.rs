//! The rooms: each element's file stands in the folder of its room, and rooms have a size that a
//! reader can take in.

use castanet_elements::ROOMS;
use std::path::{Path, PathBuf};

/// The fewest and the most source files of a room, its `mod.rs` included.
const FEWEST: usize = 3;
const MOST: usize = 30;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("is a folder").map(|e| e.expect("is an entry"));
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_element_stands_in_the_room_that_it_declares() {
    let mut wrong = Vec::new();
    for (room, classes) in ROOMS {
        for class in *classes {
            let (name, file, declared) = (class.spec.class, class.spec.file, class.spec.room);
            let Some(declared) = declared else {
                wrong.push(format!("{file}: {name} declares no room: `#[element(room = ...)]`"));
                continue;
            };
            if file.rsplit('/').nth(1) != Some(declared) {
                wrong.push(format!("{file}: {name} declares the room {declared}: move the file"));
            }
            if declared != *room {
                wrong.push(format!("{file}: {name} of the room {declared} is listed in {room}/"));
            }
        }
    }
    assert!(wrong.is_empty(), "CONTRIBUTING.md, \"Which room\":\n{}", wrong.join("\n"));
}

#[test]
fn rooms_are_neither_too_small_nor_too_large() {
    for (room, _) in ROOMS {
        let files = names(&source().join(room)).iter().filter(|name| name.ends_with(".rs")).count();
        assert!(
            (FEWEST..=MOST).contains(&files),
            "{room}/ has {files} files, but a room has {FEWEST} to {MOST}: merge or divide it"
        );
    }
}

/// Folders that are no rooms, and files beside them, would escape the tests above.
#[test]
fn every_file_is_in_a_room() {
    let mut expected: Vec<_> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    expected.extend(["fusions.rs", "lib.rs"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(&source()), expected, "rooms, lib.rs and fusions.rs");
}
