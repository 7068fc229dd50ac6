//! The files of the packages, staged below a folder.

use super::{PackageFacts, failed, path};
use crate::steps::output;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Files of the repository, and their places in the package.
const COPIED: &[(&str, &str)] = &[
    ("crates/castanet/src/systemd/example.click", "etc/castanet/example.click"),
    ("share/debian/default", "etc/default/castanet"),
    ("crates/castanet/src/systemd/castanet.sysusers", "usr/lib/sysusers.d/castanet.conf"),
    ("share/debian/copyright", "usr/share/doc/castanet/copyright"),
    ("share/debian/lintian-overrides", "usr/share/lintian/overrides/castanet"),
    ("docs/operating.md", "usr/share/doc/castanet/operating.md"),
];

/// Completions: the shell, and the place of its file.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/castanet"),
    ("zsh", "usr/share/zsh/vendor-completions/_castanet"),
    ("fish", "usr/share/fish/vendor_completions.d/castanet.fish"),
];

/// Stages all files of the package `castanet`, the program with its symbols.
pub(super) fn program(program: &Path, tree: &Path, facts: &PackageFacts) -> Result<(), String> {
    let place = tree.join("usr/bin/castanet");
    write(&place, b"")?;
    std::fs::copy(program, &place).map_err(|e| failed(&place, &e))?;
    for (from, to) in COPIED {
        let bytes = std::fs::read(from).map_err(|e| failed(Path::new(from), &e))?;
        write(&tree.join(to), &bytes)?;
    }
    let print = |words: &[&str]| output(path(program)?, words).map(|(text, _)| text);
    let unit = print(&["install-service", "--print", "--program", "/usr/bin/castanet"])?;
    write(&tree.join("usr/lib/systemd/system/castanet@.service"), unit.as_bytes())?;
    for (shell, to) in COMPLETIONS {
        write(&tree.join(to), print(&["completions", shell])?.as_bytes())?;
    }
    manual(program, tree)?;
    let changes =
        std::fs::read("CHANGELOG.md").map_err(|e| failed(Path::new("CHANGELOG.md"), &e))?;
    compressed(&tree.join("usr/share/doc/castanet/changelog"), &changes)?;
    let debian = debian_changelog(facts)?;
    compressed(&tree.join("usr/share/doc/castanet/changelog.Debian"), debian.as_bytes())
}

/// The manual pages of the program; those of Click's tools come with their links.
fn manual(program: &Path, tree: &Path) -> Result<(), String> {
    let folder = tree.join("usr/share/man/man1");
    output(path(program)?, &["man", path(&folder)?])?;
    for entry in std::fs::read_dir(&folder).map_err(|e| failed(&folder, &e))?.flatten() {
        let page = entry.path();
        if entry.file_name().to_string_lossy().starts_with("castanet") {
            run_quietly("gzip", &["-9n", path(&page)?])?;
        } else {
            std::fs::remove_file(&page).map_err(|e| failed(&page, &e))?;
        }
    }
    Ok(())
}

fn debian_changelog(facts: &PackageFacts) -> Result<String, String> {
    let (date, _) = output("date", &["-uR", "-d", &format!("@{}", facts.epoch)])?;
    let (version, maintainer) = (&facts.version, super::control::maintainer());
    Ok(format!(
        "castanet ({version}) unstable; urgency=medium\n\n  \
         * Package of this version; its changes are in changelog.gz.\n\n \
         -- {maintainer}  {}\n",
        date.trim()
    ))
}

/// Moves the symbols of the staged program into the other package; returns the build id.
pub(super) fn symbols(program: &Path, main: &Path, symbols: &Path) -> Result<String, String> {
    let staged = main.join("usr/bin/castanet");
    let (notes, _) = output("readelf", &["--notes", path(program)?])?;
    let line = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    let id = line.ok_or("the program has no build id; link it with --build-id")?.trim().to_owned();
    let (first, rest) = id.split_at(2.min(id.len()));
    let place = symbols.join(format!("usr/lib/debug/.build-id/{first}/{rest}.debug"));
    write(&place, b"")?;
    let words = ["--only-keep-debug", "--compress-debug-sections", path(program)?, path(&place)?];
    run_quietly("objcopy", &words)?;
    // Debuggers find them by the build id.
    run_quietly("strip", &["--strip-unneeded", "--remove-section=.comment", path(&staged)?])?;
    let doc = symbols.join("usr/share/doc/castanet-dbgsym");
    let parent = doc.parent().unwrap_or(symbols);
    std::fs::create_dir_all(parent).map_err(|e| failed(parent, &e))?;
    std::os::unix::fs::symlink("castanet", &doc).map_err(|e| failed(&doc, &e))?;
    Ok(id)
}

/// Sets the permissions and times of all files, and writes their checksums.
pub(super) fn finish(tree: &Path, facts: &PackageFacts) -> Result<(), String> {
    let mut files = Vec::new();
    collect(tree, Path::new(""), &mut files)?;
    files.sort();
    let sums: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|file| !file.starts_with("DEBIAN/") && !tree.join(file).is_symlink())
        .collect();
    let done = Command::new("md5sum").args(&sums).current_dir(tree).output();
    let done = done.map_err(|e| format!("cannot run md5sum: {e}"))?;
    write(&tree.join("DEBIAN/md5sums"), &done.stdout)?;
    let epoch = format!("@{}", facts.epoch);
    let tree = path(tree)?;
    run_quietly("chmod", &["-R", "u=rwX,go=rX", tree])?;
    run_quietly("find", &[tree, "-exec", "touch", "-hd", &epoch, "{}", "+"])
}

/// All files below a folder, as paths from `tree`.
fn collect(tree: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let whole = tree.join(folder);
    for entry in std::fs::read_dir(&whole).map_err(|e| failed(&whole, &e))?.flatten() {
        let below = folder.join(entry.file_name());
        match entry.file_type().is_ok_and(|it| it.is_dir()) {
            true => collect(tree, &below, files)?,
            false => files.push(path(&below)?.to_owned()),
        }
    }
    Ok(())
}

/// Writes a file compressed, under its name with `.gz`.
fn compressed(place: &Path, bytes: &[u8]) -> Result<(), String> {
    write(place, bytes)?;
    run_quietly("gzip", &["-9nf", path(place)?])
}

/// Writes a file, and makes its folders.
pub(super) fn write(place: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
    std::fs::write(place, bytes).map_err(|e| failed(place, &e))
}

/// Writes a file that is executed.
pub(super) fn write_script(place: &Path, text: &str) -> Result<(), String> {
    write(place, text.as_bytes())?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place, mode).map_err(|e| failed(place, &e))
}

fn run_quietly(program: &str, words: &[&str]) -> Result<(), String> {
    output(program, words).map(|_| ())
}
