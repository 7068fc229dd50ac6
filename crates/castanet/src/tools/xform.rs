//! `click-xform`: patterns of elements replaced.

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext, Variables};
use crate::load::{Origin, open_in};
use castanet_lang::SourceMap;
use castanet_lang::transform::{Pattern, transform};
use clap::Parser;

/// Replaces patterns of elements, each a pair of compound classes NAME and NAME_Replacement, until
/// none is left.
#[derive(Parser)]
#[command(after_help = "Arguments such as $a in a pattern stand for any argument.
Words after the configuration file are files of patterns too.")]
pub(crate) struct Xform {
    #[command(flatten)]
    common: CommonOptions,
    /// Read patterns from this file; may be given several times
    #[arg(short, long, value_name = "PATTERNFILE")]
    patterns: Vec<String>,
    /// Replace replacements by what they replace
    #[arg(short, long, overrides_with = "no_reverse")]
    reverse: bool,
    /// Replace patterns by their replacements (the default)
    #[arg(long, overrides_with = "reverse", hide = true)]
    no_reverse: bool,
}

impl Tool for Xform {
    const NAME: &'static str = "click-xform";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let (vars, words) = self.common.sort(context)?;
        let (file, more) = words.split_at(words.len().min(1));
        let origin = self.common.origin(file, context)?;
        let files: Vec<&str> =
            self.patterns.iter().map(String::as_str).chain(more.iter().copied()).collect();
        if files.is_empty() {
            context.warn("no patterns read");
        }
        let mut patterns: Vec<Pattern> = Vec::new();
        // All in one map of sources, so that what is wrong with any of them can be shown.
        let mut sources = SourceMap::new();
        for file in files {
            let origin = Origin::File(file.into());
            let loaded = open_in(sources, &origin, self.common.clickpath.as_deref());
            let input = Input::of(loaded, origin.name(), Vec::new(), context)?;
            patterns.extend(input.patterns(context)?);
            sources = input.sources;
        }
        if self.reverse {
            patterns = patterns.into_iter().rev().map(Pattern::reversed).collect();
        }
        let loaded = open_in(sources, &origin, self.common.clickpath.as_deref());
        let input = Input::of(loaded, origin.name(), vars, context)?;
        let flat = input.flat(Variables::Stay, context)?;
        let done = transform(&flat, &patterns);
        context.report(done.diagnostics, &input.sources)?;
        self.common.write_graph(&done.graph, input.members(), context)
    }
}
