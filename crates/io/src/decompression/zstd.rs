//! Files of zstd: one frame after the other.

use super::Source;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, Cursor, Read};

/// Decodes all frames of a file. Windows of more than 128 MiB, which only `zstd --long=28` and beyond
/// make, are errors.
pub(super) struct ZstdReader {
    source: Source,
    decoder: FrameDecoder,
}

impl ZstdReader {
    pub(super) fn new(source: Source) -> ZstdReader {
        ZstdReader { source, decoder: FrameDecoder::new() }
    }

    /// Ends a frame and enters the next one; false at the end of the file. Frames without data are
    /// skipped.
    fn next_frame(&mut self) -> io::Result<bool> {
        let (stated, computed) =
            (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        if stated.is_some() && stated != computed {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum"));
        }
        loop {
            let mut first = [0];
            if self.source.read(&mut first)? == 0 {
                return Ok(false);
            }
            let skipped = match self.decoder.init(Cursor::new(first).chain(&mut self.source)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => u64::from(length),
                Err(error) => return Err(io::Error::other(error)),
            };
            if io::copy(&mut self.source.by_ref().take(skipped), &mut io::sink())? < skipped {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Read for ZstdReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
            } else if !self.next_frame()? {
                return Ok(0);
            }
        }
        self.decoder.read(to)
    }
}
