//! `click-devirtualize`: what Castanet does by itself.

use super::common::{Common, Desk, Failed, Tool};
use super::through;
use clap::Parser;

/// Why there is nothing to do.
const WHY: &str = "click-devirtualize: the configuration is passed on unchanged: Castanet runs \
                   elements that follow each other as one pass, one call a burst";

/// Passes a configuration on unchanged: in Castanet a call serves a burst of packets, and elements
/// that follow each other run as one pass.
#[derive(Parser)]
pub(crate) struct Devirtualize {
    #[command(flatten)]
    common: Common,
    /// Compile for a Linux kernel: makes no difference
    #[arg(short, long, short_alias = 'l', alias = "linuxmodule")]
    kernel: bool,
    /// Compile for the user level: makes no difference
    #[arg(short, long, alias = "userlevel")]
    user: bool,
    /// Write source code: there is none
    #[arg(short, long)]
    source: bool,
    /// Write the configuration only: makes no difference
    #[arg(short, long)]
    config: bool,
    /// Undo what the tool has done: makes no difference
    #[arg(short, long)]
    reverse: bool,
    /// Leave this class alone: makes no difference
    #[arg(short, long, value_name = "CLASS")]
    no_devirtualize: Vec<String>,
    /// Read what to leave alone from FILE: makes no difference
    #[arg(short, long, value_name = "FILE")]
    instructions: Vec<String>,
}

impl Tool for Devirtualize {
    const NAME: &'static str = "click-devirtualize";

    fn common(&self) -> &Common {
        &self.common
    }

    fn run(&self, desk: &Desk) -> Result<(), Failed> {
        if self.source {
            return Err(desk.fail(
                "there is no source code: Castanet runs elements that follow each other as one pass",
            ));
        }
        through::pass(&self.common, WHY, desk)
    }
}
