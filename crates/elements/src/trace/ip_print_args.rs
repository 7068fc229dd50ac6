//! The formats that arguments of `IPPrint` name, and their check.

use super::ip_print::IPPrint;
use castanet_element::prelude::*;
use castanet_element::wire::print::Contents;

/// The format of bytes, as the arguments CONTENTS and PAYLOAD name it.
#[derive(Clone, Copy)]
pub(super) struct ContentsFormat(pub(super) Contents);

impl FromArg for ContentsFormat {
    const SYNTAX: &'static str = "NONE, HEX or ASCII";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let wrong = || ArgError::new(format!("bad contents value '{text}'")).help(Self::SYNTAX);
        Contents::from_word(text).map(ContentsFormat).ok_or_else(wrong)
    }
}

impl Build for IPPrint {
    type Args = IPPrint;

    fn build(it: IPPrint, _: &Setup) -> Result<Self, ArgError> {
        if it.payload.0 != Contents::None && it.contents.0 != Contents::None {
            return Err(ArgError::new("specify at most one of PAYLOAD and CONTENTS"));
        }
        Ok(it)
    }
}
