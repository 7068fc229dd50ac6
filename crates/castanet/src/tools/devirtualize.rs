//! `click-devirtualize`: what Castanet does by itself.

use super::common::{CommonOptions, Failure, Tool, ToolContext};
use super::through::{self, CodeOptions};
use clap::Parser;

/// Why there is nothing to do.
const WHY: &str = "click-devirtualize: the configuration is passed on unchanged: Castanet runs \
                   elements that follow each other as one pass; `castanet build` compiles more of them";

/// Passes a configuration on unchanged: in Castanet a call serves a burst of packets, and elements
/// that follow each other run as one pass.
#[derive(Parser)]
pub(crate) struct Devirtualize {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    code: CodeOptions,
    /// Leave this class alone: makes no difference
    #[arg(short, long, value_name = "CLASS")]
    no_devirtualize: Vec<String>,
    /// Read what to leave alone from FILE: makes no difference
    #[arg(short, long, value_name = "FILE")]
    instructions: Vec<String>,
}

impl Tool for Devirtualize {
    const NAME: &'static str = "click-devirtualize";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        if self.code.source {
            return Err(context.fail(
                "there is no source code: Castanet runs elements that follow each other as one pass",
            ));
        }
        through::pass(&self.common, WHY, context)
    }
}
