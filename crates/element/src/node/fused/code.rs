//! The code by which a burst goes through the stages of a chain.

/// The code by which a burst goes through the stages of a chain.
pub trait Code {
    /// Whether a stage has stopped a packet before (`ExitLog`).
    const HELD: bool = false;
    /// Whether stages use the code that was compiled for their arguments.
    const NATIVE: bool = false;
    /// Whether the stages that can pass a burst are left out
    /// ([`PerPacket::CAN_PASS_BURST`](crate::element::PerPacket::CAN_PASS_BURST)): all of them pass this one.
    const SHORT: bool = false;
}

/// The elements' own code.
pub(super) struct OwnCode;
impl Code for OwnCode {}

/// The elements' own code, behind a packet that a stage has stopped.
pub(super) struct RemainderCode;
impl Code for RemainderCode {
    const HELD: bool = true;
}

/// The code for the arguments of the elements.
pub(super) struct NativeCode;
impl Code for NativeCode {
    const NATIVE: bool = true;
}

/// The code for the arguments of the elements, without those that pass the burst.
pub(super) struct ShortCode;
impl Code for ShortCode {
    const NATIVE: bool = true;
    const SHORT: bool = true;
}
