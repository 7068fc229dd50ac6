//! Tells the program the hash of the sources that it is compiled from.

#[path = "src/source_files.rs"]
mod source_files;

use source_files::{FOLDERS, hash};
use std::path::Path;

fn main() {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&here).join("../..");
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    // Without the sources around it the program can still be built, and builds no others.
    let hash = hash(&root).unwrap_or_default();
    println!("cargo::rustc-env=CASTANET_SOURCE_HASH={hash}");
}
