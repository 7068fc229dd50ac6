//! Common parts of Click's tools: options, reading and writing configurations, messages.

use crate::cli::{as_setting, told};
use crate::library::library;
use crate::load::{LoadedConfiguration, Origin, io_error_text, open_in};
use crate::terminal::{complain, say};
use castanet_element::class::Library;
use castanet_element::class::ports::code;
use castanet_lang::transform::expand_keeping_variables;
use castanet_lang::{
    AnyClass, ClassInfo, Diagnostic, Diagnostics, FlatGraph, Member, Outline, SourceMap, Tree,
    archive, expand, outline, print,
};
use castanet_runtime::router::ErrorStyle;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, ArgMatches, Args, Parser};
use std::io::Write;

/// A tool of Click.
pub(crate) trait Tool: Parser {
    /// The name by which it is called.
    const NAME: &'static str;

    /// The options that all have.
    fn common(&self) -> &CommonOptions;

    /// For tools where the order of different options matters.
    fn ordered(&mut self, _matches: &ArgMatches) {}

    /// Does it.
    fn run(&self, context: &ToolContext) -> Result<(), Failure>;
}

/// The tool failed; the user has been told why.
#[derive(Debug)]
pub(crate) struct Failure;

/// The options that all tools have.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonOptions {
    /// The configuration file (`-`, or none: standard input), and VAR=value settings
    #[arg(value_name = "ROUTERFILE or VAR=value")]
    pub(crate) words: Vec<String>,
    /// Read the configuration from FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    /// Use EXPR as configuration
    #[arg(short, long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: Vec<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<String>,
    /// Where `require(library FILE)` looks, instead of in $CLICKPATH
    #[arg(short = 'C', long, value_name = "PATH")]
    pub(crate) clickpath: Option<String>,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the version and exit
    #[arg(short = 'v', long, action = ArgAction::SetTrue)]
    pub(crate) version: bool,
    /// Print this help and exit
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// `VAR=value` settings.
pub(crate) type Settings = Vec<(String, String)>;

impl CommonOptions {
    /// `VAR=value` settings and the other words.
    pub(crate) fn sort(&self, context: &ToolContext) -> Result<(Settings, Vec<&str>), Failure> {
        let mut vars = Settings::new();
        let mut plain = Vec::new();
        for word in &self.words {
            match as_setting(word) {
                Some((name, _)) if vars.iter().any(|(known, _)| *known == name) => {
                    return Err(context.usage(format_args!("parameter '{name}' multiply defined")));
                }
                Some(setting) => vars.push(setting),
                None => plain.push(word.as_str()),
            }
        }
        Ok((vars, plain))
    }

    /// Source of the configuration; `words` may name files too.
    pub(crate) fn origin(&self, words: &[&str], context: &ToolContext) -> Result<Origin, Failure> {
        let files = words.iter().copied().chain(self.file.iter().map(String::as_str));
        let mut all: Vec<_> = files.map(|file| Origin::File(file.into())).collect();
        all.extend(self.expression.iter().cloned().map(Origin::Expression));
        match (all.len(), all.pop()) {
            (1, Some(origin)) => Ok(origin),
            (0, _) => Ok(Origin::File("-".into())),
            _ => Err(context.usage("router configuration specified twice")),
        }
    }

    /// Reads the one configuration that the words and options name.
    pub(crate) fn input(&self, context: &ToolContext) -> Result<Input, Failure> {
        let (vars, words) = self.sort(context)?;
        let origin = self.origin(&words, context)?;
        Input::read(&origin, vars, self, context)
    }

    /// The file to write to; none for standard output.
    pub(crate) fn target(&self, context: &ToolContext) -> Result<Option<&str>, Failure> {
        match &self.output[..] {
            [] => Ok(None),
            [file] if file == "-" => Ok(None),
            [file] => Ok(Some(file)),
            _ => Err(context.usage("output file specified twice")),
        }
    }

