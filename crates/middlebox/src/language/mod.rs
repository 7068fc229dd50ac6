//! The rule language: from a line to a rule or command, or to what is wrong where.

mod command;
mod fault;
mod lexer;
mod parser;
#[cfg(test)]
pub(crate) mod tests;

pub use command::{COMMANDS, Command, Form, Timeout, Which, command};
pub use fault::Fault;
pub use parser::{TARGETS, rule};

/// All commands of a file, one a line, with where the line begins; or all that is
/// wrong.
pub fn commands(text: &str) -> Result<Vec<(usize, Command)>, Vec<Fault>> {
    let (mut commands, mut faults) = (Vec::new(), Vec::new());
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        match command(line) {
            Ok(Some(command)) => commands.push((start, command)),
            Ok(None) => {}
            Err(fault) => faults.push(fault.later(start)),
        }
        start += line.len();
    }
    if faults.is_empty() { Ok(commands) } else { Err(faults) }
}
