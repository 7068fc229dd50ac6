//! `cargo xtask image`: a container image with the Debian package.

use crate::deb;
use crate::steps::run;
use std::path::{Path, PathBuf};

/// The recipe of the image.
const RECIPE: &str = "share/container/Containerfile";
/// The name of the image.
const IMAGE: &str = "castanet";

/// Options of `cargo xtask image`.
pub(crate) struct Options {
    /// The package to install, in place of one that is built for it.
    package: Option<PathBuf>,
    /// The program that builds images: buildah, podman or docker.
    builder: String,
    /// The image to start from, in place of the one that the recipe names.
    base: Option<String>,
}

impl Options {
    /// Options from the words of the command line; `None` if they are wrong.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let mut options = Options { package: None, builder: "buildah".into(), base: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next()?;
            match *word {
                "--package" => options.package = Some(value.into()),
                "--base" => options.base = Some((*value).to_owned()),
                "--builder" => options.builder = (*value).to_owned(),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Builds the image.
pub(crate) fn image(options: &Options) -> Result<(), String> {
    let package = match &options.package {
        Some(package) => package.clone(),
        None => deb::deb(&deb::Options::parse(&[]).ok_or("no options")?)?,
    };
    let folder = package.parent().unwrap_or(Path::new("."));
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    // The folder with this package alone is all that the builder sees.
    let context = folder.join("image");
    _ = std::fs::remove_dir_all(&context);
    std::fs::create_dir_all(&context).map_err(|e| failed(&context, e))?;
    let copy = context.join("castanet.deb");
    std::fs::copy(&package, &copy).map_err(|e| failed(&package, e))?;
    let place = context.to_str().ok_or("a path that is not UTF-8")?;
    let base = options.base.as_ref().map(|base| format!("BASE={base}"));
    let mut words = vec!["build", "--tag", IMAGE, "--file", RECIPE];
    words.extend(base.iter().flat_map(|base| ["--build-arg", base]));
    words.push(place);
    let done = run(&options.builder, &words);
    _ = std::fs::remove_dir_all(&context);
    done
}