    /// Writes the tool's output.
    pub(crate) fn write(&self, bytes: &[u8], context: &ToolContext) -> Result<(), Failure> {
        let written = match self.target(context)? {
            Some(file) => {
                std::fs::write(file, bytes).map_err(|e| format!("{file}: {}", io_error_text(&e)))
            }
            None => put(bytes),
        };
        written.map_err(|message| context.fail(message))
    }

    /// Writes a graph; as an archive if it has other members beside it.
    pub(crate) fn write_graph(
        &self,
        graph: &FlatGraph,
        members: &[Member],
        context: &ToolContext,
    ) -> Result<(), Failure> {
        let config = Member { name: "config".into(), data: print::flat_by_age(graph).into_bytes() };
        if members.is_empty() {
            return self.write(&config.data, context);
        }
        let all: Vec<Member> = std::iter::once(config).chain(members.iter().cloned()).collect();
        self.write(&archive(&all), context)
    }
}

/// Writes bytes to standard output.
fn put(bytes: &[u8]) -> Result<(), String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => say(text),
        Err(_) => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(bytes).and_then(|()| out.flush());
            written.or_else(|e| match e.kind() {
                std::io::ErrorKind::BrokenPipe => Ok(()),
                _ => Err(format!("cannot write: {}", io_error_text(&e))),
            })
        }
    }
}

/// Reads configurations for a tool, and writes its messages.
pub(crate) struct ToolContext {
    tool: &'static str,
    quiet: bool,
}

impl ToolContext {
    /// Prints an error.
    pub(crate) fn fail(&self, message: impl std::fmt::Display) -> Failure {
        complain(format_args!("{}: {message}", self.tool));
        Failure
    }

    /// Prints an error in the command line, and the usage.
    pub(crate) fn usage(&self, message: impl std::fmt::Display) -> Failure {
        let tool = self.tool;
        self.fail(message);
        complain(format_args!("Usage: {tool} [OPTION]... [ROUTERFILE]"));
        complain(format_args!("Try '{tool} --help' for more information."));
        Failure
    }

    /// Writes a warning, unless the user has turned warnings off.
    pub(crate) fn warn(&self, message: impl std::fmt::Display) {
        self.note(format_args!("{}: warning: {message}", self.tool));
    }

    /// Prints a line without the tool's name, unless the user has turned messages off.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            complain(line);
        }
    }

    /// Prints what was found; stops if there is an error.
    pub(crate) fn report(
        &self,
        mut found: Diagnostics,
        sources: &SourceMap,
    ) -> Result<(), Failure> {
        if self.quiet {
            found.remove_warnings();
        }
        if !found.is_empty() {
            complain(found.render_click(sources).trim_end());
        }
        if found.has_errors() { Err(Failure) } else { Ok(()) }
    }
}

/// Whether `define`d variables stay in configuration strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    Stay,
    Expand,
}

/// A configuration that was read.
pub(crate) struct Input {
    pub(crate) sources: SourceMap,
    pub(crate) tree: Tree,
    /// Its name in messages.
    pub(crate) name: String,
    vars: Vec<(String, String)>,
    /// Every class of Castanet's.
    pub(crate) library: Library,
}

/// To the tools, which need not know what a class does, any capitalised name is one, as in Click.
struct LenientClasses<'a>(&'a Library);

impl ClassInfo for LenientClasses<'_> {
    fn knows(&self, class: &str) -> bool {
        self.0.get(class).is_some()
    }
    fn presumes(&self, class: &str) -> bool {
        AnyClass.presumes(class)
    }
}

impl Input {
    /// Reads and parses a configuration.
    pub(crate) fn read(
        origin: &Origin,
        vars: Vec<(String, String)>,
        common: &CommonOptions,
        context: &ToolContext,
    ) -> Result<Self, Failure> {
        let loaded = open_in(SourceMap::new(), origin, common.clickpath.as_deref());
        Input::of(loaded, origin.name(), vars, context)
    }

