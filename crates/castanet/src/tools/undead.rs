//! `click-undead`: dead elements removed.

use super::common::{CommonOptions, Failure, Tool, ToolContext, Variables};
use castanet_lang::transform::undead;
use clap::Parser;

/// Removes elements that no packet can come to or come on from, and those that do nothing.
#[derive(Parser)]
pub(crate) struct Undead {
    #[command(flatten)]
    common: CommonOptions,
    /// The configuration is for a Linux kernel: makes no difference
    #[arg(short, long)]
    kernel: bool,
    /// The configuration is for the user level: makes no difference
    #[arg(short, long)]
    user: bool,
    /// Write the configuration only, without what else is in its archive
    #[arg(short, long)]
    config: bool,
    /// Say what is where packets begin and end, and what is removed
    #[arg(short = 'V', long)]
    verbose: bool,
}

impl Tool for Undead {
    const NAME: &'static str = "click-undead";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let input = self.common.input(context)?;
        let flat = input.flat(Variables::Expand, context)?;
        context.report(input.unknown(&flat), &input.sources)?;
        let done = undead(&flat);
        for (span, text) in done.notes.iter().filter(|_| self.verbose) {
            context.note(format_args!("{}: {text}", input.sources.landmark(*span)));
        }
        let reported = context.report(done.diagnostics, &input.sources);
        let Some(graph) = done.graph else { return Err(Failure) };
        let members = if self.config { &[][..] } else { input.members() };
        self.common.write_graph(&graph, members, context)?;
        reported
    }
}
