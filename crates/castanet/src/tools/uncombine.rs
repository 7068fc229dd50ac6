//! `click-uncombine`: one router out of several.

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext, Variables};
use castanet_lang::transform::{components, uncombine};
use clap::Parser;

/// Takes one router out of what click-combine has made of several.
#[derive(Parser)]
#[command(override_usage = "click-uncombine [OPTION]... [ROUTERFILE [COMPONENT]]")]
pub(crate) struct Uncombine {
    #[command(flatten)]
    common: CommonOptions,
    /// Take out the router called NAME
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,
    /// Print the routers' names, one a line
    #[arg(long)]
    list: bool,
}

impl Tool for Uncombine {
    const NAME: &'static str = "click-uncombine";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        self.common.target(context)?;
        let (vars, mut words) = self.common.sort(context)?;
        let named = !self.common.file.is_empty() || !self.common.expression.is_empty();
        let mut name = self.name.as_deref();
        if words.len() > usize::from(!named) {
            if name.is_some() {
                return Err(context.usage("component name specified twice"));
            }
            name = words.pop();
        }
        let origin = self.common.origin(&words, context)?;
        let input = Input::read(&origin, vars, &self.common, context)?;
        let flat = input.flat(Variables::Expand, context)?;
        let mut members = input.members().to_vec();
        let Some(known) = components(&members) else {
            let why = "not created by 'click-combine' (no 'componentmap')";
            return Err(context.fail(format_args!("{}: {why}", input.name)));
        };
        if self.list {
            let lines: String = known.iter().map(|name| format!("{name}\n")).collect();
            return self.common.write(lines.as_bytes(), context);
        }
        let Some(name) = name else { return Err(context.fail("no component specified")) };
        let graph = uncombine(&flat, &mut members, name).map_err(|errors| {
            errors.iter().for_each(|e| _ = context.fail(format_args!("{}: {e}", input.name)));
            Failure
        })?;
        self.common.write_graph(&graph, &members, context)
    }
}
