//! `click-align`: packets where in memory elements want them.

use super::common::{CommonOptions, Failure, Tool, ToolContext, Variables};
use castanet_lang::transform::{align, assert_alignment};
use clap::Parser;

/// Adds the Align elements that a configuration needs on machines that read words at their
/// multiples only.
#[derive(Parser)]
#[command(after_help = "Castanet itself needs no alignment on any machine: such a configuration is
for others, and runs here as well.")]
pub(crate) struct Align {
    #[command(flatten)]
    common: CommonOptions,
    /// Add CheckAlign elements that stop at a wrong packet, instead of Align elements
    #[arg(long)]
    assertions: bool,
    /// The configuration is for FreeBSD's kernel: makes no difference
    #[arg(short, long)]
    bsdmodule: bool,
    /// The configuration is for Linux' kernel: makes no difference
    #[arg(short, long)]
    linuxmodule: bool,
    /// The configuration is for the user level: makes no difference
    #[arg(short, long)]
    userlevel: bool,
    /// Say what is added where
    #[arg(short = 'V', long)]
    verbose: bool,
}

impl Tool for Align {
    const NAME: &'static str = "click-align";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let input = self.common.input(context)?;
        let flat = input.flat(Variables::Expand, context)?;
        if self.assertions {
            return self.common.write_graph(&assert_alignment(&flat), input.members(), context);
        }
        let done = align(&flat);
        done.notes.iter().filter(|_| self.verbose).for_each(|note| context.note(note));
        if done.added > 0 {
            let s = if done.added == 1 { "" } else { "s" };
            context.note(format_args!("warning: added {} Align element{s}", done.added));
        }
        self.common.write_graph(&done.graph, input.members(), context)
    }
}
