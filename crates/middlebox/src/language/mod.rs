//! The rule language: parses lines into rules, commands or errors.

mod command;
mod lexer;
mod parse_error;
mod parser;
#[cfg(test)]
pub(crate) mod tests;

use castanet_kit::parallel;

pub(crate) use command::TIMEOUTS;
pub use command::{
    COMMANDS, Command, ListFormat, RuleSelector, TestPacket, Timeout, command, place,
};
pub use parse_error::ParseError;
pub(crate) use parser::is_keyword;
pub use parser::{TARGETS, rule};

/// Maximum number of errors that are reported.
const MAX_ERRORS: usize = 1000;

/// Parses a file of commands, one a line, each with its offset; or returns up to [`MAX_ERRORS`]
/// errors.
pub fn commands(text: &str) -> Result<Vec<(usize, Command)>, Vec<ParseError>> {
    let chunks = chunks(text);
    let read = parallel::map(&chunks, 1, |&(start, chunk)| commands_in(chunk, start));
    let (mut commands, mut errors) = (Vec::new(), Vec::new());
    for chunk in read {
        match chunk {
            Ok(more) => commands.extend(more),
            Err(more) => errors.extend(more),
        }
    }
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(commands) } else { Err(errors) }
}

/// Divides a text into chunks of whole lines, each with its offset.
fn chunks(text: &str) -> Vec<(usize, &str)> {
    const LENGTH: usize = 1 << 18;
    let (mut chunks, mut start) = (Vec::new(), 0);
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let behind = rest.as_bytes().iter().skip(LENGTH).position(|&byte| byte == b'\n');
        let length = behind.map_or(rest.len(), |at| LENGTH + at + 1);
        chunks.push((start, &rest[..length]));
        start += length;
    }
    chunks
}

/// Parses the commands of a chunk that begins at `start`.
fn commands_in(text: &str, mut start: usize) -> Result<Vec<(usize, Command)>, Vec<ParseError>> {
    let (mut commands, mut errors) = (Vec::new(), Vec::new());
    for line in text.split_inclusive('\n') {
        match command(line) {
            Ok(Some(command)) => commands.push((start, command)),
            Ok(None) => {}
            Err(parse_error) => errors.push(parse_error.shifted(start)),
        }
        if errors.len() > MAX_ERRORS {
            break;
        }
        start += line.len();
    }
    if errors.is_empty() { Ok(commands) } else { Err(errors) }
}
