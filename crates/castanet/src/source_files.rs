//! The files that Castanet is compiled from, and their hash: by it `castanet build` knows sources that
//! are those of the running program.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// The folders and files at the root that have to do with the program.
pub(crate) const FOLDERS: [&str; 6] =
    ["Cargo.toml", "Cargo.lock", ".cargo/config.toml", "crates", "xtask", MODULES];

/// The WebAssembly modules that are measured.
const MODULES: &str = "sdk/wasm/modules";

/// The hash of all files; an error if one cannot be read.
pub(crate) fn hash(root: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    for file in list(root)? {
        file.hash(&mut hasher);
        std::fs::read(root.join(&file))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The files, sorted; paths from the root.
pub(crate) fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = FOLDERS[..3].iter().map(PathBuf::from).collect();
    add_package(root, Path::new("xtask"), &mut files)?;
    add_folder(root, Path::new(MODULES), &mut files)?;
    for entry in std::fs::read_dir(root.join("crates"))? {
        add_package(root, &Path::new("crates").join(entry?.file_name()), &mut files)?;
    }
    files.sort();
    Ok(files)
}

/// Adds what cargo needs to compile a package; its tests are no part of it.
fn add_package(root: &Path, package: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let own = ["Cargo.toml", "build.rs"].map(|name| package.join(name));
    files.extend(own.into_iter().filter(|file| root.join(file).is_file()));
    add_folder(root, &package.join("src"), files)
}

fn add_folder(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !root.join(folder).is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => add_folder(root, &path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
