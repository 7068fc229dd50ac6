//! `click-mkmindriver`: whether Castanet has every class that configurations name.

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext, Variables};
use crate::load::Origin;
use castanet_lang::{Diagnostic, nearest};
use clap::Parser;

/// Says whether Castanet has every element class that configurations name: it is one program with
/// all of them, so no smaller driver is built.
#[derive(Parser)]
#[command(
    override_usage = "click-mkmindriver -p PACKAGE [OPTION]... [ROUTERFILE]...",
    after_help = "Exit status: 0 if it has, 1 if not. No file is written."
)]
pub(crate) struct Mkmindriver {
    #[command(flatten)]
    common: CommonOptions,
    #[arg(short, long, value_name = "PACKAGE", help = "What the driver would be called")]
    package: Option<String>,
    /// Look at the classes of compound elements that are not used too: makes no difference
    #[arg(short, long)]
    all: bool,
    /// A driver for Linux' kernel: there is none
    #[arg(short, long, short_alias = 'k', alias = "kernel")]
    linuxmodule: bool,
    /// A driver for the user level, the only one
    #[arg(short, long)]
    userlevel: bool,
    /// Where the driver would be built: makes no difference
    #[arg(short, long, value_name = "DIR")]
    directory: Option<String>,
    /// Further classes, with blanks between them
    #[arg(short = 'E', long, value_name = "CLASSES")]
    elements: Vec<String>,
    /// Without useful classes that nothing names: makes no difference
    #[arg(long)]
    no_extras: bool,
    /// Say more
    #[arg(short = 'V', long)]
    verbose: bool,
}

impl Tool for Mkmindriver {
    const NAME: &'static str = "click-mkmindriver";

    fn common(&self) -> &CommonOptions {
        &self.common
    }

    fn run(&self, context: &ToolContext) -> Result<(), Failure> {
        if self.package.is_none() {
            return Err(context.usage("fatal error: no package name specified"));
        }
        if self.linuxmodule {
            return Err(context.fail("Castanet runs at user level only, not as linuxmodule"));
        }
        let (vars, words) = self.common.sort(context)?;
        let files = words.iter().copied().chain(self.common.file.iter().map(String::as_str));
        let mut origins: Vec<_> = files.map(|file| Origin::File(file.into())).collect();
        origins.extend(self.common.expression.iter().cloned().map(Origin::Expression));
        if origins.is_empty() && self.elements.is_empty() {
            origins.push(Origin::File("-".into()));
        }
        let mut missing = self.named(context);
        for origin in origins {
            let input = Input::read(&origin, vars.clone(), &self.common, context)?;
            let flat = input.flat(Variables::Expand, context)?;
            let errors = input
                .unknown(&flat)
                .iter()
                .map(|warning| Diagnostic::error(warning.span, warning.message.clone()))
                .collect();
            missing |= context.report(errors, &input.sources).is_err();
            for it in flat.elements.iter().filter(|_| self.verbose) {
                context.note(format_args!("{}: {} needs {}", input.name, it.name, it.class));
            }
        }
        if missing {
            return Err(Failure);
        }
        context.note(
            "click-mkmindriver: no driver is built: castanet has every class that is needed; call \
             it by the name click",
        );
        Ok(())
    }
}

impl Mkmindriver {
    /// Whether a class of `-E` is missing; says which.
    fn named(&self, context: &ToolContext) -> bool {
        let library = crate::library::library();
        let classes = self.elements.iter().flat_map(|list| list.split_whitespace());
        let mut missing = false;
        for class in classes.filter(|class| library.get(class).is_none()) {
            missing = true;
            let near = nearest(class, library.names());
            let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            context.fail(format_args!("unknown element class '{class}'{hint}"));
        }
        missing
    }
}
