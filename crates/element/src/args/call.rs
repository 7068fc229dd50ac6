//! Handlers that elements write when something has happened.

use super::{ArgError, FromArg, Names};
use castanet_lang::args::shift_word;

/// A write handler and what to write to it: `q.reset`, `s.goto begin`, `stop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `element.handler`, or a global handler.
    pub handler: String,
    /// The value to write.
    pub value: String,
}

impl FromArg for Call {
    const SYNTAX: &'static str = "a write handler and its value, such as `stop`";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let (handler, value) = shift_word(text);
        if handler.is_empty() {
            return Err(ArgError::new(format!("it wants {}", Self::SYNTAX)).click("syntax error"));
        }
        Ok(Call { handler: handler.to_owned(), value: value.to_owned() })
    }
}
