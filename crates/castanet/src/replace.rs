//! Configurations that replace a running one.

use crate::load::{LoadedConfiguration, Origin, load};
use crate::terminal::complain;
use castanet_element::class::Library;
use castanet_lang::{Diagnostics, FlatGraph};
use castanet_runtime::router::{ErrorStyle, HotSwapSource, Options};
use std::path::Path;
use std::sync::Arc;

/// Builds a flat configuration, and adds errors.
type BuildConfiguration<'a> = &'a mut dyn FnMut(&FlatGraph, &mut Diagnostics);

/// Parameters with which a configuration is read as if the command line had named it.
pub(crate) struct ReplacementReader {
    /// The `VAR=value` settings.
    pub(crate) vars: Vec<(String, String)>,
    /// Search path for libraries, if not the environment's.
    pub(crate) clickpath: Option<String>,
    /// Whether to print warnings.
    pub(crate) warnings: bool,
    /// Adds the elements that the command line asks for.
    pub(crate) add: Box<dyn Fn(&mut LoadedConfiguration) + Send + Sync>,
    /// Its classes.
    pub(crate) library: Library,
    /// Style of error messages.
    pub(crate) wording: ErrorStyle,
}

impl ReplacementReader {
    /// Reads a configuration and has it built; returns its text.
    ///
    /// # Errors
    /// All errors as one text.
    fn read(&self, origin: &Origin, build: BuildConfiguration<'_>) -> Result<String, String> {
        let mut loaded = load(origin, &self.vars, &self.library, self.clickpath.as_deref());
        let is_understood = !loaded.found.has_errors();
        if is_understood {
            (self.add)(&mut loaded);
            build(&loaded.flat, &mut loaded.found);
        }
        if !self.warnings {
            loaded.found.remove_warnings();
        }
        if loaded.found.has_errors() {
            let mut text = loaded.rendered(self.wording, false);
            if is_understood && self.wording == ErrorStyle::Click {
                text = text + "\n" + crate::click::NOT_INITIALIZED;
            }
            return Err(text);
        }
        if !loaded.found.is_empty() {
            complain(loaded.rendered(self.wording, false));
        }
        Ok(loaded.text.unwrap_or_default())
    }

    /// For a router that was built with these options.
    pub(crate) fn source(self: &Arc<Self>, options: &Options) -> HotSwapSource {
        let (library, reader) = (self.library.clone(), self.clone());
        let read = move |text: &str, build: &mut dyn FnMut(&FlatGraph, &mut Diagnostics)| {
            reader.read(&Origin::Expression(text.to_owned()), build).map(drop)
        };
        HotSwapSource { library, options: options.clone(), read: Box::new(read) }
    }
}

/// Reads the file of a running configuration again.
pub(crate) struct Reloader {
    /// The configuration that the command line named.
    pub(crate) origin: Origin,
    pub(crate) reader: Arc<ReplacementReader>,
}

impl Reloader {
    /// Whether the configuration came from a file that can be read again.
    pub(crate) fn has_file(&self) -> bool {
        match &self.origin {
            Origin::File(path) => path.as_os_str() != "-",
            Origin::System(_) => true,
            Origin::Expression(_) | Origin::Built(_) => false,
        }
    }

    /// Reads the configuration's file again, or another file, and has it built; returns its text.
    ///
    /// # Errors
    /// All errors as one text.
    pub(crate) fn read(
        &self,
        file: Option<&Path>,
        build: BuildConfiguration<'_>,
    ) -> Result<String, String> {
        match file {
            Some(file) if matches!(self.origin, Origin::System(_)) => {
                self.reader.read(&Origin::System(file.to_owned()), build)
            }
            Some(file) => self.reader.read(&Origin::File(file.to_owned()), build),
            None if self.has_file() => self.reader.read(&self.origin, build),
            None => Err("the configuration did not come from a file; name a file".into()),
        }
    }
}
