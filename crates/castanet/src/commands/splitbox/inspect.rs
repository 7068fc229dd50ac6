//! `castanet splitbox inspect`: everything that the party of a file can know.

use super::keys::{KeyArguments, can_ask};
use crate::commands::{CommandResult, write_json, write_out};
use castanet_splitbox::party_file::{FileInfo, VERSION, inspect, load};
use castanet_splitbox::report::LeakageReport;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `castanet splitbox inspect`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The file of a party
    file: PathBuf,
    #[command(flatten)]
    key: KeyArguments,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// The clear part of a file.
#[derive(Serialize)]
struct ClearPart {
    party: String,
    setup: String,
    processors: u8,
    version: u16,
    sealed_with: &'static str,
}

/// Shows the leakage report of a party; without a key, the clear part of its file.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let info = inspect(&arguments.file)?;
    let unlock = match arguments.key.named() {
        None if info.has_passphrase && can_ask() => Some(arguments.key.for_file()?),
        named => named,
    };
    let Some(unlock) = unlock else { return show_clear_part(&info, arguments.json) };
    let report = LeakageReport::new(&load(&arguments.file, &unlock)?);
    match arguments.json {
        true => write_json(&report),
        false => write_out(None, &report.to_string()),
    }
}

fn show_clear_part(info: &FileInfo, json: bool) -> CommandResult {
    let clear = ClearPart {
        party: info.role.of(info.processors),
        setup: format!("{:08x}", info.setup),
        processors: info.processors,
        version: VERSION,
        sealed_with: if info.has_passphrase { "passphrase" } else { "key file" },
    };
    if json {
        return write_json(&clear);
    }
    let ClearPart { party, setup, processors, version, sealed_with } = &clear;
    write_out(
        None,
        &format!(
            "party: {party} of setup {setup}\nsetup: t = {processors} processors\n\
             file: version {version}, sealed with a {sealed_with}\n\
             this part is not authentic without the key, which the leakage report needs: name it \
             with --key-file or --passphrase-file\n"
        ),
    )
}
