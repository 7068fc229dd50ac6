//! `click-flatten`: compounds expanded.

use super::common::{CommonOptions, Failure, Tool, ToolContext, Variables};
use castanet_lang::print;
use clap::Parser;
use std::collections::BTreeSet;

/// Expands all compound elements of a configuration.
#[derive(Parser)]
#[command(after_help = "Of several options that say what to print, the last counts.")]
pub(crate) struct Flatten {
    #[command(flatten)]
    common: CommonOptions,
    /// Print the classes in use, one a line
    #[arg(short, long, overrides_with_all = ["names", "declarations", "config"])]
    classes: bool,
    /// Print the elements' names, one a line
    #[arg(short, long, visible_alias = "elements", overrides_with_all = ["classes", "declarations", "config"])]
    names: bool,
    /// Print the elements' declarations, one a line
    #[arg(short, long, visible_alias = "decls", overrides_with_all = ["classes", "names", "config"])]
    declarations: bool,
    /// Print the configuration only, without what else is in its archive
    #[arg(long, overrides_with_all = ["classes", "names", "declarations"])]
    config: bool,
    /// Put values in the places of the variables that the file defines
    #[arg(short = 'E', long, overrides_with = "no_expand_vars")]
    expand_vars: bool,
    /// Leave the file's variables in place (the default)
    #[arg(long, overrides_with = "expand_vars", hide = true)]
    no_expand_vars: bool,
}

impl Tool for Flatten {
    const NAME: &'static str = "click-flatten";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let input = self.common.input(context)?;
        let variables = if self.expand_vars { Variables::Expand } else { Variables::Stay };
        let flat = input.flat(variables, context)?;
        let elements = flat.elements.iter();
        let lines: BTreeSet<String> = if self.classes {
            elements.map(|it| format!("{}\n", it.class)).collect()
        } else if self.names {
            elements.map(|it| format!("{}\n", it.name)).collect()
        } else if self.declarations {
            elements.map(|it| format!("{} :: {}\n", it.name, it.class)).collect()
        } else if self.config {
            return self.common.write(print::flat_by_age(&flat).as_bytes(), context);
        } else {
            return self.common.write_graph(&flat, input.members(), context);
        };
        self.common.write(lines.into_iter().collect::<String>().as_bytes(), context)
    }
}
