//! From what the command line names to a flat graph.

use crate::program::BuiltConfiguration;
use crate::tenants::TenantConfigurations;
use crate::terminal::complain;
use castanet_element::class::Library;
pub(crate) use castanet_lang::io_error_text;
use castanet_lang::{
    ClassInfo, Diagnostic, Diagnostics, FileId, FlatGraph, Libraries, SourceMap, Span, Tree,
    expand, nearest, parse_with, variables,
};
use castanet_runtime::router::ErrorStyle;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Source of a configuration.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// Text on the command line.
    Expression(String),
    /// A system file of tenants.
    System(PathBuf),
    /// The configuration of the program itself.
    Built(&'static BuiltConfiguration),
}

/// A configuration and its `VAR=value` settings, as a command line names them.
pub(crate) type OriginAndVariables = (Origin, Vec<(String, String)>);

impl Origin {
    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Origin::Expression(_) => "config".to_owned(),
            Origin::File(path) if path.as_os_str() == "-" => "<stdin>".to_owned(),
            Origin::File(path) | Origin::System(path) => path.display().to_string(),
            Origin::Built(built) => built.name().to_owned(),
        }
    }

    /// The configuration of the program itself, if it has one.
    pub(crate) fn built() -> Option<Origin> {
        crate::program::configuration().map(Origin::Built)
    }
}

/// A configuration that has been read, parsed and flattened.
pub(crate) struct LoadedConfiguration {
    /// Every text that took part.
    pub(crate) sources: SourceMap,
    /// Errors and warnings so far.
    pub(crate) found: Diagnostics,
    /// Whether the text was parsed without errors, so that `flat` has all its elements.
    pub(crate) is_parsed: bool,
    /// The tree, if there was a text.
    pub(crate) tree: Option<Tree>,
    /// The text as it was written.
    pub(crate) text: Option<String>,
    /// The flat graph, as far as it could be understood.
    pub(crate) flat: FlatGraph,
    /// Of a system file: the configurations of its tenants.
    pub(crate) tenants: Option<Box<TenantConfigurations>>,
}

/// The library's classes, for the language's checks.
pub(crate) struct LibraryClasses<'a>(pub(crate) &'a Library);

impl ClassInfo for LibraryClasses<'_> {
    fn knows(&self, class: &str) -> bool {
        self.0.names_class(class)
    }
    fn names(&self) -> Vec<&str> {
        self.0.names().collect()
    }
    fn provides(&self, package: &str) -> bool {
        PACKAGES.contains(&package) || self.0.get(package).is_some()
    }
}

/// Names that `require(package NAME)` may give besides classes: the features that Click at user
/// level and FastClick provide by these names are built in. Packages of shared objects cannot be
/// loaded.
pub(crate) const PACKAGES: &[&str] =
    &["batch", "castanet", "click", "fastclick", "int64", "ip6", "umultithread", "userlevel"];

/// `require(library FILE)`: beside the file that asks, then in `CLICKPATH`.
struct LibraryPath {
    /// Folders, with colons between them.
    path: String,
    /// Whether all libraries are among the sources already, as those of a built program are.
    is_complete: bool,
}

impl Libraries for LibraryPath {
    fn library(
        &mut self,
        sources: &mut SourceMap,
        name: &str,
        from: FileId,
    ) -> Result<FileId, String> {
        let beside = Path::new(sources.name(from)).parent().unwrap_or(Path::new("")).join(name);
        let elsewhere = self.path.split(':').filter(|p| !p.is_empty());
        let mut tried = vec![beside];
        tried.extend(
            elsewhere.flat_map(|p| [Path::new(p).join(name), Path::new(p).join("conf").join(name)]),
        );
        let is_there = |path: &&PathBuf| match self.is_complete {
            true => sources.find(&path.display().to_string()).is_some(),
            false => path.is_file(),
        };
        let Some(found) = tried.iter().find(is_there) else {
            let list: Vec<String> = tried.iter().map(|p| p.display().to_string()).collect();
            return Err(format!("library '{name}' not found; looked for {}", list.join(", ")));
        };
        match sources.find(&found.display().to_string()) {
            Some(file) => Ok(file),
            None => sources.load(found).map_err(|e| e.message),
        }
    }
}

/// Reads, parses and expands; everything wrong is in `found`.
///
/// `clickpath` stands in for the environment's `CLICKPATH`.
pub(crate) fn load(
    origin: &Origin,
    vars: &[(String, String)],
    library: &Library,
    clickpath: Option<&str>,
) -> LoadedConfiguration {
    if let Origin::System(path) = origin {
        return crate::tenants::load(path, vars, library, clickpath).into_configuration();
    }
    let mut loaded = open(origin, clickpath);
    if let Some(tree) = &loaded.tree
        && !loaded.found.has_errors()
    {
        loaded.is_parsed = true;
        let (flat, found) = expand(tree, &LibraryClasses(library), vars);
        loaded.flat = flat;
        loaded.found.append(found);
    }
    loaded
}

/// Reads and parses; everything wrong is in `found`.
pub(crate) fn open(origin: &Origin, clickpath: Option<&str>) -> LoadedConfiguration {
    open_in(SourceMap::new(), origin, clickpath)
}

/// [`open`] beside texts that were read before.
pub(crate) fn open_in(
    mut sources: SourceMap,
    origin: &Origin,
    clickpath: Option<&str>,
) -> LoadedConfiguration {
    let (is_complete, clickpath) = match origin {
        Origin::Built(built) => (true, Some(built.library_path)),
        _ => (false, clickpath),
    };
    match read(origin, &mut sources) {
        Ok(file) => parsed(sources, file, clickpath, is_complete),
        Err(error) => {
            let mut loaded = LoadedConfiguration::new(sources);
            loaded.found.push(error);
            loaded
        }
    }
}

