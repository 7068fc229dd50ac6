//! `castanet splitbox reseal`: another key for the file of a party.

use super::keys::{KeyArguments, NewKeyArguments};
use crate::commands::CommandResult;
use castanet_splitbox::party_file::reseal;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `castanet splitbox reseal`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The file of a party
    file: PathBuf,
    #[command(flatten)]
    key: KeyArguments,
    #[command(flatten)]
    new: NewKeyArguments,
}

/// Seals the file of a party with another key.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let Arguments { file, key, new } = arguments;
    Ok(reseal(file, &key.for_file()?, &new.key()?)?)
}
