//! `click-uninstall`: removes the configuration of a tenant.

use super::common::{CommonOptions, Failure, Tool, ToolContext};
use super::install::InstallTarget;
use clap::Parser;

/// Removes the configuration of a tenant, by the tenant's control socket. Of an instance without tenants, it ends
/// the router.
#[derive(Parser)]
pub(crate) struct Uninstall {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    target: InstallTarget,
}

impl Tool for Uninstall {
    const NAME: &'static str = "click-uninstall";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        let CommonOptions { words, file, expression, output, .. } = &self.common;
        if [words, file, expression, output].iter().any(|it| !it.is_empty()) {
            return Err(context.usage("it takes no configuration"));
        }
        let mut it = self.target.attach(context)?;
        it.client.write("stop", "").map_err(|message| context.fail(message))
    }
}
