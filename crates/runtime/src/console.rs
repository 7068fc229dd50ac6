//! Output of elements and programs.

/// The destination of lines that elements write; implemented by the program.
pub trait Console: Send + Sync {
    /// Writes whole lines to standard error.
    fn chatter(&self, lines: &str);
    /// Writes text to standard output.
    fn print(&self, text: &str);
}

/// A console that drops all lines.
pub struct SilentConsole;

impl Console for SilentConsole {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}
