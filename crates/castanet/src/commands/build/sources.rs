//! Castanet's sources, from which programs are built: found, and compared with the running program.

use super::toolchain::Toolchain;
use crate::commands::{CommandError, CommandResult};
use crate::exit;
use crate::load::io_error_text;
use crate::source_files;
use crate::terminal::complain;
use std::path::{Path, PathBuf};

/// The hash of the sources that this program was compiled from; empty if they were not at hand.
const OWN_HASH: &str = env!("CASTANET_SOURCE_HASH");

/// The folder of the sources that this program was compiled from.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Place of the sources in an installation, from the folder of the program.
const INSTALLED: &str = "../share/castanet/src";

/// A folder with the sources that this program was compiled from.
pub(super) struct SourceTree {
    root: PathBuf,
}

impl SourceTree {
    /// The sources: those that the user names, those of the checkout, or those of an installation.
    pub(super) fn find(named: Option<&Path>) -> Result<SourceTree, CommandError> {
        let variable = || std::env::var_os("CASTANET_SOURCE").filter(|it| !it.is_empty());
        if let Some(root) = named.map(Path::to_owned).or_else(|| variable().map(PathBuf::from)) {
            return SourceTree::at(&root).map_err(|why| {
                let root = root.display();
                CommandError(exit::UNBUILDABLE, Some(format!("{root}: {why}")))
            });
        }
        let program = std::env::current_exe().ok();
        let beside = program.as_deref().and_then(Path::parent).map(|dir| dir.join(INSTALLED));
        let mut tried = Vec::new();
        for root in [Some(PathBuf::from(CHECKOUT)), beside].into_iter().flatten() {
            match SourceTree::at(&root) {
                Ok(sources) => return Ok(sources),
                Err(why) => {
                    let root = root.canonicalize().unwrap_or(root);
                    tried.push(format!("\n  {}: {why}", root.display()));
                }
            }
        }
        let message = format!(
            "cannot find the sources of this castanet ({}):{}\n\
             name a folder with --source or CASTANET_SOURCE",
            env!("CARGO_PKG_VERSION"),
            tried.concat()
        );
        Err(CommandError(exit::UNBUILDABLE, Some(message)))
    }

    /// The sources in a folder; or why they are of no use.
    fn at(root: &Path) -> Result<SourceTree, String> {
        if !root.is_dir() {
            return Err("there is no such folder".to_owned());
        }
        if !root.join("crates/built/Cargo.toml").is_file() {
            return Err("these are no sources of Castanet".to_owned());
        }
        match source_files::hash(root) {
            Ok(hash) if hash == OWN_HASH => {
                let root = root.canonicalize().map_err(|e| io_error_text(&e))?;
                Ok(SourceTree { root })
            }
            Ok(hash) => Err(format!(
                "these sources (hash {hash}) are not those of this program (hash {OWN_HASH}): compile \
                 castanet from them, and build with that"
            )),
            Err(e) => Err(format!("cannot read the sources: {}", io_error_text(&e))),
        }
    }

    /// The folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The hash of the files.
    pub(super) fn hash(&self) -> &'static str {
        OWN_HASH
    }

    /// The folder of vendored crates, if there is one: then nothing is downloaded.
    pub(super) fn vendored(&self) -> Option<PathBuf> {
        Some(self.root.join("vendor")).filter(|folder| folder.is_dir())
    }

    /// The folder of compiled crates that this program came from, if it was compiled in this checkout:
    /// what was compiled for it is not compiled again.
    pub(super) fn target(&self) -> Option<PathBuf> {
        let program = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
        let target = program.parent()?.parent()?;
        let checkout = Path::new(CHECKOUT).canonicalize().ok()?;
        let is_target = target.join("CACHEDIR.TAG").is_file() && checkout == self.root;
        is_target.then(|| target.to_owned())
    }

    /// Writes the sources and those of all crates that they use into a folder.
    pub(super) fn export(&self, folder: &Path) -> CommandResult {
        let failed = |path: &Path, e: std::io::Error| -> CommandError {
            format!("{}: {}", path.display(), io_error_text(&e)).into()
        };
        let files = source_files::list(&self.root).map_err(|e| failed(&self.root, e))?;
        for file in &files {
            let to = folder.join(file);
            let parent = to.parent().unwrap_or(folder);
            let copied = std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::copy(self.root.join(file), &to));
            copied.map_err(|e| failed(&to, e))?;
        }
        complain(format_args!("castanet: {}: {} files", folder.display(), files.len()));
        Toolchain::find()?.vendor(folder)
    }
}
