//! `click-check`: whether a configuration is right.

use super::common::{CommonOptions, Failure, Tool, ToolContext, Variables};
use crate::console::Terminal;
use castanet_runtime::router::{ErrorStyle, Options, Router};
use clap::{ArgAction, Parser};
use std::sync::Arc;

/// Says whether a configuration is right, and everything that is wrong.
#[derive(Parser)]
#[command(after_help = "Exit status: 0 if it is right, 1 if not. Classes that Castanet does not
have are warnings; the connections and arguments are looked at if there are none.")]
pub(crate) struct Check {
    #[command(flatten)]
    common: CommonOptions,
    /// Write the configuration to standard output if it is right
    #[arg(short = 'p', long)]
    filter: bool,
    /// Check for the user-level driver, the only one
    #[arg(short, long)]
    userlevel: bool,
    /// Check for the Linux kernel driver: there is none
    #[arg(short, long, short_alias = 'k', alias = "kernel", action = ArgAction::SetTrue)]
    linuxmodule: bool,
    /// Check for the FreeBSD kernel driver: there is none
    #[arg(short, long)]
    bsdmodule: bool,
}

impl Tool for Check {
    const NAME: &'static str = "click-check";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        let target = self.common.target(context)?;
        if self.filter && !self.common.output.is_empty() {
            return Err(context.usage("output file specified twice"));
        }
        let input = self.common.input(context)?;
        let flat = input.flat(Variables::Expand, context)?;
        let unknown = input.unknown(&flat);
        let known = unknown.is_empty();
        context.report(unknown, &input.sources)?;
        if known {
            let mut options = Options::new(Arc::new(Terminal));
            options.interfaces = Some(castanet_io::elements::address_of);
            options.error_style = ErrorStyle::Click;
            let mut found = castanet_lang::Diagnostics::new();
            Router::check(&flat, &input.library, &options, &mut found);
            context.report(found, &input.sources)?;
        }
        self.drivers(&input.name, context)?;
        if self.filter || target.is_some() || !self.common.output.is_empty() {
            let flat = input.flat(Variables::Stay, context)?;
            return self.common.write_graph(&flat, input.members(), context);
        }
        if known {
            context.note(format_args!("{}: configuration OK in userlevel driver", input.name));
        }
        Ok(())
    }
}

impl Check {
    /// Castanet has one driver.
    fn drivers(&self, name: &str, context: &ToolContext) -> Result<(), Failure> {
        let targets = [(self.linuxmodule, "linuxmodule"), (self.bsdmodule, "bsdmodule")];
        let mut done = Ok(());
        for (_, driver) in targets.into_iter().filter(|(is_set, _)| *is_set) {
            let message = format!("{name}: Castanet runs at user level only, not as {driver}");
            done = Err(context.fail(message));
        }
        done
    }
}
