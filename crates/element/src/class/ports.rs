//! Port counts and processing codes of classes.

use super::{Class, Role};
use crate::fate::{FateKind, MAX_OUTPUTS};
use crate::flow::Flow;

/// How many ports a class may have on each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Fewest and most inputs.
    pub inputs: (usize, usize),
    /// Fewest and most outputs.
    pub outputs: (usize, usize),
}

/// The port counts of a class: what it says, or what its role and fates say.
pub fn counts(class: &Class) -> Counts {
    if let Some(text) = class.spec.ports {
        let (inputs, outputs) = text.split_once('/').unwrap_or((text, text));
        let inputs = range(inputs);
        return Counts { inputs, outputs: if outputs == "=" { inputs } else { range(outputs) } };
    }
    let inputs = match class.role {
        Role::Through | Role::Duplex | Role::Store => (1, 1),
        Role::Source | Role::Info | Role::Control => (0, 0),
    };
    let outputs = if class.open_outputs {
        (1, MAX_OUTPUTS)
    } else {
        let of =
            |kinds: &[FateKind]| class.fates.iter().filter(|f| kinds.contains(&f.kind)).count();
        (of(&[FateKind::Output]), of(&[FateKind::Output, FateKind::Optional]))
    };
    Counts { inputs, outputs }
}

/// `1`, `1-2`, `1-` or `-` as Click writes port counts.
fn range(text: &str) -> (usize, usize) {
    let number = |s: &str, default| s.parse().unwrap_or(default);
    match text.split_once('-') {
        None => (number(text, 0), number(text, 0)),
        Some((low, high)) => (number(low, 0), number(high, MAX_OUTPUTS)),
    }
}

/// Click's processing code of a class, such as `a/ah`.
pub fn code(class: &Class) -> &'static str {
    let outputs = class.outputs().count();
    match (class.spec.processing, class.role) {
        (Some(code), _) => code,
        (None, Role::Store) => "h/lh",
        (None, Role::Source) => "a/ah",
        (None, Role::Duplex) => "a/h",
        (None, _) if class.open_outputs => "h/h",
        (None, _) if outputs > 1 => "a/ah",
        (None, _) => "a/a",
    }
}

/// The processing of port `port` on side `0` (inputs) or `1` (outputs) of a code; the last letter holds for
/// all further ports.
pub fn letter(code: &str, side: usize, port: usize) -> Flow {
    let letters = code.split('/').nth(side).unwrap_or(code).as_bytes();
    match letters.get(port).or(letters.last()) {
        Some(b'h') => Flow::Push,
        Some(b'l') => Flow::Pull,
        _ => Flow::Agnostic,
    }
}

/// Whether a port of side `0` (inputs) or `1` (outputs) may push or pull.
pub fn is_agnostic(class: &Class, side: usize, port: usize) -> bool {
    letter(code(class), side, port) == Flow::Agnostic
}

/// Whether input `n` has to do with output `n` only.
pub fn paired(class: &Class) -> bool {
    class.spec.flow == Some("#/#")
}

/// Whether every agnostic port is decided by itself.
pub fn apart(class: &Class) -> bool {
    class.spec.flow == Some("x/y")
}
