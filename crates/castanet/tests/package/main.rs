//! The Debian packages of `cargo xtask deb`: built, looked at, installed below a folder, removed.
//!
//! Needs root and the programs in `.ci/packages`, and fails without them.
#![allow(clippy::unwrap_used)] // a test

use std::path::{Path, PathBuf};
use std::process::Command;

/// Time of the packages.
const EPOCH: &str = "1700000000";

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("package-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program that has to succeed; returns its standard output.
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {out}{errors}");
    out
}

/// Builds both packages of the program that is tested; returns their paths.
fn build(folder: &Path) -> [PathBuf; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--package", "xtask", "--", "deb", "--level", "0"]);
    cargo.args(["--binary", env!("CARGO_BIN_EXE_castanet"), "--out"]).arg(folder);
    let out = run(cargo.current_dir(root).env("SOURCE_DATE_EPOCH", EPOCH));
    let mut paths = out.lines().map(PathBuf::from);
    [paths.next().unwrap(), paths.next().unwrap()]
}

fn dpkg(root: &Path, words: &[&str]) -> String {
    let mut dpkg = Command::new("dpkg");
    // The root has neither a shell nor libraries: scripts run outside, and are told where it is.
    dpkg.arg("--root").arg(root).args(["--force-depends", "--force-script-chrootless"]);
    run(dpkg.args(words))
}

/// The sections of an ELF file, as `readelf` lists them.
fn sections(file: &Path) -> String {
    run(Command::new("readelf").args(["--sections", "--notes", "--wide"]).arg(file))
}

#[test]
fn packages_are_built_the_same_twice_and_install_upgrade_and_go() {
    let (first, second) = (Folder::new("first"), Folder::new("second"));
    let packages = build(&first.0);
    for (one, other) in packages.iter().zip(&build(&second.0)) {
        assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "{one:?} differs");
    }
    let [program, symbols] = packages;
    let field = |name| run(Command::new("dpkg-deb").arg("--field").arg(&program).arg(name));
    let depends = field("Depends");
    assert!(depends.contains("libc6 (>= ") && depends.contains("systemd"), "{depends}");

    let root = Folder::new("root");
    for folder in ["etc", "var/lib/dpkg/updates", "var/lib/dpkg/info"] {
        std::fs::create_dir_all(root.0.join(folder)).unwrap();
    }
    std::fs::write(root.0.join("var/lib/dpkg/status"), "").unwrap();
    let at = |path: &str| root.0.join(path);
    dpkg(&root.0, &["--install", program.to_str().unwrap(), symbols.to_str().unwrap()]);
    let users = std::fs::read_to_string(at("etc/passwd")).unwrap();
    assert!(users.lines().any(|line| line.starts_with("castanet:")), "{users}");
    for path in [
        "usr/lib/systemd/system/castanet@.service",
        "usr/lib/sysusers.d/castanet.conf",
        "usr/share/bash-completion/completions/castanet",
        "usr/share/zsh/vendor-completions/_castanet",
        "usr/share/fish/vendor_completions.d/castanet.fish",
        "usr/share/man/man1/castanet.1.gz",
        "usr/share/man/man1/castanet-run.1.gz",
        "usr/share/doc/castanet/copyright",
        "usr/share/doc/castanet/changelog.gz",
        "etc/default/castanet",
    ] {
        assert!(std::fs::metadata(at(path)).is_ok_and(|it| it.len() > 0), "{path}");
    }
    let installed = at("usr/bin/castanet");
    let unit = std::fs::read_to_string(at("usr/lib/systemd/system/castanet@.service")).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/castanet run "), "{unit}");
    // The program runs without its symbols, which are in the other package under its build id.
    let checked =
        Command::new(&installed).arg("check").arg(at("etc/castanet/example.click")).output();
    assert!(checked.unwrap().status.success());
    let stripped = sections(&installed);
    assert!(!stripped.contains(".debug_line") && !stripped.contains(".symtab"), "{stripped}");
    let id = stripped.lines().find_map(|it| it.split_once("Build ID: ")).unwrap().1.trim();
    let apart = at(&format!("usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    assert!(sections(&apart).contains(".debug_line"), "{apart:?}");

    // A file that the administrator has changed stays, through an upgrade and a removal.
    std::fs::write(at("etc/castanet/example.click"), "mine").unwrap();
    dpkg(&root.0, &["--install", program.to_str().unwrap(), symbols.to_str().unwrap()]);
    let kept = || std::fs::read_to_string(at("etc/castanet/example.click")).ok();
    assert_eq!(kept().as_deref(), Some("mine"));
    dpkg(&root.0, &["--remove", "castanet-dbgsym", "castanet"]);
    assert!(!installed.exists() && !apart.exists());
    assert_eq!(kept().as_deref(), Some("mine"));
    dpkg(&root.0, &["--purge", "castanet"]);
    assert_eq!(kept(), None);

    let mut lintian = Command::new("lintian");
    // The maintainer's address is that of the package's builder, and `--level 0` compresses nothing.
    const SUPPRESSED: &str = "bogus-mail-host,bogus-mail-host-in-debian-changelog,\
                              uses-no-compression-for-control-tarball,\
                              uses-no-compression-for-data-tarball";
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags", SUPPRESSED]);
    println!("{}", run(lintian.args([&program, &symbols])));
}
