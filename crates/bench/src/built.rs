//! Programs that `castanet build` makes of measured configurations, to run beside the plain one.
//!
//! The caller builds them, before anything is measured: `targets` of a benchmark names their
//! configurations, and [`Programs`] takes the results.

use castanet_lab::{Command, Lab};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The program that measures, in records.
pub const PLAIN: &str = "plain";
/// A program that `castanet build` made of the measured configuration, in records.
pub const BUILT: &str = "built";

/// A configuration to build.
pub struct Target {
    /// Its name in messages.
    pub name: String,
    /// Its text, in which only names of interfaces and numbers of frames may be others than in the
    /// measured one.
    pub text: String,
}

/// Built programs, in a folder that is removed with this value, and on Ctrl-C.
pub struct Programs {
    by_text: BTreeMap<String, PathBuf>,
    lab: Lab,
}

impl Programs {
    /// Makes the folder.
    pub fn new() -> Result<Programs, String> {
        let lab = Lab::new("built").map_err(|error| error.to_string())?;
        Ok(Programs { by_text: BTreeMap::new(), lab })
    }

    /// Copies the program of a target into the folder.
    pub fn add(&mut self, target: &Target, mut program: File) -> Result<(), String> {
        let to = self.lab.directory().join(format!("castanet-{}", self.by_text.len()));
        let copied = File::create(&to).and_then(|mut file| {
            std::io::copy(&mut program, &mut file)?;
            file.set_permissions(program.metadata()?.permissions())
        });
        copied.map_err(|e| format!("cannot write {}: {e}", to.display()))?;
        self.by_text.insert(target.text.clone(), to);
        Ok(())
    }

    /// A command of the program that was built from a configuration, if it was.
    pub(crate) fn command(&self, text: &str) -> Option<Command> {
        self.path(text).map(Command::on_host)
    }

    /// The program that was built from a configuration, if it was.
    pub(crate) fn path(&self, text: &str) -> Option<&Path> {
        self.by_text.get(text).map(PathBuf::as_path)
    }
}
