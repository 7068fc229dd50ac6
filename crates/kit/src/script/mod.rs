//! Click's script language: instructions, variables, substitution, functions.
//!
//! A [`Program`] is the parsed instructions, a [`Machine`] is where a run of
//! them stands; everything outside is reached through a [`World`].

mod expand;
mod functions;
mod machine;
mod number;
mod parse;
mod sprintf;

pub use functions::{FUNCTIONS, PRIVATE, call, signal};
pub use machine::{End, Machine, State};
pub use parse::{Mistake, Program};

#[cfg(test)]
mod tests;

/// The most bytes of a value; what would make a longer one fails.
pub const LONGEST: usize = 1 << 20;

/// What a script can reach.
pub trait World {
    /// The name of the script's own element.
    fn name(&self) -> &str;
    /// The name of the script's own element with its class, as messages show it.
    fn label(&self) -> String;
    /// The whole name of a handler that the script may name by less.
    fn full_name(&self, handler: &str) -> String;
    /// Reads a handler; words after its name are the parameter.
    fn read(&mut self, handler: &str) -> Result<String, String>;
    /// Writes a handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String>;
    /// Whether a handler is there to be read, or written.
    fn exists(&mut self, handler: &str, write: bool) -> bool;
    /// Nanoseconds since 1970.
    fn now(&self) -> i64;
    /// Nanoseconds by a clock that is never set.
    fn steady(&self) -> i64;
    /// Sends a signal to a process; what went wrong in the system's words.
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String>;
    /// Random bits.
    fn random(&mut self) -> u64;
    /// The number of the process.
    fn process(&self) -> u32;
    /// Writes to standard output.
    fn print(&mut self, text: &str);
    /// Writes whole lines to standard error.
    fn report(&mut self, text: &str);
    /// Says what went wrong while the script runs.
    fn complain(&mut self, message: &str);
    /// Writes a file, or appends to it.
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String>;
    /// Reads a file of at most [`LONGEST`] bytes for this function.
    fn load(&mut self, function: &str, file: &str) -> Result<String, String>;
}
