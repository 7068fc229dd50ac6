//! Lines of a configuration.

use crate::language::{Command, ParseError, command};
use castanet_element::prelude::*;

/// A line of a configuration: a command that adds a rule, defines a set or makes a setting.
pub(crate) struct ConfigLine(pub(crate) Command);

impl ConfigLine {
    /// The file of values that the line names.
    pub(crate) fn file(&self) -> Option<String> {
        match &self.0 {
            Command::LoadSet(_, file) => Some(file.clone()),
            _ => None,
        }
    }
}

impl FromArg for ConfigLine {
    const SYNTAX: &'static str = "a rule, such as `tcp-dport 80 mod tcp-dport 443`";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        // A rule with commas stands in quotes as a whole.
        let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let (line, shift) = inner.map_or((text, 0), |line| (line, 1));
        let command = command(line).map_err(|error| {
            // The rest of a list behind a comma is an argument of its own.
            let is_number = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
            let quotes = "what has commas stands in quotes: `\"tcp-dport 80,443 drop\"`";
            let help = error.help.clone().filter(|_| !is_number);
            ParseError { help: help.or(is_number.then(|| quotes.into())), ..error.shifted(shift) }
        })?;
        match command {
            Some(
                it @ (Command::Add(_)
                | Command::SetNonIpPolicy(_)
                | Command::SetTimeout(..)
                | Command::ChangeSet(..)
                | Command::LoadSet(..)),
            ) => Ok(ConfigLine(it)),
            _ => Err(ArgError::new(format!("`{text}` is not {}", ConfigLine::SYNTAX))),
        }
    }
}
