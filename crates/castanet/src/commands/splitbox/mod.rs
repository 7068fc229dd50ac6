//! `castanet splitbox`: makes, shows and renews the files of the parties of a private function, and runs
//! the parties.

mod inspect;
mod keys;
mod policy;
mod reseal;
mod rotate;
mod run;
mod setup;
mod summary;

use super::{CommandError, CommandResult};
use castanet_splitbox::party_file::{PartyFileError, make_key_file};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `castanet splitbox`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: SplitBoxCommand,
}

#[derive(Subcommand)]
enum SplitBoxCommand {
    /// Make a file for each party of a policy
    #[command(after_help = "Examples:
  castanet splitbox setup rules.txt --clouds 2 --out parties --key-file splitbox.key
  castanet splitbox setup rules.txt --clouds 3 --out parties --once --lanes 4 --dummies 1%
  castanet splitbox setup rules.txt --clouds 2 --out parties --allow-low-weight --json
  castanet splitbox setup nat.toml --clouds 2 --out parties --key-file splitbox.key
  castanet splitbox setup rules.txt --clouds 2 --out parties --profile traffic.pcap --branches
A policy has a rule of IPFilter on each line, such as `allow src net 10.0.0.0/8`, a rule of
`castanet middlebox`, or is TOML for address translation and load balancers;
docs/splitbox.md describes them.")]
    Setup(setup::Arguments),
    /// Run a party between UDP sockets and a device of this host
    #[command(after_help = "Examples:
  castanet splitbox run entry entry.splitbox --key-file entry.key --listen 10.0.0.1:7000
      --client 10.0.5.1:7000 --processor 10.0.2.1:7000 --processor 10.0.3.1:7000
  castanet splitbox run processor processor-1.splitbox --key-file one.key
      --listen 10.0.2.1:7000 --client 10.0.5.1:7000
  castanet splitbox run client client.splitbox --key-file client.key --listen 10.0.5.1:7000
      --entry 10.0.0.1:7000 --processor 10.0.2.1:7000 --processor 10.0.3.1:7000
The entry takes the packets that its host routes into the device, `ip route add 10.8.0.0/16
dev splitbox`; the client hands the results to its host, which routes them on.")]
    Run {
        #[command(subcommand)]
        role: run::Role,
    },
    /// Show everything that the party of a file can know
    #[command(after_help = "Examples:
  castanet splitbox inspect parties/entry.splitbox
  castanet splitbox inspect parties/processor-1.splitbox --key-file splitbox.key
Without the key it shows the clear part of the file alone.")]
    Inspect(inspect::Arguments),
    /// Make files with new keys and shares for the same policy, or have a running client do so
    #[command(after_help = "Examples:
  castanet splitbox rotate parties/client.splitbox --out new --key-file splitbox.key
  castanet splitbox rotate --connect /run/client.sock")]
    Rotate(rotate::Arguments),
    /// Seal the file of a party with another key, such as one of its own
    #[command(after_help = "Examples:
  castanet splitbox reseal parties/entry.splitbox --key-file splitbox.key --new-key-file entry.key
A setup seals all files with one key. Give each cloud a file with a key of its own.")]
    Reseal(reseal::Arguments),
    /// Make a key file, which its owner alone may read
    #[command(after_help = "Examples:
  castanet splitbox key splitbox.key")]
    Key {
        /// The key file, which must not exist
        file: PathBuf,
    },
}

/// Runs a command of SplitBox.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    match &arguments.command {
        SplitBoxCommand::Setup(arguments) => setup::main(arguments),
        SplitBoxCommand::Run { role } => run::main(role),
        SplitBoxCommand::Inspect(arguments) => inspect::main(arguments),
        SplitBoxCommand::Rotate(arguments) => rotate::main(arguments),
        SplitBoxCommand::Reseal(arguments) => reseal::main(arguments),
        SplitBoxCommand::Key { file } => Ok(make_key_file(file)?),
    }
}

impl From<PartyFileError> for CommandError {
    fn from(error: PartyFileError) -> CommandError {
        error.to_string().into()
    }
}
