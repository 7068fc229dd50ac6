//! `Message`: a word about the configuration.

use castanet_engine::element::Said;
use castanet_engine::prelude::*;

/// Says something when the configuration is read, or that it is wrong.
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
    /// What to say.
    #[arg]
    message: String,
    /// Whether it is a message, a warning, or an error that ends it all.
    #[arg(name = "TYPE", default = Kind::Message)]
    kind: Kind,
}

/// `MESSAGE`, `WARNING` or `ERROR`.
#[derive(Clone, Copy)]
pub enum Kind {
    Message,
    Warning,
    Error,
}

impl FromArg for Kind {
    const SYNTAX: &'static str = "MESSAGE, WARNING or ERROR";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_uppercase().as_str() {
            "MESSAGE" => Ok(Kind::Message),
            "WARNING" => Ok(Kind::Warning),
            "ERROR" => Ok(Kind::Error),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("unrecognized TYPE")),
        }
    }
}

impl Info for Message {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        let text = self.message.clone();
        match self.kind {
            Kind::Message => facts.said.push(Said::Message(text)),
            Kind::Warning => facts.said.push(Said::Warning(text)),
            Kind::Error => return Err(ArgError::new(text)),
        }
        Ok(())
    }
}
