//! Configurations that replace a running one.

use crate::load::{LoadedConfiguration, Origin, load};
use crate::tenants::{InstalledTexts, load_with};
use crate::terminal::complain;
use castanet_element::class::Library;
use castanet_lang::{Diagnostics, FileId, FlatGraph};
use castanet_runtime::router::{ErrorStyle, HotSwapSource, Options};
use std::path::Path;
use std::sync::Arc;

/// Builds a flat configuration, and adds errors.
type BuildConfiguration<'a> = &'a mut dyn FnMut(&FlatGraph, &mut Diagnostics);

/// The error about a configuration that is right by itself.
const FOREIGN: &str =
    "the configuration cannot run beside those of others; the log of the router says why";

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
    /// Reads a configuration; of a system file, with texts that were installed in place of tenants' files.
    fn load(&self, origin: &Origin, installed: &InstalledTexts) -> LoadedConfiguration {
        let (vars, library, path) = (&self.vars, &self.library, self.clickpath.as_deref());
        match origin {
            Origin::System(file) => {
                load_with(file, vars, library, path, Some(installed)).into_configuration()
            }
            other => load(other, vars, library, path),
        }
    }

    /// Has a configuration built; returns its text. With `own_text`, errors are about that text only.
    ///
    /// # Errors
    /// All errors as one text.
    pub(crate) fn build(
        &self,
        mut loaded: LoadedConfiguration,
        own_text: Option<FileId>,
        build: BuildConfiguration<'_>,
    ) -> Result<String, String> {
        let is_understood = !loaded.found.has_errors();
        if is_understood {
            (self.add)(&mut loaded);
            build(&loaded.flat, &mut loaded.found);
        }
        if !self.warnings {
            loaded.found.remove_warnings();
        }
        let whole = own_text.map(|file| {
            let whole = loaded.rendered(self.wording, false);
            (whole, loaded.keep_messages_about(file))
        });
        if let Some((whole, false)) = whole {
            complain(whole);
            let rest = loaded.rendered(self.wording, false);
            return Err(format!("{rest}\n{FOREIGN}").trim_start().to_owned());
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
            let origin = Origin::Expression(text.to_owned());
            let loaded = reader.load(&origin, &InstalledTexts::new());
            reader.build(loaded, None, build).map(drop)
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

    /// Reads the configuration's file again, or another file; of a system file, with texts that were installed
    /// in place of tenants' files.
    ///
    /// # Errors
    /// There is no file to read. All other errors are among those of the configuration.
    pub(crate) fn load(
        &self,
        file: Option<&Path>,
        installed: &InstalledTexts,
    ) -> Result<LoadedConfiguration, String> {
        let origin = match file {
            Some(file) if matches!(self.origin, Origin::System(_)) => {
                Origin::System(file.to_owned())
            }
            Some(file) => Origin::File(file.to_owned()),
            None if self.has_file() => self.origin.clone(),
            None => {
                return Err("the configuration did not come from a file; name a file".into());
            }
        };
        Ok(self.reader.load(&origin, installed))
    }
}
