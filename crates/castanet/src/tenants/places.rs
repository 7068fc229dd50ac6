//! Looks for the files, folders and groups that a system file names, before anything is opened.

use super::sockets::{group_of, unusable};
use crate::load::io_error_text;
use crate::migration::MigrationKey;
use castanet_io::control::InstanceSocket;
use castanet_lang::{Diagnostic, Diagnostics};
use castanet_tenants::System;
use nix::unistd::{AccessFlags, access};
use std::io;
use std::path::Path;

/// Reports what a system file in this folder names, and this machine does not have as the system needs it. The folders
/// of sockets may be made until the system is started.
pub(super) fn check(system: &System, folder: &Path, found: &mut Diagnostics) {
    if let Some(store) = &system.store
        && let Err(error) = check_store(&folder.join(&store.value))
    {
        let message = format!("the store {}: {}", store.value.display(), io_error_text(&error));
        let help = "`store` is a folder that is there, in which the coordinator's user may write";
        found.push(Diagnostic::error(store.span, message).with_help(help));
    }
    if let Some(migration) = &system.migration
        && let Err(why) = MigrationKey::read(&folder.join(&migration.key.value))
    {
        let help = "`castanet tenants key FILE` makes a key";
        found.push(Diagnostic::error(migration.key.span, why).with_help(help));
    }
    for tenant in &system.tenants {
        let Some(control) = &tenant.control else { continue };
        let path = folder.join(&control.value.socket.value);
        if let Err(error) = InstanceSocket::check_path(&path) {
            found.push(unusable(tenant, &control.value, &path, &error));
        }
        _ = group_of(&control.value, found);
    }
}

fn check_store(folder: &Path) -> io::Result<()> {
    if !folder.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let all = AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK;
    Ok(access(folder, all)?)
}
