//! The control files of the packages: what they are, what they need, what is done at installation.

use super::tree::{write, write_script};
use super::{PackageFacts, failed};
use std::path::Path;
use std::process::Command;

/// The maintainer, from the variables that Debian's tools have for it.
pub(super) fn maintainer() -> String {
    let or = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (name, mail) =
        (or("DEBFULLNAME", "Castanet developers"), or("DEBEMAIL", "castanet@localhost"));
    format!("{name} <{mail}>")
}

/// Files that belong to the machine's administrator, and stay as they are.
const CONFIGURATION: &str = "/etc/castanet/example.click\n/etc/default/castanet\n";

/// Done after the files are there. No router is started: there is none that would fit all machines.
const AFTER_INSTALLATION: &str = r#"#!/bin/sh
set -e
if [ "$1" = configure ]; then
    systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} castanet.conf
    if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
    fi
fi
"#;

/// Done before the files go. An upgrade leaves routers running; they change at their next start.
const BEFORE_REMOVAL: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl stop 'castanet@*.service' || true
fi
"#;

/// Done after the files are gone.
const AFTER_REMOVAL: &str = r#"#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
"#;

/// The packages of the libraries that the program needs.
pub(super) fn dependencies(main: &Path, stage: &Path) -> Result<String, String> {
    // dpkg-shlibdeps wants to be in a source package.
    let source = stage.join("source");
    write(
        &source.join("debian/control"),
        b"Source: castanet\n\nPackage: castanet\nArchitecture: any\n",
    )?;
    let program = main.join("usr/bin/castanet");
    let done = Command::new("dpkg-shlibdeps").arg("-O").arg(&program).current_dir(&source).output();
    let done = done.map_err(|e| format!("cannot run dpkg-shlibdeps (package dpkg-dev): {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let list = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    let errors = String::from_utf8_lossy(&done.stderr);
    list.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps: {text}{errors}"))
}

/// Writes the control files of `castanet`.
pub(super) fn write_main(tree: &Path, facts: &PackageFacts, libraries: &str) -> Result<(), String> {
    let PackageFacts { version, architecture, .. } = facts;
    let (size, maintainer) = (kilobytes(tree)?, maintainer());
    let control = format!(
        "Package: castanet\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: {maintainer}\nInstalled-Size: {size}\n\
         Depends: {libraries}, systemd | systemd-standalone-sysusers | systemd-sysusers\n\
         Section: net\nPriority: optional\n\
         Description: packet-processing engine for Click graphs\n \
         Castanet runs packet-processing graphs written in the Click language\n \
         (routers, firewalls, address translators, any middlebox) on ordinary\n \
         interfaces of Linux, in batches and to completion, by AF_XDP where the\n \
         driver supports it.\n .\n \
         The unit castanet@NAME.service runs /etc/castanet/NAME.click.\n"
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/conffiles"), CONFIGURATION.as_bytes())?;
    write_script(&tree.join("DEBIAN/postinst"), AFTER_INSTALLATION)?;
    write_script(&tree.join("DEBIAN/prerm"), BEFORE_REMOVAL)?;
    write_script(&tree.join("DEBIAN/postrm"), AFTER_REMOVAL)
}

/// Writes the control files of `castanet-dbgsym`.
pub(super) fn write_symbols(
    tree: &Path,
    facts: &PackageFacts,
    build_id: &str,
) -> Result<(), String> {
    let PackageFacts { version, architecture, .. } = facts;
    let (size, maintainer) = (kilobytes(tree)?, maintainer());
    let control = format!(
        "Package: castanet-dbgsym\nSource: castanet\nVersion: {version}\n\
         Auto-Built-Package: debug-symbols\nArchitecture: {architecture}\n\
         Maintainer: {maintainer}\nInstalled-Size: {size}\n\
         Depends: castanet (= {version})\nSection: debug\nPriority: optional\n\
         Description: debug symbols for castanet\nBuild-Ids: {build_id}\n"
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())
}

/// The size of a tree in KiB, rounded up for each file.
fn kilobytes(tree: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for entry in std::fs::read_dir(tree).map_err(|e| failed(tree, &e))?.flatten() {
        let path = entry.path();
        let it = path.symlink_metadata().map_err(|e| failed(&path, &e))?;
        sum += if it.is_dir() { 1 + kilobytes(&path)? } else { it.len().div_ceil(1024) };
    }
    Ok(sum)
}
