//! The running instance: its name, its control socket, and what clients can ask it for.

mod directory;
mod handlers;
mod service;
mod site;

pub(crate) use directory::{RuntimeDirectory, is_name};
pub(crate) use handlers::{CONTROL_VERSION, INSTANCE, InstanceDescription, METRICS};
pub(crate) use service::{InstanceService, default_name};

use crate::commands::CommandError;
use crate::http::{BearerToken, HttpListener};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments about the control socket of an instance.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InstanceArguments {
    /// Name of this instance, for `castanet ctl NAME` [default: that of the file]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Listen for `castanet ctl` at this socket, in place of NAME.sock in the runtime directory
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Let the members of this group connect, too: they can do all that the router's user can
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) control_group: Option<u32>,
    /// Listen for no `castanet ctl`
    #[arg(long, conflicts_with_all = ["name", "control", "control_group"])]
    pub(crate) no_control: bool,
    #[command(flatten)]
    pub(crate) http: HttpArguments,
}

/// Arguments about the HTTP clients of an instance.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HttpArguments {
    /// Answer Prometheus at this address, IP:PORT, or at this port of the loopback interface; port 0
    /// chooses one
    #[arg(long, value_name = "ADDR", value_parser = HttpListener::parse)]
    metrics: Option<SocketAddr>,
    /// Answer only clients that name the bearer token in this file; needed for an address that other
    /// hosts reach
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_token: Option<PathBuf>,
}

impl HttpArguments {
    /// Whether there are to be HTTP clients.
    pub(crate) fn is_wanted(&self) -> bool {
        self.metrics.is_some()
    }

    /// Listens for HTTP clients, if there are to be any, before anything else is opened.
    ///
    /// # Errors
    /// The address is in use, or other hosts reach it and there is no token.
    pub(crate) fn listen(&self) -> Result<Option<HttpAccess>, CommandError> {
        let Some(address) = self.metrics else { return Ok(None) };
        if !address.ip().to_canonical().is_loopback() && self.metrics_token.is_none() {
            return Err(CommandError::usage(format!(
                "--metrics {address}: other hosts reach this address, so it takes a bearer token, too: \
                 --metrics-token FILE"
            )));
        }
        let token = self.metrics_token.as_deref().map(BearerToken::read).transpose();
        let token = token.map_err(|error| format!("--metrics-token {error}"))?;
        let listener = HttpListener::open(address);
        let listener = listener.map_err(|error| format!("--metrics {error}"))?;
        Ok(Some(HttpAccess { listener, token }))
    }
}

/// A socket for HTTP clients, and what they have to name.
pub(crate) struct HttpAccess {
    listener: HttpListener,
    token: Option<BearerToken>,
}

fn parse_name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("a name has up to 64 letters, digits and . _ -, and begins with a letter or digit"
                .into())
        }
    }
}

fn group(text: &str) -> Result<u32, String> {
    let by_number = || text.parse().ok();
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        _ => by_number().ok_or_else(|| format!("there is no group '{text}'")),
    }
}
