//! `castanet build`: compiles a configuration into a program of its own.

mod cache;
mod compile;
mod generate;
mod output;
mod sources;
mod toolchain;

use super::check::load_checked;
use super::{CommandError, CommandResult, write_json, write_out};
use crate::cli::Configuration;
use crate::library::library;
use crate::load::{LoadedConfiguration, Origin, io_error_text};
use crate::terminal::complain;
use cache::Cache;
use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::cores::Cores;
use castanet_runtime::router::{ErrorStyle, Options, Router, plan};
use clap::Args;
pub(crate) use compile::Interruption;
pub(crate) use generate::GeneratedProgram;
pub(crate) use output::Output;
use serde::Serialize;
use sources::SourceTree;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use toolchain::Toolchain;

/// Arguments of `castanet build`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: Configuration,
    /// The program to write; the configuration's name without its ending unless given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compilation: Compilation,
    /// Print the generated source, and build nothing
    #[arg(long)]
    print: bool,
    /// Write the generated source to this file, too
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write Castanet's sources and those of the crates that it uses into this folder, for machines
    /// without a checkout and without a network, and build nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "keep", "output"])]
    export_sources: Option<PathBuf>,
    /// Print a record of what was built as JSON
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

/// The processor of this machine.
const NATIVE: &str = "native";
/// Any processor.
const GENERIC: &str = "generic";

/// How programs are compiled.
#[derive(Args)]
pub(crate) struct Compilation {
    /// Castanet's sources, of the same version as this program
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// The profile of cargo to compile with
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// The processor to compile for: `native` for one like this machine's, `generic` for any, or another
    /// one of `rustc --print target-cpus` [default: native; profiles `dev` and `test`: generic]
    #[arg(long, value_name = "NAME")]
    target_cpu: Option<String>,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
}

impl Compilation {
    /// For programs that run fast on any machine, of the sources that are found.
    pub(crate) fn release(quiet: bool) -> Compilation {
        let target_cpu = Some(GENERIC.to_owned());
        Compilation { target_cpu, ..Compilation::of(None, "release".to_owned(), quiet) }
    }

    /// Of these sources, with a profile of cargo.
    pub(crate) fn of(source: Option<PathBuf>, profile: String, quiet: bool) -> Compilation {
        Compilation { source, profile, target_cpu: None, quiet }
    }

    /// Whether `cargo build` compiles. For these profiles `cargo rustc` means other things, and they want no
    /// further arguments.
    fn is_plain(&self) -> bool {
        matches!(self.profile.as_str(), "dev" | "test")
    }

    /// The processor to compile for.
    ///
    /// # Errors
    /// One is named, and `cargo build` compiles.
    fn target_cpu(&self) -> Result<&str, CommandError> {
        match (&self.target_cpu, self.is_plain()) {
            (None, true) => Ok(GENERIC),
            (None, false) => Ok(NATIVE),
            (Some(name), false) => Ok(name),
            (Some(_), true) => {
                let profile = &self.profile;
                let why = format!("programs of the profile `{profile}` are for any processor");
                Err(CommandError::usage(format!("--target-cpu: {why}")))
            }
        }
    }

    /// Writes a message, unless only errors are wanted.
    fn say(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            complain(format_args!("castanet: {}", text()));
        }
    }
}

/// Record of a build.
#[derive(Serialize)]
struct BuildRecord<'a> {
    configuration: String,
    output: String,
    /// The hash of the configuration, which the program prints as part of its version.
    hash: &'a str,
    seconds: f64,
    /// Whether the program was built before.
    cached: bool,
    /// The elements of each compiled chain.
    chains: &'a [Vec<String>],
    /// The classes of elements that are in no chain, each with the reason.
    unchanged: &'a BTreeMap<&'static str, &'static str>,
    toolchain: &'a str,
    /// The processor for which it is compiled, as `--target-cpu` names it.
    target_cpu: &'a str,
    sources: String,
}

/// Builds a program.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    if let Some(folder) = &arguments.export_sources {
        let sources = SourceTree::find(arguments.compilation.source.as_deref())?;
        return sources.export(folder);
    }
    let started = Instant::now();
    let (origin, settings) = arguments.configuration.sort().map_err(CommandError::usage)?;
    let library = library();
    let loaded = checked(&arguments.configuration, &library)?;
    let program = generate(&loaded, &settings, &library);
    if let Some(file) = &arguments.keep {
        write_out(Some(file), &program.text)?;
    }
    if arguments.print {
        return write_out(None, &program.text);
    }
    let output = Output::find(arguments.output.as_deref(), &origin)?;
    let built = build(&program, &output, &arguments.compilation)?;
    if arguments.json {
        write_json(&BuildRecord {
            configuration: origin.name(),
            output: output.path.display().to_string(),
            hash: &program.hash,
            seconds: started.elapsed().as_secs_f64(),
            cached: built.cached,
            chains: &program.chains,
            unchanged: &program.unchanged,
            toolchain: built.toolchain.version(),
            target_cpu: arguments.compilation.target_cpu()?,
            sources: built.sources.root().display().to_string(),
        })?;
    }
    Ok(())
}