/// [`open`] for what was read already, under the name that messages call it.
pub(crate) fn open_bytes(
    name: String,
    bytes: &[u8],
    clickpath: Option<&str>,
) -> LoadedConfiguration {
    let mut sources = SourceMap::new();
    let file = sources.add(name, bytes);
    parsed(sources, file, clickpath, false)
}

fn parsed(
    sources: SourceMap,
    file: FileId,
    clickpath: Option<&str>,
    is_complete: bool,
) -> LoadedConfiguration {
    let path = clickpath.map_or_else(environment_path, str::to_owned);
    let mut neighbours = LibraryPath { path, is_complete };
    let mut loaded = LoadedConfiguration::new(sources);
    loaded.text = Some(loaded.sources.text(file).to_string());
    let (tree, found) = parse_with(&mut loaded.sources, file, &mut neighbours);
    loaded.found.append(found);
    loaded.tree = Some(tree);
    loaded
}

/// The folders in which the environment has libraries looked for.
pub(crate) fn environment_path() -> String {
    std::env::var("CLICKPATH").unwrap_or_default()
}

fn read(origin: &Origin, sources: &mut SourceMap) -> Result<FileId, Diagnostic> {
    match origin {
        Origin::Expression(text) => Ok(sources.add("config", text)),
        Origin::File(path) if path.as_os_str() == "-" => {
            let mut text = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut text)
                .map_err(|e| Diagnostic::error(None, format!("cannot read standard input: {e}")))?;
            Ok(sources.add("<stdin>", text))
        }
        Origin::File(path) | Origin::System(path) => sources.load(path),
        Origin::Built(built) => {
            let files: Vec<FileId> =
                built.texts.iter().map(|(name, bytes)| sources.add(*name, bytes)).collect();
            let none =
                || Diagnostic::error(None, "the program has an empty configuration".to_owned());
            files.first().copied().ok_or_else(none)
        }
    }
}

impl LoadedConfiguration {
    pub(crate) fn new(sources: SourceMap) -> Self {
        let (found, flat) = (Diagnostics::new(), FlatGraph::default());
        LoadedConfiguration {
            sources,
            found,
            is_parsed: false,
            tree: None,
            text: None,
            flat,
            tenants: None,
        }
    }

    /// Adds an element that the command line asks for, in these words.
    pub(crate) fn add(&mut self, name: &str, class: &str, config: &str, words: &str) {
        let file = self.sources.add("command line", words);
        let span = Span { file, start: 0, end: words.len() as u32 };
        self.flat.add(name, class, config, span);
    }

    /// Looks for `VAR=value` settings of variables that the configuration does not mention: errors,
    /// or warnings in Click's wording, for Click takes them silently.
    pub(crate) fn check_settings(&mut self, vars: &[(String, String)], wording: ErrorStyle) {
        let Some(_) = &self.tree else { return };
        let known: BTreeSet<&str> = self.sources.texts().flat_map(variables).collect();
        // A name that is put together may be any that begins so.
        let may_be = |known: &str, name: &str| {
            known.split_once('$').is_some_and(|(begin, _)| name.starts_with(begin))
        };
        let is_known =
            |name: &str| known.contains(name) || known.iter().any(|known| may_be(known, name));
        let mut found = Vec::new();
        for (name, value) in vars.iter().filter(|(name, _)| !is_known(name)) {
            let message = format!("{name}={value}: the configuration has no variable '{name}'");
            let near = nearest(name, known.iter().copied());
            let help = near.map(|near| format!("did you mean '{near}'?")).or_else(|| {
                let list: Vec<_> = known.iter().filter(|it| !it.contains('$')).copied().collect();
                (!list.is_empty() && list.len() < 20).then(|| format!("it has {}", list.join(", ")))
            });
            found.push(match wording {
                ErrorStyle::Castanet => Diagnostic::error(None, message).with_maybe_help(help),
                ErrorStyle::Click => Diagnostic::warning(None, message).with_maybe_help(help),
            });
        }
        found.into_iter().for_each(|diagnostic| self.found.push(diagnostic));
    }

    /// Prints what was found, in one form or the other.
    pub(crate) fn report(&self, wording: ErrorStyle) {
        if !self.found.is_empty() {
            complain(self.rendered(wording, crate::terminal::colours_on_stderr()));
        }
    }

    /// Keeps only messages without a place and those about one text, without notes about others; returns
    /// whether all errors are kept.
    pub(crate) fn keep_messages_about(&mut self, file: FileId) -> bool {
        let errors = self.found.errors();
        let is_own = |span: Option<Span>| span.is_none_or(|span| span.file == file);
        let mut own = Diagnostics::new();
        for mut diagnostic in self.found.iter().filter(|it| is_own(it.span)).cloned() {
            diagnostic.notes.retain(|(span, _)| is_own(*span));
            own.push(diagnostic);
        }
        self.found = own;
        self.found.errors() == errors
    }

    /// The errors and warnings as text, in Click's or in Castanet's wording.
    pub(crate) fn rendered(&self, wording: ErrorStyle, colours: bool) -> String {
        let text = match wording {
            ErrorStyle::Click => self.found.render_click(&self.sources),
            ErrorStyle::Castanet => self.found.render_rich(&self.sources, colours),
        };
        text.trim_end().to_owned()
    }
}
