//! Ends of connections.

/// A port of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Index of the element.
    pub node: usize,
    /// Its port.
    pub port: usize,
}