/// Parts of a build that its record names.
pub(crate) struct Build {
    /// Whether the program was built before.
    cached: bool,
    toolchain: Toolchain,
    sources: SourceTree,
}

/// Builds a program, or takes it from the cache, and writes it.
pub(crate) fn build(
    program: &GeneratedProgram,
    output: &Output,
    compilation: &Compilation,
) -> Result<Build, CommandError> {
    let started = Instant::now();
    let (built, build) = compiled(program, compilation)?;
    output.write(&built)?;
    let seconds = started.elapsed().as_secs_f64();
    compilation.say(|| done(&output.path, seconds, build.cached));
    Ok(build)
}

/// Builds the program of a text whose classes are in `library`, or finds it. It lies in the cache, from
/// which it goes when others need room.
pub(crate) fn program(
    text: &str,
    library: &Library,
    compilation: &Compilation,
) -> Result<File, CommandError> {
    let loaded = checked(&Configuration::of(text.to_owned()), library)?;
    let (path, _) = compiled(&generate(&loaded, &[], library), compilation)?;
    let opened = File::open(&path);
    Ok(opened.map_err(|e| format!("cannot read {}: {}", path.display(), io_error_text(&e)))?)
}

/// Builds a program, or finds it; its place in the cache.
fn compiled(
    program: &GeneratedProgram,
    compilation: &Compilation,
) -> Result<(PathBuf, Build), CommandError> {
    let sources = SourceTree::find(compilation.source.as_deref())?;
    let toolchain = Toolchain::find()?;
    compilation.say(|| summary(program));
    let cache = Cache::open()?;
    let profile = &compilation.profile;
    let target_cpu = compilation.target_cpu()?;
    // A name may mean another processor elsewhere, and several have the same features.
    let features = toolchain.features(target_cpu)?;
    let (text, version) = (&program.text, toolchain.version());
    let key = cache.key(&[text, sources.hash(), version, profile, target_cpu, &features]);
    let built = cache.find(&key);
    let cached = built.is_some();
    let built = match built {
        Some(built) => built,
        None => {
            let (program, sources, toolchain) = (&program.text, &sources, &toolchain);
            let job = compile::Job { program, sources, toolchain, compilation, target_cpu };
            job.run(&cache, &key)?
        }
    };
    Ok((built, Build { cached, toolchain, sources }))
}

/// Reads the configuration, once, and reports everything that is wrong with it, as `castanet check`.
fn checked(
    configuration: &Configuration,
    library: &Library,
) -> Result<LoadedConfiguration, CommandError> {
    let (mut loaded, _) = load_checked(configuration, library)?;
    crate::lints::silence(&mut loaded.found, &loaded.sources, &[]);
    loaded.report(ErrorStyle::Castanet);
    if loaded.found.has_errors() { Err(CommandError::REPORTED) } else { Ok(loaded) }
}

/// The source of the program.
fn generate(
    loaded: &LoadedConfiguration,
    settings: &[(String, String)],
    library: &Library,
) -> GeneratedProgram {
    // Errors are reported already.
    let mut found = castanet_lang::Diagnostics::new();
    let cores = Cores::here(1, &[]);
    let planned = plan(&loaded.flat, library, &cores, ErrorStyle::Castanet, &mut found);
    let natives = Router::natives(&planned, &Options::new(Arc::new(SilentConsole)));
    GeneratedProgram::of(loaded, settings, &planned.graph, &natives)
}

/// The chains in a word, and the classes that stay as they are.
fn summary(program: &GeneratedProgram) -> String {
    let elements: usize = program.chains.iter().map(Vec::len).sum();
    let chains = match program.chains.len() {
        0 => "no chains to compile".to_owned(),
        1 => format!("1 chain of {elements} elements to compile"),
        n => format!("{n} chains of {elements} elements to compile"),
    };
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (class, reason) in &program.unchanged {
        by_reason.entry(reason).or_default().push(class);
    }
    let lines = by_reason.iter().map(|(reason, classes)| {
        let classes = classes.join(", ");
        format!("\ncastanet: unchanged: {classes} ({reason})")
    });
    chains + &lines.collect::<String>()
}

fn done(output: &Path, seconds: f64, cached: bool) -> String {
    let how = if cached { "was built before; copied in" } else { "built in" };
    format!("{}: {how} {seconds:.1} s", output.display())
}

/// The name of a program where the command line gives none: that of the file without its ending.
fn default_name(origin: &Origin) -> Result<PathBuf, CommandError> {
    let path = match origin {
        Origin::File(path) if path.as_os_str() != "-" => path.clone(),
        Origin::Built(built) => PathBuf::from(built.name()),
        Origin::File(_) | Origin::System(_) | Origin::Expression(_) => {
            return Err(CommandError::usage("name the program to write with -o".to_owned()));
        }
    };
    let name = path.file_stem().filter(|_| path.extension().is_some());
    match name {
        Some(name) => Ok(name.into()),
        None => Err(CommandError::usage(format!(
            "{} has no ending such as .click: name the program to write with -o",
            path.display()
        ))),
    }
}
