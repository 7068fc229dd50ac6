//! `click2xml`: a configuration as XML.

use super::common::{CommonOptions, Failure, Tool, ToolContext, Variables};
use castanet_lang::print::xml;
use castanet_lang::{Outline, Span};
use clap::Parser;

/// Writes a configuration as XML: classes, elements and connections, each with its place in the
/// source, and whether packets are pushed or pulled.
#[derive(Parser)]
pub(crate) struct Click2xml {
    #[command(flatten)]
    common: CommonOptions,
    /// Expand compound elements first
    #[arg(short = 'F', long, overrides_with = "no_flatten")]
    flatten: bool,
    /// Leave compound elements as they are (the default)
    #[arg(long, overrides_with = "flatten", hide = true)]
    no_flatten: bool,
    /// The configuration is for FreeBSD's kernel: makes no difference
    #[arg(short, long)]
    bsdmodule: bool,
    /// The configuration is for Linux' kernel: makes no difference
    #[arg(short, long, short_alias = 'k', alias = "kernel")]
    linuxmodule: bool,
    /// The configuration is for the user level: makes no difference
    #[arg(short, long)]
    userlevel: bool,
}

impl Tool for Click2xml {
    const NAME: &'static str = "click2xml";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let input = self.common.input(context)?;
        let graph = input.flat(Variables::Expand, context)?;
        context.report(input.unknown(&graph), &input.sources)?;
        let outline = match self.flatten {
            true => Outline::from_graph(graph, Span { file: input.tree.file, start: 0, end: 0 }),
            false => input.outline().0,
        };
        let processing = outline.processing(&|class| input.code(class));
        let text = xml(&outline, &processing, &input.sources);
        self.common.write(text.as_bytes(), context)
    }
}
