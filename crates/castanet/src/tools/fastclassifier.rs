//! `click-fastclassifier`: what Castanet does by itself.

use super::common::{CommonOptions, Failure, Tool, ToolContext};
use super::through::{self, CodeOptions};
use clap::Parser;

/// Why there is nothing to do.
const WHY: &str = "click-fastclassifier: the configuration is passed on unchanged: Castanet compiles \
                   the patterns of each classifier when a router starts; `castanet build` compiles \
                   the elements around it";

/// Passes a configuration on unchanged: Castanet compiles the patterns of classifiers when a router
/// starts.
#[derive(Parser)]
pub(crate) struct Fastclassifier {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    code: CodeOptions,
}

impl Tool for Fastclassifier {
    const NAME: &'static str = "click-fastclassifier";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        if self.code.source {
            return Err(context.fail(
                "there is no source code: Castanet compiles the patterns of each classifier when a \
                 router starts",
            ));
        }
        through::pass(&self.common, WHY, context)
    }
}
