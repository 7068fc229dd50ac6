//! Arguments that are patterns of packets.

use castanet_element::args::{FromArg, Names};
use castanet_element::error::ArgError;
use castanet_kit::classify::Pattern;

/// A pattern of IP packets, in the language of `IPClassifier`.
pub(crate) struct IpPattern(pub(super) Pattern);

/// A pattern of frames, in the language of `Classifier`.
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
