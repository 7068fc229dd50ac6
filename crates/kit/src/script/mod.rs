//! Click's script language: instructions, variables, substitution and functions.
//!
//! A [`Program`] holds the parsed instructions, and an [`Interpreter`] the state of a run. Scripts
//! access handlers, files and clocks through an [`Environment`].

mod expand;
mod functions;
mod interpreter;
mod number;
mod parse;
mod sprintf;

pub use functions::{FUNCTIONS, PRIVATE, call, signal};
pub use interpreter::{ExitReason, Interpreter, State};
pub use parse::{ParseError, Program};

#[cfg(test)]
mod tests;

/// The largest size of a value in bytes; larger values are errors.
pub const MAX_VALUE_LEN: usize = 1 << 20;

/// The error of a handler that was written.
pub struct WriteError {
    /// The message.
    pub message: String,
    /// The value of `$?`: negative.
    pub status: i32,
}

/// The access of scripts to the router and the system.
pub trait Environment {
    /// The name of the script's own element.
    fn name(&self) -> &str;
    /// The name of the script's own element with its class, for messages.
    fn label(&self) -> String;
    /// The full name of a handler for a name in the script.
    fn full_name(&self, handler: &str) -> String;
    /// Reads a handler; words after its name are the parameter.
    fn read(&mut self, handler: &str) -> Result<String, String>;
    /// Writes a handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), WriteError>;
    /// Whether a read or a write handler exists.
    fn exists(&mut self, handler: &str, write: bool) -> bool;
    /// The time in nanoseconds since 1970; simulated time moves on at each look.
    fn now(&self) -> i64;
    /// The time, without moving it.
    fn peek(&self) -> i64;
    /// The time of a monotonic clock in nanoseconds.
    fn steady(&self) -> i64;
    /// Sends a signal to a process; the error is the system's message.
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String>;
    /// Thirty-one random bits.
    fn random(&mut self) -> u32;
    /// The process id.
    fn process(&self) -> u32;
    /// Writes to standard output.
    fn print(&mut self, text: &str);
    /// Writes whole lines to standard error.
    fn report(&mut self, text: &str);
    /// Reports an error of the running script.
    fn report_error(&mut self, message: &str);
    /// How many errors were reported.
    fn errors(&self) -> usize;
    /// Asks the router to stop.
    fn request_stop(&mut self);
    /// Whether the router was asked to stop.
    fn is_stopping(&self) -> bool;
    /// Writes a file, or appends to it.
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String>;
    /// Reads a file of at most [`MAX_VALUE_LEN`] bytes for this function.
    fn load(&mut self, function: &str, file: &str) -> Result<String, String>;
}
