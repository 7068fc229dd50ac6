//! `castanet splitbox setup`: a policy becomes a file for each party.

use super::keys::KeyArguments;
use super::policy::{PolicyArguments, PolicyFile};
use super::summary::Summary;
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::terminal::complain;
use castanet_splitbox::digest::HashKind;
use castanet_splitbox::party_file::save;
use castanet_splitbox::report::{LowWeightMatches, low_weight};
use castanet_splitbox::setup::{BlindUse, Setup, SetupError, SetupOptions};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `castanet splitbox setup`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    policy: PolicyArguments,
    /// The number of processors, each in a cloud of its own; 2 or more
    #[arg(long, value_name = "T")]
    clouds: usize,
    /// The directory of the files
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The number of blinds of an epoch
    #[arg(long, value_name = "L", default_value_t = 65536)]
    blinds: u64,
    /// Use each blind once
    #[arg(long)]
    once: bool,
    /// Workers of the entry, each with an equal part of the blinds
    #[arg(long, value_name = "N", default_value_t = 1)]
    lanes: usize,
    /// The hash of matches
    #[arg(long, value_enum, default_value_t = HashName::Blake3)]
    hash: HashName,
    /// Let processors do the same work for each packet, whatever it matches
    #[arg(long)]
    constant_work: bool,
    /// The share of dummy packets, such as 0.01 or 1%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = per_million)]
    dummies: u32,
    /// Refuse matches that a brute force finds with fewer than 2^BITS guesses
    #[arg(long, value_name = "BITS", default_value_t = 40)]
    min_weight: u32,
    /// Accept such matches, with a warning
    #[arg(long)]
    allow_low_weight: bool,
    #[command(flatten)]
    key: KeyArguments,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A name of ℍ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum HashName {
    /// BLAKE3 with a key that the entry has not
    Blake3,
    /// SHA-1 without a key, as in the paper; for comparison
    Sha1,
}

/// A share of packets, in a million.
fn per_million(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 1e4),
        None => (text, 1e6),
    };
    match number.parse::<f64>().map(|share| (share * unit).round()) {
        Ok(count) if (0.0..1e6).contains(&count) => Ok(count as u32),
        _ => Err("this is no share from 0 to below 1, such as 0.01 or 1%".to_owned()),
    }
}

/// Makes the files of a policy.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let file = PolicyFile::new(&arguments.policy, arguments.min_weight)?;
    let compiled = &file.policy;
    let low = low_weight(&compiled.function, arguments.min_weight);
    check_weights(&low, arguments)?;
    let options = SetupOptions {
        processors: arguments.clouds,
        hash: match arguments.hash {
            HashName::Blake3 => HashKind::Blake3,
            HashName::Sha1 => HashKind::Sha1,
        },
        header_bits: compiled.header_bits,
        blinds: arguments.blinds,
        blind_use: if arguments.once { BlindUse::Once } else { BlindUse::Again },
        lanes: arguments.lanes,
        has_constant_work: arguments.constant_work,
    };
    // Before the user is asked for a passphrase.
    options.check().map_err(|error| error.to_string())?;
    let setup = Setup::new(&compiled.function, options);
    let setup = setup.and_then(|it| it.with_dummies(arguments.dummies));
    let setup = setup.map_err(|error| match error {
        SetupError::Width { policy, .. } => file.report(&compiled.error_at(policy, error)),
        error => error.to_string().into(),
    })?;
    let key = arguments.key.for_new_files()?;
    let files = save(&setup, &arguments.out, &key, arguments.force)?;
    let summary = Summary::new(&setup, files, low, file.order);
    match arguments.json {
        true => write_json(&summary),
        false => write_out(None, &summary.to_string()),
    }
}

/// Refuses matches that a brute force finds, or warns of them.
fn check_weights(low: &[LowWeightMatches], arguments: &Arguments) -> CommandResult {
    /// Lines of a message.
    const MOST: usize = 20;
    if low.is_empty() {
        return Ok(());
    }
    let word = if arguments.allow_low_weight { "warning: " } else { "" };
    let bits = arguments.min_weight;
    let mut text =
        format!("{word}a processor finds these matches with fewer than 2^{bits} guesses:");
    for it in low.iter().take(MOST) {
        text += &format!("\n  {it}");
    }
    if low.len() > MOST {
        text += &format!("\n  and {} more projections", low.len() - MOST);
    }
    if arguments.allow_low_weight {
        complain(format_args!("castanet: {text}"));
        return Ok(());
    }
    text += "\ntest more bits, or accept them with --allow-low-weight or a lower --min-weight";
    Err(CommandError::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_percentages() {
        for (text, expected) in
            [("0", 0), ("0.01", 10_000), ("1%", 10_000), ("99.9%", 999_000), ("0.000001", 1)]
        {
            assert_eq!(per_million(text), Ok(expected), "{text}");
        }
        for text in ["1", "100%", "-0.1", "NaN", "a", "", "0.9999999"] {
            assert!(per_million(text).is_err(), "{text}");
        }
    }
}
