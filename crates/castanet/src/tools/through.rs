//! Configurations passed on as they are, by tools that Castanet has no work for.

use super::common::{CommonOptions, Failure, Input, ToolContext, Variables};
use crate::load::{Origin, io_error_text, open_bytes};
use clap::Args;
use std::io::Read;

/// Options about the code that Click's tools write.
#[derive(Args)]
pub(super) struct CodeOptions {
    /// Compile for a Linux kernel: makes no difference
    #[arg(short, long, short_alias = 'l', alias = "linuxmodule")]
    kernel: bool,
    /// Compile for the user level: makes no difference
    #[arg(short, long, alias = "userlevel")]
    user: bool,
    /// Write source code: there is none
    #[arg(short, long)]
    pub(super) source: bool,
    /// Write the configuration only: makes no difference
    #[arg(short, long)]
    config: bool,
    /// Undo what the tool has done: makes no difference
    #[arg(short, long)]
    reverse: bool,
}

/// Writes the configuration out byte by byte, if it can be read at all; says why nothing is done.
pub(super) fn pass(
    common: &CommonOptions,
    why: &str,
    context: &ToolContext,
) -> Result<(), Failure> {
    common.target(context)?;
    let (vars, words) = common.sort(context)?;
    let origin = common.origin(&words, context)?;
    let bytes = bytes(&origin).map_err(|e| context.fail(e))?;
    let loaded = open_bytes(origin.name(), &bytes, common.clickpath.as_deref());
    let input = Input::of(loaded, origin.name(), vars, context)?;
    input.flat(Variables::Expand, context)?;
    context.note(why);
    common.write(&bytes, context)
}

fn bytes(origin: &Origin) -> Result<Vec<u8>, String> {
    let read = match origin {
        Origin::Expression(text) => Ok(text.clone().into_bytes()),
        Origin::File(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        Origin::File(path) | Origin::System(path) => std::fs::read(path),
        Origin::Built(built) => Ok(built.texts.first().map_or(&[][..], |(_, text)| text).to_vec()),
    };
    read.map_err(|e| format!("{}: {}", origin.name(), io_error_text(&e)))
}
