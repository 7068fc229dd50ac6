//! `cargo xtask`: runs checks, tests, the demo and generators.
#![forbid(unsafe_code)]

mod compare;
mod contention;
mod cost;
mod deb;
mod image;
mod screenshots;
mod steps;
mod vendor;

use std::path::Path;

const USAGE: &str = "usage: cargo xtask COMMAND
  check            everything that needs no root: format, lints, manual, tests
  test             all tests, those in network namespaces too (needs root)
  demo             three hosts and a router between them, live (needs root;
                   without it the same router on a pcap file)
  docs [--check]   write the element manual, or see whether it is current
  site [-o FOLDER] write all documentation as a static site with search (target/site)
  new ROOM/Class   write a new element's file, e.g. cargo xtask new ip/SetIPTTL
  compare BASE [LAYOUTS] -- BENCHMARK
                   `castanet bench BENCHMARK` of the working tree and of commit
                   BASE in turns, each with its functions in LAYOUTS (5) orders:
                   cargo xtask compare HEAD~1 -- io --device net_null
  cost [--record] [--json] [PATH]...
                   instructions a packet on the paths of `castanet bench paths`,
                   counted by callgrind; fails where one grows by more than 3 %
                   against xtask/cost.json, which --record writes
  contention [--record] [--json] [-j N,N] [PATH]...
                   cache lines that move between 4 workers, or N, for a packet on the
                   paths of `castanet bench scale`, traced by valgrind; fails where
                   more move than xtask/contention.json says, which --record writes
  deb [--binary PATH] [--profile NAME] [--out DIR] [--level 0-9]
                   Debian packages of the program and of its debug symbols
  image [--package PATH] [--builder PROGRAM] [--base IMAGE]
                   a container image with that package (buildah, or podman)
  vendor [--check] fetch the files of web pages from the registry of npm again, or
                   see whether they are those of the registry (needs npm)
  screenshots [PROGRAM]
                   take the pictures of the README anew, from a router between three
                   hosts (needs root, tmux, aha and chromium)
  packages         install the Debian packages that tests and demo need";

/// Runs a command that writes documentation or a new element. `here` is the folder in which the user is.
#[cfg(feature = "docs")]
fn document(words: &[&str], here: &Path) -> Result<(), String> {
    match *words {
        ["docs"] => xtask::docs::write(),
        ["docs", "--check"] => xtask::docs::check(),
        ["site"] => xtask::site::write(Path::new(xtask::site::FOLDER)),
        ["site", "-o", folder] => xtask::site::write(&here.join(folder)),
        ["new", place] => xtask::new::element(place),
        _ => Err(USAGE.into()),
    }
}

/// The same by the build of this program that has these commands.
#[cfg(not(feature = "docs"))]
fn document(words: &[&str], here: &Path) -> Result<(), String> {
    let folder = |&word: &&str| here.join(word).to_string_lossy().into_owned();
    let words: Vec<String> = match *words {
        ["site", "-o", ref at] => vec!["site".into(), "-o".into(), folder(at)],
        _ => words.iter().map(|&word| word.to_owned()).collect(),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = ["run", "--quiet", "--package", "xtask", "--features", "docs", "--"];
    steps::cargo(&[&own[..], &words].concat())
}

fn main() {
    // A folder that the command line names lies where the user is.
    let here = std::env::current_dir().unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    if let Err(e) = std::env::set_current_dir(root) {
        eprintln!("xtask: cannot enter {}: {e}", root.display());
        std::process::exit(1);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["check"] => steps::check(),
        ["test"] => steps::test(),
        ["demo"] => steps::demo(),
        ["packages"] => steps::packages(),
        ["compare", base, "--", words @ ..] if !words.is_empty() => {
            compare::compare(base, compare::LAYOUTS, words)
        }
        ["compare", base, layouts, "--", words @ ..] if !words.is_empty() => {
            match layouts.parse() {
                Ok(layouts) if (1..=99).contains(&layouts) => {
                    compare::compare(base, layouts, words)
                }
                _ => Err(format!("xtask: LAYOUTS is a number from 1 to 99, not {layouts}")),
            }
        }
        ["cost", words @ ..] => match cost::Options::parse(words) {
            Some(options) => cost::cost(&options),
            None => Err(USAGE.into()),
        },
        ["contention", words @ ..] => match contention::Options::parse(words) {
            Some(options) => contention::contention(&options),
            None => Err(USAGE.into()),
        },
        ["deb", words @ ..] => match deb::Options::parse(words) {
            Some(options) => deb::deb(&options).map(|_| ()),
            None => Err(USAGE.into()),
        },
        ["image", words @ ..] => match image::Options::parse(words) {
            Some(options) => image::image(&options),
            None => Err(USAGE.into()),
        },
        ["screenshots"] => screenshots::screenshots("target/release/castanet"),
        ["screenshots", program] => screenshots::screenshots(program),
        ["vendor"] => vendor::vendor(false),
        ["vendor", "--check"] => vendor::vendor(true),
        ["docs" | "site" | "new", ..] => document(&words, &here),
        _ => Err(USAGE.into()),
    };
    if let Err(message) = outcome {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
