//! The option `--built`: programs that `castanet build` makes, to measure beside this one.

use crate::commands::CommandError;
use crate::commands::build::{Compilation, Interruption, program};
use crate::exit;
use crate::terminal::complain;
use castanet_bench::built::{BUILT, PLAIN, Programs, Target};
use castanet_element::class::Library;
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Words about built programs.
#[derive(Args)]
pub(super) struct BuiltArguments {
    /// Measure also the program that `castanet build` makes of each configuration, in turns
    #[arg(long)]
    built: bool,
    /// Castanet's sources, of the same version as this program, for --built
    #[arg(long, value_name = "DIR", requires = "built")]
    source: Option<PathBuf>,
    /// The profile of cargo to compile with, for --built
    #[arg(long, value_name = "NAME", default_value = "release", requires = "built")]
    profile: String,
}

/// The name of this program in records.
pub(super) fn own_name() -> &'static str {
    if crate::program::configuration().is_some() { BUILT } else { PLAIN }
}

impl BuiltArguments {
    /// Builds the programs of the targets, if they are wanted. Says how long each takes, and why one
    /// is missing.
    pub(super) fn programs(
        &self,
        targets: impl FnOnce() -> Vec<Target>,
        library: &Library,
    ) -> Result<Option<Programs>, CommandError> {
        if !self.built {
            return Ok(None);
        }
        if own_name() == BUILT {
            let message = "this program is built itself: castanet has --built".to_owned();
            return Err(CommandError::usage(message));
        }
        let compilation = Compilation::of(self.source.clone(), self.profile.clone(), true);
        let interruption = Interruption::watch()?;
        let (targets, mut built) = (targets(), Vec::new());
        for (n, target) in targets.iter().enumerate() {
            let (name, count) = (&target.name, targets.len());
            let first = if n == 0 { ", which may take two minutes" } else { "" };
            complain(format_args!("castanet: building {name} ({} of {count}){first}", n + 1));
            let started = Instant::now();
            let result = program(&target.text, library, &compilation);
            if interruption.came() {
                return Err(CommandError(exit::INTERRUPTED, None));
            }
            match result {
                Ok(program) => {
                    let seconds = started.elapsed().as_secs_f64();
                    complain(format_args!("castanet: {name}: built in {seconds:.1} s"));
                    built.push((target, program));
                }
                Err(CommandError(_, why)) => without(name, &why.unwrap_or_default()),
            }
        }
        // From here on the folder of the programs takes care of interrupts.
        let mut programs = Programs::new()?;
        for (target, program) in built {
            programs.add(target, program).unwrap_or_else(|why| without(&target.name, &why));
        }
        Ok(Some(programs))
    }
}

/// Says that the program of a case is missing.
pub(super) fn without(name: &str, why: &str) {
    complain(format_args!("castanet: without {name} (built): {why}"));
}
