//! Output of elements and programs.

/// The destination of lines that elements write; implemented by the program.
pub trait Console: Send + Sync {
    /// Writes whole lines to standard error.
    fn chatter(&self, lines: &str);
    /// Writes whole lines to a channel other than the default one. No channel is read unless somebody
    /// subscribes to it.
    fn chatter_on(&self, _channel: &str, _lines: &str) {}
    /// Writes text to standard output.
    fn print(&self, text: &str);
}

/// A console that drops all lines.
pub struct SilentConsole;

impl Console for SilentConsole {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}
