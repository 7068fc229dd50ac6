//! Facts about element classes that the transformations need and that their ports do not show.

/// Flow code of an element class: the outputs that packets of an input may leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowCode {
    /// Packets flow from any input to any output (Click's `x/x`).
    Any,
    /// Packets flow from no input to an output: the element consumes and creates packets
    /// (Click's `x/y`).
    None,
    /// Packets flow from any input to output 0, and from input 0 to any output. (`ARPQuerier`
    /// consumes responses.)
    FirstInput,
}

/// Whether packets can flow from an input to an output of a class.
pub(super) fn can_flow(class: &str, input: usize, output: usize) -> bool {
    match flow_code(class) {
        FlowCode::Any => true,
        FlowCode::None => false,
        FlowCode::FirstInput => input == 0 || output == 0,
    }
}

fn flow_code(class: &str) -> FlowCode {
    match class {
        "Idle" | "SimpleIdle" | "KernelTun" | "KernelTap" | "Socket" | "RawSocket" => {
            FlowCode::None
        }
        "ARPQuerier" => FlowCode::FirstInput,
        _ => FlowCode::Any,
    }
}

/// Whether elements of a class are sources and sinks of packets; `None` if their ports show it.
pub(super) fn source_and_sink(class: &str) -> Option<(bool, bool)> {
    match class {
        "Idle" | "SimpleIdle" => Some((false, false)),
        "KernelTun" | "KernelTap" | "Socket" | "RawSocket" | "RouterLink" => Some((true, true)),
        "ToDump" | "ToIPSummaryDump" | "ToDevice" | "ToDPDKDevice" => Some((false, true)),
        _ => None,
    }
}

/// Whether `AlignmentInfo` tells elements of a class the alignment of their packets. This is
/// FastClick's list; Click's also has the elements that check IP headers.
pub(super) fn uses_alignment_info(class: &str) -> bool {
    matches!(class, "Classifier" | "UDPIPEncap" | "IPInputCombo")
}
