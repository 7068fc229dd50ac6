//! The files of the project that its tests read.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").into()
}

/// Returns the text of a file.
pub fn text(path: &str) -> String {
    read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the files in some folders whose names end so: path from the root, and text.
pub fn files(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    folders.iter().for_each(|folder| collect(folder, endings, &mut paths));
    paths.into_iter().map(|path| (path.clone(), text(&path))).collect()
}

fn collect(folder: &str, endings: &[&str], found: &mut Vec<String>) {
    for entry in read_dir(root().join(folder)).into_iter().flatten().flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        let ending = path.rsplit('.').next().unwrap_or_default();
        if entry.path().is_dir() && !path.ends_with("/target") && !path.ends_with("/corpus") {
            collect(&path, endings, found);
        } else if endings.contains(&ending) {
            found.push(path);
        }
    }
}
