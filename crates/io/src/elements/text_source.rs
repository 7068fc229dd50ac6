//! What elements that make packets of text have in common.

use super::sampling::Sampling;
use crate::error::IoError;
use crate::pcap;
use crate::text_file::LineReader;
use castanet_element::prelude::*;

/// A file, or a text instead of it, and how many of its packets are emitted.
#[derive(Clone)]
pub(super) struct TextSource {
    pub(super) filename: Option<String>,
    data: Option<Data>,
    pub(super) sampling: Sampling,
}

impl TextSource {
    /// One of a file's name and a text, and a probability from 0 to 1.
    pub(super) fn new(
        filename: Option<String>,
        data: Option<Data>,
        sample: f64,
    ) -> Result<TextSource, ArgError> {
        match (&filename, &data) {
            (Some(_), Some(_)) => Err(ArgError::new("FILENAME and DATA conflict")),
            (None, None) => {
                let error = ArgError::new("is missing; it wants a file, or `-`").at("FILENAME");
                Err(error.click("required argument missing"))
            }
            _ => Ok(TextSource { filename, data, sampling: Sampling::new(sample) }),
        }
    }

    /// What messages call it.
    pub(super) fn name(&self) -> &str {
        self.filename.as_deref().unwrap_or("<data>")
    }

    /// Whether it is what others may still read when an element begins.
    pub(super) fn is_standard_input(&self) -> bool {
        self.filename.as_deref() == Some("-")
    }

    pub(super) fn open(&self) -> Result<LineReader, IoError> {
        match &self.data {
            Some(data) => Ok(LineReader::of_text(data.0.clone())),
            None => LineReader::open(self.name()),
        }
    }

    /// The size in bytes, or `-` if it has none.
    pub(super) fn size(&self) -> String {
        let given = self.data.as_ref().map(|data| data.0.len() as u64);
        let size = given.or_else(|| pcap::size(self.filename.as_deref()?));
        size.map_or("-".into(), |size| size.to_string())
    }
}

/// The handlers of a class that has a [`TextSource`] in a field `source`, and of
/// its `Reading`, with a field `active`.
macro_rules! text_handlers {
    ($class:ident, $state:ident) => {
        #[handlers]
        impl $class {
            /// The probability with which each packet is emitted.
            #[read]
            fn sampling_prob(&self) -> f64 {
                self.source.sampling.probability()
            }

            /// What packets begin with.
            #[read]
            fn encap(&self) -> &'static str {
                "IP"
            }

            /// The file's name.
            #[read]
            fn filename(&self) -> Option<String> {
                self.source.filename.clone()
            }

            /// The file's size in bytes, or `-` if it has none.
            #[read]
            fn filesize(&self) -> String {
                self.source.size()
            }
        }

        #[handlers]
        impl $state {
            /// Begins or ceases to emit packets.
            #[write(active)]
            fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
                self.active = bool::from_arg(text.trim(), &Names::default())?;
                Ok(())
            }

            /// Ceases to emit packets, and asks the router to stop.
            #[write(stop, stops)]
            fn stop(&mut self, _: &str) -> Result<(), ArgError> {
                self.active = false;
                Ok(())
            }
        }
    };
}
pub(super) use text_handlers;
