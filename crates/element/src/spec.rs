//! Declared facts of a class: name, documentation, ports.

use crate::headers::HeaderEffect;

/// The prose, name and ports of a class.
pub struct Spec {
    /// Class name, as configurations spell it.
    pub class: &'static str,
    /// The doc comment of the element's struct.
    pub doc: &'static str,
    /// Path of the source file from the root.
    pub file: &'static str,
    /// The room that the element declares: the protocol or the purpose by which the manual and the
    /// source files of the element library are grouped; `None` for elements of other crates.
    pub room: Option<&'static str>,
    /// Other names of the class that configurations may use.
    pub aliases: &'static [&'static str],
    /// Port counts and processing if not what the trait and the fates say:
    /// Click's port count (`1/1-2`) and processing code (`a/ah`).
    pub ports: Option<&'static str>,
    /// Processing code if not the trait's own.
    pub processing: Option<&'static str>,
    /// Click's flow code: `#/#` where packets of input `n` leave by output `n` only; `x/y` where each port
    /// may push or pull by itself.
    pub flow: Option<&'static str>,
    /// The effect on the headers of packets, if it is not that of the room.
    pub headers: Option<HeaderEffect>,
    /// Name of the view of the packets that leave by the first output, where the element marks them so.
    pub gives: Option<&'static str>,
}

impl Spec {
    /// The effect of elements of this class on the headers of packets.
    pub fn header_effect(&self) -> HeaderEffect {
        self.headers.unwrap_or_else(|| HeaderEffect::of_room(self.room))
    }
}
