//! `click-install`: installs the configuration of a tenant, or of a router that lets itself be replaced.

use super::common::{CommonOptions, Failure, Tool, ToolContext};
use crate::commands::ctl::{Attachment, find};
use crate::tenants::sent_text;
use castanet_runtime::router::ErrorStyle;
use clap::{Args, Parser};

/// The running router that `click-install` and `click-uninstall` are about.
#[derive(Args, Debug)]
pub(super) struct InstallTarget {
    /// The control socket of the tenant, or the name of an instance, where there are several [default: $CASTANET_CONTROL]
    #[arg(long, value_name = "PATH|NAME")]
    socket: Option<String>,
}

impl InstallTarget {
    pub(super) fn attach(&self, context: &ToolContext) -> Result<Attachment, Failure> {
        let given = self.socket.clone().or_else(|| std::env::var("CASTANET_CONTROL").ok());
        let found = find(given.as_deref());
        found.map_err(|error| context.fail(error.1.unwrap_or_default()))
    }
}

/// Installs a configuration in a running router, as Click's tool does in the kernel: that of a tenant, by the
/// tenant's control socket, or that of a router that runs with `-R`.
#[derive(Parser)]
#[command(
    after_help = "Elements with the name and class of one that runs already go on with its state."
)]
pub(crate) struct Install {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    target: InstallTarget,
    /// Replace the running configuration without a stop (the default)
    #[arg(short = 'h', long)]
    hot_swap: bool,
    /// Remove the running configuration first, with the state of its elements
    #[arg(short, long, conflicts_with = "hot_swap")]
    uninstall: bool,
}

impl Tool for Install {
    const NAME: &'static str = "click-install";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        if self.common.target(context)?.is_some() {
            return Err(context.usage("a configuration is installed, and not written to a file"));
        }
        let (vars, words) = self.common.sort(context)?;
        let origin = self.common.origin(&words, context)?;
        let path = self.common.clickpath.as_deref();
        let text = sent_text(&origin, &vars, path, ErrorStyle::Click).ok_or(Failure)?;
        let mut it = self.target.attach(context)?;
        let fail = |message: String| context.fail(message);
        if self.uninstall {
            it.client.write("stop", "").map_err(fail)?;
        }
        it.client.write_data("hotconfig", &text).map_err(fail)
    }
}
