//! Patterns of packets as arguments.

use castanet_element::args::{FromArg, Names};
use castanet_element::error::ArgError;
use castanet_kit::classify::Pattern;

/// IP packets, in `IPClassifier`'s language.
pub(crate) struct IpPattern(pub(super) Pattern);

/// Frames, in `Classifier`'s language.
pub(crate) struct FramePattern(pub(super) Pattern);

impl FromArg for IpPattern {
    const SYNTAX: &'static str = "an IP pattern";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(IpPattern(Pattern::ip_with(text, names)?))
    }
}

impl FromArg for FramePattern {
    const SYNTAX: &'static str = "a pattern of bytes";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(FramePattern(Pattern::bytes(text)?))
    }
}
