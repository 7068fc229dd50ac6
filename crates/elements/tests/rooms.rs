//! The rooms: the file of each element is in the folder of its room, and rooms are neither small
//! nor large.

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

/// The reason why an element must not stand in `file`, or be listed in `room`, if there is one.
fn misplacement(room: &str, name: &str, file: &str, declared: Option<&str>) -> Option<String> {
    let Some(declared) = declared else {
        return Some(format!("{file}: {name} declares no room: `#[element(room = ...)]`"));
    };
    if file.rsplit('/').nth(1) != Some(declared) {
        return Some(format!("{file}: {name} declares the room {declared}: move the file"));
    }
    (declared != room)
        .then(|| format!("{file}: {name} of the room {declared} is listed in {room}/"))
}

/// The reason why a room must not have this number of files, if there is one.
fn size_error(room: &str, files: usize) -> Option<String> {
    (!(MIN_FILES..=MAX_FILES).contains(&files)).then(|| {
        format!("{room}/ has {files} files, but a room has {MIN_FILES} to {MAX_FILES}: merge or divide it")
    })
}

#[test]
fn every_element_stands_in_the_room_that_it_declares() {
    let classes = ROOMS.iter().flat_map(|(room, all)| all.iter().map(move |it| (room, &it.spec)));
    let wrong: Vec<String> = classes
        .filter_map(|(room, spec)| misplacement(room, spec.class, spec.file, spec.room))
        .collect();
    assert!(wrong.is_empty(), "CONTRIBUTING.md, \"Which room\":\n{}", wrong.join("\n"));
}

#[test]
fn rooms_are_neither_too_small_nor_too_large() {
    for (room, _) in ROOMS {
        let files = file_names(&source_folder().join(room));
        let count = files.iter().filter(|name| name.ends_with(".rs")).count();
        assert_eq!(size_error(room, count), None);
    }
}

#[test]
fn planted_misplacements_are_found() {
    let file = "crates/elements/src/ip/strip.rs";
    assert_eq!(misplacement("ip", "Strip", file, Some("ip")), None);
    for (room, declared, part) in [
        ("ip", None, "declares no room"),
        ("edit", Some("edit"), "move the file"),
        ("edit", Some("ip"), "is listed in edit/"),
    ] {
        let error = misplacement(room, "Strip", file, declared).unwrap_or_default();
        assert!(error.contains(part), "{error}");
    }
    assert!([MIN_FILES, MAX_FILES].iter().all(|&files| size_error("ip", files).is_none()));
    assert!([MIN_FILES - 1, MAX_FILES + 1].iter().all(|&files| size_error("ip", files).is_some()));
}

/// Folders that are no rooms, and files outside rooms, would not be covered by the tests above.
#[test]
fn every_file_is_in_a_room() {
    let mut expected: Vec<_> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    expected.extend(["families", "fusions.rs", "lib.rs"].map(str::to_owned));
    expected.sort();
    assert_eq!(file_names(&source_folder()), expected, "rooms, lib.rs and fusions.rs");
}