    /// A configuration that was read; what is wrong with it is reported.
    pub(crate) fn of(
        mut loaded: LoadedConfiguration,
        name: String,
        vars: Vec<(String, String)>,
        context: &ToolContext,
    ) -> Result<Self, Failure> {
        let Some(tree) = loaded.tree.take() else {
            loaded.report(ErrorStyle::Click);
            return Err(Failure);
        };
        if loaded.sources.text(tree.file).is_empty() && !loaded.found.has_errors() {
            context.note(format_args!("warning: {name}: empty configuration"));
        }
        context.report(loaded.found, &loaded.sources)?;
        Ok(Input::new(loaded.sources, tree, name, vars))
    }

    pub(crate) fn new(
        sources: SourceMap,
        tree: Tree,
        name: String,
        vars: Vec<(String, String)>,
    ) -> Self {
        Input { sources, tree, name, vars, library: library() }
    }

    /// The flat graph.
    pub(crate) fn flat(
        &self,
        variables: Variables,
        context: &ToolContext,
    ) -> Result<FlatGraph, Failure> {
        let classes = LenientClasses(&self.library);
        let (flat, found) = match variables {
            Variables::Stay => expand_keeping_variables(&self.tree, &classes, &self.vars),
            Variables::Expand => expand(&self.tree, &classes, &self.vars),
        };
        context.report(found, &self.sources)?;
        Ok(flat)
    }

    /// Members of the archive beside the configuration.
    pub(crate) fn members(&self) -> &[Member] {
        self.sources.members(self.tree.file)
    }

    /// The configuration as it is written, and what is wrong with it.
    pub(crate) fn outline(&self) -> (Outline, Diagnostics) {
        outline(&self.tree, &LenientClasses(&self.library))
    }

    /// Click's processing code of a class, if Castanet has it.
    pub(crate) fn code(&self, class: &str) -> Option<String> {
        self.library.get(class).map(|class| code(class).to_owned())
    }

    /// The patterns that it holds, for `click-xform`.
    pub(crate) fn patterns(
        &self,
        context: &ToolContext,
    ) -> Result<Vec<castanet_lang::transform::Pattern>, Failure> {
        let (patterns, found) =
            castanet_lang::transform::patterns(&self.tree, &LenientClasses(&self.library));
        context.report(found, &self.sources)?;
        Ok(patterns)
    }

    /// Warns of each class that Castanet does not have, where it is first used.
    pub(crate) fn unknown(&self, flat: &FlatGraph) -> Diagnostics {
        let mut seen = Vec::new();
        let mut found = Diagnostics::new();
        for element in &flat.elements {
            if self.library.get(&element.class).is_none() && !seen.contains(&&element.class) {
                seen.push(&element.class);
                let message = format!("unknown element class '{}'", element.class);
                found.push(Diagnostic::warning(element.span, message));
            }
        }
        found
    }
}

/// The command line of a tool.
pub(crate) fn command<T: Tool>() -> clap::Command {
    T::command()
        .name(T::NAME)
        .infer_long_args(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
}

/// Runs a tool; gives its exit status.
pub(crate) fn main<T: Tool>() -> i32 {
    let parsed = command::<T>().try_get_matches().and_then(|matches| {
        let mut tool = T::from_arg_matches(&matches)?;
        tool.ordered(&matches);
        Ok(tool)
    });
    let tool = match parsed {
        Ok(tool) => tool,
        Err(e) if !e.use_stderr() => return told(&e, T::NAME).unwrap_or(0),
        Err(e) => {
            let context = ToolContext { tool: T::NAME, quiet: false };
            context.usage(said(&e));
            return 1;
        }
    };
    let context = ToolContext { tool: T::NAME, quiet: tool.common().quiet };
    let done = match tool.common().version {
        true => {
            let ours = env!("CARGO_PKG_VERSION");
            let text = format!("{} (Click) 2.1 compatible, Castanet {ours}\n", T::NAME);
            put(text.as_bytes()).map_err(|message| context.fail(message))
        }
        false => tool.run(&context),
    };
    i32::from(done.is_err())
}

/// Text of a command-line error, in Click's words where Click has such a message.
fn said(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (option, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
    let name = option.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => format!("unrecognized option '{name}'"),
        ErrorKind::InvalidValue if value.is_empty() => format!("'{name}' requires an argument"),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}
