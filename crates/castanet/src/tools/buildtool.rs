//! `click-buildtool`: what Castanet has no use for.

use super::common::{CommonOptions, Failure, Tool, ToolContext};
use clap::Parser;

/// Says why there is nothing to build: elements are part of the program.
#[derive(Parser)]
#[command(
    override_usage = "click-buildtool [OPTION]... COMMAND [ARGUMENT]...",
    after_help = "Exit status: 1. Castanet's elements are Rust sources, built with it by cargo;
`castanet elements` lists them, and CONTRIBUTING.md says how to add one."
)]
pub(crate) struct Buildtool {
    #[command(flatten)]
    common: CommonOptions,
}

impl Tool for Buildtool {
    const NAME: &'static str = "click-buildtool";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        Err(context.fail(
            "nothing to build: Castanet's elements are built with it, by cargo; `castanet elements` \
             lists them",
        ))
    }
}
