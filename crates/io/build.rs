//! Looks for DPDK, and compiles the few lines of C that its inline functions need.

use std::path::Path;
use std::process::Command;

/// The libraries that the shim calls; drivers load by themselves.
const LIBRARIES: &[&str] = &["rte_eal", "rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring"];

/// The folder of the C files, and those of them to compile.
const FOLDER: &str = "src/sys/dpdk";
const SHIM: &[&str] = &["alike.c", "burst.c", "flow.c", "forward.c", "port.c", "shim.c"];
/// The files that these include.
const HEADERS: &[&str] = &["burst.h", "shim.h"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-changed=build.rs");
    SHIM.iter().chain(HEADERS).for_each(|file| println!("cargo::rerun-if-changed={FOLDER}/{file}"));
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_LIBDIR");
    // Makes a later build find DPDK if it is installed after a build without it.
    let folders = pkg_config(&["--variable", "pc_path", "pkg-config"]).unwrap_or_default();
    for folder in folders.trim().split(':').filter(|folder| Path::new(folder).is_dir()) {
        println!("cargo::rerun-if-changed={folder}");
    }
    let Some(flags) = pkg_config(&["--cflags", "libdpdk"]) else { return };
    let Some(folders) = pkg_config(&["--libs-only-L", "libdpdk"]) else { return };
    let mut shim = cc::Build::new();
    shim.files(SHIM.iter().map(|file| format!("{FOLDER}/{file}")));
    shim.define("ALLOW_EXPERIMENTAL_API", None).opt_level(3);
    // Warnings about DPDK's own headers are not ours to fix.
    shim.warnings(false).extra_warnings(false);
    flags.split_whitespace().for_each(|flag| {
        shim.flag(flag);
    });
    // GCC's optimizations that load values one iteration ahead, or combine two words into one
    // store, cost the short loops over a burst a fifth more instructions.
    shim.flag_if_supported("-fno-tree-pre").flag_if_supported("-fno-tree-slp-vectorize");
    shim.compile("castanet_dpdk");
    for folder in folders.split_whitespace().filter_map(|word| word.strip_prefix("-L")) {
        println!("cargo::rustc-link-search=native={folder}");
    }
    LIBRARIES.iter().for_each(|library| println!("cargo::rustc-link-lib=dylib={library}"));
    println!("cargo::rustc-cfg=dpdk");
}

/// Returns the output of `pkg-config`; `None` if it fails.
fn pkg_config(words: &[&str]) -> Option<String> {
    let output = Command::new("pkg-config").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}
