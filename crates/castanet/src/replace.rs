//! Texts that replace a running configuration.

use crate::load::{LoadedConfiguration, Origin, load};
use crate::terminal::complain;
use castanet_element::class::Library;
use castanet_runtime::router::{ErrorStyle, HotSwapSource, Options};

/// Parameters with which a text is read as if the command line had named it.
pub(crate) struct ReplacementReader {
    /// The `VAR=value` settings.
    pub(crate) vars: Vec<(String, String)>,
    /// Search path for libraries, if not the environment's.
    pub(crate) clickpath: Option<String>,
    /// Whether to print warnings.
    pub(crate) warnings: bool,
    /// Adds the elements that the command line asks for.
    pub(crate) add: Box<dyn Fn(&mut LoadedConfiguration) + Send>,
}

impl ReplacementReader {
    /// For a router of these classes, built with these options.
    pub(crate) fn replacements(self, library: &Library, options: &Options) -> HotSwapSource {
        let (ours, wording) = (library.clone(), options.error_style);
        let read = move |text: &str, build: &mut dyn FnMut(&_, &mut _)| {
            let origin = Origin::Expression(text.to_owned());
            let mut loaded = load(&origin, &self.vars, &ours, self.clickpath.as_deref());
            let is_understood = !loaded.found.has_errors();
            if is_understood {
                (self.add)(&mut loaded);
                build(&loaded.flat, &mut loaded.found);
            }
            if !self.warnings {
                loaded.found.remove_warnings();
            }
            if loaded.found.has_errors() {
                let mut text = loaded.rendered(wording, false);
                if is_understood && wording == ErrorStyle::Click {
                    text = text + "\n" + crate::click::NOT_INITIALIZED;
                }
                return Err(text);
            }
            if !loaded.found.is_empty() {
                complain(loaded.rendered(wording, false));
            }
            Ok(())
        };
        HotSwapSource { library: library.clone(), options: options.clone(), read: Box::new(read) }
    }
}
