//! Policies from files: compiled, joined with a field, and put in order for a traffic profile.

use crate::commands::CommandError;
use crate::load::io_error_text;
use crate::terminal::{colours_on_stderr, complain};
use castanet_lang::{Diagnostics, SourceMap};
use castanet_splitbox::policy::{
    CompiledPolicy, Format, JoinField, OrderReport, PolicyError, TreeShape, compile, order,
    read_profile,
};
use clap::Args;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The policy, and how it is compiled.
#[derive(Args)]
pub(super) struct PolicyArguments {
    /// The file of the policy
    policy: PathBuf,
    /// The language of the policy: ipfilter, ipclassifier, rules (of castanet middlebox) or toml;
    /// toml for .toml, rules for .mmb, else ipfilter
    #[arg(long, value_name = "LANGUAGE")]
    format: Option<Format>,
    /// Put the policies in the order that needs fewest matches for the packets of this capture
    #[arg(long, value_name = "PCAP")]
    profile: Option<PathBuf>,
    /// With --profile, also ask for what neighbours have in common first
    #[arg(long, requires = "profile")]
    branches: bool,
    /// Join matches of few bits with an address field, all of whose values are named; packets with
    /// other values are dropped
    #[arg(long, value_name = "src|dst=PREFIX,…")]
    join: Option<JoinField>,
}

/// A compiled policy with its text.
pub(super) struct PolicyFile {
    /// The policy.
    pub(super) policy: CompiledPolicy,
    /// Expected matches, if there is a profile.
    pub(super) order: Option<OrderReport>,
    path: PathBuf,
}

impl PolicyFile {
    /// Compiles a policy; prints everything that is wrong with it. `least_bits` are those that a match
    /// should test.
    pub(super) fn new(
        arguments: &PolicyArguments,
        least_bits: u32,
    ) -> Result<PolicyFile, CommandError> {
        let path = &arguments.policy;
        let format = arguments.format.unwrap_or_else(|| Format::of_file(path));
        let mut sources = SourceMap::new();
        let compiled = match sources.load(path) {
            Ok(file) => {
                let compiled = compile(format, &sources.text(file));
                compiled.map_err(|all| all.iter().map(|it| it.diagnostic(file)).collect())
            }
            Err(error) => Err([error].into_iter().collect::<Diagnostics>()),
        };
        let mut policy = compiled.map_err(|found| report(&found, &sources))?;
        if let Some(field) = &arguments.join {
            policy = field.join(&policy, least_bits).map_err(|error| error.to_string())?;
        }
        let mut ordered = None;
        if let Some(capture) = &arguments.profile {
            let (better, report) = put_in_order(&policy, capture, arguments.branches)?;
            (policy, ordered) = (better, Some(report));
        }
        Ok(PolicyFile { policy, order: ordered, path: path.clone() })
    }

    /// Prints an error about a policy at its place in the text.
    pub(super) fn report(&self, error: &PolicyError) -> CommandError {
        let mut sources = SourceMap::new();
        match sources.load(&self.path) {
            Ok(file) => report(&[error.diagnostic(file)].into_iter().collect(), &sources),
            Err(_) => error.to_string().into(),
        }
    }
}

fn put_in_order(
    policy: &CompiledPolicy,
    capture: &Path,
    has_branches: bool,
) -> Result<(CompiledPolicy, OrderReport), CommandError> {
    let place = capture.display();
    let file = File::open(capture).map_err(|e| format!("{place}: {}", io_error_text(&e)))?;
    let profile = read_profile(BufReader::new(file)).map_err(|e| format!("{place}: {e}"))?;
    if profile.packets() == 0 {
        return Err(format!("{place} has no packet that the entry would take").into());
    }
    let shape = if has_branches { TreeShape::Branches } else { TreeShape::Lists };
    Ok(order(policy, &profile, shape))
}

fn report(found: &Diagnostics, sources: &SourceMap) -> CommandError {
    complain(found.render_rich(sources, colours_on_stderr()).trim_end());
    CommandError::REPORTED
}
