//! The rule language: from a line to a rule or command, or to what is wrong where.

mod command;
mod fault;
mod lexer;
mod parser;
#[cfg(test)]
pub(crate) mod tests;

use castanet_kit::parallel;

pub use command::{COMMANDS, Command, Form, Sketch, Timeout, Which, command, place};
pub use fault::Fault;
pub(crate) use parser::is_keyword;
pub use parser::{TARGETS, rule};

/// How many faults of a text are kept.
const MOST_FAULTS: usize = 1000;

/// All commands of a file, one a line, with where the line begins; or what is wrong, up to
/// [`MOST_FAULTS`] faults.
pub fn commands(text: &str) -> Result<Vec<(usize, Command)>, Vec<Fault>> {
    let pieces = pieces(text);
    let read = parallel::map(&pieces, 1, |&(start, piece)| commands_of(piece, start));
    let (mut commands, mut faults) = (Vec::new(), Vec::new());
    for piece in read {
        match piece {
            Ok(more) => commands.extend(more),
            Err(more) => faults.extend(more),
        }
    }
    faults.truncate(MOST_FAULTS);
    if faults.is_empty() { Ok(commands) } else { Err(faults) }
}

/// A text in pieces of whole lines, each with where it begins.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    const LENGTH: usize = 1 << 18;
    let (mut pieces, mut start) = (Vec::new(), 0);
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let behind = rest.as_bytes().iter().skip(LENGTH).position(|&byte| byte == b'\n');
        let length = behind.map_or(rest.len(), |at| LENGTH + at + 1);
        pieces.push((start, &rest[..length]));
        start += length;
    }
    pieces
}

/// The commands of a text that begins at `start`.
fn commands_of(text: &str, mut start: usize) -> Result<Vec<(usize, Command)>, Vec<Fault>> {
    let (mut commands, mut faults) = (Vec::new(), Vec::new());
    for line in text.split_inclusive('\n') {
        match command(line) {
            Ok(Some(command)) => commands.push((start, command)),
            Ok(None) => {}
            Err(fault) => faults.push(fault.later(start)),
        }
        if faults.len() > MOST_FAULTS {
            break;
        }
        start += line.len();
    }
    if faults.is_empty() { Ok(commands) } else { Err(faults) }
}
