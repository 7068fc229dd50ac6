//! What the transformations know of element classes, where Click's elements say more than their
//! ports do.

/// How packets may pass through an element, as far as a class differs from "from any input to any
/// output".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// From any input to any output.
    Any,
    /// From none to none: what comes in ends, what goes out begins.
    None,
    /// From any input to output 0; what comes to input 0 also, and nothing else, to the others.
    /// (`ARPQuerier`: responses end in it.)
    FirstInput,
}

/// Whether a packet can come from one port to another.
pub(super) fn passes(class: &str, input: usize, output: usize) -> bool {
    match passage(class) {
        Passage::Any => true,
        Passage::None => false,
        Passage::FirstInput => input == 0 || output == 0,
    }
}

fn passage(class: &str) -> Passage {
    match class {
        "Idle" | "SimpleIdle" | "KernelTun" | "KernelTap" | "Socket" | "RawSocket" => Passage::None,
        "ARPQuerier" => Passage::FirstInput,
        _ => Passage::Any,
    }
}

/// Whether packets begin and end in elements of a class, if that cannot be seen from their ports.
pub(super) fn begins_and_ends(class: &str) -> Option<(bool, bool)> {
    match class {
        "Idle" | "SimpleIdle" => Some((false, false)),
        "KernelTun" | "KernelTap" | "Socket" | "RawSocket" | "RouterLink" => Some((true, true)),
        "ToDump" | "ToIPSummaryDump" | "ToDevice" | "ToDPDKDevice" => Some((false, true)),
        _ => None,
    }
}

/// Whether an element wants to be told how its packets lie in memory. (As FastClick has it: in
/// Click, those that check IP headers do too.)
pub(super) fn wants_alignment(class: &str) -> bool {
    matches!(class, "Classifier" | "UDPIPEncap" | "IPInputCombo")
}
