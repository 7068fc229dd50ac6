//! `Message`: prints a message, a warning or an error.

use castanet_element::element::ConfigNotice;
use castanet_element::prelude::*;

/// Prints a message or a warning when the configuration is read, or makes it invalid.
///
/// ```click
/// Message("This configuration is deprecated.", WARNING)
/// in -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info", alias = "MessageElement")]
pub struct Message {
    /// The text.
    #[arg]
    message: String,
    /// The type of message; an `ERROR` makes the configuration invalid.
    #[arg(name = "TYPE", default = MessageKind::Message, shown = "MESSAGE")]
    kind: MessageKind,
}

/// The argument TYPE: `MESSAGE`, `WARNING` or `ERROR`.
#[derive(Clone, Copy)]
pub enum MessageKind {
    Message,
    Warning,
    Error,
}

impl FromArg for MessageKind {
    const SYNTAX: &'static str = "MESSAGE, WARNING or ERROR";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_uppercase().as_str() {
            "MESSAGE" => Ok(MessageKind::Message),
            "WARNING" => Ok(MessageKind::Warning),
            "ERROR" => Ok(MessageKind::Error),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("unrecognized TYPE")),
        }
    }
}

impl Info for Message {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let text = self.message.clone();
        match self.kind {
            MessageKind::Message => facts.notices.push(ConfigNotice::Message(text)),
            MessageKind::Warning => facts.notices.push(ConfigNotice::Warning(text)),
            MessageKind::Error => return Err(ArgError::new(text)),
        }
        Ok(())
    }
}
