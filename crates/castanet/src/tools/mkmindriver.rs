//! `click-mkmindriver`: a `click` with the chains of some configurations compiled into it.

use super::common::{CommonOptions, Failure, Input, Tool, ToolContext, Variables};
use crate::commands::CommandError;
use crate::commands::build::{Compilation, GeneratedProgram, Output, build};
use crate::load::Origin;
use castanet_lang::{Diagnostic, Diagnostics, nearest};
use castanet_runtime::cores::Cores;
use castanet_runtime::router::{ErrorStyle, plan};
use clap::Parser;
use std::path::{Path, PathBuf};

/// Builds a `click` that is as fast with some configurations as programs of `castanet build`. It has
/// all element classes, so it runs any other configuration, too.
#[derive(Parser)]
#[command(
    override_usage = "click-mkmindriver -p PACKAGE [OPTION]... [ROUTERFILE]...",
    after_help = "The driver is called PACKAGEclick. `castanet build --help` says what a build needs.
Exit status: 0 if it was built, 1 if not."
)]
pub(crate) struct Mkmindriver {
    #[command(flatten)]
    common: CommonOptions,
    #[arg(short, long, value_name = "PACKAGE", help = "The driver's name, without `click`")]
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
    /// Write the driver into this folder
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
        let Some(package) = &self.package else {
            return Err(context.usage("fatal error: no package name specified"));
        };
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
        let mut graphs = Vec::new();
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
            // Arguments may be wrong: they do not matter here, and may be variables.
            let (cores, mut found) = (Cores::here(1, &[]), Diagnostics::new());
            graphs.push(plan(&flat, &input.library, &cores, ErrorStyle::Click, &mut found).graph);
        }
        if missing {
            return Err(Failure);
        }
        let program = GeneratedProgram::driver(graphs.iter());
        let compilation = Compilation::release(self.common.quiet);
        let output = Output::find(Some(&self.driver(package, context)?), &Origin::File("-".into()));
        match output.and_then(|output| build(&program, &output, &compilation)) {
            Ok(_) => Ok(()),
            Err(CommandError(_, None)) => Err(Failure),
            Err(CommandError(_, Some(message))) => Err(context.fail(message)),
        }
    }
}

impl Mkmindriver {
    /// The file of the driver.
    fn driver(&self, package: &str, context: &ToolContext) -> Result<PathBuf, Failure> {
        if let Some(file) = self.common.target(context)? {
            return Ok(file.into());
        }
        let folder = self.directory.as_deref().unwrap_or(".");
        Ok(Path::new(folder).join(format!("{package}click")))
    }

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
