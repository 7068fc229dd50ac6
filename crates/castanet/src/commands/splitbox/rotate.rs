//! `castanet splitbox rotate`: new keys and shares for the same policy.

use super::keys::KeyArguments;
use super::summary::Summary;
use crate::commands::{CommandResult, write_json, write_out};
use castanet_io::control::ControlClient;
use castanet_splitbox::party_file::{load_client, save};
use castanet_splitbox::setup::Setup;
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `castanet splitbox rotate`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The client's file, which has the policy
    #[arg(required_unless_present = "connect", requires = "out")]
    client_file: Option<PathBuf>,
    /// The directory of the new files
    #[arg(long, value_name = "DIR", requires = "client_file")]
    out: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArguments,
    /// Replace files that exist
    #[arg(long, requires = "client_file")]
    force: bool,
    /// Print the summary as JSON
    #[arg(long, requires = "client_file")]
    json: bool,
    /// Let a running client begin a new epoch: its control socket
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["client_file", "key_file", "passphrase_file"])]
    connect: Option<PathBuf>,
    /// The element of the client in its configuration
    #[arg(long, value_name = "NAME", default_value = "client", requires = "connect")]
    element: String,
}

/// Makes new files, or tells a running client.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    match (&arguments.connect, &arguments.client_file, &arguments.out) {
        (Some(socket), ..) => tell(socket, &arguments.element),
        (None, Some(file), Some(out)) => renew(file, out, arguments),
        _ => Ok(()),
    }
}

fn tell(socket: &Path, element: &str) -> CommandResult {
    let mut client = ControlClient::connect(socket, "the client")?;
    Ok(client.write(&format!("{element}.rotate"), "")?)
}

fn renew(file: &Path, out: &Path, arguments: &Arguments) -> CommandResult {
    let key = arguments.key.for_file()?;
    let client = load_client(file, &key)?;
    let setup = Setup::new(&client.function, client.info.options);
    let setup = setup.and_then(|it| it.with_dummies(client.dummies_per_million));
    let setup = setup.map_err(|error| error.to_string())?;
    let files = save(&setup, out, &key, arguments.force)?;
    let summary = Summary::new(&setup, files, Vec::new(), None);
    if arguments.json {
        return write_json(&summary);
    }
    let old = client.info.id;
    let end = "delete the files of the old setup once all parties have the new ones";
    write_out(None, &format!("{summary}replaces setup {old:08x}: {end}\n"))
}
