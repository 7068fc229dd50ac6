//! `cargo xtask vendor`: files of web pages from the registry of npm. They are part of the repository, so
//! that a build needs no network and no npm.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package of the registry, and what of it stands where in the repository.
struct Package {
    name: &'static str,
    version: &'static str,
    /// The hash of its archive, as the registry names it.
    integrity: &'static str,
    /// Files: path in the package, and path in the repository.
    files: &'static [(&'static str, &'static str)],
}

/// The packages.
const PACKAGES: &[Package] = &[
    Package {
        name: "preact",
        version: "10.29.8",
        integrity: "sha512-ej2aVZ+vZ8WO7tvlQWRM9N63A0KzF9q4mWJfDUHgYaIofWY9hu74QdnQrjoPMmZi2/nZ5gN0bJCQF49xQqx09Q==",
        files: &[
            ("dist/preact.module.js", "crates/castanet/web/vendor/preact.js"),
            ("hooks/dist/hooks.module.js", "crates/castanet/web/vendor/preact_hooks.js"),
            ("LICENSE", "crates/castanet/web/vendor/preact.LICENSE"),
        ],
    },
    Package {
        name: "htm",
        version: "3.1.1",
        integrity: "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        files: &[
            ("dist/htm.module.js", "crates/castanet/web/vendor/htm.js"),
            ("LICENSE", "crates/castanet/web/vendor/htm.LICENSE"),
        ],
    },
    Package {
        name: "@dagrejs/dagre",
        version: "3.1.3",
        integrity: "sha512-X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg==",
        files: &[
            ("dist/dagre.esm.js", "crates/castanet/web/vendor/dagre.js"),
            ("LICENSE", "crates/castanet/web/vendor/dagre.LICENSE"),
        ],
    },
    Package {
        name: "uplot",
        version: "1.6.32",
        integrity: "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        files: &[
            ("dist/uPlot.iife.min.js", "crates/castanet/web/vendor/uplot.js"),
            ("dist/uPlot.min.css", "crates/castanet/web/vendor/uplot.css"),
            ("LICENSE", "crates/castanet/web/vendor/uplot.LICENSE"),
        ],
    },
    Package {
        name: "axe-core",
        version: "4.14.1",
        integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        files: &[
            ("axe.min.js", "crates/lab/assets/axe-core/axe.min.js"),
            ("LICENSE", "crates/lab/assets/axe-core/LICENSE"),
        ],
    },
    Package {
        name: "minisearch",
        version: "7.2.0",
        integrity: "sha512-dqT2XBYUOZOiC5t2HRnwADjhNS2cecp9u+TJRiJ1Qp/f5qjkeT5APcGPjHw+bz89Ms8Jp+cG4AlE+QZ/QnDglg==",
        files: &[
            ("dist/umd/index.js", "xtask/vendor/minisearch/minisearch.js"),
            ("LICENSE.txt", "xtask/vendor/minisearch/LICENSE.txt"),
        ],
    },
];

/// The folder of the web view, whose files are served one by one.
const SERVED: &str = "crates/castanet/web/";

/// Fetches the files and puts them into the repository; with `check`, says which differ instead.
///
/// # Errors
/// npm is missing, the registry gives another archive, or files differ.
pub(crate) fn vendor(check: bool) -> Result<(), String> {
    let folder = PathBuf::from("target/vendor");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut stale = Vec::new();
    for package in PACKAGES {
        package.fetch(&folder)?;
        for (from, to) in package.files {
            let from = folder.join("package").join(from);
            let text = std::fs::read_to_string(&from);
            let text = text.map_err(|e| format!("{}: {e}", from.display()))?;
            let text = if to.starts_with(SERVED) { served(&text) } else { text };
            if std::fs::read_to_string(to).is_ok_and(|own| own == text) {
                continue;
            }
            stale.push(*to);
            if !check {
                std::fs::write(to, text).map_err(|e| format!("{to}: {e}"))?;
            }
        }
    }
    _ = std::fs::remove_dir_all(&folder);
    stale.iter().for_each(|path| println!("{}: {path}", if check { "differs" } else { "written" }));
    match check && !stale.is_empty() {
        true => Err("`cargo xtask vendor` writes these files anew".into()),
        false => Ok(()),
    }
}

impl Package {
    /// Unpacks the package into `package` in a folder.
    fn fetch(&self, folder: &Path) -> Result<(), String> {
        let name = format!("{}@{}", self.name, self.version);
        let answer =
            output(Command::new("npm").args(["pack", "--json", &name]).current_dir(folder))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|e| format!("npm: {e}"))?;
        let [file, integrity] = ["filename", "integrity"].map(|key| answer[0][key].as_str());
        let file = file.ok_or_else(|| format!("npm names no archive of {name}"))?;
        if integrity != Some(self.integrity) {
            let found = integrity.unwrap_or("none");
            return Err(format!("{name} has the hash {found}, and not {}", self.integrity));
        }
        _ = std::fs::remove_dir_all(folder.join("package"));
        output(Command::new("tar").args(["xzf", file]).current_dir(folder)).map(drop)
    }
}

/// A file as it is served: modules name each other by their paths, and no map that is not there.
fn served(text: &str) -> String {
    let text = text.replace("from\"preact\"", "from\"./preact.js\"");
    match text.find("//# sourceMappingURL=") {
        Some(end) => text[..end].trim_end().to_owned() + "\n",
        None => text,
    }
}

/// The standard output of a command that has to succeed.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
