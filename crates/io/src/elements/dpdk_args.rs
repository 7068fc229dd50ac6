//! Argument types of `FromDPDKDevice`: the spread over queues, pause frames.

use crate::dpdk::Pause;
use castanet_element::prelude::*;

/// The way in which a port spreads packets over its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "the manual shows the name as users write it")]
pub enum Mode {
    /// By a hash of the packets' addresses and ports.
    rss,
    /// By the driver's default.
    none,
}

impl FromArg for Mode {
    const SYNTAX: &'static str = "rss or none";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_lowercase().as_str() {
            "rss" => Ok(Mode::rss),
            "none" => Ok(Mode::none),
            "vmdq" | "vmdq_rss" | "vmdq_dcb" | "vmdq_dcb_rss" | "dcb" | "dcb_rss" | "flow" => {
                Err(ArgError::new(format!("`{text}` is not supported; what is: {}", Self::SYNTAX)))
            }
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))),
        }
    }
}

/// The use of pause frames; `None` for the driver's default.
#[derive(Clone, Copy)]
pub struct PauseFrames(pub(super) Option<Pause>);

impl FromArg for PauseFrames {
    const SYNTAX: &'static str = "full, rx, tx, none or unset";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Ok(PauseFrames(match text.to_ascii_lowercase().as_str() {
            "full" | "on" => Some(Pause::Full),
            "rx" => Some(Pause::Obey),
            "tx" => Some(Pause::Send),
            "none" | "off" => Some(Pause::None),
            "unset" => None,
            _ => return Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))),
        }))
    }
}
