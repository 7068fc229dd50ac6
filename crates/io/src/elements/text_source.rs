//! The input and handlers of elements that make packets from text.

use super::sample_rate::SampleRate;
use crate::error::IoError;
use crate::pcap;
use crate::text_file::LineReader;
use castanet_element::prelude::*;

/// Lines that a turn reads to find a packet; others have their turns before it reads more.
pub(super) const LINES_A_PACKET: usize = 1024;

/// A file, or a text instead of it, and the rate at which its packets are emitted.
#[derive(Clone)]
pub(super) struct TextSource {
    pub(super) filename: Option<String>,
    data: Option<Data>,
    pub(super) sample_rate: SampleRate,
}

impl TextSource {
    /// The source of the arguments FILENAME and DATA, one of which must be given, and SAMPLE.
    pub(super) fn new(
        filename: Option<String>,
        data: Option<Data>,
        sample: f64,
        setup: &Setup,
    ) -> Result<TextSource, ArgError> {
        match (&filename, &data) {
            (Some(_), Some(_)) => Err(ArgError::new("FILENAME and DATA conflict")),
            (None, None) => {
                let error = ArgError::new("is missing; it wants a file, or `-`").at("FILENAME");
                Err(error.click("required argument missing"))
            }
            _ => Ok(TextSource { filename, data, sample_rate: SampleRate::new(sample, setup) }),
        }
    }

    /// The name of the source in messages.
    pub(super) fn name(&self) -> &str {
        self.filename.as_deref().unwrap_or("<data>")
    }

    /// Whether the source is standard input, which a previous element may read until this one
    /// starts.
    pub(super) fn is_standard_input(&self) -> bool {
        self.filename.as_deref() == Some("-")
    }

    pub(super) fn open(&self) -> Result<LineReader, IoError> {
        match &self.data {
            Some(data) => Ok(LineReader::of_text(data.0.clone())),
            None => LineReader::open(self.name()),
        }
    }
}

#[handlers]
impl TextSource {
    /// The probability with which each packet is emitted.
    #[read]
    fn sampling_prob(&self) -> String {
        self.sample_rate.probability()
    }

    /// The header that packets begin with.
    #[read]
    fn encap(&self) -> &'static str {
        "IP"
    }

    /// The file's name.
    #[read]
    fn filename(&self) -> Option<String> {
        self.filename.clone()
    }

    /// The file's size in bytes, or `-` if it has none.
    #[read]
    fn filesize(&self) -> String {
        let data_size = self.data.as_ref().map(|data| data.0.len() as u64);
        let size = data_size.or_else(|| pcap::size(self.filename.as_deref()?));
        size.map_or("-".into(), |size| size.to_string())
    }
}
