//! The rooms: the file of each element is in the folder of its room, and rooms are neither small
//! nor large.
//! reader can take in.

use castanet_elements::ROOMS;
use std::path::{Path, PathBuf};

/// Minimum and maximum number of source files of a room, `mod.rs` included.
const MIN_FILES: usize = 3;
const MAX_FILES: usize = 30;

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("is a folder").map(|e| e.expect("is an entry"));
    let mut file_names: Vec<_> =
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    file_names.sort();
    file_names
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
        let files = file_names(&source_folder().join(room))
            .iter()
            .filter(|name| name.ends_with(".rs"))
            .count();
        assert!(
            (MIN_FILES..=MAX_FILES).contains(&files),
            "{room}/ has {files} files, but a room has {MIN_FILES} to {MAX_FILES}: merge or divide it"
        );
    }
}

/// Folders that are no rooms, and files outside rooms, would not be covered by the tests above.
#[test]
fn every_file_is_in_a_room() {
    let mut expected: Vec<_> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    expected.extend(["fusions.rs", "lib.rs"].map(str::to_owned));
    expected.sort();
    assert_eq!(file_names(&source_folder()), expected, "rooms, lib.rs and fusions.rs");
}
