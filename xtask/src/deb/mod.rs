//! `cargo xtask deb`: the Debian packages `castanet` and `castanet-dbgsym`.

mod control;
mod tree;

use crate::steps::{output, run};
use std::path::{Path, PathBuf};

/// Options of `cargo xtask deb`.
pub(crate) struct Options {
    /// A program to package, in place of one that is built for it.
    binary: Option<PathBuf>,
    /// Cargo's profile of the program that is built.
    profile: String,
    /// The folder of the packages.
    out: PathBuf,
    /// Effort of the compression, 1 to 9; 0 for none.
    level: u8,
}

/// Facts that both packages have in common.
struct PackageFacts {
    /// Version of the package: that of the program, and the revision of the packaging.
    version: String,
    architecture: String,
    /// Time of the package and all of its files, in seconds since 1970.
    epoch: u64,
}

/// Revision of the packaging of one version.
const REVISION: &str = "1";

impl Options {
    /// Options from the words of the command line; `None` if they are wrong.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let mut options = Options {
            binary: None,
            profile: "dist".into(),
            out: Path::new(&target).join("debian"),
            level: 9,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next()?;
            match *word {
                "--binary" => options.binary = Some(value.into()),
                "--profile" => options.profile = (*value).to_owned(),
                "--out" => options.out = value.into(),
                "--level" => options.level = value.parse().ok().filter(|&level| level <= 9)?,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Builds both packages; returns the path of `castanet`.
pub(crate) fn deb(options: &Options) -> Result<PathBuf, String> {
    let program = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(&options.profile)?,
    };
    let program = program.canonicalize().map_err(|e| format!("{}: {e}", program.display()))?;
    std::fs::create_dir_all(&options.out).map_err(|e| failed(&options.out, &e))?;
    let out = options.out.canonicalize().map_err(|e| failed(&options.out, &e))?;
    let facts = PackageFacts::find(&program)?;
    let stage = out.join("stage");
    _ = std::fs::remove_dir_all(&stage);
    let (main, symbols) = (stage.join("castanet"), stage.join("castanet-dbgsym"));
    tree::program(&program, &main, &facts)?;
    let build_id = tree::symbols(&program, &main, &symbols)?;
    let depends = control::dependencies(&main, &stage)?;
    control::write_main(&main, &facts, &depends)?;
    control::write_symbols(&symbols, &facts, &build_id)?;
    let mut packages = Vec::new();
    for (name, tree) in [("castanet", &main), ("castanet-dbgsym", &symbols)] {
        tree::finish(tree, &facts)?;
        packages.push(pack(name, tree, &out, options.level, &facts)?);
    }
    _ = std::fs::remove_dir_all(&stage);
    packages.iter().for_each(|package| println!("{}", package.display()));
    Ok(packages.swap_remove(0))
}

/// Builds the program with its symbols.
fn build(profile: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    run(&cargo, &["build", "--package", "castanet", "--locked", "--profile", profile])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(Path::new(&target).join(folder).join("castanet"))
}

/// Makes the package of a tree, the same from the same tree.
fn pack(
    name: &str,
    tree: &Path,
    out: &Path,
    level: u8,
    facts: &PackageFacts,
) -> Result<PathBuf, String> {
    let PackageFacts { version, architecture, epoch } = facts;
    let package = out.join(format!("{name}_{version}_{architecture}.deb"));
    let (epoch, effort) = (format!("SOURCE_DATE_EPOCH={epoch}"), format!("-z{level}"));
    let form = if level == 0 { "-Znone" } else { "-Zxz" };
    let words = ["dpkg-deb", "--root-owner-group", form, &effort, "--build"];
    output("env", &[&[epoch.as_str()], &words[..], &[path(tree)?, path(&package)?]].concat())?;
    Ok(package)
}

impl PackageFacts {
    fn find(program: &Path) -> Result<PackageFacts, String> {
        let (said, _) = output(path(program)?, &["--version"])?;
        let version = said.split_whitespace().nth(1).ok_or("the program has no version")?;
        let (architecture, _) = output("dpkg", &["--print-architecture"])?;
        Ok(PackageFacts {
            version: format!("{version}-{REVISION}"),
            architecture: architecture.trim().to_owned(),
            epoch: epoch()?,
        })
    }
}

/// The time of the package: `SOURCE_DATE_EPOCH`, or that of the last commit.
fn epoch() -> Result<u64, String> {
    let wrong = |text: &str| format!("'{text}' is no time in seconds");
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.trim().parse().map_err(|_| wrong(&text));
    }
    let (text, _) = output("git", &["log", "-1", "--format=%ct"])?;
    text.trim().parse().map_err(|_| wrong(&text))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A path as a word of a command line.
fn path(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
