//! `castanet tenants list`, `install`, `remove` and `restore`: the tenants of a running system.

use crate::cli::as_setting;
use crate::commands::ctl::{Attachment, find};
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::load::Origin;
use crate::tenants::{TenantReport, sent_text};
use castanet_runtime::router::ErrorStyle;
use clap::Args;
use std::path::PathBuf;

/// The running system that a command is about.
#[derive(Args)]
pub(super) struct Target {
    /// The instance that runs the system, by its name or the path of its control socket, where there are several
    #[arg(long, value_name = "NAME|PATH")]
    instance: Option<String>,
}

/// Arguments of `castanet tenants list`.
#[derive(Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `castanet tenants install`.
#[derive(Args)]
pub(super) struct InstallArguments {
    /// The tenant
    tenant: String,
    /// The file of the tenant's new configuration, in the Click language (`-`: standard input)
    file: PathBuf,
    /// Values of variables that the configuration has
    #[arg(value_name = "VAR=value")]
    vars: Vec<String>,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `castanet tenants remove` and `restore`.
#[derive(Args)]
pub(super) struct TenantArguments {
    /// The tenant
    tenant: String,
    #[command(flatten)]
    target: Target,
}

impl Target {
    pub(super) fn attach(&self) -> Result<Attachment, CommandError> {
        let it = find(self.instance.as_deref())?;
        it.check()?;
        match it.tenant() {
            None => Ok(it),
            Some(tenant) => {
                let message = format!(
                    "this is the control socket of tenant {tenant}: `click-install` installs its configuration"
                );
                Err(CommandError::usage(message))
            }
        }
    }
}

/// Prints the tenants of a running system.
pub(super) fn list(arguments: &ListArguments) -> CommandResult {
    let reports: Vec<TenantReport> = arguments.target.attach()?.read_json("tenants")?;
    if arguments.json {
        return write_json(&reports);
    }
    let title = [
        "TENANT",
        "CONFIGURATION",
        "STATE",
        "ELEMENTS",
        "ISOLATION",
        "INSTALLS",
        "OWN",
        "REFUSED",
        "PANICS",
        "RESTARTS",
        "SOCKET",
    ];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    rows.extend(reports.into_iter().map(|it| {
        vec![
            it.tenant,
            it.configuration,
            it.state,
            it.elements.to_string(),
            it.isolation,
            it.counts.installs.to_string(),
            it.counts.own_installs.to_string(),
            it.counts.refused.to_string(),
            it.faults.panics.to_string(),
            it.faults.restarts.to_string(),
            it.socket.unwrap_or("-".to_owned()),
        ]
    }));
    let right = [false, false, false, true, false, true, true, true, true, true, false];
    write_out(None, &crate::commands::ctl::table(&rows, &right))
}

/// Installs the configuration of a tenant.
pub(super) fn install(arguments: &InstallArguments) -> CommandResult {
    let wrong = |word: &String| CommandError::usage(format!("'{word}' is no VAR=value"));
    let setting = |word: &String| as_setting(word).ok_or_else(|| wrong(word));
    let vars = arguments.vars.iter().map(setting).collect::<Result<Vec<_>, _>>()?;
    let origin = Origin::File(arguments.file.clone());
    let text = sent_text(&origin, &vars, None, ErrorStyle::Castanet);
    let text = text.ok_or(CommandError::REPORTED)?;
    let value = format!("{}\n{text}", arguments.tenant);
    Ok(arguments.target.attach()?.client.write_data("tenant_install", &value)?)
}

/// Removes the configuration of a tenant.
pub(super) fn remove(arguments: &TenantArguments) -> CommandResult {
    Ok(arguments.target.attach()?.client.write("tenant_remove", &arguments.tenant)?)
}

/// Has a tenant run the configuration of its file again.
pub(super) fn restore(arguments: &TenantArguments) -> CommandResult {
    Ok(arguments.target.attach()?.client.write("tenant_restore", &arguments.tenant)?)
}
